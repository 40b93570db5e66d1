"""Whether published rows cover the originals that their owner lists for them."""

from __future__ import annotations

import numpy as np

from anonflow.candidate_lists import Candidates
from anonflow.generalization import Generalization
from anonflow.table import Records
from anonflow.threads import in_threads

__all__ = ["uncovered"]

_LISTS = 1 << 12
"""Rows whose originals are compared at a time: with some ten for each row, what is compared stays in the cache of a core."""


def uncovered(listed: Candidates, records: Records, published: Generalization) -> np.ndarray:
    """Return rows that do not cover an original that is listed for them, shape (rows,), bool; O(E q), in threads.

    Parameters
    ----------
    listed : Candidates
        Every listed position must exist.
    records : Records
    published : Generalization

    Notes
    -----
    An original's codes lie together: it is looked up once, not once for each quasi-identifier.
    """
    bad = np.zeros(listed.rows, bool)
    layout = published.layout

    def check(begin: int) -> None:
        stop = min(listed.rows, begin + _LISTS)
        row, original = listed.pairs(begin, stop)
        people, row = records.take(original), row - begin
        outside = np.zeros(people.n, bool)
        for t, a in enumerate(layout.ranges):
            low, high = people.ends(int(a))
            outside |= low < published.lo[t, begin:stop][row]
            outside |= high > published.hi[t, begin:stop][row]
        for t, a in enumerate(layout.sets):
            code = people.codes[:, a]
            words = published.bits[layout.offset[t] : layout.offset[t + 1], begin:stop]
            word = words[code >> 6, row]
            outside |= (word >> (code & 63).astype(np.uint64)) & np.uint64(1) == 0
        bad[begin + row[outside]] = True

    in_threads(check, range(0, listed.rows, _LISTS))
    return bad
