"""Systems without POSIX: every module is imported and the quickstart runs with what only POSIX has made absent."""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path

import pytest

from anonflow import system
from tests import ROOT
from tests.cases.runs import shell

_LIKE_WINDOWS = """
import importlib, os, pkgutil, signal, sys, types
# what is not ours knows its system by sys.platform: it is loaded before
import numpy, pandas, pyarrow.parquet, scipy.sparse, numba, dask.dataframe, distributed, psutil, ortools.sat.python.cp_model
try:
    import panel, bokeh.models, ipywidgets
except ModuleNotFoundError:
    panel = None
import fcntl
flock, taken = fcntl.flock, fcntl.LOCK_EX | fcntl.LOCK_NB
def locking(descriptor, mode, count):
    assert os.lseek(descriptor, 0, os.SEEK_CUR) == 1 << 30, "a locked byte cannot be read there"
    try:
        flock(descriptor, taken)  # the system knows when a file is closed, whatever its number
    except BlockingIOError:
        raise PermissionError(13, "Permission denied") from None
sys.modules["msvcrt"] = types.SimpleNamespace(locking=locking, LK_NBLCK=2)
for name in ("fcntl", "resource", "pwd", "grp", "termios", "tty", "pty", "syslog", "posix"):
    sys.modules[name] = None
for name in (
    "fchmod", "fchown", "getuid", "geteuid", "getgid", "getegid", "sysconf", "sysconf_names", "pread", "pwrite", "posix_fallocate", "fork", "forkpty",
    "killpg", "setsid", "O_NOFOLLOW", "O_CLOEXEC", "O_DIRECTORY", "statvfs", "fstatvfs", "uname", "getloadavg", "mkfifo", "lchown", "chown",
):
    if hasattr(os, name):
        delattr(os, name)
for name in ("pthread_sigmask", "SIGKILL", "SIGHUP", "SIGALRM", "SIGUSR1", "setitimer", "alarm"):
    if hasattr(signal, name):
        delattr(signal, name)
"""

_IMPORT_ALL = """
import anonflow
names = [one.name for one in pkgutil.walk_packages(anonflow.__path__, "anonflow.")]
for name in names:
    if name.startswith(("anonflow.dashboards", "anonflow.widgets")) and panel is None or name == "anonflow.__main__":
        continue
    importlib.import_module(name)
print(len(names))
"""

_QUICKSTART = """
from pathlib import Path
from anonflow import engine, system
from anonflow.errors import AnonflowError
from anonflow.engine.owner.folder import locked
here = Path(sys.argv[1])
report = engine.run(here / "flows" / "quickstart.yaml")
assert report.ok
assert (here / "out" / "quickstart.parquet").stat().st_size
text = (here / "flows" / "quickstart.yaml").read_text(encoding="utf-8").replace("quickstart", "in-pieces")
(here / "flows" / "in-pieces.yaml").write_text(text.replace("n: 20000", "n: 2000, pieces: 700"), encoding="utf-8")
assert engine.run(here / "flows" / "in-pieces.yaml").ok
with locked(here):
    try:
        with locked(here):
            raise AssertionError("two hold one lock")
    except AnonflowError as error:
        assert "another run" in str(error)
assert system.total_memory() > 1 << 28 and system.peak_memory() > 1 << 20
assert system.is_running(os.getpid()) and not system.is_running(0) and system.started(os.getpid())
assert system.user_tag() and not system.is_root()
if panel is not None:
    from anonflow.dashboards.session.files.folders import SessionFolders
    folders = SessionFolders(home=here / "sessions")
    folder = folders.begin("key")
    assert folder.path.is_dir()
    from anonflow.dashboards.server.accounts import Accounts, add_account
    users = here / "users"
    add_account(users, "anna", "a long password")
    users.chmod(0o666)  # what Windows says of every file
    assert Accounts(users).allow("anna", "a long password")
print("done")
"""


def like_windows(code: str, *arguments: object) -> str:
    """What a process prints in which nothing of POSIX alone is there."""
    done = subprocess.run(
        [sys.executable, "-c", _LIKE_WINDOWS + code, *map(str, arguments)],
        cwd=ROOT,
        env={**os.environ, "PYTHONPATH": str(ROOT), "LOGNAME": "me"},
        capture_output=True,
        text=True,
        check=False,
    )
    assert done.returncode == 0, done.stderr
    return done.stdout


