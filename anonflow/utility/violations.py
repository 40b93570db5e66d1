"""Constraint violations: cells generalized further than their own original's value allows (Miller 2008)."""

from __future__ import annotations

import numpy as np

from anonflow.generalization import Generalization
from anonflow.table.records import Records


def beyond_cells(
    records: Records, generalization: Generalization, suppressed: np.ndarray | None = None
) -> np.ndarray:
    """Return which cells break a boundary or a limit, shape (q, n), bool.

    Parameters
    ----------
    records : Records
        n originals; their domains say what is allowed.
    generalization : Generalization
        n generalized records; row i is original i's.
    suppressed : numpy.ndarray, shape (n,), bool, optional
        Suppressed records; those that cover everything without it.

    Notes
    -----
    Miller 2008, Definition 5. Suppressed records break nothing; nor does the ``*`` of a record without a number
    break a boundary, as nothing else covers it. O(n q).
    """
    over = np.zeros((records.q, records.n), bool)
    layout = generalization.layout
    for t, a in enumerate(layout.ranges):
        domain, code = records.domains[a], records.codes[:, a]
        lo, hi = generalization.lo[t], generalization.hi[t]
        if domain.bound is not None:
            allowed = domain.bound[code]
            over[a] = ((lo < allowed[:, 0]) | (hi > allowed[:, 1])) & (code >= 0)
        if domain.limit is not None:
            over[a] |= domain.points[hi] - domain.points[lo] > domain.limit
    counts = generalization.counts()
    for t, a in enumerate(layout.sets):
        limit = records.domains[a].limit
        if limit is not None:
            over[a] = counts[t] > limit
    over[:, generalization.suppressed_rows() if suppressed is None else suppressed] = False
    return over
