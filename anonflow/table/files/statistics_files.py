"""Read files of SPSS, Stata and SAS: value labels, and codes that stand for a missing value."""

from __future__ import annotations

import io
import re
from collections.abc import Callable, Iterable, Iterator, Mapping
from dataclasses import dataclass
from os import PathLike, fspath
from pathlib import Path
from typing import Any, Literal

import numpy as np
import pandas as pd

from anonflow.errors import AnonflowError, DataError
from anonflow.table.arrow import frame_as_written
from anonflow.table.forms.text_columns import text_type

READERS = {
    ".sav": "read_sav",
    ".zsav": "read_sav",
    ".por": "read_por",
    ".dta": "read_dta",
    ".sas7bdat": "read_sas7bdat",
    ".xpt": "read_xport",
}
"""Ending of a file -> the function of pyreadstat that reads it."""

PIECE = 1 << 28
"""Bytes that the rows of one read take at most: the number of rows that a file declares may be wrong, and pyreadstat reserves memory for it."""

TEXT_OBJECT = 64
"""Bytes that a text takes besides its characters."""

_SECOND = 1_000_000
_DAY = 86_400 * _SECOND

_SPSS_FORMATS = {
    "date": "DATE ADATE EDATE JDATE SDATE MOYR QYR WKYR",
    "datetime": "DATETIME YMDHMS",
    "time": "TIME DTIME MTIME",
}
"""What a variable of SPSS is -> its formats, without width."""

_SAS_FORMATS = {
    "day": "B8601DA DATE DAY DDMMYY DDMMYYB DDMMYYC DDMMYYD DDMMYYN DDMMYYP DDMMYYS DOWNAME E8601DA IS8601DA JULDAY JULIAN MMDDYY MMDDYYB MMDDYYC MMDDYYD "
    "MMDDYYN MMDDYYP MMDDYYS MMYY MMYYC MMYYD MMYYN MMYYP MMYYS MONNAME MONTH MONYY NLDATE NLDATEMN NLDATEW NLDATEYM NLDATEYQ QTR QTRR "
    "WEEKDATE WEEKDATX WEEKDAY WORDDATE WORDDATX YEAR YYMM YYMMC YYMMD YYMMN YYMMP YYMMS YYMMDD YYMMDDB YYMMDDC YYMMDDD YYMMDDN YYMMDDP YYMMDDS "
    "YYMON YYQ YYQC YYQD YYQN YYQP YYQR YYQS",
    "date": "DTDATE DTMONYY DTYEAR DTYYQC E8601DN",
    "datetime": "B8601DN B8601DT DATEAMPM DATETIME E8601DT IS8601DT MDYAMPM NLDATM",
    "time": "B8601TM E8601TM HHMM HOUR IS8601TM MMSS NLTIME TIME TIMEAMPM TOD",
}
"""What a variable of SAS is -> its formats, without width: `day` counts days, the others seconds."""

_FIRST, _LAST = np.datetime64("0001-01-01", "us"), np.datetime64("9999-12-31T23:59:59.999999", "us")
_MOST_DAYS = 366 * 10_000

_STATA_MONTHS = {"m": 1, "q": 3, "h": 6}
"""Letter of a format of Stata that counts periods of the calendar -> their months."""


@dataclass(frozen=True)
class _Moment:
    """What a variable with a format of dates or times counts from an origin.

    Attributes
    ----------
    kind : str
        ``date``, ``datetime``, ``time`` (of a day, or a duration), ``month`` or ``week``.
    unit : int
        Microseconds; of kind ``month`` months.
    origin : str
    """

    kind: str
    unit: int
    origin: str


