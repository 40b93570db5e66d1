"""A number for the cells of a table: the same in pieces, another one for every other order or cell."""

from __future__ import annotations

import numpy as np
import pandas as pd
from hypothesis import given
from hypothesis import strategies as st

from anonflow.table.row_marks import Content


@given(
    cells=st.lists(st.sampled_from(["a", "b", "1", ""]), min_size=1, max_size=12),
    cuts=st.sets(st.integers(1, 11)),
    place=st.integers(0, 11),
)
def test_pieces_are_the_whole_and_every_cell_counts(cells: list[str], cuts: set[int], place: int) -> None:
    frame = pd.DataFrame({"a": cells, "b": range(len(cells))})
    whole, parts = Content.of(frame, ["a", "b"]), Content(0, 0)
    for begin, end in zip([0, *sorted(cuts)], [*sorted(cuts), len(cells)], strict=True):
        parts = parts.then(Content.of(frame.iloc[begin:end], ["a", "b"]))
    assert parts == whole
    changed = frame.copy()
    changed.loc[place % len(cells), "a"] = "another"
    assert Content.of(changed, ["a", "b"]) != whole
    order = np.roll(np.arange(len(cells)), 1)
    assert (Content.of(frame.iloc[order], ["a", "b"]) == whole) == (len(cells) == 1)
    assert Content.of(frame.iloc[:-1], ["a", "b"]) != whole
