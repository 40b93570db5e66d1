"""Ctrl-C and SIGTERM at every moment: what is said is what is so, and 130 means that nothing was published."""

from __future__ import annotations

import os
import signal
import subprocess
import sys
import textwrap
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from anonflow import cli, engine
from anonflow.cli.interrupts import INTERRUPTS
from anonflow.engine import publish
from anonflow.engine.execution.events import Cancelled, Event, EventStream, StepDone
from anonflow.engine.owner import folder
from anonflow.engine.storage.storage import Storage
from tests import ROOT
from tests.cases.flow_files import REPORTED, everything_in, write_flow
from tests.faults.processes import EVERYTHING, changed, published

RUNNER = sys.modules["anonflow.engine.run"]._Runner

QUIET = ("--quiet", "--log-level", "error")

MESSAGE = "anonflow: interrupted; nothing was published\n"

TOO_LATE = "anonflow: interrupted too late to be stopped: everything is done and published\n"


class Exit(BaseException):
    """The end of the process, at once."""


def ended(
    capfd: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch, *arguments: object
) -> tuple[int, str, str]:
    """The command in this process, to whose handler a test gives signals: exit status, stdout, stderr."""

    def leave(status: int) -> None:
        raise Exit(status)

    monkeypatch.setattr(os, "_exit", leave)
    with pytest.raises((Exit, SystemExit)) as caught:
        cli.main([str(argument) for argument in arguments])
    return int(caught.value.args[0] or 0), *capfd.readouterr()


def signalled(number: int = signal.SIGINT) -> None:
    """A signal to the command that is at work."""
    INTERRUPTS._handle(number, None)


def then(function: Callable[..., Any], number: int) -> Callable[..., Any]:
    """The function, with a signal right after it."""

    def interrupted(*arguments: Any, **options: Any) -> Any:
        result = function(*arguments, **options)
        signalled(number)
        return result

    return interrupted


AFTER = {
    "the table is written": (publish, "write_described"),
    "the certificate is written": (folder.OwnerFolder, "write_certificate"),
    "the record is written": (folder.OwnerFolder, "write_record"),
    "the run is published": (RUNNER, "_publish"),
    "the run is over": (RUNNER, "run"),
}


@pytest.mark.parametrize("moment", AFTER)
def test_once_it_publishes_a_run_is_finished_and_says_so(
    tmp_path: Path, capfd: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch, moment: str
) -> None:
    """Fault: a signal once files are written. Said: that it is done, status 0. On disk: everything."""
    flow = write_flow(tmp_path, publish=REPORTED)
    home, name = AFTER[moment]
    monkeypatch.setattr(home, name, then(getattr(home, name), signal.SIGINT))
    status, out, err = ended(capfd, monkeypatch, "run", flow, *QUIET)
    assert (status, err) == (0, TOO_LATE)
    assert "published" in out
    assert published(tmp_path) == EVERYTHING
    assert (tmp_path / "owner" / "test" / "record.json").exists()


@pytest.mark.parametrize("pieces", ["false", "20"])
@pytest.mark.parametrize("step", ["_plan", "_draw"])
def test_before_it_publishes_nothing_is_left(
    tmp_path: Path,
    capfd: pytest.CaptureFixture[str],
    monkeypatch: pytest.MonkeyPatch,
    step: str,
    pieces: str,
) -> None:
    """Fault: a signal once the table is read, or the release drawn. Said: nothing was published, 130. On disk: nothing put aside."""
    flow = write_flow(tmp_path, source=f"{{csv: people.csv, pieces: {pieces}}}", publish=REPORTED)
    with monkeypatch.context() as patch:
        patch.setattr(RUNNER, step, then(getattr(RUNNER, step), signal.SIGINT))
        assert ended(capfd, patch, "run", flow, *QUIET) == (130, "", MESSAGE)
    left = everything_in(tmp_path)
    assert not (tmp_path / "out").exists()
    assert not [name for name in left if "pieces-" in name or "lock" in name]
    assert ended(capfd, monkeypatch, "run", flow, *QUIET)[0] == 0


