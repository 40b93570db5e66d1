"""Folders of sessions: held while their session lives, gone on with by its key alone, and removed in the end."""

from __future__ import annotations

import fcntl
import os
import threading
from pathlib import Path
from types import SimpleNamespace

import pytest

pytest.importorskip("panel", reason="the dashboards are an extra")
from anonflow.dashboards.session.files import folders as folder_module
from anonflow.dashboards.session.files.folders import SessionFolder, SessionFolders
from anonflow.errors import ParameterError

NOW = 4_000_000_000.0
"""The only time there is: of the folders' clock, and of what is touched; later than whatever the system's clock says."""


def lost(folder: SessionFolder, seconds: float = 0.0) -> None:
    """What the system does with a process that was killed, and then time goes by."""
    fcntl.flock(folder._lock, fcntl.LOCK_UN)
    os.utime(folder.path / "lock", (NOW - seconds,) * 2)


@pytest.fixture
def clock(monkeypatch: pytest.MonkeyPatch) -> None:
    utime = os.utime
    monkeypatch.setattr(os, "utime", lambda path, times=(NOW, NOW): utime(path, times))
    monkeypatch.setattr(folder_module, "time", SimpleNamespace(time=lambda: NOW))


@pytest.fixture
def folders(tmp_path: Path, clock: None) -> SessionFolders:
    return SessionFolders(60.0, tmp_path / "sessions")


def test_it_is_its_own_and_gone_with_it(folders: SessionFolders) -> None:
    first, second = folders.begin("anna"), folders.begin("anna")
    assert first.path != second.path
    assert {path.stat().st_mode & 0o777 for path in (folders.home, first.path, second.files)} == {0o700}
    assert "anna" not in first.path.name
    (first.files / "upload.csv").write_text("a person's cell")
    first.delete()
    assert list(folders.home.iterdir()) == [second.path]


def test_what_was_lost_is_taken_up_by_its_key(tmp_path: Path, folders: SessionFolders) -> None:
    first = folders.begin("anna")
    first.keep("flow: a\n")
    lost(first)
    again = SessionFolders(60.0, tmp_path / "sessions")
    assert [again.begin(key).draft for key in ("", "bert", "anna ")] == [None] * 3
    assert again.begin("anna", resume=False).draft is None
    taken = again.begin("anna")
    assert (taken.path, taken.draft) == (first.path, "flow: a\n")
    assert again.begin("anna").draft is None


def test_the_youngest_is_taken_up_and_the_others_wait_for_the_next_pages(folders: SessionFolders) -> None:
    """A browser with several pages loses none of them when its server is started again."""
    each = [folders.begin("anna") for _ in range(4)]
    for number, folder in enumerate(each[:3]):
        folder.keep(f"flow: {number}\n")
    for folder, seconds in zip(each, (9, 5, 7, 1), strict=True):
        lost(folder, seconds)
    # these folders would say that what they began is alive
    again = SessionFolders(60.0, folders.home)
    assert [again.begin("anna").draft for _ in range(4)] == ["flow: 1\n", "flow: 2\n", "flow: 0\n", None]
    assert [folder.path.exists() for folder in each] == [True, True, True, False]


def test_its_time_is_over(tmp_path: Path, folders: SessionFolders) -> None:
    early, late, alive, none = (folders.begin(key) for key in ("a", "b", "c", ""))
    lost(early, 61)
    lost(none, 61)
    lost(late, 50)
    os.utime(alive.path / "lock", (1, 1))
    (folders.home / "somebody-elses").mkdir()
    SessionFolders(60.0, tmp_path / "sessions").sweep()
    assert not early.path.exists()
    assert not none.path.exists()
    assert late.path.exists()
    assert alive.path.exists()
    assert (folders.home / "somebody-elses").exists()
    folders.sweep()  # the process that holds it says that it is alive
    assert (alive.path / "lock").stat().st_mtime == NOW


def test_a_folder_that_is_just_begun_is_nobody_elses_to_delete(folders: SessionFolders) -> None:
    """It has neither lock nor name yet; another server on the machine, which keeps nothing, sweeps."""
    folder = folders.home / "new-abc"
    folder.mkdir()
    os.utime(folder)
    other = SessionFolders(0.0, folders.home)
    other.sweep()
    assert folder.exists()
    os.utime(folder, (NOW - 61,) * 2)
    other.sweep()
    assert not folder.exists()


def test_a_clock_that_was_ahead_keeps_nothing_for_ever(folders: SessionFolders) -> None:
    folder = folders.begin("a")
    lost(folder, -1e9)
    other = SessionFolders(60.0, folders.home)
    other.sweep()
    assert (folder.path / "lock").stat().st_mtime == NOW
    lost(folder, 61)
    other.sweep()
    assert not folder.path.exists()


def test_nothing_is_kept_where_that_is_said(folders: SessionFolders) -> None:
    folder = folders.begin("a")
    folder.keep("flow: a\n")
    lost(folder)
    assert SessionFolders(0.0, folders.home).begin("a").draft is None
    assert not folder.path.exists()


def test_a_key_is_revoked(folders: SessionFolders) -> None:
    old, other, alive = folders.begin("anna"), folders.begin("bert"), folders.begin("anna")
    for folder in (old, other):
        folder.keep("flow: a\n")
        lost(folder)
    folders.revoke("anna")
    folders.revoke("")
    assert [folder.path.exists() for folder in (old, other, alive)] == [False, True, True]


@pytest.mark.machine
def test_many_begin_at_once_and_none_has_anothers(tmp_path: Path) -> None:
    folders = SessionFolders(60.0, tmp_path / "sessions")
    left = folders.begin("anna")
    left.keep("flow: a\n")
    fcntl.flock(left._lock, fcntl.LOCK_UN)
    begun: list[SessionFolder] = []
    threads = [threading.Thread(target=lambda: begun.append(folders.begin("anna"))) for _ in range(16)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert len({folder.path for folder in begun}) == 16
    assert sum(folder.draft is not None for folder in begun) == 1


@pytest.mark.parametrize("obstacle", ["a file", "a link", "others may write"])
def test_a_home_that_is_not_ones_own_is_refused(tmp_path: Path, obstacle: str) -> None:
    home = tmp_path / "sessions"
    if obstacle == "a file":
        home.write_text("")
    elif obstacle == "a link":
        (tmp_path / "elsewhere").mkdir(mode=0o700)
        home.symlink_to(tmp_path / "elsewhere")
    else:
        home.mkdir()
        home.chmod(0o777)
    with pytest.raises(ParameterError, match=r"sessions: .*set TMPDIR to another folder"):
        SessionFolders(home=home)


def test_a_cleaned_temporary_folder_is_made_again(folders: SessionFolders) -> None:
    folders.home.rmdir()
    assert folders.begin("a").path.is_dir()


def test_an_edit_does_not_wait_for_the_disk(folders: SessionFolders, monkeypatch: pytest.MonkeyPatch) -> None:
    forced: list[int] = []
    monkeypatch.setattr(os, "fsync", forced.append)
    place = folders.begin("anna")
    place.keep("flow: first\n")
    place.keep("flow: second\n")
    place.keep_unfinished({"greedy k=5": 7})
    assert forced == []
    lost(place)
    again = folders.begin("anna")
    assert (again.draft, again.unfinished) == ("flow: second\n", {"greedy k=5": 7})
    again.delete()
