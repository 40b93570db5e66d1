"""Standard streams and a working folder that are not there: the run is not to blame, and its status says what is so."""

from __future__ import annotations

import json
import os
import subprocess
from collections.abc import Iterator
from pathlib import Path

import pytest

from tests.cases.flow_files import REPORTED, write_flow
from tests.cases.runs import shell
from tests.faults.processes import COMMAND, EVERYTHING, Forks, anonflow, changed, environment, published

pytestmark = pytest.mark.slow


@pytest.fixture(scope="module")
def forks(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Forks]:
    process = Forks(tmp_path_factory.mktemp("streams"))
    yield process
    process.close()


def in_shell(folder: Path, line: str) -> subprocess.CompletedProcess[str]:
    return subprocess.run(
        ["bash", "-c", line],
        env=environment(), cwd=folder, capture_output=True, text=True, check=False, timeout=300,
    )  # fmt: skip


INCOMPLETE = "anonflow: the standard output cannot be written ({}); the work itself is done, and its files are published"
DELETED = "anonflow: the working folder has been deleted; go to another one with 'cd' and run again"


def test_a_shell_closes_and_fills_streams(tmp_path: Path) -> None:
    """The wiring: Python begins without the stream; the others below are children of one process."""
    write_flow(tmp_path, publish=REPORTED)
    command = " ".join(COMMAND)
    done = in_shell(tmp_path, f"{command} run flow.yaml 2>&-")
    assert done.returncode == 0
    assert "published" in done.stdout
    done = in_shell(tmp_path, f"{command} run flow.yaml --again >/dev/full")
    assert done.returncode == 3
    assert done.stderr.splitlines()[-1] == INCOMPLETE.format("No space left on device")


def test_a_closed_stderr_changes_nothing(tmp_path: Path, forks: Forks) -> None:
    """Fault: nobody can be told. The status: 0. On disk: everything, and no word in it."""
    for stderr, *more in ((None,), ("/dev/full",), ("left",), (None, "--json")):
        folder = tmp_path / f"{stderr} {more}".replace("/", "")
        folder.mkdir()
        write_flow(folder, publish=REPORTED)
        done = forks.run(folder, "run", "flow.yaml", *more, stderr=stderr)
        assert done.returncode == 0, folder
        assert "published" in done.stdout, folder
        assert published(folder) == EVERYTHING, folder
        assert (folder / "out" / "release.csv").read_text().startswith("age,city,income\n"), folder


def test_a_closed_stream_leaves_a_wrong_status(tmp_path: Path, forks: Forks) -> None:
    """Nothing to write needs no stdout, either."""
    write_flow(tmp_path, anonymize="{algorithm: greedy, k: 1}", publish=REPORTED)
    assert forks.run(tmp_path, "run", "flow.yaml", stderr=None).returncode == 2
    assert forks.run(tmp_path, "run", "flow.yaml", stdout=None).returncode == 2


def test_an_incomplete_stdout_is_status_3(tmp_path: Path, forks: Forks) -> None:
    """Fault: the results cannot be read. Said: that the work is done all the same. On disk: everything."""
    for stdout, why in (("/dev/full", "No space left on device"), (None, "Bad file descriptor")):
        folder = tmp_path / why
        folder.mkdir()
        write_flow(folder, publish=REPORTED)
        done = forks.run(folder, "run", "flow.yaml", stdout=stdout)
        assert done.returncode == 3, why
        assert done.stderr.splitlines()[-1] == INCOMPLETE.format(why)
        assert published(folder) == EVERYTHING, why


def test_a_reader_that_leaves_is_told_nothing(tmp_path: Path, forks: Forks) -> None:
    for arguments in (("schema", "--flow"), ("datasets",)):
        done = forks.run(tmp_path, *arguments, stdout="left")
        assert (done.returncode, done.stderr) == (3, ""), arguments


def test_a_stdout_that_is_closed_from_the_start_is_no_bug(tmp_path: Path, forks: Forks) -> None:
    done = forks.run(tmp_path, "datasets", stdout=None)
    assert done.returncode == 3
    assert len(done.stderr.splitlines()) == 1
    assert "the standard output cannot be written" in done.stderr


