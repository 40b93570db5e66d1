"""Prices of records, from which a lower bound of the loss of k-anonymous and k-regular releases follows.

**Theorem.** Let c(S) be the least cost of a generalized record that covers the set S of originals, for a loss that never
falls when more is covered, and c* the cost of a suppressed record. Let each original j have a price p_j, at most c*/k,
such that every set S of k originals has c(S) >= sum of p_j over S. Then the total loss of every release that is k-regular
but for suppressed records is at least k times the sum of all prices.

*Proof.* The graph of who covers whom has k disjoint perfect matchings of the records that are not suppressed. So each
generalized record i covers a set S_i of k originals, its cost is at least c(S_i), and each original is in exactly k of these
sets. The sum of c(S_i) is at least the sum over i of the prices in S_i, which has each price k times. A suppressed record
costs c*, at least k times its price.

**For which releases.** Where records are k-regular, and where they are equivalence classes of at least k: the records of a
class cover each other, which contains a k-regular graph. A record may cover more than k originals: only k are counted. A
suppressed record need not be one of k. It is no bound for (k,1)-anonymity, where nobody has to be covered k times, nor for
(k,k)-anonymity and k-concealment: there a record may cover many originals on behalf of others, and k disjoint matchings need not exist.

**Classes.** The best prices give the linear relaxation of the problem: the least cost of fractions of sets of k such that each
original is covered k times in all. That of equivalence classes (sets of k to 2k - 1, of which each original is in one) is no
higher: a set of k of it, taken as a fraction of a class, costs the same. So a stronger bound for classes needs whole numbers.

**Search.** Prices are first raised where sets of k that were met allow it (:func:`~anonflow.kernels.record_prices.ascent`), and
then proved: of each original, branch and bound shows how much less than its prices a set can cost in which it is the last in a
fixed order, and its price is lowered by this. That holds wherever the search stops. Prices are multiples of the grid, so
that every comparison is exact.
"""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import NamedTuple

import numpy as np

from anonflow.kernels.record_prices import (
    ascent_jit,
    greedy_sets_jit,
    least_surplus_jit,
)
from anonflow.kernels.state import GRID, Plan, State
from anonflow.threads import in_blocks

LEVELS = (0.3, 0.4, 0.5, 0.6, 0.7, 0.8, 0.9, 1.0)
"""Shares of the prices that known sets allow, which are proved one after the other."""

FIRST = 0.02
LEAST = 4_000
"""Share of the search's limit with which sets are looked for, before prices are proved, and the least such limit."""

ROUNDS = 12
"""Rounds in which sets are looked for."""

RISE, LEAP = 1.4, 4.0
"""The factor by which a price rises at most in a round, and in one after all known sets were enough."""

STEPS = 600
"""Steps of the prices in each of them."""

REACH = 0.05
"""Share of the cost of cheap sets by which the first steps of the prices aim above their value."""

ENOUGH = 1.001
"""A round in which the prices rise by less and no set is cheaper is the last one."""

SLACK = 2.0**-13
"""Share of the mean cost of covering k records by which a search may miss the least, for each original."""

BLOCK = 16  # originals of a thread at a time: few, because a search for one may take long


