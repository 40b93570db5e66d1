"""Read sheets of Excel workbooks."""

from __future__ import annotations

import datetime
import zipfile
from collections.abc import Callable, Iterable
from os import PathLike, fspath
from pathlib import Path
from typing import TYPE_CHECKING, Any

from anonflow.errors import DataError
from anonflow.table.texts import text_type

if TYPE_CHECKING:
    import pandas as pd

__all__ = ["ENDINGS", "read_workbook"]

ENDINGS = (".xlsx", ".xlsm")


def read_workbook(
    path: str | PathLike[str],
    *,
    sheet: str | None = None,
    opener: Callable[[Path], Any] | None = None,
    fits: Callable[[Iterable[int]], None] = lambda sizes: None,
) -> pd.DataFrame:
    """Read a sheet of an Excel workbook: its first row is the header, a formula has its stored value.

    Parameters
    ----------
    path : path
        ``.xlsx`` or ``.xlsm``.
    sheet : str, optional
        Its name; the first one without it.
    opener : callable, optional
        Opens the file.
    fits : callable, optional
        Called with the bytes that the parts of the file unpack to; raises an error if they are too many.

    Returns
    -------
    pandas.DataFrame
        A column of numbers, of dates, or else of texts; an empty cell is missing. Rows without any cell are left out.

    Raises
    ------
    DataError
        If openpyxl is not installed, the file is missing or no workbook, it has no such sheet, or the sheet has no header.
    """
    import pandas as pd

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
                sizes = [part.file_size for part in packed.infolist()]
            fits(sizes)
            stream.seek(0)
            book = openpyxl.load_workbook(stream, read_only=True, data_only=True)
            names = [worksheet.title for worksheet in book.worksheets]
            if sheet is not None and sheet not in names:
                raise DataError(f"{name}: has no sheet {sheet!r}; name one of its {len(names)} sheets")
            if not names:
                raise DataError(f"{name}: has no sheet with cells")
            rows = book[sheet or names[0]].iter_rows(values_only=True)
            header = next(iter(rows), ())
            cells = [row for row in rows if any(cell is not None for cell in row)]
            book.close()
        except (zipfile.BadZipFile, KeyError, ValueError, TypeError, AttributeError, OSError, EOFError):
            raise DataError(
                f"{name}: is not a readable Excel workbook; save it again as .xlsx, or export it as CSV"
            ) from None
    width = max((at for at, cell in enumerate(header, 1) if cell is not None), default=0)
    if not width or any(cell is None or not str(cell).strip() for cell in header[:width]):
        raise DataError(f"{name}: a column has no name; the first row of the sheet must be the header")
    if any(cell is not None for row in cells for cell in row[width:]):
        raise DataError(f"{name}: rows have more cells than the header; name every column in the first row")
    titles = [str(cell) for cell in header[:width]]
    if len(set(titles)) < width:
        raise DataError(f"{name}: two columns have the same name; rename one")
    columns = {
        title: _column([row[at] if at < len(row) else None for row in cells])
        for at, title in enumerate(titles)
    }
    return pd.DataFrame(columns, index=pd.RangeIndex(len(cells)))


def _column(cells: list[Any]) -> pd.Series:
    """Return numbers, bools or dates if all cells are of that kind, otherwise texts."""
    import pandas as pd

    kinds = {type(cell) for cell in cells if cell is not None}
    if kinds == {int}:
        return pd.Series(cells, dtype="Int64" if None in cells else "int64")
    if kinds and kinds <= {int, float}:
        return pd.Series(cells, dtype="float64")
    if kinds == {bool} and None not in cells:
        return pd.Series(cells, dtype="bool")
    if kinds == {datetime.datetime}:
        return pd.Series(pd.to_datetime(pd.Series(cells, dtype="object")))
    return pd.Series([None if cell is None else _text(cell) for cell in cells], dtype=text_type())


def _text(cell: Any) -> str:
    if isinstance(cell, float) and cell.is_integer():
        return str(int(cell))
    if isinstance(cell, datetime.datetime) and cell.time() == datetime.time():
        return cell.date().isoformat()
    return cell.isoformat() if isinstance(cell, datetime.date | datetime.time) else str(cell)
