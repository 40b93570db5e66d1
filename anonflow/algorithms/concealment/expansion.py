"""(k,1)-anonymity: each record is generalized with k - 1 others (Tassa 2012, Algorithms 1, 2 and 6)."""

from __future__ import annotations

import math
from collections.abc import Callable
from dataclasses import dataclass

import numpy as np

from anonflow.algorithms.method import Partition, Progress
from anonflow.errors import InfeasibleError, ParameterError, setting
from anonflow.generalization import Generalization
from anonflow.kernels.concealment import best_choice_jit, expand_jit, near_jit, within_jit
from anonflow.kernels.costs import load, unload
from anonflow.kernels.jit import method_clock
from anonflow.kernels.state import ENTROPY, Plan, State, empty_state, take
from anonflow.loss import MONOTONE
from anonflow.table.records import Records, places_in
from anonflow.threads import in_threads

BLOCK = 256
"""Records expanded at a time, so that the lists of their neighbours stay small."""

NEAREST = 256
"""Least number of neighbours that are examined first; 8 k if that is more."""

ALONE = 4096
"""So many different records are expanded by one thread; more of them by all processors."""

TRIES = 16
"""How often a random choice is repeated if it gives the same generalization (Algorithm 6, step 6)."""

CHOICES = 20_000_000
"""The most choices that are tried."""

STEPS = 1 << 12
"""Records that a search over choices takes before it checks the time: up to a tenth of a second."""

_NOT_EXACT = setting("exact", "exact=False")


@dataclass(frozen=True, eq=False)
class DistinctRecords:
    """The different records of a partition, with their copies.

    Attributes
    ----------
    part : Partition
        P records.
    label : numpy.ndarray, shape (P,), int64
        Which different record each one is; numbered by first position.
    first : numpy.ndarray, shape (u,), int64
        The first record of each.
    count : numpy.ndarray, shape (u,), int64
        Copies of each.
    state : State
        The u records.
    """

    part: Partition
    label: np.ndarray
    first: np.ndarray
    count: np.ndarray
    state: State

    @classmethod
    def of(cls, part: Partition) -> DistinctRecords:
        """Merge the equal records of a partition, O(P q log P)."""
        _, first, label, count = np.unique(
            part.records.classes(), return_index=True, return_inverse=True, return_counts=True
        )
        # in the order of first occurrence: ties then go to the same records as without merging
        order = np.argsort(first)
        originals = Generalization.of(part.records.take(first[order]))
        state = load(part.plan, originals.lo, originals.hi, originals.bits)
        return cls(
            part,
            places_in(order, len(order))[np.ravel(label)],
            first[order],
            count[order].astype(np.int64),
            state,
        )

    @property
    def monotone(self) -> bool:
        """Whether more general records never cost less under the partition's loss."""
        return self.part.loss in MONOTONE

    def spread(self, boxes: State) -> State:
        """Return a generalized record for each record, from one for each different record."""
        return take(boxes, self.label)

    def own(self) -> State:
        """Return each record as its own generalized record."""
        return self.spread(self.state)

    def visits(self, rng: np.random.Generator | None) -> np.ndarray:
        """Return the different records in the order in which a visit to all records meets them first."""
        if rng is None:
            return np.arange(len(self.first))
        met = self.label[rng.permutation(self.part.n)]
        return met[np.sort(np.unique(met, return_index=True)[1])]


def floor(plan: Plan) -> Plan:
    """Return a monotone loss that is nowhere above a given one: the least cost of a cell or of any that covers it.

    For hierarchies it is the least cost of a node and its ancestors; for the entropy of runs and sets it is 0. A
    monotone loss is its own floor.
    """
    least = plan.node_cost.copy()
    above = plan.parent.copy()
    while (above >= 0).any():
        inner = above >= 0
        least[inner] = np.minimum(least[inner], plan.node_cost[above[inner]])
        above[inner] = plan.parent[above[inner]]
    return plan._replace(
        node_cost=least,
        # the entropy of a wider cell may be anything down to 0
        range_unit=np.where(plan.range_form == ENTROPY, 0.0, plan.range_unit),
        set_unit=np.where(plan.set_form == ENTROPY, 0.0, plan.set_unit),
    )


