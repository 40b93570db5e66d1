"""(k,1)-anonymity: each record generalized with others, whoever they are (paper 4, Algorithms 1, 2 and 6)."""

from __future__ import annotations

import math
from dataclasses import dataclass

import numpy as np

from anonflow.algorithms.contract import Partition
from anonflow.errors import ParameterError
from anonflow.generalization import Generalization
from anonflow.kernels.concealment import best_choice_jit, expand_jit, near_jit
from anonflow.kernels.costs import load, unload
from anonflow.kernels.state import State, empty_state, take
from anonflow.table.records import Records

__all__ = ["Merged", "expanded", "optimal", "randomly_expanded"]

BLOCK = 256
"""Records expanded at a time: the lists of their neighbours stay small."""

NEAREST = 256
"""Neighbours that are looked at first."""

TRIES = 16
"""A random choice that is no other generalization is repeated so often (Algorithm 6, step 6)."""

CHOICES = 20_000_000
"""More choices than this are not tried out."""


@dataclass(frozen=True, eq=False)
class Merged:
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
    def of(cls, part: Partition) -> Merged:
        """Merge the equal records of a partition, O(P q log P).

        Raises
        ------
        None
        """
        _, first, label, count = np.unique(
            part.records.classes(), return_index=True, return_inverse=True, return_counts=True
        )
        order = np.argsort(first)
        rank = np.empty(len(order), np.int64)
        rank[order] = np.arange(len(order))
        own = Generalization.of(part.records.take(first[order]))
        state = load(part.plan, own.lo, own.hi, own.bits)
        return cls(part, rank[np.ravel(label)], first[order], count[order].astype(np.int64), state)

    @property
    def monotone(self) -> bool:
        """Whether more general records never cost less under the partition's loss."""
        return self.part.loss != "entropy"

    def spread(self, boxes: State) -> State:
        """A generalized record for each record, from one for each different record.

        Raises
        ------
        None
        """
        return take(boxes, self.label)

    def own(self) -> State:
        """Each record as its own generalized record.

        Raises
        ------
        None
        """
        return self.spread(self.state)

    def visits(self, rng: np.random.Generator | None) -> np.ndarray:
        """The different records in the order in which a visit to all records meets them first.

        Raises
        ------
        None
        """
        if rng is None:
            return np.arange(len(self.first))
        met = self.label[rng.permutation(self.part.n)]
        return met[np.sort(np.unique(met, return_index=True)[1])]


def expanded(merged: Merged, k: int, lists: list[np.ndarray] | None = None, least: int = 0) -> State:
    """A generalized record for each different record by expansion (Algorithm 2).

    Parameters
    ----------
    merged : Merged
    k : int
    lists : list of numpy.ndarray, optional
        Filled with the nearest different records of each, block by block, (block, m) int32.
    least : int
        At least so many neighbours are listed.

    Returns
    -------
    State
        u generalized records. O(u (u q + m k q)) time for m = 256 neighbours where the loss is monotone.

    Raises
    ------
    None
    """
    u = len(merged.first)
    boxes = empty_state(merged.part.plan, u)
    m = min(u, max(NEAREST, least))
    for start in range(0, u, BLOCK):
        stop = min(u, start + BLOCK)
        ids = np.empty((stop - start, m), np.int32)
        costs = np.empty((stop - start, m))
        near_jit(merged.part.plan, merged.state, start, stop, ids, costs)
        expand_jit(
            merged.part.plan, merged.state, merged.count, start, stop, k, ids, costs, merged.monotone, boxes
        )
        if lists is not None:
            lists.append(ids)
    return boxes


