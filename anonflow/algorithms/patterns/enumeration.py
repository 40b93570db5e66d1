"""Exact solutions of pattern-guided k-anonymity without the integer program: for small t and p, and for k = 2."""

from __future__ import annotations

import numpy as np
from scipy import optimize, sparse

from anonflow.algorithms.patterns.row_choices import RowChoices
from anonflow.errors import ParameterError

__all__ = ["row_assignment", "transported", "two"]

INSTANCES = 16
"""Instances up to which their subsets are enumerated."""

GROUPS = 400_000
"""Pairs and triples up to which k = 2 is solved as a covering by them."""


def row_assignment(choices: RowChoices) -> np.ndarray | None:
    """Return the cheapest amounts over all sets of open instances (Bredereck 2013, Theorem 3), shape (c,), int64.

    None if there is no solution, which can be where rows have to follow a pattern.

    Parameters
    ----------
    choices : RowChoices
        All choices there are, as ``choices_of`` makes them.

    Raises
    ------
    ParameterError
        If there are more than 16 instances.

    Notes
    -----
    The paper guesses which row types use which pattern, 2^(tp) ways, and solves a flow for each. Of a guess only the
    open instances matter, m <= tp of them: 2^m ways. For each, rows are transported to instances of at least k at least
    cost, a linear program with integer vertices. Ways are tried from the one of least bound (every row at its
    cheapest open choice) on, and no further than the best solution found. O(2^m (c + transport)) time for c choices,
    O(2^m) memory.
    """
    m = int(choices.instance.max(initial=-1)) + 1
    if m > INSTANCES:
        raise ParameterError(
            f"pattern-guided-optimal: row assignment is for at most {INSTANCES} instances of patterns, "
            f"here are {m}; use exact='ilp', fewer patterns or smaller partitions"
        )
    ways = np.arange(1 << m)
    bounds = np.zeros(1 << m, np.int64)
    closed_to = np.zeros(1 << m, bool)
    by_type = np.argsort(choices.kind, kind="stable")
    ends = np.cumsum(np.bincount(choices.kind, minlength=len(choices.rows)))
    for rows, mine in zip(choices.rows.tolist(), np.split(by_type, ends[:-1]), strict=True):
        price = np.full(1 << m, np.iinfo(np.int64).max)
        for instance, cost in zip(choices.instance[mine].tolist(), choices.cost[mine].tolist(), strict=True):
            closed = (ways >> instance) & 1 == 0 if instance >= 0 else False
            price = np.where(closed, price, np.minimum(price, cost))
        shut = price == np.iinfo(np.int64).max
        bounds += rows * np.where(shut, 0, price)
        closed_to |= shut
    best: np.ndarray | None = None
    least = np.iinfo(np.int64).max
    bounds[closed_to] = least
    costs = choices.cost.astype(float)
    for way in np.argsort(bounds, kind="stable").tolist():
        if bounds[way] >= least:
            break
        on = (way >> np.arange(max(m, 1))) & 1 == 1
        amount = transported(choices, choices.instance, on, costs)
        if amount is not None and choices.cost_of(amount) < least:
            best, least = amount, choices.cost_of(amount)
    return best


def two(choices: RowChoices) -> np.ndarray | None:
    """Return the cheapest amounts for k = 2 (Bredereck 2013, Theorem 2), shape (c,), int64.

    None if there is no solution, which can be where rows have to follow a pattern.

    Parameters
    ----------
    choices : RowChoices
        All choices there are, as ``choices_of`` makes them for k = 2.

    Raises
    ------
    ParameterError
        If k is not 2, or there are too many pairs and triples of row types.
    RuntimeError
        If the solver ends without a solution.

    Notes
    -----
    A class of two or more rows is a union of pairs and triples of the same pattern and the same cost, so the
    optimum is a cheapest partition of the rows into pairs, triples and suppressed rows: the paper's simplex
    matching problem. The paper cites a polynomial algorithm for it; here the partition is found as an
    integer program over pairs and triples of row types (HiGHS), which proves the optimum too: its relaxation is nearly
    integer. O(t^3) groups for t row types.
    """
    if choices.k != 2:
        raise ParameterError("pattern-guided-optimal: exact='two' is for k = 2; use exact='ilp'")
    t = len(choices.rows)
    m = int(choices.instance.max(initial=-1)) + 1
    inside = choices.instance >= 0
    sizes = np.bincount(choices.instance[inside], minlength=m)
    count = int((sizes * (sizes + 1) // 2 + sizes * (sizes + 1) * (sizes + 2) // 6).sum())
    if count > GROUPS:
        raise ParameterError(
            f"pattern-guided-optimal: exact='two' looks at {count} pairs and triples, at most {GROUPS} are "
            "possible; use exact='ilp', fewer patterns or smaller partitions"
        )
    cheapest: dict[tuple[int, ...], tuple[int, int]] = {}
    for b in range(m):
        members = np.flatnonzero(choices.instance == b)
        members = members[np.argsort(choices.kind[members])]
        cost = int(choices.cost[members[0]]) if len(members) else 0
        kinds = choices.kind[members].tolist()
        for x, u in enumerate(kinds):
            for y in range(x, len(kinds)):
                v = kinds[y]
                groups = [(u, v), *((u, v, w) for w in kinds[y:])]
                for group in groups:
                    if cost < cheapest.get(group, (np.iinfo(np.int64).max, 0))[0]:
                        cheapest[group] = (cost, b)
    groups_ = list(cheapest)
    prices = [cheapest[group][0] * len(group) for group in groups_]
    out = np.flatnonzero(~inside)
    rows = [kind for group in groups_ for kind in group] + choices.kind[out].tolist()
    columns = [at for at, group in enumerate(groups_) for _ in group]
    columns += list(range(len(groups_), len(groups_) + len(out)))
    cover = sparse.coo_array((np.ones(len(rows)), (rows, columns)), shape=(t, len(groups_) + len(out)))
    solved = optimize.milp(
        np.array([*prices, *choices.cost[out].tolist()], float),
        integrality=np.ones(len(groups_) + len(out)),
        bounds=optimize.Bounds(0, np.inf),
        constraints=[optimize.LinearConstraint(cover.tocsr(), choices.rows, choices.rows)],
        options={"mip_rel_gap": 0.0},
    )
    if solved.status == 2:
        return None
    if solved.x is None:
        raise RuntimeError("pattern-guided-optimal: the solver found no solution; use exact='ilp'")
    chosen = np.rint(solved.x).astype(np.int64)
    at_choice = {
        (kind, instance): c
        for c, (kind, instance) in enumerate(
            zip(choices.kind.tolist(), choices.instance.tolist(), strict=True)
        )
    }
    amount = np.zeros(len(choices.kind), np.int64)
    for at in np.flatnonzero(chosen[: len(groups_)]).tolist():
        for kind in groups_[at]:
            amount[at_choice[kind, cheapest[groups_[at]][1]]] += chosen[at]
    amount[out] = chosen[len(groups_) :]
    return amount


def transported(choices: RowChoices, at: np.ndarray, on: np.ndarray, costs: np.ndarray) -> np.ndarray | None:
    """Return the cheapest integer amounts for chosen instances: a vertex of a transport polytope.

    Parameters
    ----------
    choices : RowChoices
    at : numpy.ndarray, shape (c,), int64
        Which entry of `on` each choice's instance has; whatever for suppression.
    on : numpy.ndarray, shape (m,), bool
        The open instances, each to have at least k rows.
    costs : numpy.ndarray, shape (c,), float64

    Returns
    -------
    numpy.ndarray, shape (c,), int64, or None
        None if there are no such amounts.
    """
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
