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
    """
    best = None
    star = sum(cost(c, "*") for c in range(len(levels)))
    for node in product(*(range(len(column)) for column in levels)):
        published = [tuple(levels[c][level](row[c]) for c, level in enumerate(node)) for row in rows]
        size = Counter(published)
        small = sum(count for count in size.values() if count < k)
        if small > most:
            continue
        loss = sum(
            star if size[row] < k else sum(cost(c, cell) for c, cell in enumerate(row)) for row in published
        )
        if best is None or loss < best[0] - 1e-9:
            best = (loss, small)
    return best