@pytest.mark.slow
def test_every_module_is_imported_and_the_quickstart_runs_without_posix(tmp_path: Path) -> None:
    (tmp_path / "flows").mkdir()
    text = (ROOT / "flows" / "quickstart.yaml").read_text(encoding="utf-8")
    (tmp_path / "flows" / "quickstart.yaml").write_text(text, encoding="utf-8")
    count, *_, last = like_windows(_IMPORT_ALL + _QUICKSTART, tmp_path).splitlines()
    assert int(count) > 300
    assert last == "done"


@pytest.mark.slow
def test_the_quickstart_runs_where_the_locale_is_plain(
    tmp_path: Path, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    """LANG=C: no file is written or read in the locale's encoding."""
    folder = tmp_path / "Köln"
    (folder / "flows").mkdir(parents=True)
    (folder / "people.csv").write_bytes(
        b"Stadt;Alter\n" + "".join(f"{'Köln' if n % 2 else 'Zürich'};{20 + n}\n" for n in range(24)).encode()
    )
    (folder / "flow.yaml").write_bytes(
        b"flow: plain\nversion: 1\ntable:\n  source: {csv: people.csv, delimiter: ';'}\n"
        b"  columns: {Stadt: {role: quasi-identifier, kind: categorical}, Alter: {role: quasi-identifier, kind: numeric}}\n"
        b"steps: [{anonymize: {algorithm: mondrian, k: 3}}]\npublish: {table: out/people.csv, report: out/people.html}\n"
    )
    (folder / "seed").write_text("5eed" * 8)
    arguments = ("run", "flow.yaml", "--seed-file", "seed", "--fresh")
    done = subprocess.run(
        [sys.executable, "-m", "anonflow", *arguments],
        cwd=folder,
        env={
            **os.environ, "PYTHONPATH": str(ROOT),
            "LC_ALL": "C", "LANG": "C", "PYTHONUTF8": "0", "PYTHONCOERCECLOCALE": "0",
        },
        capture_output=True,
        check=False,
    )  # fmt: skip
    assert done.returncode == 0, done.stderr.decode()
    texts = [(folder / "out" / "people.csv").read_bytes()]
    monkeypatch.chdir(folder)
    assert shell(capsys, *arguments)[0] == 0
    texts.append((folder / "out" / "people.csv").read_bytes())
    assert texts[0] == texts[1]
    assert "Köln".encode() in texts[0]
    for written in [*(folder / "out").iterdir(), *(folder / "owner" / "plain").glob("*.json")]:
        assert b"\r\n" not in written.read_bytes()


def test_no_other_module_asks_for_posix() -> None:
    """What differs between systems is behind one module."""
    named = ("import fcntl", "import resource", "import msvcrt", "os.fchmod", "os.getuid", "os.geteuid", "os.sysconf", "os.pread",
             "os.pwrite", "posix_fallocate", "O_NOFOLLOW", "pthread_sigmask", "os.fork", "os.killpg", "os.kill(")  # fmt: skip
    results = [
        f"{path.relative_to(ROOT)}: {name}"
        for path in sorted((ROOT / "anonflow").rglob("*.py"))
        if path.name != "system.py"
        for name in named
        if name in path.read_text(encoding="utf-8")
    ]
    assert results == []


def test_texts_are_written_with_the_same_line_ends_everywhere() -> None:
    results = [
        f"{path.relative_to(ROOT)}:{number}"
        for path in sorted((ROOT / "anonflow").rglob("*.py"))
        for number, line in enumerate(path.read_text(encoding="utf-8").splitlines(), 1)
        if ".write_text(" in line and "newline=" not in line
    ]
    assert results == []


def test_a_lock_is_held_once(tmp_path: Path) -> None:
    first = system.open_descriptor(tmp_path / "lock", os.O_RDWR | os.O_CREAT)
    second = system.open_descriptor(tmp_path / "lock", os.O_RDWR)
    try:
        system.take_lock(first)
        with pytest.raises(BlockingIOError):
            system.take_lock(second)
        os.close(first)
        system.take_lock(second)
    finally:
        os.close(second)


def test_a_system_without_locks_says_so(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(system, "fcntl", None)
    monkeypatch.setattr(system, "msvcrt", None)
    descriptor = system.open_descriptor(tmp_path / "lock", os.O_RDWR | os.O_CREAT)
    with pytest.raises(OSError, match="has no locks"):
        system.take_lock(descriptor)
    os.close(descriptor)