def expanded(merged: DistinctRecords, k: int) -> State:
    """Return a generalized record for each different record by expansion (Algorithm 2).

    Parameters
    ----------
    merged : DistinctRecords
    k : int

    Returns
    -------
    State
        u generalized records. O(u^2 q) time to find m = max(256, 8 k) neighbours, O(u m k q) to expand where these
        are enough, O(u^2 k q) where they are not, as under the entropy of runs and sets.
    """
    plan, u = merged.part.plan, len(merged.first)
    boxes, below = empty_state(plan, u), floor(plan)
    m = min(u, max(NEAREST, 8 * k))

    def expand_block(start: int, stop: int) -> None:
        ids, costs = np.empty((stop - start, m), np.int32), np.empty((stop - start, m))
        near_jit(below, merged.state, start, stop, ids, costs)
        expand_jit(plan, merged.state, merged.count, start, stop, k, ids, costs, boxes)

    _in_blocks(expand_block, u)
    return boxes


def expanded_among(merged: DistinctRecords, k: int, q: int) -> tuple[State, np.ndarray]:
    """Return the result of :func:`expanded`, and for each different record the q others with which its expansion would continue.

    Parameters
    ----------
    merged : DistinctRecords
    k, q : int
        k <= q + 1 <= P.

    Returns
    -------
    boxes : State
        u generalized records.
    ids : numpy.ndarray, shape (u, q + 1), int32
        Different records, the own one first, with q + 1 copies at least: the nearest ones, by the cost of their pair, of
        those that the expansion to q + 1 records covers.

    Notes
    -----
    Time as for expansions to k and to q + 1, the neighbours sought once; O(u q) memory for the lists.
    """
    plan, u = merged.part.plan, len(merged.first)
    boxes, wide, below = empty_state(plan, u), empty_state(plan, u), floor(plan)
    rows = np.empty((u, q + 1), np.int32)
    m = min(u, max(NEAREST, 8 * (q + 1)))

    def expand_block(start: int, stop: int) -> None:
        ids, costs = np.empty((stop - start, m), np.int32), np.empty((stop - start, m))
        near_jit(below, merged.state, start, stop, ids, costs)
        expand_jit(plan, merged.state, merged.count, start, stop, k, ids, costs, boxes)
        expand_jit(plan, merged.state, merged.count, start, stop, q + 1, ids, costs, wide)
        within_jit(merged.state, merged.count, wide, start, stop, ids, rows)

    _in_blocks(expand_block, u)
    return boxes, rows


def nearest(merged: DistinctRecords, m: int, rows: np.ndarray | None = None) -> np.ndarray:
    """Return the m nearest different records of each, or of some, by the cost of their pair, itself first; int32."""
    u = len(merged.first)
    places = np.arange(u) if rows is None else rows
    ids = np.empty((len(places), min(u, m)), np.int32)

    def near_block(start: int, stop: int) -> None:
        costs = np.empty((1, ids.shape[1]))
        for at in range(start, stop):
            i = int(places[at])
            near_jit(merged.part.plan, merged.state, i, i + 1, ids[at : at + 1], costs)

    _in_blocks(near_block, len(places))
    return ids


def _in_blocks(work: Callable[[int, int], None], u: int) -> None:
    """Blocks of records, each on its own: kernels release the interpreter, results do not depend on threads."""
    in_threads(lambda start: work(start, min(u, start + BLOCK)), range(0, u, BLOCK), None if u > ALONE else 1)


