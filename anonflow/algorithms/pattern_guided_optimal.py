"""Pattern-guided k-anonymity with the fewest suppressions (paper 5, section 2.2): an integer program."""

from __future__ import annotations

import time
from dataclasses import dataclass
from typing import Any

import numpy as np
from scipy import optimize, sparse

from anonflow.algorithms.contract import Algorithm, Outcome, Partition
from anonflow.algorithms.pattern_guided import place, publish_places, within_boundaries
from anonflow.algorithms.patterns import pattern_masks, whole_costs
from anonflow.errors import ParameterError
from anonflow.table.records import Records, equal_columns

__all__ = ["PATTERN_GUIDED_OPTIMAL", "Choices", "choices_of", "pattern_guided_optimal"]

LARGEST = 1_500_000
"""Choices of a pattern by a row type up to which the integer program is tried."""


def pattern_guided_optimal(
    part: Partition, k: int, *, patterns: Any = "all", weights: Any = None, time_limit: float = 60.0
) -> Outcome:
    """Suppress as few entries as possible so that every class has k rows and every row follows a pattern.

    Parameters
    ----------
    part : Partition
        P records.
    k : int
    patterns, weights
        As :func:`anonflow.algorithms.pattern_guided.pattern_guided` takes them.
    time_limit : float
        Seconds for the integer program of one partition. When they are over, the best solution found is
        published, and the facts say how far it can be from the best there is.

    Returns
    -------
    Outcome
        With classes. Rows that follow no pattern are suppressed altogether. Facts: `suppressed_entries`;
        `cost`, the same with weights; `lower_bound`, which no solution is below; `heuristic`, the cost of
        the heuristic; `proven`, whether the solution is known to be optimal.

    Raises
    ------
    ParameterError
        If a pattern, a weight or the time limit is none.

    Notes
    -----
    Paper 5, equations (5) to (8), solved with HiGHS. Before that: instances with fewer than k compatible rows
    are dropped; the cheapest instance left to each row bounds from below, and if the heuristic's solution
    meets the bound it is published. Else a choice that costs so much more than its row's cheapest that
    no solution with it could be better than the heuristic's is dropped too, again and again. The rows that
    choose an instance are bounded one by one, not by (6)'s sum, which is the same for whole numbers and
    tighter for fractions; and only the choice of instances is asked to be whole: with it fixed, the rest is a
    transport of rows, whose vertices are whole.

    Departing from (7), rows may be suppressed altogether without k of them, as the heuristic does with its
    remainder: they are published as suppressed records are. Exponential time at worst. The wall clock
    decides where an unproven search stops, so only proven results are the same everywhere.
    """
    if isinstance(time_limit, bool) or not isinstance(time_limit, int | float) or not 0 <= time_limit < 1e9:
        raise ParameterError("pattern-guided-optimal: time_limit is a number of seconds, such as 60")
    end = time.monotonic() + time_limit
    records = part.records
    masks = within_boundaries(records, pattern_masks(records.domains, patterns, weights))
    masks = masks[masks != np.uint64((1 << records.q) - 1)]  # that is suppression, which needs no k rows
    whole, unit = whole_costs(records.domains, weights)
    start, used = place(records, masks, k)
    of_pattern = ((masks[:, None] >> np.arange(records.q, dtype=np.uint64)) & np.uint64(1)).astype(
        np.int64
    ) @ whole
    out = int(whole.sum())
    heuristic = int(np.where(used >= 0, np.append(of_pattern, 0)[used], out).sum())
    choices = choices_of(records, masks, of_pattern, out, k)
    bound = choices.bound()
    labels, cost = start, heuristic
    if bound < heuristic and choices.narrow(heuristic):
        bound = max(bound, min(choices.bound(), heuristic))
        found, least = _solve(choices, end - time.monotonic())
        bound = min(max(bound, least), heuristic)
        if found is not None:
            better = choices.cost_of(found)
            if better < heuristic:
                labels, used = choices.places(found)
                cost = better
    elif bound < heuristic:
        bound = heuristic  # nothing better exists
    return publish_places(
        records,
        masks,
        labels,
        used,
        None,
        cost=cost / unit,
        lower_bound=min(bound, cost) / unit,
        heuristic=heuristic / unit,
        proven=bound >= cost,
    )


