"""Symmetric graphs from their definition: every link priced anew, every choice by exhaustive search."""

from __future__ import annotations

import itertools
from collections.abc import Callable, Iterator, Sequence
from fractions import Fraction

Cost = Callable[[frozenset[int]], Fraction]
Link = tuple[int, int]


def is_symmetric_regular(matches: Sequence[Sequence[int]], degree: int) -> bool:
    """Every row has itself first and `degree` different entries; i in j's row if and only if j in i's."""
    rows = [list(row) for row in matches]
    return all(
        row[0] == j
        and len(row) == len(set(row)) == degree
        and all(0 <= i < len(rows) and j in rows[i] for i in row)
        for j, row in enumerate(rows)
    )


def rounds(cost: Cost, order: Sequence[int], k: int, greedy: bool) -> tuple[list[set[int]], int]:
    """Neighbours of each record, itself among them, and how many links were exchanged.

    Parameters
    ----------
    cost : callable
        Cost of the generalized record that covers some originals.
    order : sequence of int
        The records as they choose.
    k : int
        With n (k - 1) even and k < (n + 3) / 2.
    greedy : bool
        Whether the records choose one after the other; else the cheapest links of all come first.
    """
    n = len(order)
    near = [{j} for j in range(n)]
    exchanged = 0
    while len(near[0]) < k:
        need = 1 if (k - len(near[0])) % 2 else 2
        price = prices(cost, near)
        links: set[Link] = set()

        def degree(j: int, links: set[Link] = links) -> int:
            return sum(j in link for link in links)

        def free(i: int, j: int, links: set[Link] = links) -> bool:
            return j not in near[i] and tuple(sorted((i, j))) not in links

        if greedy:
            for i in order:
                while degree(i) < need:
                    others = [j for j in range(n) if free(i, j) and degree(j) < need]
                    if not others:
                        break
                    links.add(_link(i, min(others, key=lambda j: (price[i, j], j))))
        else:
            for _, a, b in sorted((price[i, j], i, j) for i in range(n) for j in range(i + 1, n)):
                if free(a, b) and degree(a) < need and degree(b) < need:
                    links.add((a, b))
        for u in range(n):
            while degree(u) < need:
                v = u if need - degree(u) == 2 else next(j for j in range(u + 1, n) if degree(j) < need)
                results = []
                for x, y in [*links, *((y, x) for x, y in links)]:
                    if free(u, x) and free(v, y):
                        results.append((price[u, x] + price[v, y] - price[x, y], x, y))
                least = min(each[0] for each in results)
                x, y = next((x, y) for value, x, y in sorted(results) if value == least)
                links -= {_link(x, y)}
                links |= {_link(u, x), _link(v, y)}
                exchanged += 1
        for i, j in links:
            near[i].add(j)
            near[j].add(i)
    return near, exchanged


def prices(cost: Cost, near: Sequence[set[int]]) -> dict[Link, Fraction]:
    """What each link adds: record j covers i as well, and i covers j."""
    results = {}
    for i, j in itertools.permutations(range(len(near)), 2):
        results[i, j] = sum(
            cost(frozenset(near[a] | {b})) - cost(frozenset(near[a])) for a, b in ((i, j), (j, i))
        )
    return results


def least_two_factor(price: dict[Link, float], n: int) -> float:
    """The least cost of cycles of three or more through all records."""
    best = float("inf")
    for to in itertools.permutations(range(n)):
        if all(to[i] != i and to[to[i]] != i for i in range(n)):
            best = min(best, sum(price[i, to[i]] for i in range(n)))
    return best


def mutual_rings(order: Sequence[int], sizes: Sequence[int], k: int) -> list[set[int]]:
    """Neighbours of each record, itself among them, in rings that reach equally far both ways.

    Rings of an even size and even k: all up to k / 2 places away, but every other link of one distance: k / 2 if its
    links are on cycles of even length, else one less. Rings of an odd size and even k: all of them.
    """
    near: list[set[int]] = [set() for _ in order]
    start = 0
    for size in sizes:
        ring = order[start : start + size]
        start += size
        for place, i in enumerate(ring):
            near[i] |= {ring[(place + away) % size] for away in range(-(k // 2), k // 2 + 1)}
        if k % 2 or size % 2:
            continue
        away = next(d for d in (k // 2, k // 2 - 1) if len(_cycle(size, d)) % 2 == 0)
        kept, left_out = set(), set()
        for first in range(size):
            links = [_link(p, (p + away) % size) for p in _cycle(size, away, first)]
            if first == min(_cycle(size, away, first)):
                kept |= set(links[::2])
                left_out |= set(links[1::2])
        for a, b in left_out - kept:
            near[ring[a]].discard(ring[b])
            near[ring[b]].discard(ring[a])
    return near


def _cycle(size: int, away: int, first: int = 0) -> list[int]:
    """The places that steps of some length lead to, from one place back to it."""
    places = [first]
    while (last := (places[-1] + away) % size) != first:
        places.append(last)
    return places


def symmetric_graphs(n: int, degree: int) -> Iterator[list[frozenset[int]]]:
    """All of them: which records each covers, itself among them, `degree` in all."""
    need = [degree - 1] * n
    near: list[set[int]] = [{j} for j in range(n)]

    def extend(i: int) -> Iterator[list[frozenset[int]]]:
        if i == n:
            yield [frozenset(row) for row in near]
            return
        others = [j for j in range(i + 1, n) if need[j]]
        for taken in itertools.combinations(others, need[i]):
            for j in taken:
                near[i].add(j)
                near[j].add(i)
                need[j] -= 1
            yield from extend(i + 1)
            for j in taken:
                near[i].remove(j)
                near[j].remove(i)
                need[j] += 1

    yield from extend(0)


def least_symmetric(cost: Callable[[frozenset[int]], float], n: int, degree: int) -> float:
    """The least loss of a symmetric graph, added up over the records, by trying them all."""
    return min(sum(map(cost, rows)) for rows in symmetric_graphs(n, degree))


def _link(i: int, j: int) -> Link:
    return (i, j) if i < j else (j, i)


def best_exchange(rows: Sequence[frozenset[int]], cost: Cost) -> Fraction:
    """By how much the best exchange of two links (ab, cd for ac, bd) of a symmetric graph changes the sum of costs.

    0 where none lowers it. Records stand among their own neighbours; links that are there already are not made again.
    """
    best = Fraction(0)
    arcs = [(a, b) for a, row in enumerate(rows) for b in row if a != b]
    for (a, b), (c, d) in itertools.product(arcs, repeat=2):
        if len({a, b, c, d}) == 4 and c not in rows[a] and d not in rows[b]:
            gives = {a: (b, c), b: (a, d), c: (d, a), d: (c, b)}
            changes = [cost(rows[j] - {old} | {new}) - cost(rows[j]) for j, (old, new) in gives.items()]
            best = min(best, sum(changes, Fraction(0)))
    return best
