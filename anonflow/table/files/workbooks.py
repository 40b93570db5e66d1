"""Read sheets of Excel workbooks."""

from __future__ import annotations

import datetime
import re
import zipfile
from collections.abc import Callable, Iterable, Iterator, Sequence
from itertools import chain, dropwhile, islice
from os import PathLike, fspath
from pathlib import Path
from typing import Any

import pandas as pd

from anonflow.errors import AnonflowError, DataError, setting
from anonflow.hierarchy.wording import plural
from anonflow.table.files.csv_head import TAIL, check_last
from anonflow.table.forms.text_columns import text_type

ENDINGS = (".xlsx", ".xlsm")

MOST_ROWS = 1 << 20
"""Rows of a sheet, which is all that Excel knows."""

FIRST = 30
"""Rows by which a header is told from what stands above it."""

_EMPTY_FORMULA = re.compile(
    rb"<(?:\w+:)?c\b([^<>]*)>\s*<(?:\w+:)?f\b(?:[^<>]*/>|[^<>]*>[^<]*</(?:\w+:)?f>)\s*(?:<(?:\w+:)?v\b[^<>]*(?:/>|></)|</)"
)
_MERGED = re.compile(rb"<(?:\w+:)?mergeCell\b([^<>]*)>")
_PLACE = re.compile(rb"\br(?:ef)?=[\"']([A-Z]{1,3}[0-9]{1,7}(?::[A-Z]{1,3}[0-9]{1,7})?)[\"']")


def read_workbook(
    path: str | PathLike[str],
    *,
    sheet: str | None = None,
    skip: int = 0,
    footer: int | None = None,
    opener: Callable[[Path], Any] | None = None,
    fits: Callable[[Iterable[int]], None],
    tell_sheets: Callable[[Sequence[str]], None] = lambda names: None,
) -> pd.DataFrame:
    """Read a sheet of an Excel workbook: its first row with a cell is the header, a formula has its stored value.

    Parameters
    ----------
    path : path
        ``.xlsx`` or ``.xlsm``.
    sheet : str, optional
        Its name; the first one without it.
    skip : int
        Rows above the header that are not read, such as titles.
    footer : int, optional
        Rows at the end that are not read; without it a last row that looks like a total is refused.
    opener : callable, optional
        Opens the file.
    fits : callable
        Takes the bytes of the parts of the file, and then of its rows, as they are read; raises an error if they are too many.
    tell_sheets : callable, optional
        Called with the names of all sheets.

    Returns
    -------
    pandas.DataFrame
        A column of numbers, of dates, or else of texts; an empty cell is missing. Rows without any cell are left out.

    Raises
    ------
    DataError
        If openpyxl is not installed, the file is missing or no workbook, it has no such sheet, or the sheet has no header.
    """
    file, name = Path(path), fspath(path)
    try:
        import openpyxl
    except ModuleNotFoundError:
        raise DataError(
            f"{name}: workbooks need the package openpyxl; install it with: pip install 'anonflow[excel]'"
        ) from None
    if not file.is_file():
        raise DataError(f"{name}: does not exist; check the path")
    with opener(file) if opener else file.open("rb") as stream:
        try:
            with zipfile.ZipFile(stream) as packed:
                fits([part.file_size for part in packed.infolist()])
            stream.seek(0)
            book = openpyxl.load_workbook(stream, read_only=True, data_only=True)
            names = [worksheet.title for worksheet in book.worksheets]
            tell_sheets(names)
            if sheet is not None and sheet not in names:
                raise DataError(
                    f"{name}: has no sheet {sheet!r}; it has {plural(len(names), 'sheet')}, name that of the table"
                )
            if not names:
                raise DataError(f"{name}: has no sheet with cells")
            worksheet = book[sheet or names[0]]
            worksheet.reset_dimensions()  # some programs write a wrong one, and rows beyond it would be lost
            rows = enumerate(worksheet.iter_rows(values_only=True, max_row=MOST_ROWS + 1), 1)
            below = dropwhile(lambda numbered: numbered[0] <= skip or _is_blank(numbered[1]), rows)
            first = list(islice(below, FIRST))
            header = _header(name, first, len(names))
            cells: list[tuple[Any, ...]] = []
            fits(_read_cells(name, chain(first[1:], below), len(header), cells))
            with zipfile.ZipFile(stream) as packed:
                _refuse_lost_cells(name, packed.read(worksheet._worksheet_path), first[0][0], len(header))
            book.close()
            if footer:
                del cells[-footer:]
            elif footer is None and cells:
                end = cells[-TAIL:]
                check_last(
                    name, [[None if cell is None else _cell_text(cell) for cell in row] for row in end]
                )
            columns = {
                title: _typed_column([row[at] if at < len(row) else None for row in cells])
                for at, title in enumerate(header)
            }
        except (AnonflowError, MemoryError):
            raise
        except Exception:  # archives, XML and cells have each their own ways to be damaged
            raise DataError(
                f"{name}: is not a readable Excel workbook; save it again as .xlsx, or export it as CSV"
            ) from None
    return pd.DataFrame(columns, index=pd.RangeIndex(len(cells)))