@dataclass(eq=False)
class Choices:
    """What each row type may choose: an instance of a pattern, or to be suppressed.

    Attributes
    ----------
    k : int
    row_type : numpy.ndarray, shape (n,), int64
        The type of each record.
    rows : numpy.ndarray, shape (t,), int64
        How many records are of each type.
    kind, instance, pattern, cost : numpy.ndarray, shape (c,), int64
        Of each choice: the row type; the instance, -1 for suppression; its pattern, -1 likewise; the cost of
        one row.
    """

    k: int
    row_type: np.ndarray
    rows: np.ndarray
    kind: np.ndarray
    instance: np.ndarray
    pattern: np.ndarray
    cost: np.ndarray

    def cheapest(self) -> np.ndarray:
        """The cost of each type's cheapest choice, shape (t,), int64; very large where it has none.

        Raises
        ------
        None
        """
        least = np.full(len(self.rows), np.iinfo(np.int64).max)
        np.minimum.at(least, self.kind, self.cost)
        return least

    def bound(self) -> int:
        """What no solution is below: every row at its cheapest choice.

        Raises
        ------
        None
        """
        return int(self.cheapest() @ self.rows)

    def keep(self, good: np.ndarray) -> None:
        """Only the choices of a mask, shape (c,), bool.

        Raises
        ------
        None
        """
        self.kind, self.instance, self.pattern, self.cost = (
            part[good] for part in (self.kind, self.instance, self.pattern, self.cost)
        )

    def drop_small(self) -> None:
        """Drop the instances that fewer than k rows may choose.

        Raises
        ------
        None
        """
        inside = self.instance >= 0
        sizes = np.bincount(self.instance[inside], self.rows[self.kind[inside]])
        good = ~inside
        good[inside] = sizes[self.instance[inside]] >= self.k
        self.keep(good)

    def narrow(self, above: int) -> bool:
        """Drop what is in no solution of less cost than `above`; whether there can be any.

        Raises
        ------
        None
        """
        before = -1
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
        """The cost when so many rows make each choice.

        Raises
        ------
        None
        """
        return int(amount @ self.cost)

    def places(self, amount: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
        """Class and pattern of each record, -1 for suppressed ones, when so many rows make each choice.

        Raises
        ------
        None
        """
        by_type = np.argsort(self.kind, kind="stable")
        made = np.repeat(by_type, amount[by_type])
        labels = np.empty(len(self.row_type), np.int64)
        used = np.empty_like(labels)
        records = np.argsort(self.row_type, kind="stable")
        labels[records] = self.instance[made]
        used[records] = self.pattern[made]
        return labels, used


def choices_of(records: Records, masks: np.ndarray, costs: np.ndarray, out: int, k: int) -> Choices:
    """All choices in instances of at least k compatible rows, and suppression; O(p t q).

    Parameters
    ----------
    records : Records
    masks : numpy.ndarray, shape (p,), uint64
    costs : numpy.ndarray, shape (p,), int64
        Of a row of each pattern.
    out : int
        Cost of a suppressed row.
    k : int

    Raises
    ------
    None
    """
    labels = equal_columns(records.codes.T, records.n)
    _, example, row_type, rows = np.unique(labels, return_index=True, return_inverse=True, return_counts=True)
    types = records.codes[example].T
    every = np.arange(len(rows))
    kinds, instances, patterns, prices = (
        [every],
        [np.full(len(rows), -1)],
        [np.full(len(rows), -1)],
        [np.full(len(rows), out)],
    )
    used = 0
    for p, mask in enumerate(masks.tolist()):
        kept = [a for a in range(records.q) if not mask >> a & 1]
        instance = _instances(types, kept, [domain.size + 1 for domain in records.domains])
        sizes = np.bincount(instance, rows).astype(np.int64)
        good = np.flatnonzero(sizes[instance] >= k)
        if len(good):
            _, dense = np.unique(instance[good], return_inverse=True)
            kinds.append(good)
            instances.append(dense + used)
            patterns.append(np.full(len(good), p))
            prices.append(np.full(len(good), costs[p]))
            used += int(dense.max()) + 1
    return Choices(
        k,
        row_type.astype(np.int64),
        rows.astype(np.int64),
        *(np.concatenate(parts).astype(np.int64) for parts in (kinds, instances, patterns, prices)),
    )


def _instances(types: np.ndarray, kept: list[int], sizes: list[int]) -> np.ndarray:
    """Labels of the row types that agree on some QIs."""
    room = 1.0
    for a in kept:
        room *= sizes[a]
    if room >= 2**62:
        return equal_columns(types[kept], types.shape[1])
    key = np.zeros(types.shape[1], np.int64)
    for a in kept:
        key = key * sizes[a] + (types[a] + 1)
    return np.unique(key, return_inverse=True)[1]


def _solve(choices: Choices, seconds: float) -> tuple[np.ndarray | None, int]:
    """How many rows make each choice, if a solution was found in time, and a bound from below."""
    if seconds <= 0 or len(choices.kind) > LARGEST:
        return None, 0
    c, t = len(choices.kind), len(choices.rows)
    ids, at = np.unique(choices.instance, return_inverse=True)
    inside = choices.instance >= 0
    at = at - int(not inside.all())
    m = int(inside.sum() and at.max() + 1)
    assert len(ids) == m + int(not inside.all())
    chosen = np.flatnonzero(inside)
    rows, one = choices.rows[choices.kind].astype(float), np.ones
    everyone = sparse.csr_array((one(c), (choices.kind, np.arange(c))), shape=(t, c + m))
    each = sparse.csr_array(
        (
            np.concatenate([one(len(chosen)), -rows[chosen]]),
            (np.tile(np.arange(len(chosen)), 2), np.concatenate([chosen, c + at[chosen]])),
        ),
        shape=(len(chosen), c + m),
    )
    enough = sparse.csr_array(
        (
            np.concatenate([one(len(chosen)), np.full(m, -float(choices.k))]),
            (np.concatenate([at[chosen], np.arange(m)]), np.concatenate([chosen, c + np.arange(m)])),
        ),
        shape=(m, c + m),
    )
    costs = np.concatenate([choices.cost, np.zeros(m)]).astype(float)
    limits = [
        optimize.LinearConstraint(everyone, choices.rows, choices.rows),
        optimize.LinearConstraint(each, -np.inf, 0),
        optimize.LinearConstraint(enough, 0, np.inf),
    ]
    whole = np.concatenate([np.zeros(c), np.ones(m)])
    solved = optimize.milp(
        costs,
        integrality=whole,
        bounds=optimize.Bounds(0, np.concatenate([rows, np.ones(m)])),
        constraints=limits,
        options={"time_limit": seconds, "mip_rel_gap": 0.0},
    )
    if solved.status == 2:
        return None, np.iinfo(np.int64).max  # nothing better than the heuristic exists
    least = 0
    if solved.mip_dual_bound is not None and np.isfinite(solved.mip_dual_bound):
        least = int(np.ceil(solved.mip_dual_bound - 1e-6 * max(1.0, abs(solved.mip_dual_bound))))
    if solved.x is None:
        return None, least
    return _transported(choices, at, solved.x[c:] > 0.5, costs[:c]), least


def _transported(choices: Choices, at: np.ndarray, on: np.ndarray, costs: np.ndarray) -> np.ndarray | None:
    """The cheapest whole amounts once the instances are chosen: a vertex of a transport polytope."""
    c = len(choices.kind)
    open_to = (choices.instance < 0) | on[at]
    column = np.flatnonzero(open_to)
    into = np.flatnonzero(open_to & (choices.instance >= 0))
    number = np.cumsum(on) - 1
    position = np.cumsum(open_to) - 1
    everyone = sparse.csr_array(
        (np.ones(len(column)), (choices.kind[column], np.arange(len(column)))),
        shape=(len(choices.rows), len(column)),
    )
    enough = sparse.csr_array(
        (-np.ones(len(into)), (number[at[into]], position[into])), shape=(int(on.sum()), len(column))
    )
    solved = optimize.linprog(
        costs[column],
        A_ub=enough if on.any() else None,
        b_ub=np.full(int(on.sum()), -float(choices.k)) if on.any() else None,
        A_eq=everyone,
        b_eq=choices.rows,
        method="highs-ds",
    )
    if solved.x is None:
        return None
    amount = np.zeros(c, np.int64)
    amount[column] = np.rint(solved.x).astype(np.int64)
    exact = (np.bincount(choices.kind, amount, minlength=len(choices.rows)) == choices.rows).all()
    sizes = np.bincount(choices.instance[into], amount[into]) if len(into) else np.zeros(1)
    fits = (sizes[(sizes > 0)] >= choices.k).all()
    return amount if exact and fits else None


PATTERN_GUIDED_OPTIMAL = Algorithm(
    name="pattern-guided-optimal",
    run=pattern_guided_optimal,
    family="pattern",
    paper="Bredereck, Nichterlein, Niedermeier: Pattern-guided k-anonymity. Algorithms 6(4), 2013, section 2.2",
    guarantee="k-anonymity",
    complexity="exponential at worst; stops at a time limit with a proven gap",
    summary="the fewest hidden entries there can be, or how far from it the result may be",
)
