"""Files that appear whole or not at all."""

from __future__ import annotations

import errno
import hashlib
import os
import re
import secrets
import shutil
import stat
from collections.abc import Callable, Iterator
from contextlib import contextmanager, suppress
from os import PathLike
from pathlib import Path
from typing import Any, BinaryIO

from anonflow.errors import AnonflowError, DataError, ParameterError
from anonflow.system import open_descriptor, set_mode, wait_for_folder

OWNER_ONLY = 0o600
"""Permissions of what is the owner's."""

_DRAFT = re.compile(r"(\.[0-9a-f]{8})-[0-9a-f]{16}")
"""The name of a draft begins so."""

_FULL = (errno.ENOSPC, errno.EDQUOT, errno.EFBIG, errno.EIO)


def as_path(path: Any) -> Path:
    """Return the path of a file.

    Parameters
    ----------
    path : path

    Raises
    ------
    ParameterError
        If it is something else.
    """
    if not isinstance(path, str | PathLike) or not isinstance(os.fspath(path), str):
        raise ParameterError(f"a file is named by its path, not by a {type(path).__name__}")
    return Path(path)


def write_whole(
    path: str | PathLike[str],
    write: Callable[[Path], Any],
    mode: int | None = None,
    *,
    make_folders: bool = False,
    forced: bool = True,
    ready: Callable[[], Any] = lambda: None,
) -> None:
    """Write a file under another name beside its place, then rename it.

    Parameters
    ----------
    path : path
    write : callable
        Writes a file whose path it is given; the name ends like the target's. :func:`streamed` makes one of what
        writes to an open file.
    mode : int, optional
        Permission bits; without it those of a file that anybody may use, less the umask.
    make_folders : bool, optional
        Whether folders that do not exist are made; where nothing is written, they are removed again.
    forced : bool, optional
        Whether it is on the disk before it gets its name. Without it the system writes it later: it outlives the process,
        not the machine.
    ready : callable, optional
        Called when all is written, before the file gets its name: what it raises leaves everything as it was.

    Raises
    ------
    ParameterError
        If it is no path.
    DataError
        If the path is not a folder, or may not be written to.
    AnonflowError
        If the disk is full, or fails; or what `write` raises, with the target's name.
    """
    with drafted(path, write, mode, make_folders=make_folders, forced=forced) as place:
        ready()
        place()


@contextmanager
def drafted(
    path: str | PathLike[str],
    write: Callable[[Path], Any],
    mode: int | None = None,
    *,
    make_folders: bool = False,
    forced: bool = True,
) -> Iterator[Callable[[], None]]:
    """Around what is done while a file is written whole and has no name yet; yields what gives it its name.

    Parameters
    ----------
    path, write, mode, make_folders, forced
        As for :func:`write_whole`. `write` may put a folder of files in the place of the draft; it replaces a folder of that
        name. A draft that gets no name is removed.

    Raises
    ------
    ParameterError, DataError, AnonflowError
        As :func:`write_whole`.
    """
    target = as_path(path)
    beside = target.with_name(f"{_drafts_begin(target)}-{secrets.token_hex(8)}{target.suffix}")
    before = target.with_name(f".{secrets.token_hex(8)}-before")
    missing = missing_folders(target.parent) if make_folders else []

    def place() -> None:
        with failing_as(target, beside):
            if beside.is_dir() and target.is_dir():  # a folder that is not empty cannot be replaced
                os.replace(target, before)
            os.replace(beside, target)
            if before.is_dir():
                shutil.rmtree(before)

    try:
        with failing_as(target, beside):
            if make_folders:
                target.parent.mkdir(parents=True, exist_ok=True)
            draft = open_descriptor(
                beside, os.O_CREAT | os.O_EXCL | os.O_WRONLY, 0o666 if mode is None else mode
            )
            # what the umask leaves, asked of the file: the umask itself can be read only by changing it, for all threads
            allowed = stat.S_IMODE(os.fstat(draft).st_mode)
            set_mode(draft, beside, 0o600)
            os.close(draft)
            write(beside)
            bits = allowed if mode is None else mode
            files = sorted(beside.iterdir()) if beside.is_dir() else [beside]
            for file in files:
                if forced:
                    # Windows forces nothing to disk that is open to be read only
                    # and on the disk before it gets its name: a crash leaves the old file or the whole new one
                    with file.open("rb+") as stream:
                        os.fsync(stream.fileno())
                file.chmod(bits)
            if beside.is_dir():  # who may read a file of it may enter it
                beside.chmod(bits | (bits & 0o444) >> 2)
        yield place
    finally:
        if beside.is_dir():
            shutil.rmtree(beside)
        elif beside.parent.is_dir():
            beside.unlink(missing_ok=True)
        for folder in missing:
            remove_empty(folder)


def _drafts_begin(target: Path) -> str:
    """Return how the names of a file's drafts begin, and of the drafts of a draft."""
    draft = _DRAFT.match(target.name)
    return draft[1] if draft else f".{hashlib.sha256(target.name.encode()).hexdigest()[:8]}"


def remove_drafts(path: str | PathLike[str]) -> None:
    """Remove the drafts of a file that a killed process left; nobody may be writing this file.

    Parameters
    ----------
    path : path

    Raises
    ------
    ParameterError
        If it is no path.
    """
    target = as_path(path)
    for draft in target.parent.glob(f"{_drafts_begin(target)}-*"):
        if not _DRAFT.match(draft.name):
            continue
        with suppress(OSError):
            shutil.rmtree(draft) if draft.is_dir() else draft.unlink()


@contextmanager
def locked(folder: Path) -> Iterator[None]:
    """Around what only one process at a time may do in a folder; leaves nothing there.

    Raises
    ------
    DataError
        If the folder cannot be opened.
    """
    try:
        opened = wait_for_folder(folder)
    except OSError as error:
        raise DataError(f"{folder}: cannot be opened ({error.strerror}); name another folder") from None
    try:
        yield
    finally:
        os.close(opened)


@contextmanager
def failing_as(target: Path, beside: Path) -> Iterator[None]:
    """Around what is done to a draft, or to a file beside: an error says the target's name, the only one that people know.

    Raises
    ------
    AnonflowError, DataError
        If the disk is full, or a file cannot be written.
    """
    try:
        yield
    except OSError as error:
        why = error.strerror or type(error).__name__
        if error.errno in _FULL:
            raise AnonflowError(
                f"{target}: cannot be written ({why}); make room and run again, nothing was left half-done"
            ) from None
        raise DataError(f"{target}: cannot be written ({why}); name a folder that you may write to") from None
    except AnonflowError as error:
        texts = [text.replace(str(beside), str(target)) for text in (error.message, *error.problems)]
        raise type(error)(texts[0], texts[1:] if len(error.problems) > 1 else ()) from None


def streamed(write: Callable[[BinaryIO], Any]) -> Callable[[Path], None]:
    """Return what writes to an open file as what writes to a path."""

    def to(path: Path) -> None:
        with path.open("wb") as stream:
            write(stream)

    return to


def missing_folders(path: Path) -> list[Path]:
    """Return the folders of a path that do not exist, the innermost first."""
    missing = []
    while not path.exists() and path != path.parent:
        missing.append(path)
        path = path.parent
    return missing


def remove_empty(folder: Path) -> None:
    """Remove a folder in which nothing is, if it is there and may be removed."""
    try:
        folder.rmdir()
    except OSError:
        return
