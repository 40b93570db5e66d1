"""Brute-force references for attackers: every perfect matching of a tiny graph, one by one."""

from __future__ import annotations

from itertools import permutations

import numpy as np


def matchings(covers: np.ndarray) -> list[tuple[int, ...]]:
    """All perfect matchings: for each row j the original that it is matched with."""
    n = len(covers)
    return [p for p in permutations(range(n)) if all(covers[j, p[j]] for j in range(n))]


def probabilities(covers: np.ndarray) -> np.ndarray:
    """The share of the matchings on which each edge (row, original) lies."""
    n = len(covers)
    shares = np.zeros((n, n))
    result = matchings(covers)
    for matching in result:
        for j, i in enumerate(matching):
            shares[j, i] += 1 / len(result)
    return shares


def rows_left(covers: np.ndarray, truth: np.ndarray, target: int, known: list[int]) -> int:
    """How many rows may be a target's once the rows of the known originals are ruled out for everybody else."""
    row_of = {int(i): j for j, i in enumerate(truth)}
    possible = set()
    for matching in matchings(covers):
        if all(matching[row_of[i]] == i for i in known):
            possible.add(matching.index(target))
    return len(possible)


def could_be_absent(covers: np.ndarray) -> list[bool] | None:
    """Of each person (a column) whether some assignment of all rows to different people that they cover is without them.

    None where there is no assignment.
    """
    rows, people = covers.shape
    assignments = [
        set(p) for p in permutations(range(people), rows) if all(covers[j, p[j]] for j in range(rows))
    ]
    if not assignments:
        return None
    return [any(i not in each for each in assignments) for i in range(people)]