@dataclass(frozen=True, eq=False)
class PricedRecords:
    """Different originals whose prices are sought.

    Attributes
    ----------
    plan : Plan
        Of a loss that never falls.
    origin : State
        u different originals.
    weight : numpy.ndarray, shape (u,), int64
        How often each occurs; at least k in all.
    k : int
    most : float
        The highest price: a k-th of a suppressed record's cost.
    """

    plan: Plan
    origin: State
    weight: np.ndarray
    k: int
    most: float

    def greedy_sets(self) -> tuple[np.ndarray, np.ndarray]:
        """Return a cheap set of k with each original, shape (u, k), and what each costs, shape (u,)."""
        u = len(self.weight)
        sets, cost = np.empty((u, self.k), np.int32), np.empty(u)

        def work(start: int, stop: int) -> None:
            greedy_sets_jit(self.plan, self.origin, self.weight, self.k, start, stop, sets, cost)

        in_blocks(work, u, BLOCK)
        return sets, cost

    def surplus(
        self, price: np.ndarray, rank: np.ndarray, slack: float, limit: int
    ) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
        """Return what :func:`~anonflow.kernels.record_prices.least_surplus` writes: proved, least and sets."""
        u = len(self.weight)
        peak = np.empty(u)
        peak[np.argsort(rank)] = np.maximum.accumulate(price[np.argsort(rank)])
        proved, least, sets = np.empty(u), np.empty(u), np.zeros((u, self.k), np.int32)

        def work(start: int, stop: int) -> None:
            least_surplus_jit(
                self.plan, self.origin, self.weight, self.k, price, rank, peak,
                slack, limit, start, stop, proved, least, sets,
            )  # fmt: skip

        in_blocks(work, u, BLOCK)
        return proved, least, sets

    def raised(
        self, sets: np.ndarray, cost: np.ndarray, price: np.ndarray, mean: float, rise: float
    ) -> np.ndarray:
        """Return higher prices that these sets allow, but for rounding, at most by the factor `rise`; `mean` is what cheap sets cost."""
        # otherwise prices rise far above what the sets that are not known yet allow
        highest = np.minimum(rise * np.maximum(price, mean / self.k), self.most)
        price = price.copy()
        reach = REACH * mean * float(self.weight.sum())
        ascent_jit(sets, cost, self.weight, highest, price, STEPS, reach)
        return self.on_grid(price)

    def on_grid(self, price: np.ndarray) -> np.ndarray:
        """Return the prices, rounded down to the kernels' grid and at most the highest."""
        return np.floor(np.minimum(price, self.most) / GRID) * GRID

    def total(self, price: np.ndarray) -> float:
        """Return k times the sum of all prices."""
        return self.k * math.fsum((self.weight * price).tolist())


class CoveredSets(NamedTuple):
    """Sets of k originals that a release covers.

    Attributes
    ----------
    sets : numpy.ndarray, shape (s, k), int32
        Positions among the different originals.
    cost : numpy.ndarray, shape (s,), float64
        What it costs to cover each set.
    """

    sets: np.ndarray
    cost: np.ndarray


def priced_total(
    records: PricedRecords, start: np.ndarray, limit: int, covered: CoveredSets | None = None
) -> float:
    """Return a lower bound of the total cost of all releases that are k-regular but for suppressed records.

    Parameters
    ----------
    records : PricedRecords
    start : numpy.ndarray, shape (u,), float64
        Lower bounds of the cost of covering each original and k - 1 others.
    limit : int
        As :func:`~anonflow.kernels.record_prices.least_surplus` takes it.
    covered : CoveredSets, optional
        What some release covers: the better the release, the nearer the first prices are to the best ones.

    Returns
    -------
    float
        At least k times the sum of the first prices, a k-th of `start`.
    """
    price = records.on_grid(start / records.k)
    best = records.total(price)
    sets, cost = records.greedy_sets()
    # where each record is in a set that costs nothing, not all of them need have room there
    mean = float(records.weight @ cost) / float(records.weight.sum()) or records.most
    slack = math.ceil(SLACK * mean / records.k / GRID) * GRID
    if covered is not None:
        sets, cost = np.concatenate([sets, covered.sets]), np.concatenate([cost, covered.cost])
    look = min(limit, max(LEAST, int(FIRST * limit)))
    rise = RISE
    for _ in range(ROUNDS):
        before, price = records.total(price), records.raised(sets, cost, price, mean, rise)
        rank = _ranks(price)
        proved, least, cheaper = records.surplus(price, rank, slack, look)
        best = max(best, records.total(price + proved))
        new = np.flatnonzero(least < -slack)
        if not len(new) and rise == LEAP and records.total(price) <= ENOUGH * before:
            break
        rise = RISE if len(new) else LEAP
        sets = np.concatenate([sets, cheaper[new]])
        cost = np.concatenate([cost, least[new] + price[cheaper[new]].sum(axis=1)])
    if (proved >= -slack).all():
        return best
    # what a search of this limit proves at a low level only stays there
    total = -math.inf
    highest, price, stays = price, np.zeros(len(price)), np.zeros(len(price), bool)
    for level in LEVELS:
        trial = np.where(stays, price, records.on_grid(level * highest))
        proved, _, _ = records.surplus(trial, rank, slack, limit)
        before, total = total, records.total(trial + proved)
        best = max(best, total)
        if total < before:
            break  # higher prices need a longer search
        missed = proved < -slack
        price = np.where(missed, np.where(stays, trial + proved, np.maximum(price, trial + proved)), trial)
        stays |= missed
    return best


def _ranks(price: np.ndarray) -> np.ndarray:
    """Return the place of each price in ascending order."""
    rank = np.empty(len(price), np.int64)
    rank[np.argsort(price, kind="stable")] = np.arange(len(price))
    return rank
