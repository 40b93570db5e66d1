"""The choices of each row type in pattern-guided k-anonymity, and a local search among them."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from scipy import sparse
from scipy.sparse.csgraph import connected_components

from anonflow.kernels.patterns.pattern_search import move_rows_jit
from anonflow.table.records import Records, equal_columns

COMPARED = 20_000_000
"""Pairs of choices of the same row type up to which all instances are compared with one another."""

PASSES = 50
"""Passes of the local search at most; it ends when one gains nothing, mostly after a few."""


@dataclass(eq=False)
class RowChoices:
    """The choices of each row type: an instance of a pattern, or suppression.

    Attributes
    ----------
    k : int
    row_type : numpy.ndarray, shape (n,), int64
        The type of each record.
    rows : numpy.ndarray, shape (t,), int64
        How many records are of each type.
    kind, instance, pattern, cost : numpy.ndarray, shape (c,), int64
        Of each choice: the row type; the instance, -1 for suppression without k rows; its pattern, -1
        likewise; the cost of one row.
    """

    k: int
    row_type: np.ndarray
    rows: np.ndarray
    kind: np.ndarray
    instance: np.ndarray
    pattern: np.ndarray
    cost: np.ndarray

    def cheapest(self) -> np.ndarray:
        """Return the cost of each type's cheapest choice, shape (t,), int64; very large where it has none."""
        least = np.full(len(self.rows), np.iinfo(np.int64).max)
        np.minimum.at(least, self.kind, self.cost)
        return least

    def bound(self) -> int:
        """Return a lower bound of all solutions: the cost of every row at its cheapest choice."""
        return int(self.cheapest() @ self.rows)

    def part(self, index: np.ndarray) -> RowChoices:
        """Return some of the choices, with their row types and instances numbered anew.

        Parameters
        ----------
        index : numpy.ndarray, int64
            All choices of some row types, which share their instances with no other type.
        """
        kinds, kind = np.unique(self.kind[index], return_inverse=True)
        ids, instance = np.unique(self.instance[index], return_inverse=True)
        return RowChoices(
            self.k,
            np.empty(0, np.int64),
            self.rows[kinds],
            kind.astype(np.int64),
            # -1, which is suppression, sorts first and stays -1
            instance.astype(np.int64) - int(len(ids) > 0 and ids[0] < 0),
            self.pattern[index],
            self.cost[index],
        )

    def components(self) -> np.ndarray:
        """Return the connected parts of the problem: a number for each row type, shape (t,), int64."""
        inside = self.instance >= 0
        t, m = len(self.rows), int(self.instance.max(initial=-1)) + 1
        pairs = (self.kind[inside], t + self.instance[inside])
        graph = sparse.coo_array((np.ones(int(inside.sum()), np.int8), pairs), shape=(t + m, t + m))
        return np.asarray(connected_components(graph, directed=False)[1][:t], np.int64)

    def priced(self) -> RowChoices:
        """Return the same problem, without suppression as a choice, with suppression added in front at a price above that of all rows.

        A solution that costs less than the price suppresses no row, and moving a row out of suppression pays.
        """
        n, t = int(self.rows.sum()), len(self.rows)
        dearest = int(self.cost.max(initial=0))
        # above the price of n rows where integers reach so far
        price = max(min(n * dearest, 2**61 // max(n, 1)), dearest) + 1
        parts = (
            (np.arange(t), self.kind),
            (np.full(t, -1), self.instance),
            (np.full(t, -1), self.pattern),
            (np.full(t, price), self.cost),
        )
        return RowChoices(self.k, self.row_type, self.rows, *map(np.concatenate, parts))

    def keep(self, good: np.ndarray) -> None:
        """Return only the choices of a mask, shape (c,), bool."""
        self.kind, self.instance, self.pattern, self.cost = (
            part[good] for part in (self.kind, self.instance, self.pattern, self.cost)
        )

    def drop_small(self) -> None:
        """Drop the instances that fewer than k rows may choose."""
        inside = self.instance >= 0
        sizes = np.bincount(self.instance[inside], self.rows[self.kind[inside]])
        good = ~inside
        good[inside] = sizes[self.instance[inside]] >= self.k
        self.keep(good)

    def drop_dominated(self) -> None:
        """Drop each instance whose rows all fit another one that costs no more: they can choose that one instead.

        O(c + w) time and memory, where w sums the squared numbers of the row types' choices; only instances of the same rows
        are compared where w is above :data:`COMPARED`.
        """
        inside = np.flatnonzero(self.instance >= 0)
        if not len(inside):
            return
        ids, at = np.unique(self.instance[inside], return_inverse=True)
        m, t = len(ids), len(self.rows)
        cost = np.empty(m, np.int64)
        cost[at] = self.cost[inside]
        size = np.bincount(at, minlength=m)
        members = sparse.csr_array((np.ones(len(at), np.int32), (at, self.kind[inside])), shape=(m, t))
        work = int((np.bincount(self.kind[inside]).astype(np.int64) ** 2).sum())
        if work > COMPARED:
            # too many pairs: equal sums of random words stand for equal rows, others meet once in 2^64 pairs
            words = np.random.Generator(np.random.PCG64(5)).integers(0, 2**64, t, np.uint64)
            with np.errstate(over="ignore"):
                sums = np.add.reduceat(words[members.indices], members.indptr[:-1])
            # of instances with equal rows the cheapest comes first, and stays
            order = np.lexsort([np.arange(m), cost, size, sums])
            again = (np.diff(sums[order]) == 0) & (np.diff(size[order]) == 0)
            dominated = np.zeros(m, bool)
            dominated[order[1:][again]] = True
        else:
            common = (members @ members.T).tocoo()
            b, other = common.row, common.col
            # of two that have the same rows and price, the first stays: each would drop the other
            better = (cost[other] < cost[b]) | (size[other] > size[b]) | (other < b)
            inner = (common.data == size[b]) & (cost[other] <= cost[b]) & better & (other != b)
            dominated = np.zeros(m, bool)
            dominated[b[inner]] = True
        good = np.ones(len(self.kind), bool)
        good[inside] = ~dominated[at]
        self.keep(good)

    def narrow(self, above: int) -> bool:
        """Drop choices that are in no solution of less cost than `above`; return whether such a solution is possible."""
        before = -1
        # what is dropped makes instances small and other choices the cheapest: again, until nothing changes
        while len(self.kind) != before:
            before = len(self.kind)
            least = self.cheapest()
            if (np.bincount(self.kind, minlength=len(self.rows)) == 0).any():
                return False
            slack = above - int(least @ self.rows) - 1
            if slack < 0:
                return False
            self.keep(self.cost - least[self.kind] <= slack)
            self.drop_small()
        return True

    def cost_of(self, amount: np.ndarray) -> int:
        """Return the cost of a number of rows for each choice."""
        return int(amount @ self.cost)

    def amount_of(self, used: np.ndarray) -> np.ndarray:
        """Return how many rows make each choice, shape (c,), int64, from the pattern of each record.

        Parameters
        ----------
        used : numpy.ndarray, shape (n,), int64
            -1 where a record is suppressed; equal records have the same.
        """
        pattern_of = np.empty(len(self.rows), np.int64)
        pattern_of[self.row_type] = used
        return np.where(self.pattern == pattern_of[self.kind], self.rows[self.kind], 0)

    def places(self, amount: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
        """Return class and pattern of each record, -1 for suppressed ones, when so many rows make each choice."""
        by_type = np.argsort(self.kind, kind="stable")
        places = np.repeat(by_type, amount[by_type])
        labels = np.empty(len(self.row_type), np.int64)
        used = np.empty_like(labels)
        records = np.argsort(self.row_type, kind="stable")
        labels[records] = self.instance[places]
        used[records] = self.pattern[places]
        return labels, used


def choices_of(records: Records, masks: np.ndarray, costs: np.ndarray, out: int | None, k: int) -> RowChoices:
    """Return all choices in instances of at least k compatible rows, and suppression; O(p t q).

    Parameters
    ----------
    records : Records
    masks : numpy.ndarray, shape (p,), uint64
    costs : numpy.ndarray, shape (p,), int64
        Of a row of each pattern.
    out : int or None
        Cost of a row that is suppressed without k rows; None where that is no choice.
    k : int
    """
    labels = equal_columns(records.codes.T, records.n)
    _, example, row_type, rows = np.unique(labels, return_index=True, return_inverse=True, return_counts=True)
    types = records.codes[example].T
    every = np.arange(0 if out is None else len(rows))
    kinds, instances, patterns, prices = (
        [every],
        [np.full(len(every), -1)],
        [np.full(len(every), -1)],
        [np.full(len(every), 0 if out is None else out)],
    )
    used = 0
    for p, mask in enumerate(masks.tolist()):
        qis = [a for a in range(records.q) if not mask >> a & 1]
        instance = _instances(types, qis, [domain.size + 1 for domain in records.domains])
        sizes = np.bincount(instance, rows).astype(np.int64)
        good = np.flatnonzero(sizes[instance] >= k)
        if len(good):
            _, dense = np.unique(instance[good], return_inverse=True)
            kinds.append(good)
            instances.append(dense + used)
            patterns.append(np.full(len(good), p))
            prices.append(np.full(len(good), costs[p]))
            used += int(dense.max()) + 1
    return RowChoices(
        k,
        row_type.astype(np.int64),
        rows.astype(np.int64),
        *(np.concatenate(parts).astype(np.int64) for parts in (kinds, instances, patterns, prices)),
    )


def _instances(types: np.ndarray, qis: list[int], sizes: list[int]) -> np.ndarray:
    """Return labels of the row types that agree on some QIs."""
    room = 1.0
    for a in qis:
        room *= sizes[a]
    # numbers that int64 does not hold
    if room >= 2**62:
        return equal_columns(types[qis], types.shape[1])
    key = np.zeros(types.shape[1], np.int64)
    for a in qis:
        key = key * sizes[a] + (types[a] + 1)
    return np.unique(key, return_inverse=True)[1]


def searched(choices: RowChoices, amount: np.ndarray) -> np.ndarray:
    """Return a solution that costs no more than a given one: rows move between the instances that they fit.

    Parameters
    ----------
    choices : RowChoices
        All choices there are, as :func:`choices_of` makes them; each type may be suppressed.
    amount : numpy.ndarray, shape (c,), int64
        How many rows make each choice, as :meth:`RowChoices.amount_of` has it.

    Returns
    -------
    numpy.ndarray, shape (c,), int64
        How many rows make each choice.

    Notes
    -----
    Beyond the paper: :func:`anonflow.kernels.patterns.pattern_search.move_rows`. Ends in a local optimum.
    """
    t = len(choices.rows)
    order = np.lexsort((choices.pattern, choices.cost, choices.kind))
    kind, instance, cost = (part[order] for part in (choices.kind, choices.instance, choices.cost))
    m = int(instance.max(initial=-1)) + 1
    inside = np.flatnonzero(instance >= 0)
    by_inst = inside[np.argsort(instance[inside], kind="stable")]
    inst_at = np.searchsorted(instance[by_inst], np.arange(m + 1))
    amount = amount[order]
    size = np.bincount(instance[inside], amount[inside], minlength=m).astype(np.int64)
    kind_at = np.searchsorted(kind, np.arange(t + 1))
    move_rows_jit(kind_at, kind, instance, cost, inst_at, by_inst, choices.k, PASSES, amount, size)
    amounts = np.empty_like(amount)
    amounts[order] = amount
    return amounts
