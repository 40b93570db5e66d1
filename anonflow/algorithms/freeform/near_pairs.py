"""Each original's nearest originals by multiple sorting (Uno, 2010; Murakami 2018, section 3.2.1)."""

from __future__ import annotations

from concurrent.futures import ThreadPoolExecutor
from itertools import combinations
from math import comb, prod

import numpy as np

from anonflow.kernels.freeform.near_pairs import enter_pairs_jit
from anonflow.kernels.nearest import nearest_jit
from anonflow.kernels.state import ENTROPY, NODES, SLOPE, STEP, WHOLE, Plan, State
from anonflow.table.records import Records, equal_columns

MOST = 20
"""Quasi-identifiers of which all subsets are listed."""

FEW = 2
"""Records for each set of as many QIs, below which those that are left are compared with all: as fast as sorting on."""

DIGITS = 9
"""Decimals to which sums of costs are compared: those of equal numbers differ in their last bits."""

LEAST_SHARE = 1e-9
"""Shares of pairs that agree in a QI, and of pairs that differ, are at least this: their logarithms are finite."""

BLOCK = 4096
"""Records that a thread takes at a time."""


def costs_of_difference(records: Records, plan: Plan) -> np.ndarray | None:
    """Return the cost of a difference in each QI, if it does not depend on the values.

    Parameters
    ----------
    records : Records
        Over q QIs.
    plan : Plan

    Returns
    -------
    numpy.ndarray, shape (q,), float64, or None
        None where it depends on the values: numbers, hierarchies of several levels, and entropy.
    """
    costs = np.zeros(records.q)
    at_range = at_set = 0
    for a, domain in enumerate(records.domains):
        # under boundaries the cost of a difference depends on the values
        if any(limit is not None for limit in (domain.bound, domain.floor, domain.limit)):
            return None
        if domain.shape == "set":
            form, t = plan.set_form[at_set], at_set
            at_set += 1
            if form == ENTROPY:
                return None
            pays = form == SLOPE or (form == STEP and plan.set_least[t] <= 2)
            costs[a] = plan.set_unit[t] if pays else 0.0
            continue
        form, t = plan.range_form[at_range], at_range
        at_range += 1
        if domain.size == 1 and not domain.has_missing:
            continue
        if domain.hierarchy is None or domain.hierarchy.height.max() > 1 or form not in (NODES, WHOLE):
            return None
        if form == WHOLE:
            costs[a] = plan.range_unit[t]
        else:
            costs[a] = plan.node_cost[plan.parent[plan.leaf[plan.range_at[t]]]]
    return costs


def sorted_pairs(
    records: Records,
    plan: Plan,
    origin: State,
    costs: np.ndarray,
    count: int,
    pool: ThreadPoolExecutor,
) -> np.ndarray:
    """Return for each original the originals that are cheapest to join with it, itself among them.

    Parameters
    ----------
    records : Records
        n records over q QIs.
    plan : Plan
    origin : State
        The originals.
    costs : numpy.ndarray, shape (q,), float64
        From :func:`costs_of_difference`.
    count : int
        n at most.
    pool : concurrent.futures.ThreadPoolExecutor

    Returns
    -------
    numpy.ndarray, shape (n, count), int32
        The nearest first. Of equally near ones, those that follow along the order in which the records come.

    Notes
    -----
    Uno's multiple sorting (Knowl. Inf. Syst. 25, 2010) for records instead of short strings: sets of QIs are hidden, the
    cheapest first; records that agree on the others are sorted next to each other, and those of a run that differ in all
    hidden QIs are pairs. A record is finished when it has `count` partners. Where few records are left, they are compared
    with all instead of sorting for every set that is left.

    Of sets that cost the same, the paper leaves open which comes first. Here it is the set in which most pairs differ, so that the
    partners of a record differ from it in the same QIs, and joining several of them conceals less. Of 20,000 people a sparse start
    at k = 10 loses 0.367; with sets in the order of the columns 0.378, and in the opposite order 0.395.

    At most O(2^q n (q + count)), mostly a small part of the sets; never much more than the O(n^2 q) of all pairs.
    """
    n, q = records.n, records.q
    near = np.empty((n, count), np.int32)
    filled = np.zeros(n, np.int64)
    codes = records.codes.astype(np.int64)
    whole = _code_digits(codes)
    for hidden in _hidden_sets(costs, codes):
        short = int((filled < count).sum())
        if not short or short < FEW * comb(q, len(hidden)):
            break
        order, first, last = _sorted(codes, whole, hidden)
        _enter(codes, order, first, last, np.array(hidden, np.int64), near, filled, pool=pool)
    _among_all(plan, origin, np.flatnonzero(filled < count), near, pool)
    return near