def _header(name: str, first: Sequence[tuple[int, tuple[Any, ...]]], sheets: int) -> list[str]:
    """Return the names of the columns from the first rows and their numbers; where there are none, the table may be in another of the sheets."""
    number, cells = first[0] if first else (1, ())
    width = max((at for at, cell in enumerate(cells, 1) if cell is not None), default=0)
    titles = [str(cell) for cell in cells[:width] if not _is_blank([cell])]
    problem = _what_is_above(first) if first else None
    if problem is None and (not width or len(titles) < width):
        problem = "a column has no name; the first row of the sheet must be the header"
        if width:
            letters = [_letter(at) for at in range(width) if _is_blank([cells[at]])]
            problem += f", but row {number:,} has no name in column {letters[0]}"
    if problem is not None:
        problem = f"{name}: " + problem
        if sheets > 1:
            problem += (
                f", and the workbook has {sheets:,} sheets: if the table is in another one, "
                + setting("sheet", "set sheet: NAME in the source")
            )
        raise DataError(problem)
    if len(set(titles)) < width:
        raise DataError(f"{name}: two columns have the same name; rename one")
    return titles


def _what_is_above(first: Sequence[tuple[int, tuple[Any, ...]]]) -> str | None:
    """Return what to do about rows above a row that has a name in every column, or about names in two rows; None where there is neither.

    A row of the table must never be taken for the header, because the names of columns are published: the header has texts alone, and stands
    below nothing but titles of one cell, or is told from a record by other cells below it.
    """
    rows = [(number, row, _places(row)) for number, row in first if not _is_blank(row)]
    width = 1 + max(places[-1] for *_, places in rows)
    begins = next((at for at, (*_, places) in enumerate(rows) if len(places) > 1), len(rows))
    if begins + 1 >= len(rows):
        return None

    def is_header(at: int) -> bool:
        _, row, places = rows[at]
        return len(places) == width and all(isinstance(row[place], str) for place in places)

    def is_told_apart(at: int) -> bool:
        _, row, places = rows[at]
        below = [other[place] for _, other, filled in rows[at + 1 :] for place in places if place in filled]
        return all(isinstance(row[place], str) for place in places) and not all(
            isinstance(cell, str) for cell in below
        )

    header = begins
    if not is_header(begins) and is_told_apart(begins + 1):
        upper, lower = rows[begins][2], rows[begins + 1][2]
        if not is_header(begins + 1) and len({*upper, *lower}) == width:
            return (
                f"the names of the columns are in two rows, rows {rows[begins][0]:,} and {rows[begins + 1][0]:,}, as where cells are merged; "
                "write all names into one row"
            )
        header = begins + 1
    if not header or not is_header(header):
        return None
    above = rows[header][0] - 1
    return f"what stands above row {above + 1:,} has fewer cells than the rows, as titles have; " + setting(
        "skip", f"set skip: {above} in the source", above
    )