def test_a_deleted_working_folder(tmp_path: Path) -> None:
    """Fault: the folder that one is in has been deleted. Said: what to do, status 2, each time in a process that begins there."""
    for arguments in ("run flow.yaml", "schema people.csv", "validate flow.yaml"):
        gone = tmp_path / "gone"
        gone.mkdir()
        done = in_shell(gone, f'rmdir "$PWD"; {" ".join(COMMAND)} {arguments}')
        assert done.returncode == 2, done.stderr
        assert done.stderr.splitlines()[-1] == DELETED, arguments
        assert "Traceback" not in done.stderr
        assert "bug" not in done.stderr


def test_control_characters_reach_no_terminal(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    """Fault: names with what a terminal takes for an order. Said: escapes, in results, warnings, errors and guesses."""
    names = ["a\x1b[31mg\x7fe", "ci\u202ety", "z\x9bip", "in\x07come"]
    data = ",".join(names) + "\n" + "".join(f"{20 + i},A{i % 3},1,low\n" for i in range(40))
    columns = (
        '    "a\\e[31mg\\x7Fe": {role: quasi-identifier, kind: numeric}\n'
        '    "ci\\u202Ety": {role: quasi-identifier, kind: categorical}\n'
        '    "in\\acome": {role: sensitive}\n'
    )
    flow = write_flow(tmp_path, data=data.encode(), columns=columns, publish=REPORTED)
    table = tmp_path / "people.csv"
    release = tmp_path / "out" / "release.csv"
    runs = [
        ("run", flow),
        ("run", flow, "--again", "--json", "--log-level", "debug"),
        ("validate", flow),
        ("schema", table),
        ("verify", "--original", table, "--release", release, "--schema", flow, "--k", "9"),
        ("verify", "--original", table, "--release", release, "--schema", flow, "--k", "3", "--json"),
        ("compare", table, "--schema", flow, "--k", "3"),
        ("describe", "--original", table, "--release", release, "--schema", flow),
        ("describe", "--release", release, "--schema", flow, "--json"),
        ("attack", "--original", table, "--release", release, "--schema", flow, "--k", "3"),
        ("attack", "--release", release, "--schema", flow, "--k", "3", "--json"),
        ("risk", table, "--schema", flow, "--owner", "--fraction", "0.1"),
        ("risk", table, "--schema", flow, "--owner", "--json"),
    ]
    for number, arguments in enumerate(runs):
        if number == 0:  # a process of its own, as a terminal has it
            done = anonflow(*arguments)
            status, out, err = done.returncode, done.stdout, done.stderr
        else:
            status, out, err = shell(capsys, *arguments)
        assert status in (0, 1), err
        if "--json" in arguments:
            for text in err.splitlines() if arguments[0] == "run" else [out]:
                json.loads(text)
        for text in (out, err):
            assert not [
                c for c in text if c != "\n" and (ord(c) < 32 or 127 <= ord(c) < 160 or c == "\u202e")
            ]
    _, out, _ = shell(capsys, "schema", table)
    (tmp_path / "schema.yaml").write_text(out, encoding="utf-8")
    from anonflow.table import Schema

    assert list(Schema.read(tmp_path / "schema.yaml")) == names
    assert os.path.exists(release)


ELSEWHERE = """
import warnings
from anonflow.kernels import cache
first = next(cache._places())  # other tests have compiled there
cache._places = lambda: iter(())
cache._temporary = lambda: first
import anonflow.engine.run
runner = sys.modules["anonflow.engine.run"]
load = runner.load_flow
def then(path, **settings):
    warnings.warn("overflow of person-4711", RuntimeWarning)
    return load(path, **settings)
runner.load_flow = then
"""


@pytest.mark.parametrize("as_json", [False, True])
def test_a_warning_is_a_line(tmp_path: Path, as_json: bool) -> None:
    """Fault: kernels can be kept nowhere but in a temporary folder. Said: where, in a line, and no line of source."""
    flow = write_flow(tmp_path, publish=REPORTED)
    done = changed(ELSEWHERE, "run", flow, *(["--json"] if as_json else ["--quiet"]))
    assert done.returncode == 0, done.stderr
    lines = done.stderr.splitlines()
    if as_json:
        lines = [
            f"{log['level']}: {log['message']}" for log in map(json.loads, lines) if log["event"] == "log"
        ]
    assert "person-4711" not in done.stderr  # digits alone can occur in any number of seconds
    assert [line for line in lines if "kernels" in line] == [
        line for line in lines if line.startswith("warning: compiled kernels are kept in /")
    ]
    assert sum("NUMBA_CACHE_DIR" in line for line in lines) == 1
