"""Read files of SPSS, Stata and SAS: value labels, and codes that stand for a missing value."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from os import PathLike, fspath
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np

from anonflow.errors import DataError
from anonflow.table.texts import text_type

if TYPE_CHECKING:
    import pandas as pd

__all__ = ["READERS", "read_statistics"]

READERS = {
    ".sav": "read_sav",
    ".zsav": "read_sav",
    ".por": "read_por",
    ".dta": "read_dta",
    ".sas7bdat": "read_sas7bdat",
    ".xpt": "read_xport",
}
"""Ending of a file -> the function of pyreadstat that reads it."""


def read_statistics(
    path: str | PathLike[str],
    *,
    labels: bool = True,
    user_missing: bool = False,
    opener: Callable[[Path], Any] | None = None,
) -> pd.DataFrame:
    """Read a file of SPSS (``.sav``, ``.zsav``, ``.por``), Stata (``.dta``) or SAS (``.sas7bdat``, ``.xpt``).

    Parameters
    ----------
    path : path
    labels : bool
        Whether a column whose values all have a label becomes the labels; one where only some have, such as an age
        with a label for "older", keeps its numbers.
    user_missing : bool
        Whether codes that the file declares to be missing (SPSS: missing values; Stata and SAS: ``.a`` to ``.z``) are
        values, with their labels; they are missing without it.
    opener : callable, optional
        Opens the file.

    Returns
    -------
    pandas.DataFrame
        Whole numbers without a fraction are integers; texts are texts, an empty one is missing.

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
    # before 1.3.4 one class stands for both
    refusals = (pyreadstat.ReadstatError, getattr(pyreadstat, "PyreadstatError", pyreadstat.ReadstatError))
    stream = opener(file) if opener else file.open("rb")
    try:
        with stream:
            frame, about = read(stream, **declared)
    except (*refusals, ValueError, UnicodeError, OSError) as error:
        if isinstance(error, OSError) and not isinstance(error, FileNotFoundError):
            raise DataError(f"{name}: cannot be read ({type(error).__name__})") from None
        raise DataError(
            f"{name}: is not a readable {file.suffix.lower()} file; save it again, or export it as CSV"
        ) from None
    if not frame.shape[1]:
        raise DataError(f"{name}: has no columns; save it again with its variables")
    named = about.variable_value_labels if labels else {}
    return _columns(frame, named)


def _columns(frame: pd.DataFrame, labels: Mapping[str, Mapping[Any, str]]) -> pd.DataFrame:
    import pandas as pd

    return pd.DataFrame(
        {str(name): _cells(frame[name], labels.get(str(name), {})) for name in frame.columns},
        index=pd.RangeIndex(len(frame)),
    )


def _cells(cells: pd.Series, labels: Mapping[Any, str]) -> pd.Series:
    """Return a column as a Parquet file of it would be read: labels, or numbers, or texts."""
    import pandas as pd

    present = cells.dropna()
    distinct = pd.unique(present)
    if labels and len(distinct) and all(value in labels for value in distinct):
        texts = [str(labels[value]) for value in present]
        labelled = np.full(len(cells), None, object)
        labelled[cells.notna().to_numpy()] = texts
        return pd.Series(labelled, dtype=text_type())
    if pd.api.types.is_float_dtype(cells.dtype) and (present == np.floor(present)).all():
        inside = len(present) and present.abs().max() < 2**53
        return cells.astype("Int64" if cells.hasnans else "int64") if inside else cells
    if pd.api.types.is_object_dtype(cells.dtype) or pd.api.types.is_string_dtype(cells.dtype):
        if all(isinstance(value, str) for value in present):
            return pd.Series(cells.mask(cells == "", None).to_numpy(object), dtype=text_type())
        if any(isinstance(value, str) for value in present):  # a letter of a missing code among numbers
            return pd.Series([None if pd.isna(v) else _text(v) for v in cells], dtype=text_type())
    return cells


def _text(value: Any) -> str:
    return str(int(value)) if isinstance(value, float) and value.is_integer() else str(value)
