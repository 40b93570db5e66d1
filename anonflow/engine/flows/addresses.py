"""Addresses instead of file names: ``s3://bucket/people.parquet``, ``https://host/people.csv``."""

from __future__ import annotations

import re
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path, PurePosixPath
from typing import Any
from urllib.parse import urlsplit

from anonflow.errors import AnonflowError, DataError

__all__ = ["address_problem", "fetched", "is_address", "shown_address", "uploaded"]

_READ_ONLY = ("http", "https")


def is_address(text: object) -> bool:
    """Return whether a text names something on another machine, not a file here."""
    return isinstance(text, str) and re.match(r"[A-Za-z][A-Za-z0-9+.-]*://", text) is not None


def shown_address(address: str) -> str:
    """Return an address without possible secrets: a password, a signature after the question mark."""
    parts = urlsplit(address)
    return f"{parts.scheme}://{parts.netloc.rpartition('@')[2]}{parts.path}"


def address_problem(address: str, *, written: bool = False) -> str | None:
    """Return the problem of an address, before it is contacted; None if there is none.

    Parameters
    ----------
    address : str
    written : bool
        Whether the flow writes to it.
    """
    parts = urlsplit(address)
    if "@" in parts.netloc:
        return "an address must not contain a password; put it into the environment or into a file of credentials"
    if "::" in address:
        return "an address inside another address is not supported; name the file itself"
    if not PurePosixPath(parts.path).name:
        return "names no file"
    if written and parts.scheme in _READ_ONLY:
        return f"nothing can be written to {parts.scheme}; publish to a file, or to a store such as s3://"
    try:
        import fsspec
    except ModuleNotFoundError:
        return "addresses need the package fsspec; install it with: pip install 'anonflow[remote]'"
    try:
        fsspec.get_filesystem_class(parts.scheme)
    except ImportError as error:
        package = getattr(
            error.__cause__, "name", error.name
        )  # fsspec raises an error of its own, with a sentence
        needed = f"the package {package}" if package else "another package"
        return f"{parts.scheme}:// needs {needed}; install it with: pip install 'anonflow[remote]'"
    except ValueError:
        return f"{parts.scheme}:// is not a kind of address that fsspec knows"
    return None


def fetched(address: str, folder: Path, *, several: bool = False) -> Path:
    """Copy the content of an address into a folder.

    Parameters
    ----------
    address : str
    folder : pathlib.Path
        The owner's.
    several : bool
        Whether the address may be a folder of Parquet files.

    Returns
    -------
    pathlib.Path
        The file, or a folder of the files, under the same name.

    Raises
    ------
    DataError
        If it cannot be copied.
    """
    with _failing(address, "cannot be fetched", "check the address, and that this machine may read it"):
        system, place = _opened(address)
        target = folder / PurePosixPath(urlsplit(address).path.rstrip("/")).name
        if not (several and system.isdir(place)):
            system.get_file(place, str(target))
            return target
        target.mkdir(mode=0o700)
        for name in system.ls(place, detail=False):
            last = PurePosixPath(str(name)).name
            if PurePosixPath(last).suffix.lower() in (".parquet", ".pq"):
                system.get_file(name, str(target / last))
        return target


def uploaded(file: Path, address: str) -> None:
    """Copy a file to an address, under another name first, so that it appears completely or not at all.

    Parameters
    ----------
    file : pathlib.Path
    address : str

    Raises
    ------
    DataError
        If it cannot be written there.
    """
    with _failing(address, "cannot be written", "check the address, and that this machine may write there"):
        system, place = _opened(address)
        head, _, name = place.rpartition("/")
        beside = f"{head}/.{name}.part" if head else f".{name}.part"
        try:
            system.put_file(str(file), beside)
            system.mv(beside, place)
        finally:
            if system.exists(beside):
                system.rm_file(beside)


def _opened(address: str) -> tuple[Any, str]:
    from fsspec.core import url_to_fs

    system, place = url_to_fs(address)
    return system, str(place)


@contextmanager
def _failing(address: str, failure: str, then: str) -> Iterator[None]:
    try:
        yield
    except AnonflowError:
        raise
    except Exception as error:  # every store has errors of its own, and their messages may contain a key
        raise DataError(f"{shown_address(address)}: {failure} ({type(error).__name__}); {then}") from None
