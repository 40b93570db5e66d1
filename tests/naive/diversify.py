"""Diversity by widening and by uniting, from the definitions: all perfect matchings, every cost computed anew."""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Iterable
from fractions import Fraction
from itertools import permutations

Cost = Callable[[frozenset[int]], Fraction]
Covers = Callable[[frozenset[int], int], bool]


def matches(n: int, boxes: list[frozenset[int]], covers: Covers) -> list[set[int]]:
    """For each original the rows on a perfect matching with it, by trying all permutations. n <= 7."""
    result: list[set[int]] = [set() for _ in range(n)]
    edge = [[covers(boxes[j], i) for j in range(n)] for i in range(n)]
    for order in permutations(range(n)):
        if all(edge[i][j] for i, j in enumerate(order)):
            for i, j in enumerate(order):
                result[i].add(j)
    return result


def lacks(criterion: str, value: float, values: Iterable[str]) -> Fraction:
    """How much diversity some values lack: p less distinct values, or l less size / most frequent, in doubles."""
    counts = Counter(values)
    own = len(counts) if criterion == "p" else counts.total() / max(counts.values())
    return Fraction(max(value - own, 0.0))


def algorithm_7(
    n: int,
    boxes: list[frozenset[int]],
    values: list[str],
    order: list[int],
    first: list[int],
    cost: Cost,
    covers: Covers,
    criterion: str,
    value: float,
) -> list[frozenset[int]]:
    """Boxes (as the originals that each was widened by) after passes over `order` until none fails.

    Parameters
    ----------
    order : list of int
        Originals to visit, one of each kind of equal ones.
    first : list of int
        For each original the first one that is equal to it.
    """
    boxes = list(boxes)
    while True:
        changed = False
        for i in order:
            while True:
                rows = matches(n, boxes, covers)[i]
                shown = [values[j] for j in rows]
                if not lacks(criterion, value, shown):
                    break
                counts = Counter(shown)
                top = max(counts.values())
                wanted = [
                    j
                    for j in range(n)
                    if j not in rows
                    and (values[j] not in counts if criterion == "p" else counts[values[j]] < top)
                ]

                def increase(j: int, i: int = i) -> Fraction:
                    there = cost(boxes[j] | {i}) - cost(boxes[j])
                    return there + cost(boxes[i] | {first[j]}) - cost(boxes[i])

                j = min(wanted, key=lambda j: (increase(j), j))
                boxes[j] |= {i}
                boxes[i] |= {first[j]}
                changed = True
        if not changed:
            return boxes


def algorithm_8(
    clusters: list[list[int]], values: list[str], cost: Cost, criterion: str, value: float, w: Fraction
) -> list[list[int]]:
    """United clusters, each at the place of the lowest of its parts."""
    there: dict[int, list[int]] = dict(enumerate(clusters))
    n = sum(map(len, clusters))

    def loss(cluster: list[int]) -> Fraction:
        return len(cluster) * cost(frozenset(cluster))

    def lack(cluster: list[int]) -> Fraction:
        return lacks(criterion, value, (values[i] for i in cluster))

    while True:
        m = max(there, key=lambda c: (lack(there[c]), -c))
        if not lack(there[m]):
            return [sorted(there[c]) for c in sorted(there)]

        def price(c: int, m: int = m) -> Fraction:
            both = there[c] + there[m]
            return w * (loss(both) - loss(there[c]) - loss(there[m])) / n + (1 - w) * lack(both)

        best = min((c for c in there if c != m), key=lambda c: (price(c), c))
        low, high = min(m, best), max(m, best)
        there[low] = there[low] + there.pop(high)


def exchanged(labels: list[int], values: list[str], cost: Cost, criterion: str, value: float) -> list[int]:
    """Labels after exchanges and unions, each the cheapest for what it lowers, until no class lacks diversity.

    Ties: an exchange before a union, the lowest record of the failing class, then the lowest of the other; of unions
    the lowest class. Labels are then numbered anew in their order.
    """
    label = list(labels)
    many = max(label) + 1

    def members(c: int) -> list[int]:
        return [i for i, own in enumerate(label) if own == c]

    def loss(rows: list[int]) -> Fraction:
        return len(rows) * cost(frozenset(rows)) if rows else Fraction(0)

    def lack(rows: list[int]) -> float:
        gap = lacks(criterion, value, (values[i] for i in rows)) if rows else Fraction(0)
        return float(gap)

    def price(rise: Fraction, lower: float) -> float:
        # rounded once: what is lacking is rounded, so that prices may be equal as doubles and differ as fractions
        return float(rise) / lower if rise > 0 else float(rise) * lower

    while True:
        gaps = [lack(members(c)) for c in range(many)]
        m = max(range(many), key=lambda c: (gaps[c], -c))
        if gaps[m] <= 0:
            names = sorted(set(label))
            return [names.index(own) for own in label]
        mine = members(m)
        exchanges, unions, fallback = [], [], []
        for a in mine:
            for x in range(len(label)):
                c = label[x]
                theirs = members(c)
                if c == m or len(theirs) < 2:
                    continue
                ours = [x if i == a else i for i in mine]
                others = [a if i == x else i for i in theirs]
                lacking_here, taken = lack(ours), lack(others)
                if lacking_here >= gaps[m] or taken > gaps[c]:
                    continue
                rise = loss(ours) - loss(mine) + loss(others) - loss(theirs)
                exchanges.append((price(rise, gaps[m] - lacking_here + gaps[c] - taken), a, x))
        for c in range(many):
            theirs = members(c)
            if c == m or not theirs:
                continue
            rise = loss(mine + theirs) - loss(mine) - loss(theirs)
            lower = gaps[c] + gaps[m] - lack(mine + theirs)
            fallback.append((rise, c))
            if lower > 0:
                unions.append((price(rise, lower), c))
        exchange = min(exchanges, default=None)
        union = min(unions, default=None)
        if exchange is not None and (union is None or exchange[0] <= union[0]):
            _, a, x = exchange
            label[a], label[x] = label[x], label[a]
        else:
            other = (union or min(fallback))[1]
            label = [m if own == other else own for own in label]
