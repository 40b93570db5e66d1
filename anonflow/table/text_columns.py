"""The type of a column of texts: pandas' own from its third version on, plain objects before."""

from __future__ import annotations

from collections.abc import Iterable
from functools import cache
from typing import Any

__all__ = ["text_array", "text_type"]


@cache
def text_type() -> Any:
    """Return the type that this pandas gives to a column of texts; in both, None is a missing value and stays one."""
    import pandas as pd

    return "str" if int(pd.__version__.partition(".")[0]) >= 3 else object


def text_array(texts: Iterable[Any]) -> Any:
    """Return texts, or None for a missing one, as the array of a column.

    Parameters
    ----------
    texts : iterable of str or None
    """
    import numpy as np
    import pandas as pd

    cells = texts if isinstance(texts, np.ndarray) else np.array([*texts, None], object)[:-1]
    return pd.array(cells.astype(object), dtype=text_type())
