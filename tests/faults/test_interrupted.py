"""Ctrl-C and SIGTERM at every moment: what is said is what is so, and 130 means that nothing was published."""

from __future__ import annotations

import signal
import subprocess
import sys
import textwrap
from pathlib import Path

import pytest

from anonflow import engine
from anonflow.engine.execution.events import Cancelled, Event, EventStream, StepDone
from tests import ROOT
from tests.cases.flow_files import REPORTED, everything_in, write_flow
from tests.faults.processes import EVERYTHING, anonflow, changed, environment, published

QUIET = ("--quiet", "--log-level", "error")

MESSAGE = "anonflow: interrupted; nothing was published\n"

BOTH = pytest.mark.parametrize("number", [signal.SIGINT, signal.SIGTERM], ids=["ctrl-c", "sigterm"])

AT = """
import os, signal, sys
import anonflow.engine
from anonflow.engine import publish
from anonflow.engine.owner import folder

runner = sys.modules["anonflow.engine.run"]._Runner

def then(function):
    def interrupted(*given, **named):
        result = function(*given, **named)
        os.kill(os.getpid(), {number})
        return result
    return interrupted

{change}
"""
"""A signal that comes right after something."""

MOMENTS = {
    "the table is written": "publish.write_described = then(publish.write_described)",
    "the certificate is written": "folder.OwnerFolder.write_certificate = then(folder.OwnerFolder.write_certificate)",
    "the record is written": "folder.OwnerFolder.write_record = then(folder.OwnerFolder.write_record)",
    "the run is published": "runner._publish = then(runner._publish)",
    "the run is over": "runner.run = then(runner.run)",
}


@pytest.mark.slow
@pytest.mark.parametrize(
    ("moment", "number"),
    [*((moment, signal.SIGINT) for moment in MOMENTS), ("the record is written", signal.SIGTERM)],
)
def test_once_it_publishes_a_run_is_finished_and_says_so(
    tmp_path: Path, moment: str, number: signal.Signals
) -> None:
    """Fault: a signal once files are written. Said: that it is done, status 0. On disk: everything."""
    flow = write_flow(tmp_path, publish=REPORTED)
    done = changed(AT.format(number=int(number), change=MOMENTS[moment]), "run", flow, *QUIET)
    assert done.returncode == 0, done.stderr
    assert done.stderr == "anonflow: interrupted too late to be stopped: everything is done and published\n"
    assert "published" in done.stdout
    assert published(tmp_path) == EVERYTHING
    assert (tmp_path / "owner" / "test" / "record.json").exists()


BEFORE = {
    "the table is read": "runner._plan = then(runner._plan)",
    "the release is drawn": "runner._draw = then(runner._draw)",
}


@pytest.mark.slow
@pytest.mark.parametrize(
    ("moment", "pieces", "number"),
    [
        ("the table is read", "false", signal.SIGINT),
        ("the table is read", "20", signal.SIGTERM),
        ("the release is drawn", "false", signal.SIGTERM),
        ("the release is drawn", "20", signal.SIGINT),
    ],
)
def test_before_it_publishes_nothing_is_left(
    tmp_path: Path, moment: str, pieces: str, number: signal.Signals
) -> None:
    """Fault: a signal in a run. Said: nothing was published, 130. On disk: nothing published, nothing put aside."""
    flow = write_flow(tmp_path, source=f"{{csv: people.csv, pieces: {pieces}}}", publish=REPORTED)
    done = changed(AT.format(number=int(number), change=BEFORE[moment]), "run", flow, *QUIET)
    assert done.returncode == 130, done.stderr
    assert done.stderr == MESSAGE
    left = everything_in(tmp_path)
    assert not (tmp_path / "out").exists()
    assert not [name for name in left if "pieces-" in name or "lock" in name]
    assert anonflow("run", flow, *QUIET).returncode == 0


