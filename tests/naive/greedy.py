"""The Greedy algorithm from its definition: every edge priced anew, every choice by exhaustive search."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from fractions import Fraction

Cost = Callable[[frozenset[int]], Fraction]


def greedy(cost: Cost, order: Sequence[int], k: int) -> tuple[list[list[int]], int]:
    """Matches of each generalized record, and the dead ends.

    Parameters
    ----------
    cost : callable
        Cost of the generalized record that covers some originals.
    order : sequence of int
        The originals as they choose.
    k : int
    """
    n = len(order)
    matches = [[j] for j in range(n)]
    dead = 0
    for _ in range(k - 1):
        before = [cost(frozenset(row)) for row in matches]
        chosen: dict[int, int] = {}
        for v, i in enumerate(order):
            candidates = _free(i, matches, chosen)
            if candidates:
                chosen[i] = _nearest(i, candidates, matches, before, cost)
                continue
            dead += 1
            for y in reversed(order[:v]):
                candidates = _free(y, matches, chosen)
                if i not in matches[chosen[y]] and candidates:
                    chosen[i], chosen[y] = chosen[y], _nearest(y, candidates, matches, before, cost)
                    break
            else:
                raise LookupError("no predecessor can hand its record over")
        for i, j in chosen.items():
            matches[j].append(i)
    return matches, dead


def _free(i: int, matches: list[list[int]], chosen: dict[int, int]) -> list[int]:
    taken = set(chosen.values())
    return [j for j in range(len(matches)) if j not in taken and i not in matches[j]]


def _nearest(
    i: int, candidates: list[int], matches: list[list[int]], before: list[Fraction], cost: Cost
) -> int:
    def key(j: int) -> tuple[Fraction, int]:
        return cost(frozenset([*matches[j], i])) - before[j], j

    return min(candidates, key=key)
