"""The folders of sessions, with their uploads: each belongs to one session and is always removed, even if the server is killed."""

from __future__ import annotations

import hashlib
import json
import os
import re
import secrets
import shutil
import tempfile
import threading
import time
from collections.abc import Collection, Iterator, Mapping
from contextlib import contextmanager, suppress
from functools import cache
from pathlib import Path

from anonflow.errors import AnonflowError, DataError, ParameterError
from anonflow.system import NO_FOLLOW, RENAMES_OPEN, is_owners_alone, open_descriptor, take_lock, user_tag
from anonflow.whole_file import OWNER_ONLY, write_whole

KEPT = 3600.0
"""Seconds that what a lost server left is kept for its session to go on with, where nobody says otherwise."""

ELSEWHERE = "set TMPDIR to another folder, or name one with --sessions"
"""What to do where the folder of all sessions cannot be used."""

_LOCK = "lock"
_DRAFT = "draft.yaml"
_RUNS = "runs.json"
_REVIEW = "review.json"
_UNFINISHED = "unfinished.json"
_SEEDS = "seeds.json"
_FILES = "files"
_RESULTS = "results"
_NEW = "new-"
_BEGUN_SECONDS = 60.0
"""How old a folder is at least that is deleted though its session has not yet begun: somebody may be about to lock it."""


class SessionFolder:
    """The folder of one session, held by a lock for as long as the session lives; uploads lie in ``files``, apart from what is written here.

    ``draft`` is what :meth:`keep` wrote last, before the server was lost; None in a new folder.
    """

    def __init__(self, path: Path, lock: int, draft: str | None = None) -> None:
        self.path = path
        self.files = path / _FILES
        self.draft = draft
        self.is_held = True
        self._lock = lock
        self._writes = True

    @property
    def number(self) -> str:
        """What the address of a page says of it; it opens nothing without its key."""
        return _number_in_address(self.path)

    def checked_files(self) -> Path:
        """Return the folder of the uploads.

        Raises
        ------
        DataError
            If the session is over.
        """
        if not self.files.exists():
            raise DataError("this session is over; reload the page")
        return self.files

    @contextmanager
    def unchanged(self) -> Iterator[None]:
        """Keep nothing meanwhile: what was kept before stays."""
        self._writes = False
        try:
            yield
        finally:
            self._writes = True

    def keep(self, draft: str) -> None:
        """Put the session's flow beside its uploads; otherwise nobody can continue the session later."""
        self._write(_DRAFT, draft)

    def keep_runs(self, runs: str, seeds: Collection[int]) -> None:
        """Put the session's runs beside its flow, as text; the stored results of runs with other seeds are deleted."""
        if not self._writes:
            return
        self._write(_RUNS, runs)
        with suppress(OSError):
            result_names = {self.results(seed).name for seed in seeds}
            for folder in (self.path / _RESULTS).iterdir():
                if folder.name not in result_names:
                    shutil.rmtree(folder, True)

    def results(self, seed: int) -> Path:
        """Return the folder of the results of a run's partitions; nobody learns the seed from its name."""
        with suppress(OSError):
            (self.path / _RESULTS).mkdir(mode=0o700, exist_ok=True)
        return self.path / _RESULTS / hashlib.sha256(f"{seed:x}".encode()).hexdigest()[:32]

    def keep_review(self, review: Mapping[str, str]) -> None:
        """Put what people filled in into the reviewer's report, by field, beside its flow."""
        self._write(_REVIEW, json.dumps(dict(review), ensure_ascii=False))

    def keep_unfinished(self, seeds: Mapping[str, int]) -> None:
        """Put the names of the runs that wait or are at work, and their seeds, beside the session's flow."""
        self._write_seeds(_UNFINISHED, seeds)

    def keep_seeds(self, seeds: Mapping[str, int]) -> None:
        """Put the seeds that runs with the same settings have again beside the session's flow, by a digest of the settings."""
        self._write_seeds(_SEEDS, seeds)

    @property
    def runs(self) -> str | None:
        """The content that :meth:`keep_runs` wrote last, or None."""
        return _read(self.path / _RUNS)

    @property
    def review(self) -> dict[str, str]:
        """What :meth:`keep_review` wrote last; empty where there is nothing."""
        return self._texts(_REVIEW)

    @property
    def unfinished(self) -> dict[str, int]:
        """What :meth:`keep_unfinished` wrote last; empty where there is nothing."""
        return self._seeds(_UNFINISHED)

    @property
    def seeds(self) -> dict[str, int]:
        """What :meth:`keep_seeds` wrote last; empty where there is nothing."""
        return self._seeds(_SEEDS)

    def _seeds(self, name: str) -> dict[str, int]:
        try:
            return {key: int(seed, 16) for key, seed in self._texts(name).items()}
        except ValueError:
            return {}

    def _write_seeds(self, name: str, seeds: Mapping[str, int]) -> None:
        if dict(seeds) != self._seeds(name):
            self._write(name, json.dumps({key: f"{seed:x}" for key, seed in seeds.items()}))

    def _texts(self, name: str) -> dict[str, str]:
        """Return the texts by name that a file has; none where it cannot be read."""
        with suppress(ValueError, AttributeError):
            return {str(key): str(text) for key, text in json.loads(_read(self.path / name) or "{}").items()}
        return {}

    def _write(self, name: str, text: str) -> None:
        if not self._writes:
            return
        with suppress(OSError, AnonflowError):
            write_whole(
                self.path / name,
                lambda path: path.write_text(text, encoding="utf-8", newline="\n"),
                OWNER_ONLY,
                forced=False,  # each edit would wait for the disk, on the loop that all users share
            )

    def touch(self) -> None:
        """Renew the time of a session that is alive."""
        with suppress(OSError):
            os.utime(self.path / _LOCK)

    def delete(self) -> None:
        """End the session."""
        shutil.rmtree(self.path, True)
        self.leave()

    def leave(self) -> None:
        """Leave the folder to whoever continues the session."""
        self.is_held = False
        self.touch()
        with suppress(OSError):
            os.close(self._lock)


