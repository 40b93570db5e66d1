"""The linear relaxation of Bredereck 2013's integer program: a lower bound, and the choices that no better solution can use."""

from __future__ import annotations

import numpy as np

from anonflow.algorithms.patterns.row_choices import RowChoices
from anonflow.kernels.jit import method_clock


def relaxed(choices: RowChoices, end: float) -> tuple[int, np.ndarray, np.ndarray, np.ndarray] | None:
    """Solve the relaxation of (5) to (8) with GLOP, which keeps its time limit.

    Parameters
    ----------
    choices : RowChoices
    end : float
        When to stop, of the monotonic clock.

    Returns
    -------
    bound : int
        A lower bound of all solutions.
    reduced : numpy.ndarray, shape (c,), float64
        By how much more than the relaxation a solution costs in which a row makes the choice.
    opening : numpy.ndarray, shape (c,), float64
        Likewise for a solution in which the choice's instance is open; 0 for suppression.
    amount : numpy.ndarray, shape (c,), float64
        How many rows make each choice in the relaxation's solution.
    None if the time did not suffice.

    Notes
    -----
    As in :mod:`anonflow.algorithms.patterns.pattern_guided_optimal`, each choice is bounded by its own rows. O(c) to
    build, a loop over choices.
    """
    from ortools.linear_solver import pywraplp

    solver = pywraplp.Solver.CreateSolver("GLOP")
    infinity = solver.infinity()
    ids, at = np.unique(choices.instance, return_inverse=True)
    m = len(ids)
    rows = choices.rows[choices.kind].tolist()
    amounts = [solver.NumVar(0.0, float(most), "") for most in rows]
    opened = [solver.NumVar(0.0, 1.0, "") for _ in range(m)]
    everyone = [solver.Constraint(float(most), float(most)) for most in choices.rows.tolist()]
    enough = [solver.Constraint(0.0, infinity) for _ in range(m)]
    objective = solver.Objective()
    entries = zip(
        amounts, rows, choices.kind.tolist(), choices.instance.tolist(), at.tolist(), choices.cost.tolist()
    )
    for amount, most, kind, instance, b, cost in entries:
        everyone[kind].SetCoefficient(amount, 1.0)
        objective.SetCoefficient(amount, float(cost))
        if instance >= 0:
            enough[b].SetCoefficient(amount, 1.0)
            each = solver.Constraint(-infinity, 0.0)
            each.SetCoefficient(amount, 1.0)
            each.SetCoefficient(opened[b], -float(most))
    for b, instance in enumerate(ids.tolist()):
        if instance >= 0:
            enough[b].SetCoefficient(opened[b], -float(choices.k))
    objective.SetMinimization()
    seconds = end - method_clock()
    if seconds <= 0:
        return None
    solver.SetTimeLimit(int(seconds * 1000) + 1)
    if solver.Solve() != pywraplp.Solver.OPTIMAL:
        return None
    value = objective.Value()
    bound = int(np.ceil(value - 1e-6 * max(1.0, abs(value))))
    reduced = np.array([amount.reduced_cost() for amount in amounts])
    opening = np.array([variable.reduced_cost() for variable in opened])[at]
    opening[choices.instance < 0] = 0.0
    return bound, reduced, opening, np.array([amount.solution_value() for amount in amounts])
