"""The head of a CSV file: the lines above its rows, and the names of its columns."""

from __future__ import annotations

import csv
import io
import re
from collections import Counter
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, fields
from itertools import islice
from typing import Any

from anonflow.errors import DataError, setting
from anonflow.table.published.published_cells import reads_as_number

_SEPARATOR = re.compile(r"\ufeff?\"?sep=([^\r\n])\"?(\r\n|\r|\n)", re.IGNORECASE)
"""Excel's first line, which names the delimiter."""

_LINE = re.compile(r"[^\r\n]*(\r\n|\r|\n|$)")
_COMMENT = re.compile(r"#+|//|%|--|\*")
_DATE = re.compile(r"[0-9]{1,4}([-./])[0-9]{1,2}\1[0-9]{1,4}([ T].*)?")
_MAIL = re.compile(r"[^@\s]+@[^@\s]+\.[A-Za-z]{2,24}")

_TOTALS = frozenset(
    [
        "total",
        "totals",
        "sum",
        "summe",
        "gesamt",
        "insgesamt",
        "somme",
        "totale",
        "totales",
        "suma",
        "totaal",
        "summa",
        "razem",
        "celkem",
        "toplam",
        "yhteensä",
        "итого",
    ]
) | {"grand total"}
"""What stands in a row of totals, in small letters."""

TAIL = 100
"""Rows at the end among which a row of totals is looked for."""

_ROWS = 100
"""Rows below the header that are looked at."""

_MOST = 0.9
"""The share of rows that must agree."""

DELIMITERS = {",": "commas", ";": "semicolons", "\t": "tabs", "|": "bars"}
"""The delimiters that are tried, the usual one first, and what each is called."""

DROP = "drop"
"""The value of `index` that leaves out the first column."""


@dataclass(frozen=True)
class CsvShape:
    """What is said about the shape of a CSV file.

    Attributes
    ----------
    header : bool or None
        Whether its first row has the names of the columns; None if nobody has said so: then a first row that looks like a
        record is refused. Without a header the columns are ``column 1``, ``column 2`` ...
    skip : int
        Lines above the header that are not read.
    comment : str or None
        Lines that begin so are not read.
    index : str or None
        For a first column without a name: ``drop`` leaves it out, another text is its name.
    names : tuple of str
        Of the columns, in a file without a header.
    footer : int or None
        Rows at the end that are not read, such as totals; None if nobody has said so: then a last row that looks like a total
        is refused.
    decimal, thousands : str or None
        What stands before the fraction of its numbers, and between thousands, where a column does not say so itself.
    blank_rows : bool
        Whether rows at the end without anything in a cell are read, as in a release, where each is somebody's. They are, too,
        where `footer` is 0.
    """

    header: bool | None = None
    skip: int = 0
    comment: str | None = None
    index: str | None = None
    names: tuple[str, ...] = ()
    footer: int | None = None
    decimal: str | None = None
    thousands: str | None = None
    blank_rows: bool = False

    @classmethod
    def of(cls, source: Mapping[str, Any]) -> CsvShape:
        """Return the shape that the source of a flow declares, from its keys."""
        settings = {part.name: source[part.name] for part in fields(cls) if part.name in source}
        return cls(**settings | {"names": tuple(settings.get("names", ()))})

    def to_mapping(self) -> dict[str, Any]:
        """Return what is declared, as the source of a flow has it."""
        parts = {part.name: getattr(self, part.name) for part in fields(self)}
        declared = {name: value for name, value in parts.items() if value != getattr(PLAIN, name)}
        return declared | ({"names": list(self.names)} if self.names else {})


PLAIN = CsvShape()
"""The shape of a file of which nothing is said."""


@dataclass(frozen=True)
class CsvHead:
    """The head of a CSV file.

    Attributes
    ----------
    names : tuple of str
        Of all columns of its rows.
    lines : int
        Lines above the header.
    header : bool
        Whether there is one.
    delimiter : str
    left_out : frozenset of int
        Places of columns that are not read.
    blank : frozenset of int
        Those of them that must be empty.
    """

    names: tuple[str, ...]
    lines: int
    header: bool
    delimiter: str
    left_out: frozenset[int] = field(default=frozenset())
    blank: frozenset[int] = field(default=frozenset())


def body_of(text: str, shape: CsvShape) -> tuple[str, int, str | None]:
    """Return the text from the header on, how many lines are above it, and the delimiter that Excel's first line names."""
    excel = _SEPARATOR.match(text)
    at, lines = (excel.end(), 1) if excel else (len(text) - len(text.removeprefix("\ufeff")), 0)
    skipped = 0
    while at < len(text):
        line = _LINE.match(text, at)
        assert line is not None
        content = line[0].rstrip("\r\n")
        comment = shape.comment is not None and content.startswith(shape.comment)
        if content and not comment and skipped >= shape.skip:
            break
        skipped, lines, at = skipped + 1, lines + 1, line.end()
    return text[at:], lines, excel[1] if excel else None