def randomly_expanded(merged: Merged, k: int, q: int, rng: np.random.Generator) -> State:
    """A generalized record for each record: that of expansion, or of k - 1 of its q nearest (Algorithm 6).

    Parameters
    ----------
    merged : Merged
        P records.
    k, q : int
        k - 1 <= q < P.
    rng : numpy.random.Generator

    Returns
    -------
    State
        P generalized records.

    Raises
    ------
    None

    Notes
    -----
    Where no random choice gives another generalized record than expansion does, that one is widened by a record
    drawn from all (the paper leaves it open).
    """
    lists: list[np.ndarray] = []
    plan, records = merged.part.plan, merged.part.records
    n = records.n
    boxes = merged.spread(expanded(merged, k, lists, q + 1))
    first = _generalization(records, plan, boxes)
    others = _others(merged, np.concatenate(lists), q)
    second = _chosen(records, others, k, rng)
    same = _equal(first, second)
    for _ in range(TRIES):
        again = np.flatnonzero(same)
        if not len(again):
            break
        second = _replaced(second, again, _chosen(records, others, k, rng, again))
        same = _equal(first, second)
    stuck = np.flatnonzero(same)
    if len(stuck):
        drawn = Generalization.of(records.take(rng.integers(n, size=len(stuck))))
        second = _replaced(second, stuck, first.take(stuck).join(drawn).closure())
    bit = rng.integers(2, size=n).astype(bool)
    made = _replaced(first, np.flatnonzero(bit), second.take(np.flatnonzero(bit)))
    return load(plan, made.lo, made.hi, made.bits)


def optimal(merged: Merged, k: int) -> State:
    """The cheapest generalized record of each record with k - 1 others (Algorithm 1).

    Raises
    ------
    ParameterError
        If there are too many choices to try.
    """
    part = merged.part
    n = part.n
    if n * math.comb(n - 1, k - 1) > CHOICES:
        raise ParameterError(
            f"exact: {n} records have too many choices of {k - 1} others; use smaller partitions, or exact=False"
        )
    origin = merged.own()
    boxes, work = empty_state(part.plan, n), empty_state(part.plan, k)
    for i in range(n):
        best_choice_jit(part.plan, origin, i, k, merged.monotone, work, boxes)
    return boxes


def _generalization(records: Records, plan: object, boxes: State) -> Generalization:
    lo, hi, bits = unload(plan, boxes)  # type: ignore[arg-type]
    return Generalization(records.domains, lo, hi, bits).closure()


def _others(merged: Merged, nearest: np.ndarray, q: int) -> np.ndarray:
    """The q nearest other records of each record, (P, q), int64: by cost, then by position of their first copy."""
    members = np.argsort(merged.label, kind="stable")
    begin = np.cumsum(merged.count) - merged.count
    u, m = nearest.shape
    sizes = np.minimum(merged.count[nearest], q + 1)
    before = np.cumsum(sizes, axis=1) - sizes
    lists = np.empty((u, q + 1), np.int64)
    for s in range(m):
        for c in range(int(sizes[:, s].max())):
            at = before[:, s] + c
            rows = np.flatnonzero((c < sizes[:, s]) & (at <= q))
            if not len(rows):
                break
            lists[rows, at[rows]] = members[begin[nearest[rows, s]] + c]
        if (before[:, s] > q).all():
            break
    own = lists[merged.label]
    mine = own == np.arange(len(own))[:, None]
    mine[~mine.any(axis=1), q] = True  # among many copies, itself may not be listed
    found: np.ndarray = own[~mine].reshape(len(own), q)
    return found


def _chosen(
    records: Records, others: np.ndarray, k: int, rng: np.random.Generator, index: np.ndarray | None = None
) -> Generalization:
    """Closures of records and k - 1 random ones of their neighbours."""
    at = np.arange(len(others)) if index is None else index
    picks = np.argsort(rng.random((len(at), others.shape[1])), axis=1)[:, : k - 1]
    matches = np.concatenate([at[:, None], np.take_along_axis(others[at], picks, axis=1)], axis=1)
    return Generalization.join_of(records, matches)


def _equal(one: Generalization, other: Generalization) -> np.ndarray:
    return (
        (one.lo == other.lo).all(axis=0)
        & (one.hi == other.hi).all(axis=0)
        & (one.bits == other.bits).all(axis=0)
    )


def _replaced(base: Generalization, index: np.ndarray, parts: Generalization) -> Generalization:
    lo, hi, bits = base.lo.copy(), base.hi.copy(), base.bits.copy()
    lo[:, index], hi[:, index], bits[:, index] = parts.lo, parts.hi, parts.bits
    return Generalization(base.domains, lo, hi, bits)
