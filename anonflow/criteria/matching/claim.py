"""Whether published rows cover the originals that their owner lists for them."""

from __future__ import annotations

import numpy as np

from anonflow.candidate_lists import Candidates
from anonflow.generalization import Generalization
from anonflow.table import Records
from anonflow.threads import in_threads

_ORIGINALS = 1 << 15
"""Listed originals that are looked up at a time, about: what is compared stays in the cache of a core."""


def uncovered(listed: Candidates, records: Records, published: Generalization) -> np.ndarray:
    """Return rows that do not cover an original that is listed for them, shape (rows,), bool; in threads.

    Parameters
    ----------
    listed : Candidates
        Every listed position must exist.
    records : Records
    published : Generalization

    Notes
    -----
    A row covers all originals of a list if it covers their ends and their values: these are found once for each list, which
    the rows of a class share. O(e q) time for e originals in all lists, and O(rows q).
    """
    bad = np.zeros(listed.rows, bool)
    layout = published.layout
    # rows that share a list, as those of a class, are compared with its ends, which are computed once
    by_list = None if listed.unshared else np.argsort(listed.row_list, kind="stable")

    def check(part: tuple[int, int]) -> None:
        first, stop = part
        sizes = np.diff(listed.offsets[first : stop + 1])
        if not sizes.any():
            return
        if by_list is None:
            rows = np.arange(first, stop)
        else:
            rows = by_list[slice(*np.searchsorted(listed.row_list, part, sorter=by_list))]
        # reduceat gives an empty list the ends of the next one's first original: lists of nobody cover nothing wrong
        place = listed.row_list[rows] - first
        rows, place = rows[sizes[place] > 0], place[sizes[place] > 0]
        place = (np.cumsum(sizes > 0) - 1)[place]
        people = records.take(listed.originals[listed.offsets[first] : listed.offsets[stop]])
        starts = listed.offsets[first:stop][sizes > 0] - listed.offsets[first]
        outside = np.zeros(len(rows), bool)
        for t, a in enumerate(layout.ranges):
            low, high = people.ends(int(a))
            outside |= np.minimum.reduceat(low, starts)[place] < published.lo[t, rows]
            outside |= np.maximum.reduceat(high, starts)[place] > published.hi[t, rows]
        for a, span in layout.words.items():
            code = people.codes[:, a]
            bit = np.uint64(1) << (code & 63).astype(np.uint64)
            words = published.bits[span]
            for word in np.flatnonzero(np.bincount(code >> 6)).tolist():
                # word by word: a domain of many values would else take as many words for each listed original
                values = np.bitwise_or.reduceat(np.where(code >> 6 == word, bit, np.uint64(0)), starts)
                outside |= (values[place] & ~words[word, rows]) != 0
        bad[rows[outside]] = True

    in_threads(check, listed.parts(_ORIGINALS))
    return bad
