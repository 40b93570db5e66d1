"""The standard streams of a process: a failed write to them does not end a run."""

from __future__ import annotations

import errno
import io
import os
import sys
import warnings
from collections.abc import Callable, Iterable, Iterator, Sequence
from contextlib import contextmanager
from typing import Any

import typer

from anonflow.errors import AnonflowWarning, printable


def say(text: str, *, err: bool = False, nl: bool = True) -> None:
    """Write lines to the standard output or error; control characters for the terminal are escaped.

    Parameters
    ----------
    text : str
    err : bool
        Whether they go to the standard error.
    nl : bool
        Whether a line end is added.
    """
    typer.echo("\n".join(printable(line) for line in text.split("\n")), err=err, nl=nl)


def say_json(text: str, *, err: bool = False) -> None:
    """Write JSON in ASCII: the one control character that it may hold is escaped as JSON escapes them."""
    say(text.replace("\x7f", "\\u007f"), err=err)


def number(value: Any, digits: int = 4) -> str:
    """Return a number as the tables show it, the same in every locale."""
    if value is None or value != value:
        return "-"
    if isinstance(value, bool | str):
        return str(value)
    if isinstance(value, int) or (float(value).is_integer() and digits == 0):
        return str(int(value))
    return f"{float(value):.{digits}f}"


def table_text(header: Sequence[str], rows: Iterable[Sequence[str]], right: Sequence[int] = ()) -> str:
    """Return rows as aligned text.

    Parameters
    ----------
    header : sequence of str
    rows : iterable of sequences of str
    right : sequence of int
        Positions of the columns that are set flush right.
    """
    cells = [list(header), *(list(row) for row in rows)]
    widths = [max(len(row[at]) for row in cells) for at in range(len(header))]
    lines = [
        "  ".join(
            cell.rjust(width) if at in right else cell.ljust(width)
            for at, (cell, width) in enumerate(zip(row, widths, strict=True))
        ).rstrip()
        for row in cells
    ]
    lines.insert(1, "  ".join("-" * width for width in widths))
    return "\n".join(lines)


@contextmanager
def warnings_told(tell: Callable[[str], None], others: bool = True) -> Iterator[None]:
    """Give the warnings of the package to a function, a line each; Python would add a line of source.

    Parameters
    ----------
    tell : function
        Is called with the text of one.
    others : bool
        Whether warnings of other packages are shown as before. They may hold a cell.
    """
    before = warnings.showwarning

    def show(message: Warning | str, category: type[Warning], *place: Any, **options: Any) -> None:
        if issubclass(category, AnonflowWarning):
            tell(str(message))
        elif others:
            before(message, category, *place, **options)

    warnings.showwarning = show
    try:
        yield
    finally:
        warnings.showwarning = before


class Output(io.FileIO):
    """A file that accepts all writes, and stores whether they failed.

    Attributes
    ----------
    problem : int or None
        The number of the first error; None while there was none.
    """

    problem: int | None = None

    def write(self, data: Any) -> int:
        """Write as much as possible."""
        if self.problem is None:
            try:
                return super().write(data)
            except OSError as error:
                self.problem = error.errno or errno.EIO
        return memoryview(data).nbytes


class _Closed(Output):
    """The replacement of a stream that was closed before the process began: its output is discarded."""

    def write(self, data: Any) -> int:
        self.problem = errno.EBADF
        return memoryview(data).nbytes


def watched() -> Output:
    """Replace standard output and error by streams that never fail; return the former.

    Notes
    -----
    A descriptor that was closed is opened on nothing: otherwise the next file that is opened would get its number, and
    words meant for a terminal would get into it.
    """
    closed = []
    for number in (0, 1, 2):
        try:
            os.fstat(number)
        except OSError:
            closed.append(number)
            os.open(os.devnull, os.O_RDWR)  # gets the lowest number that is free
    sys.stdout, output = _text_stream(1, closed)
    sys.stderr, _ = _text_stream(2, closed)
    return output


def _text_stream(number: int, closed: list[int]) -> tuple[io.TextIOWrapper, Output]:
    now: Any = {1: sys.stdout, 2: sys.stderr}[number]
    raw = (_Closed if number in closed else Output)(number, "wb", closefd=False)
    text = io.TextIOWrapper(
        io.BufferedWriter(raw),
        encoding=getattr(now, "encoding", None) or "utf-8",
        errors="backslashreplace",
        line_buffering=number == 2 or raw.isatty(),
    )
    return text, raw
