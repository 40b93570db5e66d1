"""Full-domain generalization by trying every node of the lattice."""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Sequence
from itertools import product


def best_node(
    rows: Sequence[tuple[str, ...]],
    levels: Sequence[Sequence[Callable[[str], str]]],
    cost: Callable[[int, str], float],
    k: int,
    most: int,
    values: Sequence[str] = (),
    diverse: Callable[[Sequence[str]], bool] = lambda shown: True,
) -> tuple[float, int] | None:
    """The least sum of losses over all nodes that suppress at most some records, and how many that node suppresses.

    Parameters
    ----------
    rows : sequence of tuple of str
    levels : sequence, for each column a sequence of functions
        What a value is published as at each level.
    cost : callable
        ``cost(column, cell)``: what a published cell loses, divided by the number of columns; a suppressed record loses
        the sum over columns of ``cost(column, "*")``.
    k, most : int
    values : sequence of str
        Each row's sensitive value.
    diverse : callable
        Whether the values of a class are diverse: other classes are suppressed. So must be those of the suppressed rows, where
        they are k or more.
    """
    best = None
    star = sum(cost(c, "*") for c in range(len(levels)))
    for node in product(*(range(len(column)) for column in levels)):
        published = [tuple(levels[c][level](row[c]) for c, level in enumerate(node)) for row in rows]
        size = Counter(published)
        shown: dict[tuple[str, ...], list[str]] = {row: [] for row in size}
        for row, value in zip(published, values, strict=False):
            shown[row].append(value)
        hidden = {row for row in size if size[row] < k or not diverse(shown[row])}
        small = sum(size[row] for row in hidden)
        starred = hidden | {row for row in size if all(cell == "*" for cell in row)}
        pool = [value for row in starred for value in shown[row]]
        if small > most or (len(pool) >= k and not diverse(pool)):
            continue
        loss = sum(
            star if row in hidden else sum(cost(c, cell) for c, cell in enumerate(row)) for row in published
        )
        if best is None or loss < best[0] - 1e-9:
            best = (loss, small)
    return best
