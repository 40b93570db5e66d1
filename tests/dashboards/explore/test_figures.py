"""Axes and lines of the figures: labels never overlap, and a line joins only what stands in an order."""

from __future__ import annotations

import math

import numpy as np
import pytest

pytest.importorskip("panel", reason="the dashboards are an extra")
import itertools
import re

from anonflow.algorithms.registry import look_of
from anonflow.drawing.comparisons import heat, intervals, pairs
from anonflow.drawing.figures import Point, against_k, k_axis, overlay
from anonflow.drawing.plots import Axis, columns, framed
from anonflow.utility.distributions import MISSING, Distribution

KS = [2, 3, 4, 5, 6, 8, 10, 15, 20, 25, 30, 40, 50, 75, 100]


def drawn_lines(figure: str) -> list[int]:
    """How many points each line of a figure joins."""
    return [line.count("L") + 1 for line in re.findall(r'class="line" d="M([^"]*)"', figure)]


def texts_below(figure: list[str]) -> list[tuple[float, str, bool]]:
    """Place, text and whether it is slanted, of what stands below the axis across."""
    parts = re.findall(
        r'<text x="([\d.]+)"[^>]*text-anchor="(?:middle|end)" fill-opacity=".7"( transform="rotate[^"]*")?>([^<]*)</text>',
        "".join(figure[3:]),
    )
    return [(float(x), text, bool(turn)) for x, turn, text in parts]


def test_a_line_never_joins_unordered_categories() -> None:
    share = np.array([0.5, 0.3, 0.2])
    categories = Distribution("town", ("a", "b", "c"), share, share)
    assert drawn_lines(overlay(categories)) == []
    numbers = Distribution("age", ("30", "40", MISSING), share, share, ordered=True)
    assert drawn_lines(overlay(numbers)) == [2], "nor what is missing"
    bins = Distribution("age", ("", ""), share[:2], share[:2], edges=np.array([0.0, 1.0, 2.0]))
    assert drawn_lines(overlay(bins)) == [2]


def test_labels_of_k_never_touch() -> None:
    axis = k_axis([float(k) for k in KS])
    ticks = [k for k, _ in axis.ticks]
    assert ticks[0] == 2
    assert ticks[-1] == 100
    assert axis.low < 2
    assert axis.high > 100
    places = np.log(ticks)
    assert len(ticks) > 5
    assert (np.diff(places) >= 0.09 * (places[-1] - places[0]) - 1e-9).all()
    assert [k for k, _ in k_axis([5.0, 10.0, 25.0]).ticks] == [5, 10, 25]


@pytest.mark.parametrize("number", [2, 9, 18])
def test_methods_side_by_side_never_touch(number: int) -> None:
    names = [f"pattern-guided-{i}" for i in range(number)]
    axis = Axis("method", 0.0, float(number), [(at + 0.5, name) for at, name in enumerate(names)])
    _, pieces = framed(axis, Axis.over("GCP", [0.0, 1.0]), 290, 20, 420)
    below = [text for text in texts_below(pieces) if text[1] in names]
    assert [name for _, name, _ in below] == names
    each = below[1][0] - below[0][0]
    if below[0][2]:
        assert each * math.sin(math.radians(40)) >= 11, "a line of text is as high"
        assert all(x - 7 * math.cos(math.radians(40)) * len(name) >= 0 for x, name, _ in below), (
            "nothing is cut off"
        )
    else:
        assert max(map(len, names)) * 7 < each


def test_labels_of_a_histogram_never_touch() -> None:
    counts = [(value, 5) for value in range(100, 1400, 7)]
    text = str(columns(counts, "sizes", "rows"))
    words = [piece.split('x="')[1].split('"')[0] for piece in text.split("<text")[4:] if "middle" in piece]
    labels = [piece.split(">")[1].split("<")[0] for piece in text.split("<text")[4:] if "middle" in piece]
    assert len(labels) > 3
    places = [(float(x), len(label) * 7) for x, label in zip(words, labels, strict=True) if "–" in label]
    places.sort()
    for (x, wide), (y, other) in itertools.pairwise(places):
        assert y - x >= (wide + other) / 2


def test_what_goes_on_beyond_the_page_says_so() -> None:
    text = str(heat(["a"], ["run"], [[0.5]]))
    assert 'class="scroll goes-on"' in text
    assert 'tabindex="0"' in text


def test_names_and_numbers_of_charts_side_by_side_are_read() -> None:
    text = str(pairs(["age"], [0.2], [0.3], ("a long name of a run k=10 (#1)", "other"), "losses"))
    assert 'width="520"' in text, "half a page wide: what is scaled down is not read"
    assert "a long name of a run k=10 (#1)" in text
    text = str(intervals([("guesses the value: salary-class", 0.1, 0.05, 0.163, 0.1)], "rates"))
    assert "guesses the value: salary-class" in text
    assert re.findall(r'y="14".*?>(.*?)</text>', text) == ["0%", "5%", "10%", "15%"], "round numbers"


def test_a_line_never_joins_runs_over_other_columns() -> None:
    points = [
        Point(i, "run", "greedy", k, 0.1, columns)
        for i, (k, columns) in enumerate(
            [(5.0, "age"), (10.0, "age"), (5.0, "age, town"), (10.0, "age, town")]
        )
    ]
    assert drawn_lines(against_k(points, "GCP", look_of)) == [2, 2]
