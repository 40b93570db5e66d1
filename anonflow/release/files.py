"""Files that appear whole or not at all."""

from __future__ import annotations

import errno
import os
import secrets
from collections.abc import Callable
from os import PathLike
from pathlib import Path
from typing import BinaryIO

from anonflow.errors import AnonflowError, DataError

__all__ = ["OWNER_ONLY", "PUBLIC", "write_whole"]

OWNER_ONLY = 0o600
PUBLIC = 0o666
"""Less what the process's umask takes away."""


def write_whole(path: str | PathLike[str], mode: int, write: Callable[[BinaryIO], None]) -> None:
    """Write a file under another name beside its place, then rename it.

    Parameters
    ----------
    path : path
        Folders that do not exist are made.
    mode : int
        Permissions, less the umask.
    write : callable
        Writes the content to the open file.

    Raises
    ------
    DataError
        If the folder is none, or may not be written to.
    AnonflowError
        If the disk is full, or fails.
    """
    place = Path(path)
    part = place.with_name(f".{secrets.token_hex(8)}.part")
    try:
        place.parent.mkdir(parents=True, exist_ok=True)
        with os.fdopen(os.open(part, os.O_WRONLY | os.O_CREAT | os.O_EXCL, mode), "wb") as stream:
            write(stream)
            stream.flush()
            os.fsync(stream.fileno())
        os.replace(part, place)
    except OSError as error:
        why = error.strerror or type(error).__name__
        if error.errno in (errno.ENOSPC, errno.EDQUOT, errno.EIO):
            raise AnonflowError(
                f"{place}: cannot be written ({why}); make room and run again, nothing was left half-done"
            ) from None
        raise DataError(f"{place}: cannot be written ({why}); name a folder that you may write to") from None
    finally:
        part.unlink(missing_ok=True) if part.parent.is_dir() else None
