"""A slow reference for ejection chains: one chain, every cost computed anew."""

from __future__ import annotations

from collections.abc import Callable, Sequence

Cost = Callable[[Sequence[int]], float]
Link = tuple[int, int, int]  # a record, the slot that changes, the original it takes


def chain(
    matches: list[list[int]],
    near: list[list[int]],
    holders: list[list[tuple[int, int]]],
    block: list[int],
    cost: Cost,
    record: int,
    slot: int,
    depth: int,
    tests: int,
) -> list[Link]:
    """The chain that begins with a record's slot and lowers the loss; empty if none is found.

    Parameters
    ----------
    near : list of list of int
        Candidates of each record.
    holders : list of list of (int, int)
        Records that hold each original and the slots, slot 0 left out, in the order in which they are tried.
    cost : callable
        Of a generalized record that covers some originals; exact.
    depth, tests : int
        Records at most, and steps from each of them whose closing is tested.
    """

    def without(j: int, s: int) -> list[int]:
        return [a for d, a in enumerate(matches[j]) if d != s]

    first = matches[record][slot]
    path = [(record, slot)]
    taken: list[int] = []
    gain = cost(matches[record]) - cost(without(record, slot))
    while len(path) < depth and gain > 0:
        j, s = path[-1]
        rest = without(j, s)
        steps = []
        for b in near[j]:
            left = gain - (cost([*rest, b]) - cost(rest))
            if left <= 0 or b in matches[j]:
                continue
            for other, place in holders[b]:
                after = left + cost(matches[other]) - cost(without(other, place))
                fits = block[other] == block[record] and first not in matches[other]
                if after > 0 and fits and other not in [who for who, _ in path]:
                    steps.append((after, b, other, place))
        steps = sorted(steps, key=lambda step: -step[0])[:tests]
        if not steps:
            return []
        closings = [
            after - (cost([*without(other, place), first]) - cost(without(other, place)))
            for after, _, other, place in steps
        ]
        best = closings.index(max(closings)) if max(closings) > 0 else 0
        _, b, other, place = steps[best]
        taken.append(b)
        path.append((other, place))
        if closings[best] > 0:
            return [(j, s, b) for (j, s), b in zip(path, [*taken, first], strict=True)]
        gain = steps[0][0]
    return []
