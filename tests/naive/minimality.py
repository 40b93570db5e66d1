"""What the reason for a change gives away, by trying every permutation of people's values."""

from __future__ import annotations

from collections.abc import Callable, Hashable, Sequence
from fractions import Fraction
from itertools import permutations


def excess(
    values: Sequence[int], publish: Callable[[tuple[int, ...]], tuple[Hashable, Sequence[Sequence[int]]]]
) -> Fraction:
    """Largest P(value | file, method) less the value's share on the rows that list the person."""
    file, listed = publish(tuple(values))
    same = [dealt for dealt in permutations(values) if publish(dealt)[0] == file]
    results = []
    for i, people in enumerate(listed):
        for value in set(values):
            known = Fraction(sum(dealt[i] == value for dealt in same), len(same))
            shown = Fraction(sum(values[other] == value for other in people), len(people))
            results.append(known - shown)
    return max(results)


def deals(values: Sequence[str]) -> list[tuple[str, ...]]:
    """Each way to give these values to people once."""
    return sorted(set(permutations(values)))
