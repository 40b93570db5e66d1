"""Where large arrays are made: in memory, or in files that are mapped."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from typing import Any, Protocol

import numpy as np
import pandas as pd
import pyarrow as pa


class Arrays(Protocol):
    """Makes arrays as large as a table.

    Attributes
    ----------
    rows : int or None
        Rows of a frame that are made at a time; None for all at once.
    """

    rows: int | None

    def empty(self, shape: tuple[int, ...], dtype: Any) -> np.ndarray:
        """Return a new array, as :func:`numpy.empty` does."""

    def frame(self, blocks: Iterator[pd.DataFrame]) -> pd.DataFrame:
        """Return the rows of some frames, one after the other."""

    def columns(self, fields: pa.Schema, batches: Iterable[pa.RecordBatch]) -> pd.DataFrame:
        """Return the rows of some batches, one after the other; where `rows` is a number."""


class _InMemory:
    rows: int | None = None

    def empty(self, shape: tuple[int, ...], dtype: Any) -> np.ndarray:
        return np.empty(shape, dtype)

    def frame(self, blocks: Iterator[pd.DataFrame]) -> pd.DataFrame:
        (whole,) = blocks
        return whole

    def columns(self, fields: pa.Schema, batches: Iterable[pa.RecordBatch]) -> pd.DataFrame:
        return pa.Table.from_batches(batches, fields).to_pandas()


IN_MEMORY = _InMemory()