def read_statistics(
    path: str | PathLike[str],
    *,
    labels: bool = True,
    user_missing: bool = False,
    opener: Callable[[Path], Any] | None = None,
    fits: Callable[[Iterable[int]], None],
) -> pd.DataFrame:
    """Read a file of SPSS (``.sav``, ``.zsav``, ``.por``), Stata (``.dta``) or SAS (``.sas7bdat``, ``.xpt``).

    Parameters
    ----------
    path : path
    labels : bool
        Whether a column whose values all have a label becomes the labels; one where only some have, such as an age
        with a label for "older", or two values have the same, keeps its numbers.
    user_missing : bool
        Whether codes that the file declares to be missing (SPSS: missing values; Stata and SAS: ``.a`` to ``.z``) are
        values, with their labels; they are missing without it.
    opener : callable, optional
        Opens the file.
    fits : callable
        Takes the bytes of the cells as they are read; raises an error if they are too many.

    Returns
    -------
    pandas.DataFrame
        Whole numbers without a fraction are integers; texts are texts, an empty one is missing. What its format says is a date is one, a month
        or another period its first day; times of a day are times, and where some are longer, all are numbers of seconds.

    Raises
    ------
    DataError
        If pyreadstat is not installed, the file is missing, or it has another format.
    """
    file = Path(path)
    name = fspath(path)
    try:
        import pyreadstat
    except ModuleNotFoundError:
        raise DataError(
            f"{name}: files of SPSS, Stata and SAS need the package pyreadstat; install it with: pip install 'anonflow[stats]'"
        ) from None
    if file.suffix.lower() not in READERS:
        raise DataError(f"{name}: such a file ends in {', '.join(READERS)}; rename or convert it")
    if not file.is_file():
        raise DataError(f"{name}: does not exist; check the path")
    read = getattr(pyreadstat, READERS[file.suffix.lower()])
    # transport files and .por declare no missing codes of the user's
    declared = {} if file.suffix.lower() in (".por", ".xpt") else {"user_missing": user_missing}

    def read_rows(**settings: Any) -> tuple[pd.DataFrame, Any]:
        with opener(file) if opener else file.open("rb") as stream:
            # pyreadstat knows some formats only, and cuts whole days off a duration
            return read(stream, disable_datetime_conversion=True, **settings, **declared)

    columns: dict[str, pd.Series] = {}
    try:
        _, metadata = read_rows(metadataonly=True)
        if not metadata.column_names:
            raise DataError(f"{name}: has no columns; save it again with its variables")
        widths = list(metadata.variable_storage_width.values())
        longest = 0
        if file.suffix.lower() == ".dta":
            with opener(file) if opener else file.open("rb") as stream:
                longest = _longest_shared_text(stream)
        rows = max(1, PIECE // sum(TEXT_OBJECT + (width or longest) for width in widths))
        moments = {
            str(column): moment
            for column, form in metadata.original_variable_types.items()
            if (moment := _moment_of(str(form), file.suffix.lower())) is not None
        }
        named = metadata.variable_value_labels if labels else {}
        fits(_read_columns(read_rows, rows, named, moments, columns))
        # pyreadstat reads Stata's 0.1 as 0.10000000149011612
        singles = {
            column: columns[column].astype(np.float32)
            for column, kind in zip(columns, metadata.readstat_variable_types.values(), strict=True)
            if kind == "float" and columns[column].dtype.kind == "f"
        }
        columns |= {str(column): cells for column, cells in frame_as_written(pd.DataFrame(singles)).items()}
    except (AnonflowError, MemoryError):
        raise
    except Exception as error:  # pyreadstat's own ones, and whatever damaged or invented numbers lead to
        if isinstance(error, OSError) and not isinstance(error, FileNotFoundError):
            raise DataError(f"{name}: cannot be read ({type(error).__name__})") from None
        raise DataError(
            f"{name}: is not a readable {file.suffix.lower()} file; save it again, or export it as CSV"
        ) from None
    return pd.DataFrame(columns)


def _longest_shared_text(stream: Any) -> int:
    """Return bytes of the longest text that a Stata file stores apart from its rows (strL); any number of cells may refer to it.

    Raises
    ------
    ValueError
        If the file has no end: pyreadstat would read it without its labels.
    """
    with io.BufferedReader(stream) as content:
        header = content.read(1 << 12)
        if not header.startswith(b"<stata_dta>"):  # before Stata 13
            return 0
        content.seek(-64, io.SEEK_END)
        if b"</stata_dta>" not in content.read():
            raise ValueError
        order: Literal["big", "little"] = "big" if b"<byteorder>MSF" in header else "little"
        size = 16 if b"<release>117<" in header else 20
        place = header.index(b"<map>") + len(b"<map>") + 10 * 8
        content.seek(int.from_bytes(header[place : place + 8], order) + len(b"<strls>"))
        longest = 0
        while (beginning := content.read(size)).startswith(b"GSO"):
            length = int.from_bytes(beginning[-4:], order)
            longest = max(longest, length)
            content.seek(length, io.SEEK_CUR)
    return longest


def _read_columns(
    read_rows: Callable[..., tuple[pd.DataFrame, Any]],
    rows: int,
    labels: Mapping[str, Mapping[Any, str]],
    moments: Mapping[str, _Moment],
    columns: dict[str, pd.Series],
) -> Iterator[int]:
    """Read some rows at a time and put the columns into a mapping; yield the bytes that their cells take, before they are held."""
    pieces: list[pd.DataFrame] = []
    while not pieces or len(pieces[-1]) == rows:
        piece, _ = read_rows(row_offset=len(pieces) * rows, row_limit=rows)
        yield sum(_size(piece[name]) for name in piece.columns)
        pieces.append(piece)
    pieces = [piece for piece in pieces if len(piece)] or pieces[:1]
    for name in pieces[0].columns:
        parts = [piece[name] for piece in pieces]
        cells = (
            parts[0] if len(parts) == 1 else pd.Series(np.concatenate([part.to_numpy() for part in parts]))
        )
        counts = cells.value_counts()
        named = labels.get(str(name), {})
        used = [named[value] for value in counts.index if value in named]
        # a label of two codes would make them one value
        if used and len(used) == len(counts) == len(set(used)):
            # the file has a label once, the table in every cell
            yield sum(len(str(named[value])) * int(count) for value, count in counts.items())
            columns[str(name)] = _labelled(cells, named)
        else:
            if str(name) in moments:
                cells = _as_moments(str(name), cells, moments[str(name)])
            columns[str(name)] = _read_as_parquet(cells)


def _size(cells: pd.Series) -> int:
    if cells.dtype.kind in "biuf":
        return int(cells.nbytes)
    return sum(TEXT_OBJECT + (len(cell) if isinstance(cell, str) else 0) for cell in cells)


def _labelled(cells: pd.Series, labels: Mapping[Any, str]) -> pd.Series:
    labelled = np.full(len(cells), None, object)
    labelled[cells.notna().to_numpy()] = [str(labels[value]) for value in cells.dropna()]
    return pd.Series(labelled, dtype=text_type())


def _moment_of(form: str, ending: str) -> _Moment | None:
    """Return what a variable of this format counts; None for a number."""
    if ending == ".dta":
        # business days (%tb) need a file of their calendar, and %ty is the year itself
        match = re.match(r"%-?(?:t([cCdwmqh])|d)", form)
        if match is None:
            return None
        unit = match[1] or "d"
        if unit in _STATA_MONTHS:
            return _Moment("month", _STATA_MONTHS[unit], "1960-01-01")
        if unit in "cC":
            is_time = re.fullmatch(r"%tcHH:MM(:SS)?", form)
            return _Moment("time" if is_time else "datetime", _SECOND // 1000, "1960-01-01")
        return _Moment("week" if unit == "w" else "date", 7 * _DAY if unit == "w" else _DAY, "1960-01-01")
    is_sas = ending in (".sas7bdat", ".xpt")
    match = re.fullmatch(r"([A-Z][A-Z0-9]*?[A-Z])\d*(\.\d*)?", form.upper())
    for kind, names in (_SAS_FORMATS if is_sas else _SPSS_FORMATS).items():
        if match is not None and match[1] in names.split():
            unit_and_origin = (_DAY if kind == "day" else _SECOND, "1960-01-01" if is_sas else "1582-10-14")
            return _Moment("date" if kind == "day" else kind, *unit_and_origin)
    return None


def _as_moments(name: str, cells: pd.Series, moment: _Moment) -> pd.Series:
    """Return counts as the dates, times or both that they stand for; letters of missing codes stay.

    Raises
    ------
    DataError
        If one is no date of the years 1 to 9999.
    """
    numbers = pd.to_numeric(cells, errors="coerce").to_numpy(float)
    there = np.isfinite(numbers)
    numbers = np.where(there, numbers, 0)
    whole = np.floor(numbers)
    origin = np.datetime64(moment.origin, "us")
    days = np.abs(whole) * (moment.unit / _DAY if moment.kind != "month" else 30 * moment.unit)
    if (days < _MOST_DAYS).all():
        counts = whole.astype(np.int64)
        if moment.kind == "month":
            stamps = (origin.astype("datetime64[M]") + counts * moment.unit).astype(origin.dtype)
        elif moment.kind == "week":  # a year has 52, and the last one eight or nine days
            stamps = (origin.astype("datetime64[Y]") + counts // 52).astype(origin.dtype)
            stamps += counts % 52 * np.timedelta64(moment.unit, "us")
        else:
            parts = np.rint((numbers - whole) * moment.unit).astype(np.int64)
            stamps = origin + (counts * moment.unit + parts).astype("timedelta64[us]")
    if not (days < _MOST_DAYS).all() or (stamps < _FIRST).any() or (stamps > _LAST).any():
        raise DataError(
            f"column {name!r}: has a date before the year 1 or after 9999; correct it in the file"
        )
    kind = moment.kind
    if kind == "time" and not ((stamps >= origin) & (stamps < origin + np.timedelta64(1, "D"))).all():
        if moment.unit == _SECOND:
            return cells
        kind = "datetime"  # of Stata: its format leaves out the day
    if kind == "datetime":
        stamps[~there] = np.datetime64("NaT")
        moments = pd.Series(stamps, index=cells.index)
    elif kind == "time":
        moments = pd.Series([stamp.time() for stamp in stamps.astype(object)], cells.index, object)
    else:
        moments = pd.Series(stamps.astype("datetime64[D]").astype(object), cells.index, object)
    letters = ~there & cells.notna().to_numpy()
    if kind != "datetime" or letters.any():
        moments = moments.astype(object)
        moments[~there] = None
        moments[letters] = cells[letters]
    return moments


def _read_as_parquet(cells: pd.Series) -> pd.Series:
    """Return a column as a Parquet file of it would be read: numbers, or texts."""
    present = cells.dropna()
    if pd.api.types.is_float_dtype(cells.dtype) and (present == np.floor(present)).all():
        inside = len(present) and present.abs().max() < 2**53
        return cells.astype("Int64" if cells.hasnans else "int64") if inside else cells
    if pd.api.types.is_object_dtype(cells.dtype) or pd.api.types.is_string_dtype(cells.dtype):
        if all(isinstance(value, str) for value in present):
            return pd.Series(cells.mask(cells == "", None).to_numpy(object), dtype=text_type())
        if any(isinstance(value, str) for value in present):  # a letter of a missing code among numbers
            return pd.Series([None if pd.isna(v) else _value_as_text(v) for v in cells], dtype=text_type())
    return cells


def _value_as_text(value: Any) -> str:
    return str(int(value)) if isinstance(value, float) and value.is_integer() else str(value)
