"""The tests of a room in a process of their own, which has imported the libraries already but nothing of the checkout."""

from __future__ import annotations

import os
import sys
from pathlib import Path

LIBRARIES = [
    "dask.dataframe",
    "distributed",
    "holoviews",
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


def run_tests(home: str, near: str, folder: str, environment: dict[str, str]) -> None:
    """Run the quick tests of a folder in a checkout and end with pytest's status; the first test that fails is named in a file.

    Parameters
    ----------
    home : str
        The checkout.
    near : str
        A file of the package; tests whose place is most like its own come first.
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

    class NearFirst:
        """Puts tests near the fault first, and names the test that fails."""

        def pytest_collection_modifyitems(self, items: list[pytest.Item]) -> None:
            items.sort(key=lambda item: _distance(near, item.path.relative_to(home).as_posix()))

        def pytest_runtest_logreport(self, report: pytest.TestReport) -> None:
            if report.failed:
                Path(home, "noticed").write_text(report.nodeid, encoding="utf-8")

        def pytest_collectreport(self, report: pytest.CollectReport) -> None:
            if report.failed:
                Path(home, "noticed").write_text(report.nodeid, encoding="utf-8")

    arguments = ["-n", "0", "-x", "-q", "-p", "no:cacheprovider", "--hypothesis-seed=0", folder]
    os._exit(pytest.main(arguments, plugins=[NearFirst()]))


def _distance(near: str, tests: str) -> int:
    """Return how far a file of tests is from a file of the package: folders that differ, and whether its name has the module's."""
    rooms, places = Path(near).parts[1:-1], Path(tests).parts[1:-1]
    shared = sum(1 for room, place in zip(rooms, places) if room == place)
    return 2 * (len(rooms) - shared) + (Path(near).stem not in Path(tests).stem)
