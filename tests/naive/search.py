"""Which trial of a search is picked, and when the next candidate beats what there is: by the definitions, trial by trial."""

from __future__ import annotations

from collections.abc import Sequence

__all__ = ["frontier", "pick"]

Point = tuple[float, float, bool | None, float | None]
"""Loss, risk, whether regressions keep their signs, and disclosure (None: not looked at)."""


def shortfall(
    point: Point, loss: float | None, risk: float | None, signs: bool, disclosure: float | None
) -> float:
    """How far a point is from the target."""
    total = 0.0
    if loss is not None and point[0] > loss:
        total += point[0] / loss - 1
    if risk is not None and point[1] > risk:
        total += point[1] / risk - 1
    if disclosure is not None and point[3] is not None and point[3] > disclosure:
        total += point[3] / disclosure - 1
    if signs and point[2] is False:
        total += 1
    return total


def pick(
    points: Sequence[Point], loss: float | None, risk: float | None, signs: bool, disclosure: float | None
) -> int:
    """The point that no other is preferred to."""
    for at, point in enumerate(points):
        if all(
            at == other or _preferred(point, at, points[other], other, loss, risk, signs, disclosure)
            for other in range(len(points))
        ):
            return at
    raise AssertionError("the order is total")


def _preferred(
    a: Point,
    at: int,
    b: Point,
    other: int,
    loss: float | None,
    risk: float | None,
    signs: bool,
    disclosure: float | None,
) -> bool:
    far, beyond = (shortfall(point, loss, risk, signs, disclosure) for point in (a, b))
    if far != beyond:
        return far < beyond
    first, second = (0, 1) if risk is not None or disclosure is not None else (1, 0)
    if a[first] != b[first]:
        return a[first] < b[first]
    if a[second] != b[second]:
        return a[second] < b[second]
    return at < other


def frontier(points: Sequence[Point]) -> set[int]:
    """The points that no other point beats: with at most their loss and risk, and less of one of the two."""
    return {
        at
        for at, (loss, risk, *_) in enumerate(points)
        if not any(l <= loss and r <= risk and (l < loss or r < risk) for l, r, *_ in points)
    }