class SessionFolders:
    """All folders of sessions below a folder that is this user's alone.

    A folder's name begins with a hash of its owner's key; that of a session without a key does not.
    The process that holds the lock of a folder owns it, and the system frees the locks of a process that was killed: what can
    be locked is lost. A folder is made, locked and only then given its name, so none is taken for lost before.

    Parameters
    ----------
    seconds : float
        How long what a lost server left is kept.
    home : pathlib.Path, optional
        Where they are; in the temporary folder without it.

    Raises
    ------
    ParameterError
        If another user may write to `home`.
    """

    def __init__(self, seconds: float = KEPT, home: Path | None = None) -> None:
        self.seconds = seconds
        self.home = home or Path(tempfile.gettempdir(), f"anonflow-sessions-{user_tag()}")
        self._held: dict[str, SessionFolder] = {}
        self._guard = threading.Lock()
        self._check_home()

    def _check_home(self) -> None:
        try:
            self.home.mkdir(mode=0o700, exist_ok=True)
            status = self.home.lstat()
        except OSError as error:
            raise self._unusable(error) from None
        if not is_owners_alone(status):
            raise ParameterError(f"{self.home}: is not yours alone; delete it, or {ELSEWHERE}")

    def _unusable(self, error: OSError) -> ParameterError:
        return ParameterError(f"{self.home}: {error.strerror}; {ELSEWHERE}")

    def begin(self, key: str = "", resume: bool = True, number: str = "") -> SessionFolder:
        """Return the folder of a session that begins.

        Whoever has the key may resume what a lost server left of it: the one with `number`, as :meth:`lost` names it, or the last.
        """
        self.sweep()
        folder = self._lost_of(key, number) if key and resume else None
        if folder is None:
            folder = self._created(key)
        with self._guard:
            self._held[str(folder.path)] = folder
        return folder

    def _created(self, key: str) -> SessionFolder:
        try:
            self._check_home()  # a cleaner of temporary folders may have removed it
            named = self.home / f"{_hashed_key(key)}-{secrets.token_hex(8)}"
            if RENAMES_OPEN:
                path = Path(tempfile.mkdtemp(prefix=_NEW, dir=self.home))  # 0700
            else:
                path = named
                path.mkdir(mode=0o700)
            (path / _FILES).mkdir(mode=0o700)
            lock = open_descriptor(path / _LOCK, os.O_RDWR | os.O_CREAT | os.O_EXCL, OWNER_ONLY)
            take_lock(lock)
            if path != named:
                path.rename(named)
        except OSError as error:
            raise self._unusable(error) from None
        return SessionFolder(named, lock)

    def _left(self, key: str, number: str = "") -> Iterator[tuple[Path, int]]:
        """Yield the folders of a key that no process holds, and their locks: the one with `number` first, then the youngest."""
        folders = self._of(key) if key else []
        for path in sorted(
            folders, key=lambda path: (_number_in_address(path) == number, _time(path)), reverse=True
        ):
            lock = _locked(path)
            if lock is not None:
                yield path, lock

    def lost(self, key: str) -> dict[str, str]:
        """Return the flows of the folders of a key that no process holds, by name; the youngest first."""
        flows: dict[str, str] = {}
        for path, lock in self._left(key):
            os.close(lock)
            draft = _read(path / _DRAFT)
            if draft is not None:
                flows[_number_in_address(path)] = draft
        return flows

    def _lost_of(self, key: str, number: str) -> SessionFolder | None:
        """Return the folder of a key with `number`, else the youngest, that no process holds and that has a flow; those without one are removed.

        The others are those of the browser's other pages, which take them up one after the other.
        """
        for path, lock in self._left(key, number):
            folder = SessionFolder(path, lock, _read(path / _DRAFT))
            if folder.draft is not None:
                folder.touch()
                return folder
            folder.delete()
        return None

    def revoke(self, key: str) -> None:
        """Delete what lost servers left of a key: it opens nothing any more."""
        for path, lock in self._left(key):
            SessionFolder(path, lock).delete()

    def sweep(self) -> None:
        """Delete what lost servers left longer ago than it is kept; the time of the sessions of this process begins again."""
        with self._guard:
            self._held = {
                name: folder for name, folder in self._held.items() if folder.is_held and folder.path.exists()
            }
            held = list(self._held.values())
        for folder in held:
            folder.touch()
        now = time.time()
        for path in self._all():
            is_begun = path.name.startswith(_NEW) or not (path / _LOCK).exists()
            if _time(path) > now:  # the clock was ahead
                with suppress(OSError):
                    os.utime(path / _LOCK if (path / _LOCK).exists() else path)
            elif now - _time(path) >= max(self.seconds, _BEGUN_SECONDS if is_begun else 0.0):
                lock = _locked(path)
                if lock is not None:
                    SessionFolder(path, lock).delete()

    def _all(self) -> Iterator[Path]:
        with suppress(OSError):
            for path in sorted(self.home.iterdir()):
                if re.fullmatch(rf"([0-9a-f]{{32}}|none)-[0-9a-f]{{16}}|{_NEW}.*", path.name):
                    yield path

    def _of(self, key: str) -> list[Path]:
        return [path for path in self._all() if path.name.startswith(f"{_hashed_key(key)}-")]


@cache
def local_folders() -> SessionFolders:
    """Return those of workspaces outside a server of ours."""
    return SessionFolders()


def _read(file: Path) -> str | None:
    """Return the text of a file; None where it is not there."""
    with suppress(OSError, UnicodeError):
        return file.read_text(encoding="utf-8")
    return None


def _number_in_address(path: Path) -> str:
    """Return what an address says of a folder."""
    return path.name.rpartition("-")[2]


def _hashed_key(key: str) -> str:
    return hashlib.sha256(key.encode("utf-8", "replace")).hexdigest()[:32] if key else "none"


def _time(path: Path) -> float:
    """When a folder's session was last alive."""
    for file in (path / _LOCK, path):
        with suppress(OSError):
            return file.lstat().st_mtime
    return 0.0


def _locked(path: Path) -> int | None:
    """Return the lock of a folder; None while its session lives, or if it is gone."""
    try:
        lock = open_descriptor(path / _LOCK, os.O_RDWR | os.O_CREAT | NO_FOLLOW, OWNER_ONLY)
    except OSError:
        return None
    try:
        take_lock(lock)
        if os.fstat(lock).st_ino == (path / _LOCK).lstat().st_ino:
            return lock
    except OSError:
        pass
    os.close(lock)
    return None
