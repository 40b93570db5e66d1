"""The risk-utility frontier against its definition."""

from __future__ import annotations

import math

import pytest
from hypothesis import given
from hypothesis import strategies as st

from anonflow.errors import ParameterError
from anonflow.utility.frontier import frontier

numbers = st.one_of(st.sampled_from([0.0, 0.1, 0.2, 0.5, math.nan]), st.floats(0, 1))


@given(st.lists(st.tuples(numbers, numbers), max_size=12))
def test_the_frontier_is_what_no_point_beats(points: list[tuple[float, float]]) -> None:
    def beats(one: tuple[float, float], other: tuple[float, float]) -> bool:
        return one[0] <= other[0] and one[1] <= other[1] and one != other

    valid = [at for at, point in enumerate(points) if not any(map(math.isnan, point))]
    expected = {at for at in valid if not any(beats(points[other], points[at]) for other in valid)}
    found = frontier([risk for risk, _ in points], [loss for _, loss in points]).tolist()
    assert set(found) == expected
    assert len(found) == len(expected)
    assert [points[at] for at in found] == sorted(points[at] for at in found)


def test_risks_and_losses_go_together() -> None:
    with pytest.raises(ParameterError, match="as many risks as losses"):
        frontier([0.1], [])