def _hidden_sets(costs: np.ndarray, codes: np.ndarray) -> list[tuple[int, ...]]:
    """Return the sets of QIs that records may be sorted without, the cheapest first; of more than `MOST` QIs none is hidden.

    Of sets that cost the same, the first is the one in which most pairs may be expected to differ, and in no other QI. The first set
    of so many QIs that n records are too few ends the search. It costs no more than any larger one, so larger ones are not listed.
    """
    n, q = codes.shape
    sets: list[tuple[int, ...]] = [()]
    for size in range(1, q + 1 if q <= MOST else 1):
        sets += combinations(range(q), size)
        # so many sets of this size that comparing the records left with all of them is faster
        if n < FEW * comb(q, size):
            break
    counts = [np.unique(column, return_counts=True)[1] for column in codes.T]
    agreeing = np.array([float((count / n) @ (count / n)) for count in counts]).clip(
        LEAST_SHARE, 1 - LEAST_SHARE
    )
    odds = np.log((1 - agreeing) / agreeing)
    prices = costs / (costs.max(initial=0.0) or 1.0)

    def rank(hidden: tuple[int, ...]) -> tuple[float, int, float]:
        at = list(hidden)
        return round(float(prices[at].sum()), DIGITS), len(at), -round(float(odds[at].sum()), DIGITS)

    return sorted(sets, key=rank)


def _code_digits(codes: np.ndarray) -> np.ndarray | None:
    """Return codes as the digits of one number for each record, shape (n, q); None where it would be too large."""
    n = len(codes)
    ranks = codes - codes.min(axis=0, initial=0)
    sizes = [int(size) + 1 for size in ranks.max(axis=0, initial=0)]
    # the number times n, plus the position, is sorted as one int64
    if n * prod(sizes) >= 2**62:
        return None
    return ranks * np.array([prod(sizes[:a]) for a in range(len(sizes))], np.int64)


def _sorted(
    codes: np.ndarray, whole: np.ndarray | None, hidden: tuple[int, ...]
) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
    """Return the records sorted by their visible QIs, and the run of each place."""
    n = len(codes)
    qis = [a for a in range(codes.shape[1]) if a not in hidden]
    label = equal_columns(codes[:, qis].T, n) if whole is None else whole[:, qis].sum(axis=1)
    # the position is part of the number: no two are equal, so every way of sorting gives the same
    label, order = np.divmod(np.sort(label * n + np.arange(n)), n)
    starts = np.flatnonzero(np.diff(label, prepend=-1, append=-1))
    sizes = np.diff(starts)
    return order, np.repeat(starts[:-1], sizes), np.repeat(starts[1:], sizes)


def _enter(
    codes: np.ndarray,
    order: np.ndarray,
    first: np.ndarray,
    last: np.ndarray,
    hidden: np.ndarray,
    near: np.ndarray,
    filled: np.ndarray,
    *,
    pool: ThreadPoolExecutor,
) -> None:
    def work(start: int) -> None:
        stop = min(start + BLOCK, len(order))
        enter_pairs_jit(codes, order, first, last, hidden, start, stop, near, filled)

    # Each record's partners are written by the one thread that has its place.
    list(pool.map(work, range(0, len(order), BLOCK)))


def _among_all(
    plan: Plan, origin: State, rows: np.ndarray, near: np.ndarray, pool: ThreadPoolExecutor
) -> None:
    """Find the nearest of some records, which are compared with all."""

    def work(i: int) -> None:
        nearest_jit(plan, origin, origin, i, i + 1, near)

    list(pool.map(work, rows.tolist()))
