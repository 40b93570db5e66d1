"""A first guess at a schema from the names and values of a frame."""

from __future__ import annotations

import re
from typing import TYPE_CHECKING, Any

import numpy as np

from anonflow.errors import DataError
from anonflow.table.domain import missing_cells
from anonflow.table.numbers import numbers_of

if TYPE_CHECKING:
    import pandas as pd

__all__ = ["infer_columns"]

_IDENTIFIER = re.compile(
    r"(^|[^a-z])(id|uuid|ssn|email|e-mail|phone|telephone|passport|iban|url)([^a-z]|$)|(^|[^a-z])(first|last|full|sur)?-?_?name$",
    re.IGNORECASE,
)
_SENSITIVE = re.compile(
    r"salary|income|wage|diagnos|disease|illness|condition|religio|politic|orientation|verdict|score|(^|[^a-z])class$|hiv|drug",
    re.IGNORECASE,
)
_CODE = re.compile(r"zip|post(al)?[-_ ]?code|plz|postcode", re.IGNORECASE)

MANY = 0.9
"""Share of distinct values from which text is taken to name a person."""


def infer_columns(frame: pd.DataFrame) -> dict[str, dict[str, Any]]:
    """Guess ``{role, kind}`` for each column.

    Names decide first (identifiers, sensitive columns, postal codes); then text that is nearly unique is an
    identifier, numbers and dates are numeric QIs, other text is a categorical QI, and a column with one value
    is insensitive. A guess is to be edited: only the owner knows what an attacker knows.

    Parameters
    ----------
    frame : pandas.DataFrame

    Returns
    -------
    dict
        Column name -> entry, in the frame's order. O(n) per column.
    """
    return {str(name): _guess(str(name), frame.iloc[:, at]) for at, name in enumerate(frame.columns)}


def _guess(name: str, cells: pd.Series) -> dict[str, Any]:
    import pandas as pd

    missing = missing_cells(cells)
    values = cells[~missing]
    try:
        distinct = int(values.nunique())
    except TypeError:
        return {"role": "insensitive"}
    if distinct <= 1:
        return {"role": "insensitive"}
    if _IDENTIFIER.search(name):
        return {"role": "identifier"}
    if _SENSITIVE.search(name):
        return {"role": "sensitive"}
    entry: dict[str, Any] = {"role": "quasi-identifier"}
    if _CODE.search(name):
        texts = values.astype(str)
        if texts.str.len().nunique() == 1 and not missing.any():
            return entry | {"kind": "positions"}
        return entry | {"kind": "suppression"}
    numeric = _is_numeric(values)
    if not numeric and len(values) >= 10 and distinct >= MANY * len(values):
        return {"role": "identifier"}
    if not numeric or pd.api.types.is_bool_dtype(cells.dtype):
        return entry | {"kind": "categorical"}
    if missing.any():
        return entry | {"kind": "numeric", "missing": "suppress"}
    return entry | {"kind": "numeric"}


def _is_numeric(values: pd.Series) -> bool:
    """Numbers, dates, or text that is one of them throughout."""
    import pandas as pd

    if pd.api.types.is_bool_dtype(values.dtype):
        return False
    if pd.api.types.is_numeric_dtype(values.dtype):
        return bool(np.isfinite(values.to_numpy(dtype=np.float64, na_value=np.nan)).all())
    try:
        numbers_of(values, "")
    except (DataError, ValueError, TypeError):
        return False
    return True