def randomly_expanded(
    merged: DistinctRecords, k: int, q: int, rng: np.random.Generator, pairs: bool = False
) -> State:
    """Return a generalized record for each record: that of expansion, or of k - 1 of its q nearest (Algorithm 6).

    Parameters
    ----------
    merged : DistinctRecords
        P records.
    k, q : int
        k - 1 <= q < P.
    rng : numpy.random.Generator
    pairs : bool, optional
        Whether the nearest records are those whose pairs cost least; otherwise those with which expansion continues.

    Returns
    -------
    State
        P generalized records.

    Notes
    -----
    Where no random choice gives another generalized record than expansion does, as among many copies, that one is
    widened by one of the q nearest different records that it does not cover (the paper leaves it open).
    """
    plan, records = merged.part.plan, merged.part.records
    n = records.n
    if pairs:
        boxes, ids = expanded(merged, k), nearest(merged, q + 1)
    else:
        boxes, ids = expanded_among(merged, k, q)
    first = unloaded(records, plan, merged.spread(boxes))
    others = _others(merged, ids, q)
    second = _random_closures(records, others, k, rng)
    same = _equal(first, second)
    for _ in range(TRIES):
        again = np.flatnonzero(same)
        if not len(again):
            break
        second = _replaced(second, again, _random_closures(records, others, k, rng, again))
        same = _equal(first, second)
    stuck = np.flatnonzero(same)
    if len(stuck):
        drawn = _outside(merged, first, stuck, q, rng)
        second = _replaced(second, stuck, first.take(stuck).join(drawn).closure())
    bit = rng.integers(2, size=n).astype(bool)
    generalization = _replaced(first, np.flatnonzero(bit), second.take(np.flatnonzero(bit)))
    return load(plan, generalization.lo, generalization.hi, generalization.bits)


def optimal(merged: DistinctRecords, k: int, time_limit: float = math.inf) -> State:
    """Return the cheapest generalized record of each record with k - 1 others (Algorithm 1).

    Raises
    ------
    ParameterError
        If there are too many choices to try.
    InfeasibleError
        If `time_limit` seconds have passed.

    Notes
    -----
    The time, an interruption and the partition's `watch` are looked at after every `STEPS` steps of a search.
    """
    part = merged.part
    n = part.n
    if n * math.comb(n - 1, k - 1) > CHOICES:
        raise ParameterError(
            f"exact: {n} records have too many choices of {k - 1} others; use smaller partitions, or "
            + _NOT_EXACT
        )
    origin = merged.own()
    boxes, work = empty_state(part.plan, n), empty_state(part.plan, k)
    end = method_clock() + time_limit
    for i in range(n):
        chosen, depth, best = np.full(k, -1, np.int64), 1, math.inf
        while depth > 0:
            if method_clock() > end:
                raise InfeasibleError(
                    f"exact: {i} of {n} records were done in {time_limit:g} seconds; raise "
                    + setting("time-limit", "time_limit")
                    + ", use smaller partitions, or "
                    + _NOT_EXACT
                )
            if part.watch is not None:
                part.watch(Progress(i, n, float(boxes.cost[:i].sum())))
            depth, best = best_choice_jit(
                part.plan, origin, i, chosen, depth, best, STEPS, merged.monotone, work, boxes
            )
    return boxes


def unloaded(records: Records, plan: object, boxes: State, zones: np.ndarray | None = None) -> Generalization:
    """Return the generalized records of some boxes, box i original i's.

    Parameters
    ----------
    records : Records
        n originals.
    plan : Plan
    boxes : State
        n of them, each joined from records of its own zone.
    zones : numpy.ndarray, shape (n,), int64, optional
        Labels 0.. of what was generalized apart; one for all without it.

    Notes
    -----
    Numbers that cost the same are one number to the kernels, which take the widest run of them. It is cut to the
    values of the zone, so that it exceeds no boundary and no limit without covering another record. O(n q).
    """
    lo, hi, bits = unload(plan, boxes)  # type: ignore[arg-type]
    zones = np.zeros(records.n, np.int64) if zones is None else zones
    originals = Generalization.of(records)
    for t in range(len(lo)):
        least, most = np.full(zones.max() + 1, np.iinfo(np.int32).max), np.full(zones.max() + 1, -1)
        np.minimum.at(least, zones, originals.lo[t])
        np.maximum.at(most, zones, originals.hi[t])
        np.maximum(lo[t], least[zones], out=lo[t])
        np.minimum(hi[t], most[zones], out=hi[t])
    return Generalization(records.domains, lo, hi, bits).closure()


