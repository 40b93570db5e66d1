"""The least cost of assigning rows to instances of patterns: the integer program as the paper writes it, nothing left out."""

from __future__ import annotations

import numpy as np
from scipy import optimize


def least_cost(rows: np.ndarray, kind: np.ndarray, instance: np.ndarray, cost: np.ndarray, k: int) -> int:
    """Rows of each type, and the type, instance (-1: needs no k rows) and cost of a row for each choice."""
    choices, instances = len(kind), int(instance.max(initial=-1)) + 1
    of_type = np.zeros((len(rows), choices + instances))
    of_type[kind, np.arange(choices)] = 1
    joined = np.zeros((instances, choices + instances))
    inside = np.flatnonzero(instance >= 0)
    joined[instance[inside], inside] = 1
    fewest, most = joined.copy(), joined.copy()
    fewest[np.arange(instances), choices + np.arange(instances)] = -k
    most[np.arange(instances), choices + np.arange(instances)] = -rows.sum()
    solved = optimize.milp(
        np.concatenate([cost, np.zeros(instances)]),
        integrality=np.ones(choices + instances),
        bounds=optimize.Bounds(0, np.concatenate([np.full(choices, np.inf), np.ones(instances)])),
        constraints=[
            optimize.LinearConstraint(of_type, rows, rows),
            *([optimize.LinearConstraint(fewest, 0, np.inf)] if instances else []),
            *([optimize.LinearConstraint(most, -np.inf, 0)] if instances else []),
        ],
    )
    assert solved.x is not None
    return round(float(solved.fun))
