"""Open files, and refuse what is no table, or more than this machine takes, before its rows are read."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from os import PathLike, fsencode, fspath
from pathlib import Path
from typing import Any

import pyarrow as pa

from anonflow.errors import DataError
from anonflow.system import total_memory

MOST_COLUMNS = 10_000
"""The most columns of a table; a wider one is refused before its rows are read, because each column takes memory."""

Opener = Callable[[Path], Any]
"""A function that opens a file for reading; it may check the content that is read."""


def open_file(path: str | PathLike[str]) -> Any:
    """Open a file for pyarrow, which takes no names with characters that the system's encoding lacks.

    Parameters
    ----------
    path : path

    Raises
    ------
    OSError
        If it cannot be opened.
    """
    return pa.OSFile(fsencode(path))


def must_fit(path: str | PathLike[str]) -> Callable[[Iterable[int]], None]:
    """Return a function that refuses a file whose parts exceed this machine's memory, and that can only be read whole.

    Parameters
    ----------
    path : path
        For the message.
    """
    return lambda sizes: check_fits(
        fspath(path), sizes, "save it as CSV or Parquet, and run that in pieces (source: {pieces: true})"
    )


def check_fits(
    name: str, sizes: Iterable[int], advice: str = "run it in pieces if it is (source: {pieces: true})"
) -> None:
    """Refuse a file whose parts unpack to more than this machine's memory: reading it would end the process.

    Raises
    ------
    DataError
        If they do.
    """
    most, size = total_memory(), 0
    for part in sizes:
        size += part
        if size > most:
            raise DataError(
                f"{name}: unpacks to more than the {most / 1e9:.3g} GB of memory of this machine; see that it is what you "
                f"expect, and {advice}"
            )


def check_count(name: str, columns: int) -> None:
    """Refuse a file with more than ``MOST_COLUMNS`` columns.

    Raises
    ------
    DataError
        If it has more.
    """
    if columns > MOST_COLUMNS:
        raise DataError(
            f"{name}: has {columns} columns, and {MOST_COLUMNS} are the most; see that it has line ends and the right "
            "delimiter, or leave out columns that are not needed"
        )


def must_be_there(path: Path) -> None:
    """Refuse a path that names nothing.

    Raises
    ------
    DataError
        If it does not exist, or cannot be looked for.
    """
    try:
        exists = path.exists()
    except OSError as error:  # such as a name that is too long
        raise DataError(f"{path}: cannot be opened: {error.strerror}; check the path") from None
    if not exists:
        raise DataError(f"{path}: does not exist; check the path")


def must_exist(path: Path) -> None:
    """Refuse a path that names no file.

    Raises
    ------
    DataError
        If it does not exist, or is a folder.
    """
    must_be_there(path)
    if not path.is_file():
        raise DataError(f"{path}: is not a file; name a CSV or Parquet file")


def check_names(name: str, columns: Sequence[str]) -> None:
    """Refuse columns without a name, or of one name.

    Raises
    ------
    DataError
        If there are some; they are named by their positions.
    """
    problems = []
    seen: dict[str, int] = {}
    for place, column in enumerate(columns, 1):
        first = seen.setdefault(column, place)
        if first != place and column.strip():
            # name columns by position: if the header is missing, these are a person's values
            problems.append(f"{name}: columns {first} and {place} have the same name; rename one")
    if any(not column.strip() for column in columns):
        problems.append(f"{name}: a column has no name; the first line must be the header")
    if problems:
        raise DataError.collected(f"{name}: its header cannot be used", problems)