SIGNALLED = """
import os, sys
import anonflow.engine
from anonflow.engine.owner import folder

runner = sys.modules["anonflow.engine.run"]._Runner

def then(function):
    def interrupted(*arguments, **options):
        result = function(*arguments, **options)
        os.kill(os.getpid(), {number})
        return result
    return interrupted

{place} = then({place})
"""
"""A signal that comes right after something."""


@pytest.mark.slow
@pytest.mark.machine
@pytest.mark.parametrize(
    ("place", "number", "pieces", "status", "message", "files"),
    [
        ("folder.OwnerFolder.write_record", signal.SIGTERM, "false", 0, TOO_LATE, EVERYTHING),
        ("runner._plan", signal.SIGTERM, "20", 130, MESSAGE, set()),
        ("runner._draw", signal.SIGINT, "20", 130, MESSAGE, set()),
    ],
    ids=["the record is written", "the table is read", "the release is drawn"],
)
def test_a_process_that_gets_a_signal(
    tmp_path: Path,
    place: str,
    number: signal.Signals,
    pieces: str,
    status: int,
    message: str,
    files: set[str],
) -> None:
    """The same of a process and its signals."""
    flow = write_flow(tmp_path, source=f"{{csv: people.csv, pieces: {pieces}}}", publish=REPORTED)
    done = changed(SIGNALLED.format(place=place, number=int(number)), "run", flow, *QUIET)
    assert (done.returncode, done.stderr) == (status, message)
    assert published(tmp_path) == files
    assert not [name for name in everything_in(tmp_path) if "pieces-" in name or "lock" in name]


IMPORTING = """
import os, signal, sys

NUMBERS = {numbers}
COUNTS = {counts}

class Signalled:
    \"\"\"At some imports, a child gets the signal, and its status and words are printed.\"\"\"

    before, count, ends = 60, 0, []  # Python and the first modules import about 20

    def find_spec(self, *given):
        if signal.getsignal(signal.SIGTERM) is signal.SIG_DFL:  # ours is not there yet
            Signalled.before -= 1
            if Signalled.before == 0:
                os._exit(1)
            return
        Signalled.count += 1
        if Signalled.count in COUNTS:
            for number in NUMBERS:
                self.signal_child(number)
            if Signalled.count == max(COUNTS):
                print(Signalled.ends, flush=True)
                os._exit(0)

    def signal_child(self, number):
        there, here = os.pipe()
        child = os.fork()
        if child == 0:
            os.dup2(here, 1)
            os.dup2(here, 2)
            os.kill(os.getpid(), number)
            return
        os.close(here)
        with os.fdopen(there, "rb") as words:
            text = words.read().decode()
        Signalled.ends.append((os.waitstatus_to_exitcode(os.waitpid(child, 0)[1]), text))

sys.meta_path.insert(0, Signalled())
"""
"""Signals at imports; our handlers come before all but the first ones."""


@pytest.mark.slow
@pytest.mark.machine
def test_while_it_imports_it_ends_at_once(tmp_path: Path) -> None:
    """Fault: a signal in the first second. Said: one sentence, 130; never a traceback. On disk: nothing."""
    flow = write_flow(tmp_path, publish=REPORTED)
    before = everything_in(tmp_path)
    counts = (1, 3, 10, 30, 100, 200, 400, 800)
    numbers = [int(signal.SIGINT), int(signal.SIGTERM)]
    done = changed(IMPORTING.format(counts=counts, numbers=numbers), "run", flow, *QUIET)
    assert done.returncode == 0, done.stderr
    assert done.stdout == f"{[(130, MESSAGE)] * len(counts) * len(numbers)}\n"
    assert everything_in(tmp_path) == before


