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
    def beats(interval: tuple[float, float], other: tuple[float, float]) -> bool:
        return interval[0] <= other[0] and interval[1] <= other[1] and interval != other

    valid = [at for at, point in enumerate(points) if not any(map(math.isnan, point))]
    expected = {at for at in valid if not any(beats(points[other], points[at]) for other in valid)}
    result = frontier([risk for risk, _ in points], [loss for _, loss in points]).tolist()
    assert set(result) == expected
    assert len(result) == len(expected)
    assert [points[at] for at in result] == sorted(points[at] for at in result)


def test_risks_and_losses_go_together() -> None:
    with pytest.raises(ParameterError, match="as many risks as losses"):
        frontier([0.1], [])
