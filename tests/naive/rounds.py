"""What minimal generalization gives away, by trying every table: local recoding in rounds, and guesses of finer cells."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator, Mapping, Sequence
from fractions import Fraction
from itertools import combinations_with_replacement, product
from math import prod

Row = tuple[str, ...]
Cells = tuple[frozenset[str], ...]
Column = Sequence[Mapping[str, frozenset[str]]]
"""A column: at each level the cell of each value, as the set of the values that it covers."""

Released = dict[Cells, tuple[Row, ...]]
"""The rows of each class. What is published are the cells and the number of rows."""


def loss(cells: Cells, columns: Sequence[Column]) -> Fraction:
    return sum(
        (Fraction(len(cell) - 1, len(column[0]) - 1) for cell, column in zip(cells, columns, strict=True)),
        Fraction(0),
    )


def local_recodings(rows: tuple[Row, ...], columns: Sequence[Column], k: int) -> Iterator[Released]:
    """Every release of a table: one for each choice among levels that lose equally much."""
    best: dict[Fraction, list[Released]] = {}
    for node in product(*(range(len(column)) for column in columns)):
        groups: Released = {}
        for row in rows:
            cells = tuple(
                column[level][value] for column, level, value in zip(columns, node, row, strict=True)
            )
            groups[cells] = (*groups.get(cells, ()), row)
        shown = {
            cells: group
            for cells, group in groups.items()
            if len(group) >= k
            and any(len(cell) < len(column[0]) for cell, column in zip(cells, columns, strict=True))
        }
        gain = sum(
            (len(group) * (len(columns) - loss(cells, columns)) for cells, group in shown.items()),
            Fraction(0),
        )
        best.setdefault(gain, []).append(shown)
    top = max(best)
    for shown in best[top] if top else []:
        rest = list(rows)
        for group in shown.values():
            for row in group:
                rest.remove(row)
        for later in local_recodings(tuple(rest), columns, k):
            yield shown | later
    if not top:
        yield {tuple(frozenset(column[0]) for column in columns): rows} if rows else {}


def published(release: Released) -> frozenset[tuple[Cells, int]]:
    return frozenset((cells, len(group)) for cells, group in release.items())


def values_by_release(
    columns: Sequence[Column], n: int, k: int
) -> dict[frozenset[tuple[Cells, int]], dict[Cells, list[set[str]]]]:
    """For each release of any n records, the values that each class may have in each column."""
    known: dict[frozenset[tuple[Cells, int]], dict[Cells, list[set[str]]]] = {}
    for rows in combinations_with_replacement(list(product(*(column[0] for column in columns))), n):
        for release in local_recodings(rows, columns, k):
            of_class = known.setdefault(published(release), {})
            for cells, group in release.items():
                values = of_class.setdefault(cells, [set() for _ in columns])
                for row in group:
                    for seen, value in zip(values, row, strict=True):
                        seen.add(value)
    return known


def shares(prior: Sequence[Fraction], size: int, k: int) -> list[Fraction]:
    """The expected share below each child, over all ways to draw the records of a class, given that the node is minimal."""
    if len([p for p in prior if p]) < 2:
        return list(prior)
    total, expected = Fraction(0), [Fraction(0)] * len(prior)
    for drawn in product(range(len(prior)), repeat=size):
        counts = Counter(drawn)
        if any(count == size or k <= count <= size - k for count in counts.values()):
            continue
        chance = prod((prior[child] for child in drawn), start=Fraction(1))
        total += chance
        for child, count in counts.items():
            expected[child] += chance * Fraction(count, size)
    return [share / total for share in expected] if total else list(prior)


def guess(
    cells: Cells,
    size: int | None,
    finer: Sequence[Cells],
    columns: Sequence[Column],
    weights: Sequence[Mapping[str, int]],
    k: int,
) -> list[tuple[Fraction, int, frozenset[str]]]:
    """The expected share, column and child of every way to refine one cell of a class by one level, the best first.

    `finer` are the classes inside it, none of whose records it has. Without a size, nothing is known of the node.
    """
    points = [
        (row, prod(weight[value] for weight, value in zip(weights, row, strict=True)))
        for row in product(*(sorted(cell) for cell in cells))
        if not any(all(value in cell for value, cell in zip(row, other, strict=True)) for other in finer)
    ]
    everything = sum(weight for _, weight in points)
    guesses = []
    for c, (cell, column) in enumerate(zip(cells, columns, strict=True)):
        inner = {child for level in column for child in level.values() if child < cell}
        children = [child for child in inner if not any(child < other for other in inner)]
        if len(children) < 2:
            continue
        if everything:
            prior = [
                Fraction(sum(w for row, w in points if row[c] in child), everything) for child in children
            ]
        else:
            whole = sum(weights[c][value] for value in cell)
            prior = [Fraction(sum(weights[c][value] for value in child), whole) for child in children]
        expected = prior if size is None else shares(prior, size, k)
        guesses += [(share, c, child) for share, child in zip(expected, children, strict=True)]
    return sorted(guesses, key=lambda each: -each[0])
