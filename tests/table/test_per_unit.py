"""One row per unit, and capped rows: every recipe by hand, and what is refused."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
import pytest

import anonflow as af
from anonflow import engine
from anonflow.errors import AnonflowError, DataError, FlowError, ParameterError
from anonflow.table.per_unit import RECIPES
from tests.cases.flow_files import write_flow

FRAME = pd.DataFrame(
    {
        "who": ["b", "a", "b", "a", "b", "c"],
        "x": [3.0, 1.0, 5.0, 2.0, 4.0, np.nan],
        "t": ["u", "v", "w", "v", "u", None],
        "s": ["p", "q", "p", "q", "p", "r"],
    }
)


@pytest.mark.parametrize(
    ("column", "recipe", "expected"),
    [
        ("x", "first", [3, 1, None]),
        ("x", "last", [4, 2, None]),
        ("x", "min", [3, 1, None]),
        ("x", "max", [5, 2, None]),
        ("x", "mean", [4, 1.5, None]),
        ("x", "median", [4, 1.5, None]),
        ("x", "sum", [12, 3, 0]),
        ("x", "count", [3, 2, 0]),
        ("t", "distinct", [2, 1, 0]),
        ("t", "common", ["u", "v", None]),
        ("t", "all", ["u + w", "v", None]),
        ("s", "same", ["p", "q", "r"]),
        ("t", "max", ["w", "v", None]),
    ],
)
def test_recipes(column: str, recipe: str, expected: list[Any]) -> None:
    found = af.one_row_per_unit(FRAME, "who", {column: recipe}, rows="rows")
    assert list(found.columns) == ["who", column, "rows"]
    assert found["who"].tolist() == ["b", "a", "c"]
    assert found["rows"].tolist() == [3, 2, 1]
    assert [None if pd.isna(one) else one for one in found[column]] == expected


def test_every_recipe_is_tried() -> None:
    marks = test_recipes.pytestmark[0].args[1]  # type: ignore[attr-defined]
    assert {recipe for _, recipe, _ in marks} == set(RECIPES)


@pytest.mark.parametrize(
    ("unit", "recipes", "rows", "problem"),
    [
        ("whom", {}, None, "did you mean 'who'"),
        ("who", {"y": "max"}, None, "has a recipe, and is not in the table"),
        ("who", {"x": "maximum"}, None, "unknown recipe 'maximum'"),
        ("who", {"t": "mean"}, None, "needs numbers"),
        ("who", {"t": "same"}, None, "1 units have several values"),
        ("t", {"x": "max"}, None, "1 rows have no unit"),
        ("who", {"x": "max"}, "x", "is in the result already"),
    ],
)
def test_recipes_that_cannot_be_followed(
    unit: str, recipes: dict[str, str], rows: str | None, problem: str
) -> None:
    with pytest.raises(AnonflowError, match=problem) as caught:
        af.one_row_per_unit(FRAME, unit, recipes, rows=rows)
    assert isinstance(caught.value, DataError | ParameterError)


def test_a_cap_keeps_as_many_rows_as_it_says() -> None:
    frame = pd.DataFrame({"who": np.repeat(np.arange(30), np.arange(1, 31)), "x": np.arange(465)})
    found = af.capped_rows(frame, "who", 4, seed=1)
    assert found["who"].value_counts().sort_index().tolist() == [min(4, m) for m in range(1, 31)]
    assert found["x"].is_monotonic_increasing
    assert found.equals(af.capped_rows(frame, "who", 4, seed=1))
    assert not found.equals(af.capped_rows(frame, "who", 4, seed=2))
    # every row of a unit is kept equally often
    times = np.zeros(6)
    for seed in range(600):
        own = af.capped_rows(frame.iloc[15:21], "who", 2, seed=seed)["x"] - 15
        times[own] += 1
    assert np.abs(times - 200).max() < 60


@pytest.mark.parametrize("most", [0, -1, True, 1.5])
def test_caps_that_are_none(most: Any) -> None:
    with pytest.raises(ParameterError, match="at least 1"):
        af.capped_rows(FRAME, "who", most)


COLUMNS = "    age: {role: quasi-identifier, kind: numeric}\n    city: {role: quasi-identifier, kind: categorical}\n"


def with_units(folder: Path, units: str, columns: str = COLUMNS, source: str = "{csv: people.csv}") -> Path:
    rows = [f"w{i % 30},{20 + i % 40},{'AB'[i % 2]}" for i in range(90)]
    data = "\n".join(["who,age,city", *rows]).encode() + b"\n"
    return write_flow(
        folder, source=f"{source}\n  units: {units}", columns=columns, partition="{}", data=data,
        publish="{table: out/release.csv}",
    )  # fmt: skip


def test_flows_take_one_row_per_unit_or_a_cap(tmp_path: Path) -> None:
    report = engine.run(
        with_units(tmp_path, "{unit: who, recipes: {age: max, city: common}, rows: visits}",
                   COLUMNS + "    visits: {role: quasi-identifier, kind: numeric}\n"),
        seed=2**100,
    )  # fmt: skip
    assert report.ok
    assert report.results[0].records == 30
    unit = "    who: {role: unit}\n"
    sizes = []
    for _ in range(2):
        report = engine.run(with_units(tmp_path, "{unit: who, cap: 2}", COLUMNS + unit), seed=2**100)
        assert report.ok
        sizes.append((tmp_path / "out" / "release.csv").read_bytes())
        assert report.results[0].records == 60
    assert sizes[0] == sizes[1]
    assert [one.criterion for one in report.results[0].findings].count("units") == 1


@pytest.mark.parametrize(
    ("units", "problem"),
    [
        ("{unit: who}", "'units' needs a cap of rows, or recipes"),
        ("{unit: who, cap: 0}", "'cap' must be a number of at least 1"),
        ("{unit: who, cap: 2, rows: n}", "'rows' goes with recipes"),
        ("{unit: who, recipes: {age: most}}", "'age' must be one of first, last"),
        ("{cap: 2}", "'unit' is missing"),
        ("{unit: who, cap: 2, recipe: {}}", "did you mean 'recipes'"),
    ],
)
def test_flows_that_say_it_wrongly(tmp_path: Path, units: str, problem: str) -> None:
    with pytest.raises(FlowError, match=problem):
        engine.load_flow(with_units(tmp_path, units))


@pytest.mark.parametrize("in_schema", [True, False])
def test_in_pieces_rows_per_unit_are_refused(tmp_path: Path, in_schema: bool) -> None:
    """The role unit is taken in pieces; making one row of each unit, or a cap, is not."""
    path = with_units(
        tmp_path, "{unit: who, cap: 2}", COLUMNS + ("    who: {role: unit}\n" if in_schema else ""),
        "{csv: people.csv, pieces: 40}",
    )  # fmt: skip
    with pytest.raises(FlowError, match="leave pieces out") as caught:
        engine.run(path)
    assert len(caught.value.problems) == 1
