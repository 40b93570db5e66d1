"""Numbers and dates of a column: read once for each distinct value."""

from __future__ import annotations

from typing import Any

import numpy as np
import pandas as pd
import pytest

from anonflow.errors import DataError
from anonflow.table.forms.numbers import numbers_of


class _Counted(np.ndarray):
    """Codes of cells that count how often they are compared as a whole."""

    comparisons = 0

    def __eq__(self, other: Any) -> Any:
        type(self).comparisons += 1
        return super().__eq__(other)


def test_values_that_are_no_numbers_are_counted_in_one_pass(monkeypatch: pytest.MonkeyPatch) -> None:
    cells = pd.Series([f"name {row % 300}" for row in range(900)] + ["1", "2"])
    factorize = pd.factorize

    def counted(values: Any, **settings: Any) -> tuple[np.ndarray, Any]:
        codes, distinct = factorize(values, **settings)
        return codes.view(_Counted), distinct

    monkeypatch.setattr(pd, "factorize", counted)
    _Counted.comparisons = 0
    with pytest.raises(DataError, match="900 values are not numbers"):
        numbers_of(cells, "name")
    assert _Counted.comparisons <= 2, "each distinct value was looked for in all cells"