def _others(merged: DistinctRecords, near_by: np.ndarray, q: int) -> np.ndarray:
    """Return the q nearest other records of each record, (P, q), int64: by cost, then by position of their first copy."""
    members = np.argsort(merged.label, kind="stable")
    begin = np.cumsum(merged.count) - merged.count
    u, m = near_by.shape
    sizes = np.minimum(merged.count[near_by], q + 1)
    before = np.cumsum(sizes, axis=1) - sizes
    lists = np.empty((u, q + 1), np.int64)
    for s in range(m):
        for c in range(int(sizes[:, s].max())):
            at = before[:, s] + c
            rows = np.flatnonzero((c < sizes[:, s]) & (at <= q))
            if not len(rows):
                break
            lists[rows, at[rows]] = members[begin[near_by[rows, s]] + c]
        if (before[:, s] > q).all():
            break
    neighbours = lists[merged.label]
    is_self = neighbours == np.arange(len(neighbours))[:, None]
    is_self[~is_self.any(axis=1), q] = True  # among many copies, itself may not be listed
    return neighbours[~is_self].reshape(len(neighbours), q)


def _random_closures(
    records: Records, others: np.ndarray, k: int, rng: np.random.Generator, index: np.ndarray | None = None
) -> Generalization:
    """Return closures of records and k - 1 random ones of their neighbours."""
    at = np.arange(len(others)) if index is None else index
    picks = np.argsort(rng.random((len(at), others.shape[1])), axis=1)[:, : k - 1]
    matches = np.concatenate([at[:, None], np.take_along_axis(others[at], picks, axis=1)], axis=1)
    return Generalization.join_of(records, matches)


def _outside(
    merged: DistinctRecords, boxes: Generalization, index: np.ndarray, q: int, rng: np.random.Generator
) -> Generalization:
    """Return, for some records, one of the q nearest different records that their box does not cover, or of all records if there is none."""
    records = merged.part.records
    originals = Generalization.of(records.take(merged.first))
    different, place = np.unique(merged.label[index], return_inverse=True)
    near_by = nearest(merged, max(NEAREST, 2 * q), different)[np.ravel(place)]
    beyond = np.column_stack([~boxes.take(index).covers(originals.take(column)) for column in near_by.T])
    beyond &= np.cumsum(beyond, axis=1) <= q
    outside = beyond.sum(axis=1)
    at = np.argmax(
        np.cumsum(beyond, axis=1) > (rng.random(len(index)) * outside).astype(np.int64)[:, None], axis=1
    )
    drawn = np.where(
        outside > 0, near_by[np.arange(len(index)), at], rng.integers(len(merged.first), size=len(index))
    )
    return originals.take(drawn)


def _equal(left: Generalization, right: Generalization) -> np.ndarray:
    return (
        (left.lo == right.lo).all(axis=0)
        & (left.hi == right.hi).all(axis=0)
        & (left.bits == right.bits).all(axis=0)
    )


def _replaced(base: Generalization, index: np.ndarray, parts: Generalization) -> Generalization:
    lo, hi, bits = base.lo.copy(), base.hi.copy(), base.bits.copy()
    lo[:, index], hi[:, index], bits[:, index] = parts.lo, parts.hi, parts.bits
    return Generalization(base.domains, lo, hi, bits)