def head_of(name: str, text: str, delimiter: str, shape: CsvShape) -> CsvHead:
    """Return the head of a CSV file from the beginning of its text.

    Parameters
    ----------
    name : str
        The file's, for messages.
    text : str
        Complete lines.
    delimiter : str
    shape : CsvShape

    Raises
    ------
    DataError
        If there is no row, or the header cannot be used.
    """
    body, lines, separator = body_of(text, shape)
    delimiter = separator or delimiter
    rows, starts = _first_rows(body, delimiter, shape.comment)
    if not rows:
        raise DataError(f"{name}: is empty; a CSV file has a header and rows")
    if shape.header is False:
        return _without_header(name, rows[0], lines, delimiter, shape)
    names, others = list(rows[0]), rows[1:]
    usual, times = Counter(map(len, others)).most_common(1)[0] if others else (len(names), 0)
    agree = times >= _MOST * len(others)
    surplus = agree and len(others) > 1 and usual == len(names) + 1
    if surplus and all(not row[-1].strip() for row in others if len(row) == usual):
        names.append("")  # the rows end with the delimiter, and the header does not
    elif surplus and _counts_up([row[0] for row in others]):
        names.insert(0, "")  # R leaves out the name of its row names
    elif len(others) > 1 and times > len(others) / 2 and (1 <= len(names) < usual or _is_title(rows, usual)):
        _refuse_lines(name, body, rows, starts, lines, usual)
    last = len(names)
    while last > 1 and not names[last - 1].strip():
        last -= 1
    if agree and usual == last:
        names = names[:last]
    blank = frozenset(range(last, len(names)))
    left_out = blank | _unnamed_index(name, names, others, shape)
    _check_names(name, names, left_out)
    if shape.header is None and _is_record(names, others):
        raise DataError(
            f"{name}: its first line looks like a record and not like names of columns; "
            + setting("header", "set header: false in the source, or header: true if it has the names")
        )
    return CsvHead(tuple(names), lines, True, delimiter, left_out, blank)


def likely_delimiter(text: str) -> str:
    """Return the delimiter that cuts most of the first rows into equally many cells, of several the one with more cells."""
    fits = {mark: usual_cells(cell_counts(text, mark)) for mark in DELIMITERS}
    return max(DELIMITERS, key=lambda mark: fits[mark])


def cell_counts(text: str, delimiter: str) -> list[int]:
    """Return how many cells each of the first rows has."""
    counts = []
    try:
        for row in csv.reader(io.StringIO(text, newline=""), delimiter=delimiter):
            if row:
                counts.append(len(row))
            if len(counts) == _ROWS:
                break
    except (csv.Error, TypeError):  # the reader says what is wrong
        pass
    return counts


def usual_cells(counts: Sequence[int]) -> tuple[float, int]:
    """Return the share of rows with the usual number of cells, and how many cells those are; zeros if it is a cell each.

    The first line may be a title or a comment, so that the rows decide.
    """
    cells, times = Counter(counts).most_common(1)[0] if counts else (0, 0)
    return (times / len(counts), cells) if cells > 1 else (0.0, 0)


def _without_header(name: str, row: Sequence[str], lines: int, delimiter: str, shape: CsvShape) -> CsvHead:
    names = list(shape.names) or [f"column {place}" for place in range(1, len(row) + 1)]
    if len(names) != len(row):
        raise DataError(
            f"{name}: its rows have {len(row)} cells, and the source has {len(names)} names; name each column"
        )
    if shape.index is not None and shape.index != DROP:
        names[0] = shape.index
    left_out = frozenset([0] if shape.index == DROP else [])
    _check_names(name, names, left_out)
    return CsvHead(tuple(names), lines, False, delimiter, left_out)


def _first_rows(body: str, delimiter: str, comment: str | None) -> tuple[list[list[str]], list[int]]:
    """Return the first rows, and how many lines are above each."""
    reader = csv.reader(io.StringIO(body, newline=""), delimiter=delimiter)
    rows: list[list[str]] = []
    starts: list[int] = []
    above = 0
    try:
        for row in islice(reader, _ROWS):
            if row and not (comment and row[0].startswith(comment)):
                rows.append(row)
                starts.append(above)
            above = reader.line_num
    except csv.Error:  # the reader says what is wrong
        pass
    return rows, starts


