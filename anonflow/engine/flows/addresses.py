"""Addresses instead of file names: ``s3://bucket/people.parquet``, ``https://host/people.csv``."""

from __future__ import annotations

import os
import posixpath
import re
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager
from pathlib import Path, PurePath, PurePosixPath
from typing import Any, TypeGuard
from urllib.parse import urlsplit

from anonflow.errors import AnonflowError, DataError
from anonflow.table.files.parquet_metadata import is_parquet

_READ_ONLY = ("http", "https")
_LOCAL = ("file", "local")


def is_address(text: object) -> TypeGuard[str]:
    """Return whether a text names something on another machine, not a file here."""
    return isinstance(text, str) and re.match(r"[A-Za-z][A-Za-z0-9+.-]*://", text) is not None


def normalized(text: str) -> str:
    """Return an address of a file of this machine as the path of that file, and any other with its scheme in lower case.

    What is no address, and a local address that no path can stand for, is returned as it is.
    """
    if not is_address(text):
        return text
    scheme, _, rest = text.partition("://")
    if scheme.lower() not in _LOCAL:
        return f"{scheme.lower()}://{rest}"
    path = rest.removeprefix("localhost")
    return path if path.startswith("/") else text


def place_of(named: str, folder: Path) -> PurePath:
    """Return what tells whether two names of files mean the same file.

    Parameters
    ----------
    named : str
        An address, or a path.
    folder : pathlib.Path
        What paths are relative to.

    Returns
    -------
    pathlib.PurePath
        A resolved path; of an address a relative one, which begins with the kind of its store.
    """
    if not is_address(named):
        return Path(os.path.realpath(folder / named))  # a circle of links is no error here
    kind, _, inside = named.partition("://")
    try:
        import fsspec

        store = fsspec.get_filesystem_class(kind)
        kind, inside = store.__name__, str(store._strip_protocol(named))
    except (ImportError, ValueError):  # there is no such store, which is a problem of its own
        pass
    return PurePosixPath(kind) / posixpath.normpath(f"/{inside}").lstrip("/")


def overwriting(place: PurePath, roles: Mapping[PurePath, str]) -> str | None:
    """Return why nothing may be written to a place, None if it may.

    Parameters
    ----------
    place : pathlib.PurePath
        By :func:`place_of`.
    roles : mapping
        Place -> what is read there, or written by another part of the flow.
    """
    for other, role in roles.items():
        if place == other:
            return f"would be written over {role}"
        if place.parent == other and is_parquet(place):
            return f"lies inside {role}, and would be read as a part of it"
    return None


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
    try:
        parts = urlsplit(address)
    except ValueError:
        return "is not a usable address; write it as SCHEME://HOST/FILE"
    if parts.scheme in _LOCAL:
        return f"{parts.scheme}:// is no file of this machine; name the file by its path"
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
        # fsspec raises an error of its own, with a sentence
        package = getattr(error.__cause__, "name", error.name)
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
            if is_parquet(last):
                system.get_file(name, str(target / last))
        return target


def fetch_package(address: str, package: Path) -> None:
    """Copy a data package to a path, if there is one, with an empty file for each file beside it.

    Raises
    ------
    DataError
        If it cannot be copied.
    """
    with _failing(address, "cannot be fetched", "check the address, and that this machine may read it"):
        system, place = _opened(address)
        if system.exists(place):
            for name in system.ls(place.rpartition("/")[0], detail=False):
                package.with_name(PurePosixPath(str(name)).name).touch()
            system.get_file(place, str(package))


def beside(address: str, name: str) -> str:
    """Return the address of the file of this name in the folder of another one."""
    return f"{address.rpartition('/')[0]}/{name}"


def uploaded(
    file: Path,
    address: str,
    ready: Callable[[], object] = lambda: None,
    named: Callable[[], object] = lambda: None,
) -> None:
    """Copy a file to an address, under another name first, so that it appears completely or not at all.

    Parameters
    ----------
    file : pathlib.Path
    address : str
    ready : callable, optional
        Called before the file gets its name.
    named : callable, optional
        Called when the file has its name, or may have it: a store may take it and fail all the same.

    Raises
    ------
    DataError
        If it cannot be written there.
    """
    with _failing(address, "cannot be written", "check the address, and that this machine may write there"):
        system, place = _opened(address)
        part = _part_of(place)
        try:
            system.put_file(str(file), part)
            ready()
            try:
                system.mv(part, place)
            finally:
                if _may_exist(system, place):
                    named()
        finally:
            if system.exists(part):
                system.rm_file(part)


def _part_of(place: str) -> str:
    """Return the name of a file while it is uploaded."""
    head, _, name = place.rpartition("/")
    return f"{head}/.{name}.part" if head else f".{name}.part"


def _may_exist(system: Any, place: str) -> bool:
    try:
        return bool(system.exists(place))
    except Exception:  # every store has errors of its own: one that does not answer may have the file
        return True


def removed(address: str, *, part: bool = False) -> None:
    """Remove the file at an address, if there is one; or `part` of it, which an upload that was ended has left.

    Raises
    ------
    DataError
        If it cannot be removed.
    """
    with _failing(address, "cannot be removed", "check the address, and that this machine may write there"):
        system, place = _opened(address)
        place = _part_of(place) if part else place
        if system.exists(place):
            system.rm_file(place)


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
