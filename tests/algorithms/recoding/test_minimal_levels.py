"""All minimal full-domain generalizations: against a loop over all combinations of levels, counted with pandas."""

from __future__ import annotations

import itertools
from typing import Any

import numpy as np
import pandas as pd
import pytest

import anonflow as af
from anonflow.algorithms import minimal_levels
from anonflow.errors import InfeasibleError, ParameterError
from tests.strategies import loop

CITIES = {"Lyon": "France", "Paris": "France", "Bonn": "Germany", "Kiel": "Germany", "Rome": "Rome"}
TREE = {"*": {"France": ["Lyon", "Paris"], "Germany": ["Bonn", "Kiel"], "Rome": None}}
QI = {"role": "quasi-identifier"}
SCHEMA: dict[str, Any] = {
    "age": QI | {"kind": "numeric"},
    "city": QI | {"kind": "hierarchy", "hierarchy": {"nested": TREE}},
    "sex": QI | {"kind": "suppression"},
}
LEVELS: dict[str, dict[str, Any]] = {
    "age": {"values": lambda age: age, "width 10": lambda age: age // 10, "width 20": lambda age: age // 20, "*": lambda age: 0},
    "city": {"values": lambda city: city, "level 1": CITIES.get, "*": lambda city: 0},
    "sex": {"values": lambda sex: sex, "*": lambda sex: 0},
}  # fmt: skip


def people(seed: int, n: int) -> pd.DataFrame:
    rng = np.random.default_rng(seed)
    return pd.DataFrame(
        {"age": rng.integers(0, 60, n), "city": rng.choice(list(CITIES), n), "sex": rng.choice(list("mf"), n)}
    )


def hidden(frame: pd.DataFrame, labels: tuple[str, ...], k: int) -> int:
    """How many records are in classes of fewer than k."""
    cells = [frame[column].map(LEVELS[column][label]) for column, label in zip(LEVELS, labels)]
    sizes = pd.concat(cells, axis=1).groupby(list(LEVELS))["age"].transform("size")
    return int((sizes < k).sum())


@loop("seed", range(12))
def test_they_are_those_of_a_loop_over_all_combinations(seed: int) -> None:
    frame = people(seed, 40)
    k, limit = 2 + seed % 3, (0.0, 0.1, 0.3)[seed % 3]
    steps = [list(LEVELS[column]) for column in LEVELS]
    suppressed = {labels: hidden(frame, labels, k) for labels in itertools.product(*steps)}
    good = {labels for labels, many in suppressed.items() if many <= limit * 40}

    def is_below(lower: tuple[str, ...], upper: tuple[str, ...]) -> bool:
        return lower != upper and all(
            all_of.index(a) <= all_of.index(b) for all_of, a, b in zip(steps, lower, upper)
        )

    minimal = {labels for labels in good if not any(is_below(other, labels) for other in good)}
    result = minimal_levels(af.Table(frame, SCHEMA), k, limit=limit, widths={"age": [10, 20]})
    assert list(result.columns) == ["age", "city", "sex", "suppressed", "loss"]
    rows = [tuple(row) for row in result.iloc[:, :3].to_numpy().tolist()]
    assert len(rows) == len(minimal)
    assert set(rows) == minimal
    assert result["suppressed"].tolist() == [suppressed[row] for row in rows]
    assert result["loss"].is_monotonic_increasing
    for row, loss in zip(rows, result["loss"]):
        anon = af.anonymize(
            af.Table(frame, SCHEMA), "full-domain", k, limit=limit, levels=dict(zip(LEVELS, row)), widths={"age": [10, 20]}
        )  # fmt: skip
        assert anon.loss() <= loss + 1e-9  # beside suppressed records the ends of intervals are narrowed
        assert anon.suppressed.any() or anon.loss() == pytest.approx(loss)
    if limit == 0:  # then losses never fall on the way up: the optimum is minimal
        best = af.anonymize(af.Table(frame, SCHEMA), "full-domain", k, limit=0.0, widths={"age": [10, 20]})
        assert best.loss() == pytest.approx(result["loss"][0])


def test_what_cannot_be_is_refused() -> None:
    frame = people(1, 20)
    with pytest.raises(InfeasibleError, match="cannot hide among k = 21"):
        minimal_levels(af.Table(frame, SCHEMA), 21)
    with pytest.raises(ParameterError, match="limit must be"):
        minimal_levels(af.Table(frame, SCHEMA), 2, limit=1.5)
    bounds = SCHEMA | {"age": SCHEMA["age"] | {"boundary": {"width": 5}}}
    with pytest.raises(ParameterError, match="minimal_levels: a table with boundaries"):
        minimal_levels(af.Table(frame, bounds), 2)
    people_of = frame.assign(person=range(20))
    with pytest.raises(ParameterError, match="units"):
        minimal_levels(af.Table(people_of, SCHEMA | {"person": {"role": "unit"}}), 2)