IMPORTING = """
import os, signal, sys

class Signalled:
    before, left = 60, {count}  # Python and the first modules import about 20

    def find_spec(self, *given):
        if signal.getsignal(signal.SIGTERM) is signal.SIG_DFL:  # ours is not there yet
            Signalled.before -= 1
            if Signalled.before == 0:
                os._exit(1)
            return
        Signalled.left -= 1
        if Signalled.left == 0:
            os.kill(os.getpid(), {number})

sys.meta_path.insert(0, Signalled())
"""
"""A signal at an import; our handlers come before all but the first ones."""


@pytest.mark.slow
@BOTH
def test_while_it_imports_it_ends_at_once(tmp_path: Path, number: signal.Signals) -> None:
    """Fault: a signal in the first second. Said: one sentence, 130; never a traceback. On disk: nothing."""
    flow = write_flow(tmp_path, publish=REPORTED)
    before = everything_in(tmp_path)
    for count in (1, 3, 10, 30, 100, 200, 400, 800):
        done = changed(IMPORTING.format(count=count, number=int(number)), "run", flow, *QUIET)
        assert (done.returncode, done.stdout, done.stderr) == (130, "", MESSAGE)
        assert {name for name in everything_in(tmp_path) if not name.startswith("owner")} <= before


LATE = {
    # among Python's exit functions, which may take any time: the process ends at once
    "it leaves": """
    from anonflow.cli import interrupts
    over = interrupts.Interrupts.over
    def then(self, status):
        over(self, status)
        atexit.register(signalled, 600)
    interrupts.Interrupts.over = then
    """,
    # behind them, when Python has let go of all handlers: it is ignored
    "it has left": """
    atexit.register(signalled, 1)
    """,
}


@pytest.mark.slow
@BOTH
@pytest.mark.parametrize("moment", LATE)
def test_at_shutdown_the_status_is_that_of_what_was_done(
    tmp_path: Path, number: signal.Signals, moment: str
) -> None:
    """Fault: a signal while the process ends. Said: nothing more. The status: 0, as what was said before."""
    late = f"""
    import atexit, os, time
    def signalled(seconds):
        os.kill(os.getpid(), {int(number)})
        time.sleep(seconds)
    {LATE[moment]}
    """
    done = changed(late, "run", write_flow(tmp_path, publish=REPORTED), *QUIET, timeout=300)
    assert (done.returncode, done.stderr) == (0, "")
    assert published(tmp_path) == EVERYTHING


@pytest.mark.slow
def test_a_run_that_cannot_clean_up_ends_at_the_third_signal(tmp_path: Path) -> None:
    """Fault: what is put aside cannot be removed. Said: the sentence, 130."""
    stuck = """
    import os, sys, time
    import anonflow.engine
    from anonflow.cli import interrupts
    from anonflow.engine.storage import disk
    handle = interrupts.Interrupts._handle
    def heard(*given):
        try:
            return handle(*given)
        finally:
            os.write(1, b"heard\\n")
    interrupts.Interrupts._handle = heard
    runner = sys.modules["anonflow.engine.run"]._Runner
    def plan(*given):
        print("here", flush=True)
        time.sleep(60)
    def forever(*given):
        while True:
            time.sleep(1)
    runner._plan = plan
    disk.OnDisk.__exit__ = forever
    """
    flow = write_flow(tmp_path, source="{csv: people.csv, pieces: 20}", publish=REPORTED)
    code = textwrap.dedent(stuck) + "\nfrom anonflow.cli import main\nmain()\n"
    with subprocess.Popen(
        [sys.executable, "-c", code, "run", str(flow), *QUIET],
        stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True, env=environment(),
    ) as running:  # fmt: skip
        try:
            assert running.stdout is not None
            running.stdout.readline()
            for _ in range(2):  # a signal that comes before the last one was counted may not count
                running.send_signal(signal.SIGINT)
                assert running.stdout.readline() == "heard\n"
            running.send_signal(signal.SIGINT)
            _, err = running.communicate(timeout=30)
        finally:
            running.kill()
    assert (running.returncode, err) == (130, MESSAGE)


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