def _letter(at: int) -> str:
    """Return what spreadsheets call a column, by its place."""
    from openpyxl.utils import get_column_letter

    return str(get_column_letter(at + 1))


def _places(row: Sequence[Any]) -> list[int]:
    """Return the places of a row's cells that have something in them; a space is nothing."""
    return [at for at, cell in enumerate(row) if cell is not None and str(cell).strip()]


def _is_blank(row: Sequence[Any]) -> bool:
    return not _places(row)


def _read_cells(
    name: str, rows: Iterable[tuple[int, tuple[Any, ...]]], width: int, cells: list[tuple[Any, ...]]
) -> Iterator[int]:
    """Put the rows that have cells into a list; yield the bytes that each one takes in a table."""
    for number, row in rows:
        if number > MOST_ROWS:
            raise DataError(
                f"{name}: has more rows than a sheet may have ({MOST_ROWS:,}); save it again, or export it as CSV"
            )
        if any(cell is not None for cell in row[width:]):
            raise DataError(
                f"{name}: rows have more cells than the header; name every column in the first row"
            )
        row = row[:width]
        if any(cell is not None for cell in row):
            cells.append(row)
            # the workbook has a text once, the table in every cell
            yield sum(len(cell) if isinstance(cell, str) else 8 for cell in row)


def _refuse_lost_cells(name: str, sheet: bytes, header: int, width: int) -> None:
    """Refuse a sheet, given as XML, with cells that show something in a spreadsheet and would be read as missing."""
    from openpyxl.utils import range_boundaries

    def places(attributes: Iterable[bytes]) -> list[str]:
        texts = [place[1].decode("ascii") for content in attributes if (place := _PLACE.search(content))]
        bounds = [range_boundaries(text) for text in texts]
        return [
            text
            for text, (column, row, *_) in zip(texts, bounds, strict=True)
            if row > header and column <= width
        ]

    # a formula whose value is an empty text says so
    formulas = places(
        cell[1] for cell in _EMPTY_FORMULA.finditer(sheet) if not re.search(rb"\bt=.str.", cell[1])
    )
    if formulas:
        raise DataError(
            f"{name}: {plural(len(formulas), 'formula')} without a stored value (such as {formulas[0]}), as programs write that do not compute; "
            "open it in a spreadsheet and save it"
        )
    merged = places(cell[1] for cell in _MERGED.finditer(sheet))
    if merged:
        raise DataError(
            f"{name}: {plural(len(merged), 'range')} of merged cells below the header (such as {merged[0]}), of which only the first has the value; "
            "unmerge them, and write the value into each cell"
        )


def _typed_column(cells: list[Any]) -> pd.Series:
    """Return numbers, bools or dates if all cells are of that kind, otherwise texts."""
    kinds = {type(cell) for cell in cells if cell is not None}
    if kinds == {int} and all(cell is None or abs(cell) < 1 << 63 for cell in cells):
        return pd.Series(cells, dtype="Int64" if None in cells else "int64")
    if kinds and kinds <= {int, float}:
        return pd.Series(cells, dtype="float64")
    if kinds == {bool} and None not in cells:
        return pd.Series(cells, dtype="bool")
    if kinds == {datetime.datetime}:
        return pd.Series(pd.to_datetime(pd.Series(cells, dtype="object")))
    return pd.Series([None if cell is None else _cell_text(cell) for cell in cells], dtype=text_type())


def _cell_text(cell: Any) -> str:
    if isinstance(cell, float) and cell.is_integer():
        return str(int(cell))
    if isinstance(cell, datetime.datetime) and cell.time() == datetime.time():
        return cell.date().isoformat()
    return cell.isoformat() if isinstance(cell, datetime.date | datetime.time) else str(cell)
