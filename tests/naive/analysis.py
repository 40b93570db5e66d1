"""Computing with a release, row by row and value by value. Imports nothing from anonflow."""

from __future__ import annotations

import math
import statistics
from collections.abc import Sequence
from typing import Any

Cell = Any
"""A number, a pair (low, high), a set of texts, or a text."""


def count(rows: Sequence[dict[str, Cell]], where: dict[str, Any]) -> tuple[int, int, float]:
    """Certain, possible and uniformly expected number of rows; ranges are of whole numbers."""
    certain = possible = 0
    expected = 0.0
    for row in rows:
        shares = []
        for name, wanted in where.items():
            cell = row[name]
            if isinstance(cell, tuple):
                values: list[Any] = list(range(cell[0], cell[1] + 1))
                met = [wanted[0] <= value <= wanted[1] for value in values]
            else:
                met = [value in wanted for value in sorted(cell)]
            shares.append(sum(met) / len(met))
        certain += all(share == 1 for share in shares)
        possible += all(share > 0 for share in shares)
        expected += math.prod(shares)
    return certain, possible, expected


def em_round(
    cells: Sequence[Sequence[set[int]]],
    shares: Sequence[float],
    chances: Sequence[Sequence[Sequence[float]]],
    prior: float,
) -> tuple[list[float], list[list[list[float]]]]:
    """One round of EM for a mixture of latent classes; ``cells[i][a]`` holds candidates, ``chances[a][v][h]``."""
    classes = len(shares)
    new_shares = [1e-3] * classes
    counts = [[[0.0] * classes for _ in column] for column in chances]
    for row in cells:
        mass = [[sum(chances[a][v][h] for v in cell) for h in range(classes)] for a, cell in enumerate(row)]
        joint = [shares[h] * math.prod(mass[a][h] for a in range(len(row))) for h in range(classes)]
        total = sum(joint)
        for h in range(classes):
            own = joint[h] / total
            new_shares[h] += own
            for a, cell in enumerate(row):
                for v in cell:
                    counts[a][v][h] += own * chances[a][v][h] / mass[a][h]
    for column in counts:
        marginal = [sum(value) for value in column]
        total = sum(marginal)
        for value, own in zip(column, marginal, strict=True):
            for h in range(classes):
                value[h] += prior * (own / total + 1e-9)
        for h in range(classes):
            total = sum(value[h] for value in column)
            for value in column:
                value[h] /= total
    total = sum(new_shares)
    return [share / total for share in new_shares], counts


def occurrences(share: float, k: int, balls: float) -> float:
    """Mean number of k draws from a Pólya urn that show a value, given that one does; the value has a share of the balls."""
    import itertools

    total = expected = 0.0
    for draws in itertools.product((True, False), repeat=k):
        if not any(draws):
            continue
        chance, seen = 1.0, 0
        for number, hit in enumerate(draws):
            mine = balls * share + seen if hit else balls * (1 - share) + number - seen
            chance *= mine / (balls + number)
            seen += hit
        total += chance
        expected += chance * seen
    return expected / total


def chances_of_hull(
    own: dict[int, float], k: int, numbers: bool, balls: float, near: float
) -> dict[int, float]:
    """How likely each value of one cell is: `own` has its values, in their order, with the chances in a latent class."""
    values = sorted(own)
    if len(values) == 1:
        return {values[0]: 1.0}
    ends = [values[0], values[-1]] if numbers else values
    if len(ends) > k:  # no hull
        ends = []
    each = (1.0 if numbers else occurrences(1e-9, k, balls)) / k
    each = min(each, 1 / max(len(ends), 1))
    rest = 1 - each * len(ends)
    chances = {}
    for value in values:
        by_class = own[value] / sum(own.values())
        even = 1 / len(values)
        chances[value] = rest * (near * even + (1 - near) * by_class if numbers else by_class)
        if value in ends:
            chances[value] += each
    return chances


def pooled(estimates: Sequence[float], variances: Sequence[float], rows: float | None) -> dict[str, float]:
    """Rubin's rules for one number: variances T for both targets, degrees of freedom, missing information."""
    m = len(estimates)
    between = (1 + 1 / m) * statistics.variance(estimates)
    within = sum(variances) / m
    share = between / (within + between)
    df = (m - 1) / share**2
    if rows is not None:
        observed = (rows + 1) / (rows + 3) * rows * (1 - share)
        df = 1 / (1 / df + 1 / observed)
    r = between / within
    return {
        "originals": between,
        "population": within + between,
        "df": df,
        "missing": (r + 2 / (df + 3)) / (r + 1),
    }


def completions(rows: Sequence[dict[str, Cell]]) -> list[list[dict[str, Any]]]:
    """All complete tables that cells may stand for: a pair (low, high) every whole number in it, a set each member."""
    import itertools

    def values(cell: Cell) -> list[Any]:
        return list(range(cell[0], cell[1] + 1)) if isinstance(cell, tuple) else sorted(cell)

    names = list(rows[0])
    every = itertools.product(*(values(row[name]) for row in rows for name in names))
    width = len(names)
    return [
        [dict(zip(names, flat[at : at + width], strict=True)) for at in range(0, len(flat), width)]
        for flat in every
    ]


def mean_of_group(rows: Sequence[dict[str, Any]], name: str, by: str, group: str) -> float | None:
    """The mean of those who have a value, None where nobody has."""
    numbers = [row[name] for row in rows if row[by] == group]
    return sum(numbers) / len(numbers) if numbers else None


def weighted_mean(numbers: Sequence[float], weights: Sequence[float]) -> tuple[float, float]:
    """Mean of a survey, and its linearized variance: rows are drawn independently with unequal chances."""
    n, total = len(numbers), sum(weights)
    middle = sum(w * y for w, y in zip(weights, numbers, strict=True)) / total
    scores = [w * (y - middle) / total for w, y in zip(weights, numbers, strict=True)]
    return middle, n / (n - 1) * sum(score**2 for score in scores)


def weighted_quantile(numbers: Sequence[float], weights: Sequence[float], at: float) -> float:
    """The smallest number up to which the numbers have this part of the weights."""
    for number in sorted(set(numbers)):
        below = sum(w for w, y in zip(weights, numbers, strict=True) if y <= number)
        if below >= at * sum(weights) - 1e-9:
            return number
    return max(numbers)


def weighted_regression(
    matrix: Sequence[Sequence[float]], outcome: Sequence[float], weights: Sequence[float], logistic: bool
) -> tuple[list[float], list[float]]:
    """Coefficients and their variances by Binder (1983), row by row, by Newton's steps."""
    import numpy as np

    n, p = len(outcome), len(matrix[0])
    beta = np.zeros(p)
    for _ in range(50):
        information, gradient, spread = np.zeros((p, p)), np.zeros(p), np.zeros((p, p))
        for x, y, w in zip(np.asarray(matrix, float), outcome, weights, strict=True):
            line = float(x @ beta)
            mean = 1 / (1 + math.exp(-line)) if logistic else line
            information += w * (mean * (1 - mean) if logistic else 1.0) * np.outer(x, x)
            gradient += w * (y - mean) * x
            spread += w**2 * (y - mean) ** 2 * np.outer(x, x)
        inverse = np.linalg.inv(information)
        beta = beta + inverse @ gradient
        if np.abs(inverse @ gradient).max() < 1e-12:
            break
    return beta.tolist(), np.diag(inverse @ spread @ inverse * n / (n - 1)).tolist()
