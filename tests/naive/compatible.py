"""Who is compatible with whom on sets of columns, by loops; and the fewest hidden cells, as an integer program."""

from __future__ import annotations

import itertools
from collections.abc import Callable, Iterable, Sequence
from typing import Any

import numpy as np
from scipy.optimize import Bounds, LinearConstraint, milp
from scipy.sparse import coo_array


def is_shown(cell: str, value: str) -> bool:
    """Whether a cell is hidden or the value."""
    return cell in ("*", value)


def names_nobody(
    people: Sequence[Sequence[Any]],
    rows: Sequence[Sequence[Any]],
    sets: Iterable[Sequence[int]],
    k: int,
    covers: Callable[[Any, Any], bool] = is_shown,
    *,
    matches: bool = False,
) -> bool:
    """Whether on each set every person is compatible with k rows, and every row with k people; row i is of person i.

    With `matches`, pairs of a person and a row count only if everybody else can have a row, too.
    """
    for columns in sets:
        fit = [[all(covers(row[c], person[c]) for c in columns) for row in rows] for person in people]
        if matches:
            fit = [[ok and _is_matched(fit, i, j) for j, ok in enumerate(line)] for i, line in enumerate(fit)]
        if min(map(sum, fit)) < k or min(map(sum, zip(*fit, strict=True))) < k:
            return False
    return True


def _is_matched(fit: list[list[bool]], i: int, j: int) -> bool:
    """Whether the others can be matched with the other rows: person j, whose row is taken, is moved along until row i is free."""
    reached, way = {j}, [j]
    while way:
        person = way.pop()
        if person == i:
            return True
        for row in range(len(fit)):
            if fit[person][row] and row not in reached:
                reached.add(row)
                way.append(row)
    return False


def fewest(
    people: Sequence[Sequence[Any]],
    sets: Iterable[Sequence[int]],
    k: int,
    *,
    for_people: bool = True,
    for_rows: bool = True,
) -> int:
    """The fewest hidden cells, proved by the solver HiGHS; of both conditions, or of one alone.

    h[j, c] is 1 where cell c of row j is hidden. A row is compatible with a person if all of its cells that differ are hidden.
    """
    n, q = len(people), len(people[0])
    entries: list[tuple[int, int, float]] = []
    least: list[float] = []
    variables = n * q

    def add(terms: Iterable[tuple[int, float]], bound: float) -> None:
        entries.extend((len(least), variable, factor) for variable, factor in terms)
        least.append(bound)

    for columns in sets:
        pairs: dict[tuple[int, int], int] = {}
        for i, j in itertools.product(range(n), repeat=2):
            differ = [j * q + c for c in columns if people[i][c] != people[j][c]]
            if len(differ) == 1:
                pairs[i, j] = differ[0]
            elif differ:
                pairs[i, j] = variables
                for cell in differ:
                    add([(cell, 1), (variables, -1)], 0)
                variables += 1
        equal = [sum((i, j) not in pairs for j in range(n)) for i in range(n)]
        for i in range(n):
            if for_people and equal[i] < k:
                add(((at, 1) for (person, _), at in pairs.items() if person == i), k - equal[i])
            if for_rows and equal[i] < k:
                add(((at, 1) for (_, row), at in pairs.items() if row == i), k - equal[i])
    if not least:
        return 0
    at, variable, factor = zip(*entries, strict=True)
    matrix = coo_array((factor, (at, variable)), shape=(len(least), variables)).tocsr()
    price = np.zeros(variables)
    price[: n * q] = 1
    solution = milp(
        price,
        constraints=LinearConstraint(matrix, lb=least),
        integrality=np.ones(variables),
        bounds=Bounds(0, 1),
    )
    assert solution.status == 0, solution.message
    return round(solution.fun)
