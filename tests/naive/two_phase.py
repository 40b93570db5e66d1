"""Slow references for two-phase: what a graph costs, which exchanges of matches would lower that, and which cycles labels find."""

from __future__ import annotations

import heapq
import math
from collections import Counter
from collections.abc import Callable, Iterator, Sequence
from itertools import permutations, product

import numpy as np

Cost = Callable[[Sequence[int]], float]


def total(matches: np.ndarray, cost: Cost) -> float:
    """The sum over records of the cost of covering all they match."""
    return sum(cost(row) for row in matches.tolist())


def least_assignment(n: int, edges: set[tuple[int, int]], cost: dict[tuple[int, int], float]) -> float | None:
    """The least cost of an assignment among some edges, all tried; None where there is none."""
    sums = [
        sum(cost[i, order[i]] for i in range(n))
        for order in permutations(range(n))
        if all((i, order[i]) in edges for i in range(n))
    ]
    return min(sums, default=None)


def best_trade(matches: np.ndarray, cost: Cost) -> float:
    """By how much the best exchange of one match each (never the self-match) between two records changes the sum.

    0 where none lowers it; an exchange that doubles an edge is none.
    """
    n, k = matches.shape
    best = 0.0
    for a in range(n):
        for b in range(a):
            for d in range(1, k):
                for e in range(1, k):
                    item, other = matches[a].copy(), matches[b].copy()
                    if other[e] in item or item[d] in other:
                        continue
                    item[d], other[e] = other[e], item[d]
                    change = sum(cost(row.tolist()) for row in (item, other))
                    change -= sum(cost(matches[j].tolist()) for j in (a, b))
                    best = min(best, change)
    return best


def best_cycle(matches: np.ndarray, cost: Cost) -> float:
    """By how much the best cycle of exchanges changes the sum: each of some records gives a match to the next one.

    All cycles are tried that pass every record at most once and double no edge; 0 where none lowers the sum.
    """
    n, k = matches.shape
    best = 0.0
    for size in range(2, n + 1):
        for circle in permutations(range(n), size):
            if circle[0] != min(circle):
                continue  # the same one, begun elsewhere
            for slots in product(range(1, k), repeat=size):
                change = 0.0
                for e, j in enumerate(circle):
                    gained = matches[circle[e - 1], slots[e - 1]]
                    if gained in matches[j]:
                        break
                    row = matches[j].tolist()
                    row[slots[e]] = gained
                    change += cost(row) - cost(matches[j].tolist())
                else:
                    best = min(best, change)
    return best


def cancelled(
    matches: np.ndarray, cost: Cost, roots: Sequence[int], t: int, p: int
) -> tuple[list[list[int]], int, int]:
    """The graph, the cycles that were reversed and the labels taken: Murakami 2018's Steps 0 to 6, with all records as candidates.

    Equal lengths must be equal numbers, so `cost` is exact.
    """
    rows = matches.tolist()
    label: dict[int, float] = {}
    parent: dict[int, int] = {}
    by: dict[int, int] = {}
    updates = Counter[int]()
    cycles = taken = 0

    def upstream(v: int) -> list[int]:
        """A vertex, its parent, the parent of this, up to a root or to the first one that occurs again."""
        chain = [v]
        while chain[-1] in parent and len(set(chain)) == len(chain):
            chain.append(parent[chain[-1]])
        return chain

    def is_reversed(circle: list[int]) -> bool:
        """Whether the loss falls where each record of a cycle's arcs takes the parent for the vertex."""
        changed = {by[v]: list(rows[by[v]]) for v in circle}
        for v in circle:
            if v not in rows[by[v]][1:]:
                return False  # the label is older than another cycle
            changed[by[v]][rows[by[v]].index(v)] = parent[v]
        doubled = any(len(set(row)) < len(row) for row in changed.values())
        if doubled or sum(cost(row) - cost(rows[j]) for j, row in changed.items()) >= 0:
            return False
        for j, row in changed.items():
            rows[j] = row
        return True

    def improved(u: int) -> Iterator[int]:
        """Each vertex whose label is now that by way of u."""
        for j, row in enumerate(rows):
            for v in row[1:] if u not in row else ():
                reach = label[u] + cost([u if x == v else x for x in row]) - cost(row)
                if reach < label.get(v, math.inf):
                    label[v], parent[v], by[v] = reach, u, j
                    yield v

    for root in roots:
        if taken >= p or root in label:
            continue
        label[root] = 0.0
        heap = [(0.0, root)]
        while heap and taken < p:
            length, u = heapq.heappop(heap)
            if label.get(u) != length:
                continue
            taken += 1
            for v in improved(u):
                updates[v] = (updates[v] + 1) % t
                chain = upstream(v)
                if updates[v] or len(set(chain)) == len(chain):
                    heapq.heappush(heap, (label[v], v))
                    continue
                circle = chain[chain.index(chain[-1]) : -1]
                cycles += is_reversed(circle)
                for y in [y for y in label if set(circle) & set(upstream(y))]:
                    del label[y], updates[y]
                for y in parent.keys() - label.keys():
                    del parent[y]
                break
    return rows, cycles, taken


def least_distances(
    rows: Sequence[Sequence[object]], costs: Sequence[float], count: int
) -> list[list[float]]:
    """For each row the `count` least sums of costs of the cells in which it differs from a row, itself among them."""
    return [
        sorted(sum(cost for cost, a, b in zip(costs, row, other, strict=True) if a != b) for other in rows)[
            :count
        ]
        for row in rows
    ]
