"""Bounds and solutions of integer programs over sets of records, shared by the programs for all graphs and for symmetric ones."""

from __future__ import annotations

import math
from typing import TYPE_CHECKING, Protocol, TypeVar

import numpy as np
import scipy

from anonflow.kernels.jit import method_clock
from anonflow.kernels.state import GRID

if TYPE_CHECKING:
    from ortools.sat.python import cp_model
    from scipy import sparse

ROUNDS = 200
"""Rounds of column generation at most; a dozen are usual."""

ROOM = 2**60
"""The largest sum that the integer solver's objective may have."""

Prices = TypeVar("Prices")


class PricedColumns(Protocol[Prices]):
    """Columns of an integer program, and prices of its rows."""

    def reduced(self, prices: Prices) -> np.ndarray:
        """Return the cost of each column less the prices of its rows, shape (columns,), int64."""
        ...

    def lagrangian(self, prices: Prices, reduced: np.ndarray) -> int:
        """Return a lower bound of every solution: exact in integers, whatever the prices."""
        ...

    def relaxed(self, pool: np.ndarray, seconds: float) -> tuple[int, Prices] | None:
        """Return the linear relaxation over a pool of columns: its value and its prices; None if time ended it."""
        ...

    def entering(self, prices: Prices, reduced: np.ndarray) -> np.ndarray:
        """Return columns that would lower the relaxation: some of those of least reduced cost."""
        ...


def generated_bound(
    columns: PricedColumns[Prices], pool: np.ndarray, prices: Prices, best: int, end: float
) -> tuple[int, Prices]:
    """Return a lower bound of the cost of every solution, by column generation.

    Parameters
    ----------
    columns : PricedColumns
    pool : numpy.ndarray, shape (p,)
        Columns to begin with: a solution's, and cheap ones.
    prices
        To begin with.
    best : int
        What a known solution costs.
    end : float
        When to stop, by :func:`~anonflow.kernels.jit.method_clock`.

    Returns
    -------
    bound : int
        The largest Lagrangian bound at the solver's prices, rounded.
    prices
        Its prices.
    """
    bound = columns.lagrangian(prices, columns.reduced(prices))
    for _ in range(ROUNDS):
        if method_clock() >= end or bound >= best:
            break
        solved = columns.relaxed(pool, end - method_clock())
        if solved is None:
            break
        value, latest = solved
        reduced = columns.reduced(latest)
        lagrangian = columns.lagrangian(latest, reduced)
        if lagrangian > bound:
            bound, prices = lagrangian, latest
        # the solver's value is rounded: nothing that a further round could gain is certain
        if bound >= value - 1:
            break
        before = len(pool)
        pool = np.union1d(pool, columns.entering(latest, reduced))
        if len(pool) == before:
            break
    return bound, prices


def relaxation(
    cost: np.ndarray, matrix: sparse.csc_array, sides: np.ndarray, seconds: float
) -> tuple[int, np.ndarray] | None:
    """Return the least cost of ``matrix @ x == sides``, x of at least 0, and the prices of its rows.

    Returns
    -------
    value : int
        Rounded down, in multiples of ``GRID``, as `cost`.
    prices : numpy.ndarray, shape (rows,), int64
    """
    solved = scipy.optimize.linprog(
        cost * GRID, A_eq=matrix, b_eq=sides, method="highs", options={"time_limit": max(seconds, 0.01)}
    )
    if solved.status != 0:
        return None
    # whole prices: the Lagrangian bound is computed from them in integers, however the solver rounds
    return math.floor(solved.fun / GRID), np.rint(solved.eqlin.marginals / GRID).astype(np.int64)


def solver_of(model: cp_model.CpModel, end: float, gap: float) -> cp_model.CpSolver | None:
    """Return CP-SAT with a solution of a model, by one worker: the same every time unless time ends it. None without a solution.

    Parameters
    ----------
    model : CpModel
    end : float
        When to stop, by :func:`~anonflow.kernels.jit.method_clock`.
    gap : float
        The gap of the objective at which the solver stops. The solver's own gap is relative to reduced costs, which is
        not what we need.
    """
    from ortools.sat.python import cp_model

    seconds = end - method_clock()
    if seconds <= 0.01:
        return None
    solver = cp_model.CpSolver()
    solver.parameters.num_workers = 1
    solver.parameters.random_seed = 0
    solver.parameters.max_time_in_seconds = seconds
    solver.parameters.absolute_gap_limit = max(gap, 0.0)
    solver.parameters.relative_gap_limit = 0.0
    solver.parameters.catch_sigint_signal = False  # it would leave the signal without a handler
    has_solution = solver.solve(model) in (cp_model.OPTIMAL, cp_model.FEASIBLE)
    return solver if has_solution else None
