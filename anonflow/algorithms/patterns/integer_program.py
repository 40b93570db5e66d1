"""The integer program of pattern-guided k-anonymity, for each independent part of a table."""

from __future__ import annotations

import threading
from collections.abc import Callable
from concurrent.futures import Future
from typing import Any

import numpy as np
import scipy
from scipy import sparse

from anonflow.algorithms.patterns.row_choices import RowChoices
from anonflow.kernels.jit import method_clock

GRACE = 0.4
"""Seconds past the time limit for which we wait for a solver; most end by themselves."""

LARGEST = 1_500_000
"""RowChoices of a pattern by a row type up to which the integer program is tried."""

GAP = 0.9
"""Difference of a solution and the bound at which the program ends: costs are whole numbers, so below 1 none is between them."""

NONE = int(np.iinfo(np.int64).max)
"""The bound where there is no solution."""


def improved(choices: RowChoices, amount: np.ndarray | None, end: float) -> tuple[np.ndarray | None, int]:
    """Return the best solution found in time, and a lower bound of all solutions.

    Parameters
    ----------
    choices : RowChoices
        All choices there are.
    amount : numpy.ndarray, shape (c,), int64, or None
        A solution, how many rows make each choice; None where none is known.
    end : float
        When to stop, of the monotonic clock.

    Returns
    -------
    amount : numpy.ndarray, shape (c,), int64, or None
        None if none is known yet.
    bound : int
        :data:`NONE` if there is no solution.

    Notes
    -----
    Row types that no chain of instances connects are independent: each such part is a program of its own, the smallest
    first. Two QIs that no pattern suppresses, of 16 and 2 values, make 32 parts at least.
    """
    part_of = choices.components()
    of_choice = part_of[choices.kind]
    parts = int(part_of.max(initial=-1)) + 1
    least = choices.cheapest()
    bounds = np.zeros(parts, np.int64)
    np.add.at(bounds, part_of, least * choices.rows)
    best = np.zeros(len(choices.kind), np.int64) if amount is None else amount.copy()
    costs = np.full(parts, NONE)
    if amount is not None:
        costs[:] = 0
        np.add.at(costs, of_choice, amount * choices.cost)
    order = np.argsort(of_choice, kind="stable")
    ends = np.cumsum(np.bincount(of_choice, minlength=parts))
    sizes = np.diff(ends, prepend=0)
    for number in np.argsort(sizes, kind="stable").tolist():
        if bounds[number] >= costs[number]:
            continue
        index = order[ends[number] - sizes[number] : ends[number]]
        part = choices.part(index)
        solution, bound = _solved(part, int(costs[number]), end)
        if bound == NONE and costs[number] == NONE:
            return None, NONE
        bounds[number] = max(int(bounds[number]), min(bound, int(costs[number])))
        if solution is not None:
            best[index] = solution
            costs[number] = part.cost_of(solution)
            bounds[number] = min(int(bounds[number]), int(costs[number]))
    return (None if (costs == NONE).any() else best), int(bounds.sum())


def _solved(choices: RowChoices, cost: int, end: float) -> tuple[np.ndarray | None, int]:
    """Return amounts that cost less than `cost`, if some are found in time, and a bound; NONE: there are none."""
    every = len(choices.kind)
    problem = choices.part(np.arange(every))
    problem.pattern = np.arange(every)  # which of all choices it is
    if not problem.narrow(cost):
        return None, NONE
    problem.drop_dominated()
    bound = problem.bound()
    if bound >= cost:
        return None, NONE
    solution, least = _program(problem, cost, end)
    if solution is None or problem.cost_of(solution) >= cost:
        return None, max(bound, least)
    amounts = np.zeros(every, np.int64)
    amounts[problem.pattern] = solution
    return amounts, max(bound, min(least, cost))


def _program(choices: RowChoices, cost: int, end: float) -> tuple[np.ndarray | None, int]:
    """Return how many rows make each choice, if a solution was found in time, and a bound from below."""
    if end <= method_clock() or len(choices.kind) > LARGEST:
        return None, 0
    c, t = len(choices.kind), len(choices.rows)
    ids, at = np.unique(choices.instance, return_inverse=True)
    inside = choices.instance >= 0
    # suppression, -1, is the first of the ids where it occurs
    at = at - int(not inside.all())
    m = int(inside.sum() and at.max() + 1)
    assert len(ids) == m + int(not inside.all())
    chosen = np.flatnonzero(inside)
    rows, ones = choices.rows[choices.kind].astype(float), np.ones
    everyone = sparse.csr_array((ones(c), (choices.kind, np.arange(c))), shape=(t, c + m))
    use_limit = sparse.csr_array(
        (
            np.concatenate([ones(len(chosen)), -rows[chosen]]),
            (np.tile(np.arange(len(chosen)), 2), np.concatenate([chosen, c + at[chosen]])),
        ),
        shape=(len(chosen), c + m),
    )
    enough = sparse.csr_array(
        (
            np.concatenate([ones(len(chosen)), np.full(m, -float(choices.k))]),
            (np.concatenate([at[chosen], np.arange(m)]), np.concatenate([chosen, c + np.arange(m)])),
        ),
        shape=(m, c + m),
    )
    costs = np.concatenate([choices.cost, np.zeros(m)]).astype(float)
    limits = [
        scipy.optimize.LinearConstraint(everyone, choices.rows, choices.rows),
        scipy.optimize.LinearConstraint(use_limit, -np.inf, 0),
        scipy.optimize.LinearConstraint(enough, 0, np.inf),
    ]
    whole = np.concatenate([np.zeros(c), np.ones(m)])
    seconds = end - method_clock()
    solved = _in_time(
        end,
        lambda: scipy.optimize.milp(
            costs,
            integrality=whole,
            bounds=scipy.optimize.Bounds(0, np.concatenate([rows, np.ones(m)])),
            constraints=limits,
            options={
                "time_limit": max(seconds, 0.0),
                "mip_rel_gap": 0.0 if cost == NONE else GAP / max(cost, 1),
            },
        ),
    )
    if solved is None:
        return None, 0
    # infeasible
    if solved.status == 2:
        return None, NONE
    least = 0
    if solved.mip_dual_bound is not None and np.isfinite(solved.mip_dual_bound):
        # rounded up, since costs are whole numbers; less the tolerance up to which HiGHS is right
        least = int(np.ceil(solved.mip_dual_bound - 1e-6 * max(1.0, abs(solved.mip_dual_bound))))
    if solved.x is None:
        return None, least
    # whole numbers, up to the solver's tolerance
    chosen_instances = solved.x[c:] > 0.5
    return _in_time(end + GRACE, lambda: transported(choices, at, chosen_instances, costs[:c])), least


def _in_time(end: float, work: Callable[[], Any]) -> Any:
    """Return what `work` returns, or None if it has not returned by `end`, plus a grace.

    HiGHS checks the clock between its steps only, and one step of a large program can take many times the limit. A
    thread that we no longer wait for ends after its step, and its result is discarded. An exception in the thread is
    raised here.
    """
    future: Future[Any] = Future()

    def solve() -> None:
        try:
            future.set_result(work())
        except Exception as error:  # the caller raises it: in the thread nobody would
            future.set_exception(error)

    threading.Thread(target=solve, daemon=True).start()
    try:
        return future.result(max(end - method_clock(), 0.0) + GRACE)
    except TimeoutError:
        return None


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
    # the dual simplex ends in a vertex, and those of a transport polytope are whole
    solved = scipy.optimize.linprog(
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
