"""One row per unit, and capped rows: every recipe by hand, and what is refused."""

from __future__ import annotations

import tracemalloc
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
import pytest

import anonflow as af
from anonflow import engine
from anonflow.errors import AnonflowError, DataError, FlowError, ParameterError
from anonflow.table.forms.text_columns import text_type
from anonflow.table.per_unit import RECIPES
from tests.cases.flow_files import write_flow
from tests.strategies import loop

FRAME = pd.DataFrame(
    {
        "who": ["b", "a", "b", "a", "b", "c"],
        "x": [3.0, 1.0, 5.0, 2.0, 4.0, np.nan],
        "t": ["u", "v", "w", "v", "u", None],
        "s": ["p", "q", "p", "q", "p", "r"],
    }
)


BY_RECIPE: list[tuple[str, str, list[Any]]] = [
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
]


@loop(("column", "recipe", "expected"), BY_RECIPE)
def test_a_recipe_gives_one_value_for_each_unit(column: str, recipe: str, expected: list[Any]) -> None:
    rows = af.one_row_per_unit(FRAME, "who", {column: recipe}, rows="rows")
    assert list(rows.columns) == ["who", column, "rows"]
    assert rows["who"].tolist() == ["b", "a", "c"]
    assert rows["rows"].tolist() == [3, 2, 1]
    assert [None if pd.isna(item) else item for item in rows[column]] == expected


@loop(
    ("cells", "recipe", "expected"),
    [
        (["9", "10", "1e1", "2", "007", None], "max", ["1e1", "10", None]),
        (["9", "10", "1e1", "2", "007", None], "min", ["007", "2", None]),
        (["9", "10", "11", "2", "7", "1"], "sum", [27, 12, 1]),
        (["9", "10", "11", "2", "7", "1.5"], "mean", [9, 6, 1.5]),
        (["9", "10", None, "2", "7", None], "median", [8, 6, None]),
        (["9", "10", "x", "2", "7", None], "max", ["x", "2", None]),  # not all are numbers: by text
        (["2020-01-09", "2021-01-10", "2020-01-10", None, None, None], "max", ["2020-01-10", "2021-01-10", None]),
    ],
)  # fmt: skip
def test_texts_that_are_numbers_are_compared_as_numbers(
    cells: list[Any], recipe: str, expected: list[Any]
) -> None:
    """A CSV file has texts only: 9 is no more than 10."""
    frame = FRAME.assign(v=pd.array(np.array(cells, object), dtype=text_type()))
    combined = af.one_row_per_unit(frame, "who", {"v": recipe})["v"]
    assert [None if pd.isna(cell) else cell for cell in combined] == expected


def by_hand(frame: pd.DataFrame, unit: str, name: str, recipe: str) -> list[Any]:
    """A recipe by its definition, a unit after the other."""
    combined: list[Any] = []
    for whose in dict.fromkeys(frame[unit].tolist()):
        cells = [cell for cell in frame[name][frame[unit] == whose].tolist() if not pd.isna(cell)]
        if recipe == "first":
            combined.append(cells[0] if cells else None)
        elif recipe == "last":
            combined.append(cells[-1] if cells else None)
        elif recipe == "common":
            combined.append(min(cells, key=lambda cell: (-cells.count(cell), str(cell)), default=None))
        elif recipe == "all":
            combined.append(" + ".join(sorted({str(cell) for cell in cells})) or None)
        elif recipe == "distinct":
            combined.append(len(set(cells)))
        elif recipe == "count":
            combined.append(len(cells))
    return combined


@loop("recipe", ["first", "last", "common", "all", "distinct", "count"])
@loop("kind", ["text", "float", "int", "nullable"])
def test_recipes_of_random_tables(recipe: str, kind: str) -> None:
    rng = np.random.default_rng(5)
    for n in (1, 2, 30):
        for _ in range(10):
            values = rng.integers(0, 12, n)
            missing = rng.random(n) < 0.3
            cells: Any = {
                "text": pd.array(
                    np.where(missing, None, values.astype(str).astype(object)), dtype=text_type()
                ),
                "float": np.where(missing, np.nan, values / 2),
                "int": values,
                "nullable": pd.arrays.IntegerArray(values, missing),
            }[kind]
            frame = pd.DataFrame({"who": rng.integers(0, max(1, n // 3), n), "v": cells})
            combined = af.one_row_per_unit(frame, "who", {"v": recipe})["v"]
            assert [None if pd.isna(cell) else cell for cell in combined] == by_hand(
                frame, "who", "v", recipe
            )


def test_every_recipe_is_tried() -> None:
    assert {recipe for _, recipe, _ in BY_RECIPE} == set(RECIPES)


@loop(
    ("unit", "recipes", "rows", "problem"),
    [
        ("whom", {}, None, "did you mean 'who'"),
        ("who", {"y": "max"}, None, "has a recipe, and is not in the table"),
        ("who", {"x": "maximum"}, None, "unknown recipe 'maximum'"),
        ("who", {"t": "mean"}, None, "needs numbers"),
        ("who", {"t": "same"}, None, "1 unit has several values"),
        ("t", {"x": "max"}, None, "1 row has no unit"),
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
    rows = af.capped_rows(frame, "who", 4, seed=1)
    assert rows["who"].value_counts().sort_index().tolist() == [min(4, m) for m in range(1, 31)]
    assert rows["x"].is_monotonic_increasing
    assert rows.equals(af.capped_rows(frame, "who", 4, seed=1))
    assert not rows.equals(af.capped_rows(frame, "who", 4, seed=2))
    # every row of a unit is kept equally often
    times = np.zeros(6)
    for seed in range(600):
        own = af.capped_rows(frame.iloc[15:21], "who", 2, seed=seed)["x"] - 15
        times[own] += 1
    assert np.abs(times - 200).max() < 60


@loop("most", [0, -1, True, 1.5])
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
        report = engine.run(
            with_units(tmp_path, "{unit: who, cap: 2}", COLUMNS + unit), seed=2**100, again=True
        )
        assert report.ok
        sizes.append((tmp_path / "out" / "release.csv").read_bytes())
        assert report.results[0].records == 60
    assert sizes[0] == sizes[1]
    assert [finding.criterion for finding in report.results[0].findings].count("units") == 1


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


@loop("recipe", ["same", "common", "all", "distinct"])
def test_one_long_text_does_not_make_all_of_them_long(recipe: str) -> None:
    """1,000 short notes beside one of 20,000 letters: as many letters for each would be 80 MB."""
    texts = ["z" * 20_000, *(f"note {i}" for i in range(1_000))]
    frame = pd.DataFrame({"who": [f"u{i}" for i in range(1_001)], "note": pd.Series(texts, dtype=object)})
    af.one_row_per_unit(frame[:5], "who", {"note": recipe})  # imports
    tracemalloc.start()
    try:
        combined = af.one_row_per_unit(frame, "who", {"note": recipe})
        peak = tracemalloc.get_traced_memory()[1]
    finally:
        tracemalloc.stop()
    assert combined["note"].tolist() == ([1] * 1_001 if recipe == "distinct" else texts)
    assert peak < 10_000_000
