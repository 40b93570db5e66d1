"""What tests share: the folder of real data, the built documentation, and how many examples hypothesis tries."""

from __future__ import annotations

import gc
import math
import os
import subprocess
import sys
from collections.abc import Generator, Iterator
from functools import cache
from importlib.util import find_spec
from pathlib import Path

import pytest
import typer
from hypothesis import HealthCheck, settings

from anonflow.engine.owner import checkpoints
from tests import ROOT
from tests.strategies import MULTIPLE

# jsonschema, which nbformat imports, builds the grammar of international addresses where JupyterLab has brought it: two seconds of each process.
# No schema that the tests read has such addresses; without the grammar jsonschema takes any text for one.
sys.modules.setdefault("rfc3987_syntax", None)  # type: ignore[arg-type]

# The first example of a test may compile a kernel: neither a deadline nor "too slow" says anything then.
_ALWAYS = {"deadline": None, "suppress_health_check": [HealthCheck.too_slow]}
settings.register_profile("quick", max_examples=10, **_ALWAYS)
settings.register_profile("ci", max_examples=60 * MULTIPLE, derandomize=True, print_blob=True, **_ALWAYS)
settings.load_profile("ci" if os.environ.get("CI") else "quick")

LEFT_BY_ANOTHER = [
    "PytestUnraisableException",
    "PytestUnhandledThreadException",
    "multiple (unraisable|unhandled thread) exception",
]
"""What pytest says about failures outside of the test that runs (regular expressions)."""

TRIED_AGAIN = "tried again: "
"""A line of pytest's summary begins so for a test with the marker `machine`; ``.ci/run`` counts them."""

AFTER_ANOTHER = "tried again after another test: "
"""So for a test that the garbage or a thread of another test had spoiled, which says nothing of the test."""


@pytest.hookimpl(wrapper=True)
def pytest_collection() -> Generator[None, object, object]:
    """The collector looks at what tests leave, not again and again at all modules and tests: two fifths of a first collection."""
    gc.disable()
    try:
        return (yield)
    finally:
        gc.collect()
        gc.freeze()
        gc.set_threshold(10_000)  # most that is made goes without it
        gc.enable()


def pytest_collection_modifyitems(config: pytest.Config, items: list[pytest.Item]) -> None:
    """Try what a busy machine can spoil again, at most twice.

    So is any test in which something failed that was collected or that ran in a thread: an earlier test may have left it, and
    what a test leaves itself fails each time.
    """
    if config.pluginmanager.hasplugin("rerunfailures"):
        for item in items:
            only = {} if item.get_closest_marker("machine") else {"only_rerun": LEFT_BY_ANOTHER}
            item.add_marker(pytest.mark.flaky(reruns=2, **only))


def pytest_terminal_summary(terminalreporter: pytest.TerminalReporter) -> None:
    """Name every test that was tried again, also where it passed then, and why: chance that is understood can be mended."""
    reasons: dict[str, set[str]] = {}
    for report in terminalreporter.stats.get("rerun", ()):
        named = (TRIED_AGAIN if "machine" in report.keywords else AFTER_ANOTHER) + report.nodeid
        errors = [line[1:].strip() for line in report.longreprtext.splitlines() if line.startswith("E ")]
        reasons.setdefault(named, set()).update(errors[:1])
    for named in sorted(reasons):
        terminalreporter.write_line(named)
        for reason in sorted(reasons[named]):
            terminalreporter.write_line(f"    {reason}")


@pytest.fixture(scope="session", autouse=True)
def nothing_is_forced_to_disk() -> Iterator[None]:
    """A run forces a dozen files to disk, which only a power cut can tell; tests about that put a call of their own here."""
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(os, "fsync", lambda descriptor: None)
        yield


@pytest.fixture(scope="session", autouse=True)
def no_result_is_stored_by_chance() -> Iterator[None]:
    """A run stores its partitions' results after a second of work, which a busy machine makes of any; tests about that say when."""
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(checkpoints, "EVERY", math.inf)
        yield


@pytest.fixture(scope="session", autouse=True)
def the_command_line_is_built_once() -> Iterator[None]:
    """A process needs its options once; tests that call the command hundreds of times would build them anew each time."""
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(typer.main, "get_command", cache(typer.main.get_command))
        yield


@pytest.fixture
def quick_hashes(monkeypatch: pytest.MonkeyPatch) -> None:
    """Passwords are hashed at the least cost: what a guess costs has tests of its own."""
    argon2 = pytest.importorskip("argon2")
    hasher = argon2.PasswordHasher(time_cost=1, memory_cost=8, parallelism=1)
    monkeypatch.setattr("anonflow.dashboards.server.accounts._ARGON2", hasher)


@pytest.fixture(scope="session")
def data_folder() -> Path:
    """The folder named by ANONFLOW_DATA; without the variable the test is skipped."""
    named = os.environ.get("ANONFLOW_DATA")
    if not named:
        pytest.skip("ANONFLOW_DATA does not name a folder with the data sets")
    folder = Path(named).resolve()
    if not folder.is_dir():
        pytest.fail(f"ANONFLOW_DATA names {named}, which is no folder")
    return folder


@pytest.fixture(scope="session")
def site(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """The built documentation, where a warning is an error; without the extra ``docs`` the test is skipped."""
    if any(find_spec(name) is None for name in ("sphinx", "myst_nb", "furo", "sphinx_copybutton")):
        pytest.skip("building the documentation needs anonflow[docs]")
    home = tmp_path_factory.mktemp("site")
    done = subprocess.run(
        [
            sys.executable, "-m", "sphinx", "-q", "-W", "--keep-going", "-E", "-b", "html",
            "-d", str(home / "doctrees"), str(ROOT / "docs"), str(home / "html"),
        ],
        cwd=home,
        capture_output=True,
        text=True,
        check=False,
    )  # fmt: skip
    assert done.returncode == 0, done.stderr
    return home / "html"