def _refuse_lines(
    name: str, body: str, rows: Sequence[Sequence[str]], starts: Sequence[int], lines: int, usual: int
) -> None:
    """Refuse a file with lines above its header that are not declared."""
    between = likely_delimiter(body)
    if len(rows[0]) == 1 and len(next(csv.reader([rows[0][0]], delimiter=between))) > 1:
        raise DataError(
            f"{name}: {DELIMITERS[between]} are between its cells; "
            + setting("delimiter", f"set delimiter: {between!r} in the source")
        )
    comment = _COMMENT.match(body)
    if comment:
        raise DataError(
            f"{name}: line {lines + 1} looks like a comment; "
            + setting("comment", f'set comment: "{comment[0]}" in the source', comment[0])
        )
    titles = _is_title(rows, usual)
    first = next(
        at for at, row in enumerate(rows) if len(row) == usual and not (titles and _is_blank(row[1:]))
    )
    if first < len(rows) - 1 and (len(rows[0]) == 1 or _is_blank(rows[0][1:])):
        above = lines + starts[first]
        raise DataError(
            f"{name}: what stands above line {above + 1} has fewer cells than the rows, as titles have; "
            + setting("skip", f"set skip: {above} in the source", above)
        )


def _is_title(rows: Sequence[Sequence[str]], usual: int) -> bool:
    """Return whether the first row is a title beside empty cells, as spreadsheets write it: further rows fill three cells or more."""
    return usual > 2 and _is_blank(rows[0][1:]) and any(not _is_blank(row[2:]) for row in rows[1:])


def _is_blank(cells: Sequence[str]) -> bool:
    return not any(cell.strip() for cell in cells)


def _unnamed_index(
    name: str, names: list[str], others: Sequence[Sequence[str]], shape: CsvShape
) -> frozenset[int]:
    """Name the first column if it has no name, or return its place if it is left out."""
    if names[0].strip():
        if shape.index is not None:
            raise DataError(f"{name}: its first column has a name; leave out index in the source")
        return frozenset()
    if shape.index is None:
        counts = _counts_up([row[0] for row in others if row])
        look = " and counts the rows, as an index does" if counts else ""
        raise DataError(
            f"{name}: its first column has no name{look}; "
            + setting("index", "set index: drop in the source to leave it out, or index: NAME to name it")
        )
    if shape.index == DROP:
        return frozenset([0])
    names[0] = shape.index
    return frozenset()


def _check_names(name: str, names: Sequence[str], left_out: frozenset[int]) -> None:
    # name columns by position: if the header is missing, these are a person's values
    problems = []
    seen: dict[str, int] = {}
    for place, column in enumerate(names, 1):
        if place - 1 in left_out:
            continue
        if not column.strip():
            problems.append(f"{name}: column {place} has no name; the header must name it")
        elif seen.setdefault(column, place) != place:
            problems.append(f"{name}: columns {seen[column]} and {place} have the same name; rename one")
    if problems:
        raise DataError.collected(f"{name}: its header cannot be used", problems)


def _counts_up(cells: Sequence[str]) -> bool:
    """Return whether cells count from 0 or 1 on."""
    texts = [cell.strip() for cell in cells]
    return len(texts) > 1 and any(
        texts == [str(number) for number in range(first, first + len(texts))] for first in (0, 1)
    )


def is_total(row: Sequence[str | None], others: Sequence[Sequence[str | None]]) -> bool:
    """Return whether the last row looks like a total: a word for it that no other row has, and otherwise numbers and blanks."""
    cells = [(cell or "").strip() for cell in row]
    words = {at for at, cell in enumerate(cells) if cell.lower().rstrip(":") in _TOTALS}
    numbers = [cell for at, cell in enumerate(cells) if cell and at not in words]
    if len(words) != 1 or not numbers or not all(map(reads_as_number, numbers)):
        return False
    at = words.pop()
    return all((other[at] or "").strip() != cells[at] for other in others)


def check_last(name: str, rows: Sequence[Sequence[str | None]]) -> None:
    """Refuse a table, given by its last rows, whose last one looks like a total.

    Raises
    ------
    DataError
        If it does.
    """
    if is_total(rows[-1], rows[:-1]):
        raise DataError(
            f"{name}: its last row looks like a total and not like a record; "
            + setting("footer", "set footer: 1 in the source to leave it out, or footer: 0 to read it")
        )


def _kind(cell: str) -> str:
    return (
        "date"
        if _DATE.fullmatch(cell)
        else "mail"
        if _MAIL.fullmatch(cell)
        else "number"
        if reads_as_number(cell)
        else ""
    )


def _is_record(names: Sequence[str], others: Sequence[Sequence[str]]) -> bool:
    """Return whether the first row is like the others: each number over numbers, each text among the texts of its column.

    One date or address over others is enough: nobody names columns so.
    """
    if len(others) < 2:
        return False
    kinds = [_kind(cell.strip()) for cell in names]
    agree = []
    for at, (cell, kind) in enumerate(zip(names, kinds, strict=True)):
        column = [row[at].strip() for row in others if at < len(row) and row[at].strip()]
        same = (
            sum(_kind(value) == kind for value in column) >= _MOST * len(column)
            if kind
            else cell.strip() in column
        )
        if kind in ("date", "mail") and column and same:
            return True
        agree.append(bool(column) and same)
    return all(agree) and any(kinds)
