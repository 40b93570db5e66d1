"""The tests of a room in a process of their own, which has imported the libraries already but nothing of the checkout."""

from __future__ import annotations

import json
import os
import re
import signal
import sys
import threading
from pathlib import Path
from types import FrameType
from typing import Any

LIBRARIES = [
    "dask.dataframe",
    "distributed",
    "numba",
    "pandas",
    "panel",
    "pyarrow.dataset",
    "pydantic",
    "ruamel.yaml",
    "scipy.optimize",
    "scipy.sparse.csgraph",
    "typer",
]
"""What most tests import: once for all faults."""

LONGEST = 300
"""Seconds that a test may take with a fault: it can make a loop endless, and then it is noticed."""

FAILING = "failing"
PROCESS = "a process"
"""In a record: the tests that fail without any fault, and what files enter that start processes."""


def run_tests(
    home: str, near: str, function: str, record: Path, folder: str, environment: dict[str, str]
) -> None:
    """Run the quick tests of a folder in a checkout and end with pytest's status; the first test that fails is named in a file.

    Where the record is not there yet, it is written, and no test ends the run: it says which functions each file of tests enters, and
    which tests fail.

    Parameters
    ----------
    home : str
        The checkout.
    near : str
        A file of the package; tests whose place is most like its own come first.
    function : str
        Only files of tests run that enter this function, as the record says. Empty: all run.
    record : pathlib.Path
        Tests that fail by it are left out: they would fail with a fault, too.
    folder : str
        The tests, from the checkout.
    environment : dict of str to str
        Variables to set.
    """
    os.setsid()  # whoever waits ends what the tests started, too
    os.chdir(home)
    os.environ.pop("CI", None)
    os.environ.update(environment)
    nowhere = os.open(os.devnull, os.O_RDWR)
    for descriptor in range(3):
        os.dup2(nowhere, descriptor)
    for name in [name for name in sys.modules if name.split(".")[0] in ("anonflow", "tests")]:
        del sys.modules[name]
    sys.path.insert(0, home)
    import pytest

    known = record.exists()
    calls: dict[str, Any] = json.loads(record.read_text()) if known else {FAILING: []}

    class NearFirst:
        """Puts tests near the fault first, and names the test that fails."""

        def pytest_collection_modifyitems(self, items: list[pytest.Item]) -> None:
            if known:
                items[:] = [item for item in items if item.nodeid not in calls[FAILING]]
            if function:
                items[:] = [item for item in items if _enters(calls, place_of(item), f"{near}::{function}")]
            items.sort(key=lambda item: _distance(near, place_of(item)))

        def pytest_runtest_logreport(self, report: pytest.TestReport) -> None:
            if report.failed and known:
                Path(home, "noticed").write_text(report.nodeid, encoding="utf-8")
            elif report.failed:
                calls[FAILING].append(report.nodeid)

        def pytest_collectreport(self, report: pytest.CollectReport) -> None:
            if report.failed:
                Path(home, "noticed").write_text(report.nodeid, encoding="utf-8")

        def pytest_runtest_logstart(self, location: tuple[str, int | None, str]) -> None:
            if known:
                signal.alarm(LONGEST)  # ends the process
            else:
                _record_calls(calls.setdefault(location[0], set()), f"{home}/")

    def place_of(item: pytest.Item) -> str:
        return item.path.relative_to(home).as_posix()

    arguments = [
        "-n",
        "0",
        *(["-x"] if known else []),
        "-q",
        "-p",
        "no:cacheprovider",
        "--hypothesis-seed=0",
        folder,
    ]
    status = pytest.main(arguments, plugins=[NearFirst()])
    if not known:
        sys.settrace(None)
        record.write_text(json.dumps({place: sorted(names) for place, names in calls.items()}))
    passing = (pytest.ExitCode.OK, pytest.ExitCode.NO_TESTS_COLLECTED)
    os._exit(0 if status in passing or (not known and status == pytest.ExitCode.TESTS_FAILED) else status)


def _record_calls(functions: set[str], home: str) -> None:
    """From now on, note each function that is entered; of the checkout by its file and dotted name, and the start of a process."""

    def enter(frame: FrameType, event: str, argument: Any) -> None:
        code = frame.f_code
        if code.co_filename.startswith(home):
            functions.add(f"{code.co_filename[len(home) :]}::{_INNER.sub('', code.co_qualname)}")
        elif code.co_name in ("_execute_child", "_launch"):
            functions.add(PROCESS)

    threading.settrace(enter)
    sys.settrace(enter)


_INNER = re.compile(r"<locals>\.|\.?<(lambda|listcomp|genexpr|setcomp|dictcomp)>")


def _enters(calls: dict[str, list[str]], place: str, function: str) -> bool:
    """Return whether a file of tests enters a function, or starts processes, which may."""
    return function in calls.get(place, ()) or PROCESS in calls.get(place, ())


def _distance(near: str, tests: str) -> int:
    """Return how far a file of tests is from a file of the package: folders that differ, and whether its name has the module's."""
    rooms, places = Path(near).parts[1:-1], Path(tests).parts[1:-1]
    shared = sum(1 for room, place in zip(rooms, places) if room == place)
    return 2 * (len(rooms) - shared) + (Path(near).stem not in Path(tests).stem)
