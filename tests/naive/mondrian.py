"""Mondrian by its definition, on lists of values."""

from __future__ import annotations

from fractions import Fraction
from typing import Any

# A column is ("numeric", values), ("set", values) or ("tree", values, leaves): values may be None in numeric
# columns; a tree is a list of lists of leaves, and a value is a leaf.


def leaves_of(tree: Any) -> list[Any]:
    return [leaf for branch in tree for leaf in leaves_of(branch)] if isinstance(tree, list) else [tree]


def lowest(tree: Any, values: set[Any]) -> Any:
    if isinstance(tree, list):
        for branch in tree:
            if values <= set(leaves_of(branch)):
                return lowest(branch, values)
    return tree


def width(column: tuple[Any, ...], rows: list[int]) -> Fraction:
    kind, values = column[0], column[1]
    mine = [values[i] for i in rows]
    present = {v for v in mine if v is not None}
    domain = {v for v in values if v is not None}
    if not present:
        return Fraction(0)
    if kind == "tree":
        everything = leaves_of(column[2])
        if len(everything) < 2:
            return Fraction(0)
        return Fraction(len(leaves_of(lowest(column[2], present))) - 1, len(everything) - 1)
    if len(domain) < 2:
        return Fraction(0)
    if None in mine:
        return Fraction(1)
    if kind == "numeric":
        return Fraction(max(present) - min(present)) / Fraction(max(domain) - min(domain))
    return Fraction(len(present) - 1, len(domain) - 1)


def cut(column: tuple[Any, ...], rows: list[int], k: int, relaxed: bool) -> list[list[int]]:
    kind, values = column[0], column[1]
    missing = [i for i in rows if values[i] is None]
    if missing:
        rest = [i for i in rows if values[i] is not None]
        return [missing, rest] if len(missing) >= k and len(rest) >= k else []
    half = (len(rows) + 1) // 2
    if kind == "numeric":
        median = sorted(values[i] for i in rows)[half - 1]
        below = [i for i in rows if values[i] < median]
        equal = [i for i in rows if values[i] == median]
        above = [i for i in rows if values[i] > median]
        if relaxed:
            room = half - len(below)
            halves = [below + equal[:room], equal[room:] + above]
        else:
            halves = [below + equal, above]
        return halves if all(len(h) >= k for h in halves) else []
    if kind == "tree":
        node = lowest(column[2], {values[i] for i in rows})
        parts = [[i for i in rows if values[i] in leaves_of(child)] for child in node]
        parts = [part for part in parts if part]
        if not relaxed:
            return parts if len(parts) > 1 and all(len(part) >= k for part in parts) else []
        merged: list[list[int]] = [[]]
        for part in parts:
            if len(merged[-1]) >= k:
                merged.append([])
            merged[-1] += part
        if len(merged) > 1 and len(merged[-1]) < k:
            merged[-2:] = [merged[-2] + merged[-1]]
        return merged if len(merged) > 1 else []
    counts: dict[Any, int] = {}
    for i in rows:
        counts[values[i]] = counts.get(values[i], 0) + 1
    falling = sorted(counts, key=lambda v: (-counts[v], v))
    if relaxed:
        by_value = [i for v in falling for i in rows if values[i] == v]
        halves = [by_value[:half], by_value[half:]]
    else:
        halves = [[], []]
        for v in falling:
            smaller = 0 if len(halves[0]) <= len(halves[1]) else 1
            halves[smaller] += [i for i in rows if values[i] == v]
    return halves if all(len(h) >= k for h in halves) else []


def mondrian(
    columns: list[tuple[Any, ...]], weights: list[Any], n: int, k: int, relaxed: bool
) -> set[frozenset[int]]:
    """The classes."""
    classes = set()
    segments = [list(range(n))]
    while segments:
        rows = segments.pop()
        parts: list[list[int]] = []
        if len(rows) >= 2 * k:
            wide = [Fraction(w) * width(column, rows) for column, w in zip(columns, weights, strict=True)]
            for a in sorted(range(len(columns)), key=lambda a: (-wide[a], a)):
                if wide[a] > 0 and not parts:
                    parts = cut(columns[a], rows, k, relaxed)
        if parts:
            # kernels keep the records of a part in their order, so that relaxed cuts of equal values agree
            segments += [[i for i in rows if i in set(part)] for part in parts]
        else:
            classes.add(frozenset(rows))
    return classes