LATE = {
    # among Python's exit functions, which may take any time: the process ends at once
    "it leaves": """
    from anonflow.cli import interrupts
    over = interrupts.Interrupts.over
    def over_then_signalled(self, status):
        over(self, status)
        atexit.register(signalled, ending=True)
    interrupts.Interrupts.over = over_then_signalled
    """,
    # behind them, when Python has let go of all handlers: it is ignored
    "it has left": """
    atexit.register(signalled, ending=False)
    """,
}


@pytest.mark.slow
@pytest.mark.machine
@pytest.mark.parametrize("moment", LATE)
def test_at_shutdown_the_status_is_that_of_what_was_done(tmp_path: Path, moment: str) -> None:
    """Fault: a signal while the process ends. Said: nothing more. The status: 0, as what was said before."""
    late = f"""
    import atexit, os, signal
    def signalled(ending):
        for number in (signal.SIGINT, signal.SIGTERM):
            child = os.fork()
            if child == 0:
                os.kill(os.getpid(), number)
                os._exit(7 if ending else 0)
            if os.waitstatus_to_exitcode(os.waitpid(child, 0)[1]):
                os._exit(9)
    {LATE[moment]}
    """
    done = changed(late, "run", write_flow(tmp_path, publish=REPORTED), *QUIET)
    assert (done.returncode, done.stderr) == (0, "")
    assert published(tmp_path) == EVERYTHING


def test_a_run_that_cannot_clean_up_ends_at_the_third_signal(
    tmp_path: Path, capfd: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    """Fault: what is put aside cannot be removed. Said: the sentence, 130."""
    signals: list[int] = []

    def again(*_: object) -> None:
        signals.append(len(signals))
        signalled()

    def stuck(*_: object) -> None:
        again()
        again()
        raise AssertionError("the third signal ends the process")

    monkeypatch.setattr(RUNNER, "_plan", again)
    monkeypatch.setattr(Storage, "__exit__", stuck)
    flow = write_flow(tmp_path, source="{csv: people.csv, pieces: 20}", publish=REPORTED)
    assert ended(capfd, monkeypatch, "run", flow, *QUIET) == (130, "", MESSAGE)
    assert len(signals) == 3


def test_cancelled_when_it_publishes_is_too_late(tmp_path: Path) -> None:
    """The same for who runs a flow from Python: published is published, and the report says so."""
    stream = EventStream()

    def listen(event: Event) -> None:
        if isinstance(event, StepDone) and event.step == "publish":
            stream.cancel()

    report = engine.run(write_flow(tmp_path, publish=REPORTED), on_event=listen, events=stream, workers=1)
    assert report.ok
    assert stream.publishing
    assert {path.name for path in report.published} == published(tmp_path) == EVERYTHING


def test_cancelled_before_it_publishes_is_in_time(tmp_path: Path) -> None:
    stream = EventStream()

    def listen(event: Event) -> None:
        if isinstance(event, StepDone) and event.step == "verify":
            stream.cancel()

    with pytest.raises(Cancelled):
        engine.run(write_flow(tmp_path, publish=REPORTED), on_event=listen, events=stream, workers=1)
    assert not stream.publishing
    assert not (tmp_path / "out").exists()


def test_the_handlers_come_before_anything_that_takes_time() -> None:
    """Fault: a signal in the first hundredths of a second. What Python has not loaded yet cannot be interrupted."""
    code = """
    import os, signal, sys
    before = set(sys.modules)
    def handler(number, action):
        loaded = {name for name in set(sys.modules) - before if not name.startswith("anonflow")}
        print(*sorted(loaded - {"__future__", "atexit"}))
        sys.exit(0)
    signal.signal = handler
    from anonflow.cli import main
    main(["algorithms"])
    """
    done = subprocess.run(
        [sys.executable, "-I", "-S", "-c", f"import sys; sys.path.insert(0, {str(ROOT)!r})\n{textwrap.dedent(code)}"],
        capture_output=True, text=True, check=False, timeout=300,
    )  # fmt: skip
    assert (done.returncode, done.stdout.split(), done.stderr) == (0, [], "")
