"""Tables in pieces: the same bits as in memory, whatever the pieces, batches and buckets."""

from __future__ import annotations

import errno
import functools
import json
import os
import pickle
import random
import re
import shutil
import stat
import tempfile
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from hypothesis import given
from hypothesis import strategies as st

from anonflow import candidate_lists, engine, utility
from anonflow.engine import partitions, publish
from anonflow.engine.execution import batches, tasks
from anonflow.engine.execution.events import Cancelled, Event, EventStream, Log, PartitionDone
from anonflow.engine.execution.schedulers import Call, _Group
from anonflow.engine.flows.flow import Flow
from anonflow.engine.owner import checkpoints
from anonflow.engine.report import report as report_module
from anonflow.engine.storage import arrays, load, storage
from anonflow.engine.storage import spill as spill_module
from anonflow.engine.storage.mapped_columns import written_columns
from anonflow.engine.storage.spill import Spill
from anonflow.engine.storage.storage import Storage, pieces_of
from anonflow.errors import (
    AnonflowError,
    DataError,
    InfeasibleError,
    ParameterError,
)
from anonflow.release import Certificate, draw, read_release
from anonflow.table import Table
from anonflow.table import records as table_records
from anonflow.table.arrow import exact_frame
from anonflow.table.files.metadata_file import metadata_path
from anonflow.table.forms.text_columns import categories_at
from tests.cases.flow_files import write_flow

SLOW = pytest.mark.slow
"""Of the further values of a test, of which the quick ones show the same of others."""

SEED = 0x1234567890ABCDEF1234567890ABCDEF


def test_a_task_does_not_say_its_seed() -> None:
    """Schedulers show and log what a task is."""
    task = Call(arrays.create_array, ("file", SEED), key=SEED)
    assert "create_array" in repr(task)
    assert str(SEED) not in repr(_Group((task,)))


COLUMNS = """\
    age: {role: quasi-identifier, kind: numeric, missing: suppress}
    city: {role: quasi-identifier, kind: categorical}
    zip: {role: quasi-identifier, kind: positions}
    job: {role: quasi-identifier, kind: hierarchy, hierarchy: {nested: {"*": {office: [clerk, boss], field: [farmer, hunter]}}}}
    name: {role: identifier}
    income: {role: sensitive}
    visits: {role: insensitive}
    score: {role: insensitive}
"""


def people(n: int, seed: int = 11) -> pd.DataFrame:
    rng = random.Random(seed)
    return pd.DataFrame(
        {
            "income": [rng.choice(["poor", "modest", None, "rich, \"very\"\nrich"]) for _ in range(n)],
            "age": [rng.choice([None, *range(20, 40)]) for _ in range(n)],
            "name": [f"n{i}" for i in range(n)],
            "zip": [f"{rng.randint(10, 13)}" for _ in range(n)],
            "city": [rng.choice(["Athens", "Volos", "{x|y}"]) for _ in range(n)],
            "job": [rng.choice(["clerk", "boss", "farmer", "hunter"]) for _ in range(n)],
            "visits": [rng.randint(0, 5) for _ in range(n)],
            "score": [rng.choice([None, 0.5, 2.0]) for _ in range(n)],
        }
    )  # fmt: skip


def written(
    folder: Path, n: int = 180, form: str = "parquet", frame: pd.DataFrame | None = None, **settings: Any
) -> tuple[Path, Path]:
    """Two flows over the same table: one in memory, one in pieces."""
    frame = people(n) if frame is None else frame
    if form == "csv":
        frame.to_csv(folder / "t.csv", index=False)
    elif form == "parquet":
        frame.to_parquet(folder / "t.parquet", index=False, row_group_size=37)
    else:
        (folder / "t.folder").mkdir()
        for part, start in enumerate(range(0, len(frame), 61)):
            frame[start : start + 61].to_parquet(
                folder / "t.folder" / f"{part:03}.parquet", index=False, row_group_size=200
            )
        form = "parquet"
    (path,) = folder.glob("t.*")
    flows = []
    for name, pieces in (("memory", "false"), ("pieces", "60")):
        (folder / name).mkdir()
        settings.setdefault("columns", COLUMNS)
        flow = write_flow(folder / name, source=f"{{{form}: ../{path.name}, pieces: {pieces}}}", **settings)
        flows.append(flow)
    return flows[0], flows[1]


@pytest.fixture(autouse=True)
def small(monkeypatch: pytest.MonkeyPatch) -> None:
    """Batches of a few partitions, several buckets, and a release of several blocks."""
    monkeypatch.setattr(batches, "ROWS", 90)
    monkeypatch.setattr(batches, "SHARE", 1.0)
    monkeypatch.setattr(draw, "BUCKET", 100)
    monkeypatch.setattr(storage, "CLASSES", 100)
    monkeypatch.setattr(table_records, "TAKEN", 40)
    monkeypatch.setattr(Spill, "rows", 70)
    monkeypatch.setattr(candidate_lists, "_ROWS", 50)


def compared(
    memory: Path, pieces: Path, table: str = "release.parquet", exact: bool = True, **settings: Any
) -> Any:
    """Run both; the releases, certificates and numbers must be the same (sums of floats, if `exact`, to the bit)."""
    report = engine.run(memory, seed=SEED)
    two = engine.run(pieces, seed=SEED, **settings)
    assert report.ok
    assert two.ok
    frames = [read_release(path.parent / "out" / table, report.results[0].anonymization.table.schema).frame
              for path in (memory, pieces)]  # fmt: skip
    pd.testing.assert_frame_equal(*frames)
    descriptions = [metadata_path(path.parent / "out" / table) for path in (memory, pieces)]
    first, second = (place.read_bytes() for place in descriptions if place is not None)
    assert first == second
    assert read_release(pieces.parent / "out" / table).about == report.release.about
    owners = [path.parent / "owner" / "test" for path in (memory, pieces)]
    proofs = [Certificate.load(owner / "certificate.npz") for owner in owners]
    for name in ("row_list", "list_offsets", "list_originals", "row_marks"):
        np.testing.assert_array_equal(getattr(proofs[0], name), getattr(proofs[1], name), name)
    assert (proofs[0].k, proofs[0].criterion, proofs[0].key) == (
        proofs[1].k,
        proofs[1].criterion,
        proofs[1].key,
    )
    a, b = report.results[0], two.results[0]
    assert a.measures.keys() == b.measures.keys()
    for name, value in b.measures.items():
        assert a.measures[name] == pytest.approx(value, rel=1e-12), name
        if exact and name in utility.measures_by_record():
            assert a.measures[name] == value, name
    assert (a.suppressed, a.sizes, a.spread, a.records) == (b.suppressed, b.sizes, b.spread, b.records)
    for left, right in zip(a.columns, b.columns, strict=True):
        assert left.column == right.column
        assert left.loss == pytest.approx(right.loss, rel=0 if exact else 1e-12, abs=0)
        assert (left.exact, left.whole) == (right.exact, right.whole)
    checks = [
        [
            (each.criterion, each.holds, each.failed)
            for each in item.findings
            if each.criterion != "certificate"
        ]
        for item in (a, b)
    ]
    assert checks[0] == checks[1]
    assert a.said == b.said
    pages = [report_module.detail_of(item, False) for item in (a, b)]
    for shown in ("gcp", "losses", "cells", "sizes_title", "sizes_text", "sizes", "without"):
        assert pages[0][shown] == pages[1][shown], shown
    # what follows from quasi-identifiers is looked for in a sample; here it is everybody
    assert report.warnings == two.warnings
    assert not list(owners[1].glob("pieces-*"))
    assert stat.S_IMODE(owners[1].stat().st_mode) == 0o700
    return two


PARQUET = "{table: out/release.parquet}"
REPORTED = "{table: out/release.parquet, report: out/report.html}"


@pytest.mark.parametrize(
    "form", ["csv", pytest.param("parquet", marks=SLOW), pytest.param("folder", marks=SLOW)]
)
def test_pieces_give_the_same_bits(tmp_path: Path, form: str) -> None:
    compared(*written(tmp_path, form=form, publish=REPORTED if form == "parquet" else PARQUET))


@pytest.mark.parametrize(
    "algorithm",
    [
        "nh",
        *(
            pytest.param(name, marks=SLOW)
            for name in ("mondrian", "k-concealment", "pattern-guided", "two-phase", "k-member")
        ),
    ],
)
def test_every_kind_of_method(tmp_path: Path, algorithm: str) -> None:
    compared(*written(tmp_path, anonymize=f"{{algorithm: {algorithm}, k: 3}}", publish=PARQUET))


FORMS = """\
    weight: {role: quasi-identifier, kind: numeric, decimal: ",", codes: [N], missing: value, write: source}
    hired: {role: quasi-identifier, kind: numeric, dates: d.m.y, pivot: 1930, missing: suppress}
    pay: {role: sensitive, decimal: ",", thousands: "."}
    w: {role: weight, decimal: ","}
"""


def as_written(n: int) -> pd.DataFrame:
    """Numbers and dates as people write them."""
    rng = random.Random(3)
    return pd.DataFrame(
        {
            "weight": [rng.choice([None, "N", *(f"{kilos},5" for kilos in range(50, 80))]) for _ in range(n)],
            "hired": [
                rng.choice([None, f"{rng.randint(1, 28)}. März 9{i % 8}", f"5.{i % 12 + 1}.29"])
                for i in range(n)
            ],
            "pay": [rng.choice(["1.234,50 €", "12,00 €", None]) for _ in range(n)],
            "w": [f"{rng.randint(1, 9)},25" for _ in range(n)],
        }
    )


def test_numbers_and_dates_as_people_write_them_in_pieces(tmp_path: Path) -> None:
    settings: dict[str, Any] = {
        "columns": FORMS,
        "anonymize": "{algorithm: mondrian, k: 3}",
        "publish": PARQUET,
    }
    two = compared(*written(tmp_path, form="csv", frame=as_written(180), **settings))
    frame = read_release(tmp_path / "pieces" / "out" / "release.parquet").frame
    assert set(frame["pay"].dropna()) <= {"1234.5", "12", "*"}
    assert frame["w"].str.endswith(".25").all()
    assert two.ok


def test_partial_dates_and_periods_in_pieces(tmp_path: Path) -> None:
    rng = random.Random(5)
    days = [
        rng.choice(["1984", f"0{rng.randint(7, 9)}/1984", f"{rng.randint(1, 28)}.8.1984"]) for _ in range(180)
    ]
    frame = pd.DataFrame(
        {"born": days, "seen": [f"{rng.randint(1, 28)}/{rng.randint(1, 12)}/2020" for _ in days]}
    )
    columns = """\
    born: {role: quasi-identifier, kind: hierarchy, hierarchy: {calendar: [month, year]}, dates: d.m.y}
    seen: {role: quasi-identifier, kind: numeric, dates: d/m/y, write: source}
"""
    settings: dict[str, Any] = {
        "columns": columns,
        "anonymize": "{algorithm: mondrian, k: 3}",
        "publish": PARQUET,
    }
    compared(*written(tmp_path, form="csv", frame=frame, **settings))


def test_separators_of_a_source_are_those_of_its_numbers(tmp_path: Path) -> None:
    frame = as_written(180)[["weight", "pay", "w"]].assign(
        weight=lambda rows: rows["weight"].fillna("50,5").replace("N", "51")
    )
    columns = "    weight: {role: quasi-identifier, kind: numeric}\n    pay: {role: sensitive}\n    w: {role: weight}\n"
    frame.to_csv(tmp_path / "t.csv", index=False)
    for pieces in ("false", "60"):
        (tmp_path / pieces).mkdir()
        flow = write_flow(
            tmp_path / pieces,
            source=f'{{csv: ../t.csv, pieces: {pieces}, decimal: ",", thousands: "."}}',
            columns=columns,
            anonymize="{algorithm: mondrian, k: 3}",
        )
        assert engine.run(flow, seed=SEED).ok
    first, second = ((tmp_path / pieces / "out" / "release.csv").read_bytes() for pieces in ("false", "60"))
    assert first == second
    release = read_release(tmp_path / "60" / "out" / "release.csv").frame
    assert release["w"].str.endswith(".25").all()
    assert set(release["pay"].dropna()) <= {"1.234,50 €", "12,00 €"}, "texts stay as they are"


BY_CLASS = [
    "usefulness", "row-types", "average-class-size", "min-class-size", "max-class-size", "c-avg", "lm", "stars",
    "discernibility",
]  # fmt: skip


@pytest.mark.parametrize(
    ("algorithm", "distinct"),
    [
        ("mondrian", 3),
        pytest.param("greedy", 0, marks=SLOW),
        *(pytest.param(name, 3, marks=SLOW) for name in ("greedy", "k-concealment", "pattern-guided")),
    ],
)
def test_measures_of_classes(tmp_path: Path, algorithm: str, distinct: int) -> None:
    """Partitions of few values publish alike what others do: these are one class, as in memory."""
    frame = people(240)
    if distinct:
        frame["age"] = [20 + i % distinct for i in range(240)]
        frame["city"] = "Volos"
    columns = COLUMNS.replace("age: {role: quasi-identifier, kind: numeric, missing: suppress}",
                              "age: {role: quasi-identifier, kind: numeric, missing: suppress, max-width: 9}")  # fmt: skip
    report = compared(
        *written(
            tmp_path, frame=frame, columns=columns, anonymize=f"{{algorithm: {algorithm}, k: 4}}",
            steps=f"  - measure: {BY_CLASS}\n", publish=PARQUET,
        )
    )  # fmt: skip
    assert set(report.results[0].measures) == {"gcp", *BY_CLASS}
    assert report.results[0].measures["usefulness"] > 0


@pytest.mark.parametrize("values", [70, pytest.param(300, marks=SLOW)])
def test_classes_of_many_values(tmp_path: Path, values: int) -> None:
    n = max(180, values + 100)
    frame = people(n)
    frame["city"] = [f"c{i * 7 % values}" for i in range(n)]
    steps = f"  - measure: {BY_CLASS}\n"
    compared(*written(tmp_path, frame=frame, steps=steps, publish=PARQUET))


def test_classes_of_several_runs_are_measured_apart(tmp_path: Path) -> None:
    more = "matrix: {anonymize.k: [3, 5]}\n"
    steps = f"  - measure: {BY_CLASS}\n"
    flows = written(tmp_path, publish="", more=more, steps=steps)
    item, two = (engine.run(flow, seed=SEED) for flow in flows)
    for a, b in zip(item.results, two.results, strict=True):
        assert b.measures == pytest.approx({name: a.measures[name] for name in b.measures})


WITH_UNITS = COLUMNS.replace("name: {role: identifier}", "name: {role: unit}\n    home: {role: household}")


def visits(n: int, seed: int = 3) -> pd.DataFrame:
    """Rows of people who came one to four times, in households of three people."""
    rng = np.random.default_rng(seed)
    who = np.repeat(np.arange(n), rng.integers(1, 5, n))[:n]
    frame = people(n)
    frame["name"], frame["home"] = (
        who + 2**60,
        [f"h{item // 3}" for item in who],
    )  # 64 bits: floats take them for one
    return frame.iloc[rng.permutation(n)].reset_index(drop=True)


@pytest.mark.parametrize(
    ("algorithm", "form", "publish"),
    [
        ("mondrian", "parquet", PARQUET),
        pytest.param("greedy", "csv", REPORTED, marks=SLOW),
        pytest.param("mondrian", "parquet", REPORTED, marks=SLOW),
        pytest.param("k-concealment", "parquet", REPORTED, marks=SLOW),
        pytest.param("pattern-guided", "parquet", REPORTED, marks=SLOW),
    ],
)
def test_people_with_several_rows(tmp_path: Path, algorithm: str, form: str, publish: str) -> None:
    """Layers in which nobody has two rows, dealt out from files: the same rows, lists and verdicts."""
    frame = visits(200)
    frame.loc[:40, "age"] = None  # some are suppressed
    flows = written(
        tmp_path, frame=frame, form=form, columns=WITH_UNITS, publish=publish,
        anonymize=f"{{algorithm: {algorithm}, k: 3}}",
    )  # fmt: skip
    report = compared(*flows)
    assert [each.criterion for each in report.results[0].findings].count("units") == 1
    if publish == REPORTED and algorithm != "k-concealment":
        whole = engine.run(flows[0], seed=SEED, again=True)
        named = [each.attacks.set_index("attacker").loc["unit"] for each in (whole, report)]
        for number in ("targets", "success", "worst", "at_risk"):
            assert named[0][number] == pytest.approx(named[1][number]), number
        assert named[1]["sentence"] in named[0]["sentence"]
        assert "households somebody is named" in named[1]["sentence"]
    proof = Certificate.load(flows[1].parent / "owner" / "test" / "certificate.npz")
    source = pd.read_parquet(tmp_path / "t.parquet") if form == "parquet" else pd.read_csv(tmp_path / "t.csv")
    who = source["name"].to_numpy()
    for t in range(len(proof.list_offsets) - 1):
        own = who[proof.list_originals[proof.list_offsets[t] : proof.list_offsets[t + 1]]]
        if 3 <= len(own) < 30:
            assert np.unique(own, return_counts=True)[1].max() * 3 <= len(own)


@pytest.mark.parametrize("algorithm", ["mondrian", pytest.param("greedy", marks=SLOW)])
def test_of_large_tables_people_are_counted_by_all_their_rows(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, algorithm: str
) -> None:
    """Attack: have your rows spread over partitions, of which the report looks at a sample; it still finds you."""
    steps = "  - draw: {}\n  - attack: [unit]\n"
    flow, _ = written(
        tmp_path, frame=visits(200), columns=WITH_UNITS, anonymize=f"{{algorithm: {algorithm}, k: 3}}", steps=steps,
        publish=REPORTED,
    )  # fmt: skip
    whole = engine.run(flow, seed=SEED).attacks.iloc[0]
    monkeypatch.setattr("anonflow.engine.publish.MOST", 100)
    monkeypatch.setattr("anonflow.engine.report.attacks.SAMPLE", 60)
    large = engine.run(flow, seed=SEED, again=True).attacks.iloc[0]
    for number in ("targets", "success", "worst", "at_risk"):
        assert large[number] == pytest.approx(whole[number]), number


@pytest.mark.slow
@pytest.mark.parametrize("algorithm", ["greedy", "mondrian"])
def test_of_a_sample_people_are_counted_by_all_their_rows(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, algorithm: str
) -> None:
    """Of everybody the figures are those of the whole table; of some, a person's other rows are taken to be like those."""
    steps = "  - draw: {}\n  - attack: [prosecutor, marketer, linker, homogeneity]\n"
    flows = written(
        tmp_path, frame=visits(300), columns=WITH_UNITS, anonymize=f"{{algorithm: {algorithm}, k: 3}}", steps=steps,
        publish=REPORTED, partition="{size: 20}",
    )  # fmt: skip
    whole = engine.run(flows[0], seed=SEED).attacks.set_index("attacker")
    assert whole.loc["marketer", "targets"] == len(visits(300)["name"].unique())
    numbers = ["targets", "success", "worst", "at_risk", "households", "household_success", "household_worst"]
    monkeypatch.setattr("anonflow.engine.publish.MOST", 200)
    for sample in (5000, 120):
        monkeypatch.setattr("anonflow.engine.report.attacks.SAMPLE", sample)
        attacks = [engine.run(flow, seed=SEED, again=True).attacks.set_index("attacker") for flow in flows]
        for number in numbers:
            assert attacks[0][number].to_numpy() == pytest.approx(attacks[1][number].to_numpy()), number
        assert attacks[0].loc["linker", numbers].tolist() == pytest.approx(
            whole.loc["linker", numbers].tolist()
        )
        for name in ("prosecutor", "marketer", "homogeneity"):
            row = attacks[0].loc[name]
            assert row["sentence"].startswith(f"Of a sample of {row['targets']:,} people with ")
            if sample == 5000:
                assert row[numbers].tolist() == pytest.approx(whole.loc[name, numbers].tolist()), name
        if sample == 120:
            row = attacks[0].loc["marketer"]
            assert row["targets"] < whole.loc["marketer", "targets"]
            assert row["success"] == pytest.approx(whole.loc["marketer", "success"], rel=0.15)


def test_people_are_not_counted_where_nobody_is_listed(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("anonflow.engine.publish.MOST", 100)
    steps = "  - draw: {}\n  - attack: [unit]\n"
    settings = {"columns": WITH_UNITS, "steps": steps, "anonymize": "{algorithm: k-concealment, k: 3}"}
    _, flow = written(tmp_path, frame=visits(200), publish=PARQUET, **settings)
    with pytest.raises(
        ParameterError, match="this attacker needs the role unit and a method whose rows list people"
    ):
        engine.run(flow, seed=SEED)


@pytest.mark.parametrize("order", ["random", pytest.param("lexicographic", marks=SLOW)])
def test_people_with_several_rows_within_boundaries(tmp_path: Path, order: str) -> None:
    columns = WITH_UNITS.replace("hunter]}}}}", "hunter]}}}, boundary: [office, field]}")
    columns = columns.replace("missing: suppress", "missing: suppress, boundary: {width: 10}")
    frame = visits(200)
    runs = "matrix: {anonymize.boundaries: [true, false]}\n"
    flows = written(
        tmp_path, frame=frame, columns=columns, publish="", more=runs,
        partition=f"{{order: {order}, size: 30}}",
        steps="  - verify: [covers, guarantee, units]\n",
    )  # fmt: skip
    item, two = (engine.run(flow, seed=SEED) for flow in flows)
    for a, b in zip(item.results, two.results, strict=True):
        assert (a.measures["gcp"], a.sizes, a.spread) == (b.measures["gcp"], b.sizes, b.spread)
        assert a.suppressed == b.suppressed
        assert [(each.criterion, each.holds) for each in a.findings] == [
            (each.criterion, each.holds) for each in b.findings
        ]
        assert [each.holds for each in b.findings if each.criterion == "units"] == [True]


RECIPES = (
    "{unit: name, recipes: {age: max, city: common, zip: first, job: last, income: common, visits: sum, score: mean}, "
    "rows: times}"
)
PER_UNIT = COLUMNS + "    times: {role: quasi-identifier, kind: numeric}\n"


def of_units(
    folder: Path, units: str, form: str = "parquet", prepare: str = "", **settings: Any
) -> tuple[Path, Path]:
    """Two flows over people with several rows, of whom some are left out or made one."""
    frame = visits(200)
    frame.loc[::7, "age"] = None
    flows = written(folder, frame=frame, form=form, publish=PARQUET, partition="{size: 30}", **settings)
    for flow in flows:
        text = flow.read_text(encoding="utf-8")
        flow.write_text(
            text.replace("\n  columns:\n", f"\n  units: {units}\n{prepare}  columns:\n"), encoding="utf-8"
        )
    return flows


_UNITS = [
    (RECIPES, PER_UNIT),
    ("{unit: name, cap: 2}", WITH_UNITS),
    ("{unit: name, cap: 2, recipes: {age: min, city: first, zip: all, job: common}, rows: times}",
     "    name: {role: unit}\n    age: {role: quasi-identifier, kind: numeric, missing: suppress}\n"
     "    zip: {role: quasi-identifier, kind: categorical}\n    times: {role: insensitive}\n"),
]  # fmt: skip


@pytest.mark.parametrize(
    ("units", "columns", "form"),
    [
        *((*units, form) for units, form in zip(_UNITS, ("csv", "parquet", "folder"), strict=True)),
        pytest.param(*_UNITS[0], "folder", marks=SLOW),
    ],
)
def test_rows_per_unit_in_pieces(tmp_path: Path, form: str, units: str, columns: str) -> None:
    """A cap draws the same rows, and one row for each stands where it stands in memory."""
    flows = of_units(tmp_path, units, form, columns=columns)
    report = compared(*flows)
    people_there = len(visits(200)["name"].unique())
    assert (
        report.results[0].records == people_there if "recipes" in units else report.results[0].records < 200
    )


def test_rows_per_unit_before_the_steps_in_pieces(tmp_path: Path) -> None:
    steps = "  prepare: [{top-code: {column: age, at: 35}}, {filter: {column: times, at-least: 2}}]\n"
    flows = of_units(tmp_path, RECIPES, "csv", steps, columns=PER_UNIT)
    report = compared(*flows)
    assert report.results[0].records < len(visits(200)["name"].unique())


@pytest.mark.parametrize(
    "recipes",
    [
        RECIPES,
        pytest.param(
            RECIPES.replace("common", "all").replace("mean", "max").replace("sum", "median"), marks=SLOW
        ),
    ],
)
def test_a_unit_whose_columns_have_no_value_in_a_bucket(tmp_path: Path, recipes: str) -> None:
    """A column's type is that of the whole: some buckets have blanks only, and some none."""
    frame = visits(200).sort_values("name")
    for name, kind in (("visits", "Int64"), ("score", "float64"), ("income", "object")):
        frame[name] = frame[name].astype(kind)
        frame.iloc[:100, frame.columns.get_loc(name)] = None
    flows = written(tmp_path, frame=frame, columns=PER_UNIT, publish=PARQUET, partition="{size: 30}")
    for flow in flows:
        text = flow.read_text(encoding="utf-8")
        flow.write_text(
            text.replace("\n  columns:\n", f"\n  units: {recipes}\n  columns:\n"), encoding="utf-8"
        )
    compared(*flows)


UNITS_THAT_CANNOT_BE_HAD = {
    "{unit: nam, cap: 2}": "column 'nam': is to be the unit, and is not in the table .did you mean 'name'",
    "{unit: name, recipes: {agee: max}}": "column 'agee': has a recipe, and is not in the table",
    "{unit: name, recipes: {age: max}, rows: age}": "column 'age': is in the result already",
    "{unit: name, recipes: {city: mean}}": "column 'city': the recipe mean needs numbers",
    "{unit: name, recipes: {city: same}}": "units have several values, and the recipe is same",
    "{unit: age, cap: 2}": "rows have no unit; every row needs one",
}


def messages_of(
    flows: tuple[Path, Path], error: type[Exception] | tuple[type[Exception], ...], words: str
) -> list[tuple[str, str]]:
    """The kinds of the errors of both flows, and what they say but for the flow's folder."""
    messages = []
    for flow in flows:
        with pytest.raises(error, match=words) as caught:
            engine.run(flow, seed=SEED)
        messages.append((type(caught.value).__name__, str(caught.value).replace(str(flow.parent), "")))
    return messages


def test_rows_per_unit_that_cannot_be_had_in_pieces(tmp_path: Path) -> None:
    """The sentences of a run in memory."""
    columns = "    age: {role: quasi-identifier, kind: numeric, missing: suppress}\n"
    for number, (units, words) in enumerate(UNITS_THAT_CANNOT_BE_HAD.items()):
        folder = tmp_path / str(number)
        folder.mkdir()
        flows = of_units(folder, units, columns=columns)
        memory, pieces = messages_of(flows, (DataError, ParameterError), words)
        assert memory == pieces, units


def test_units_in_pieces_that_are_none(tmp_path: Path) -> None:
    """The sentences of a run in memory."""
    changes: list[tuple[dict[str, list[Any]], str]] = [
        ({"name": [None]}, "1 row has no unit; every row needs one"),
        ({"home": [None]}, "1 row has no household"),
        ({"home": ["elsewhere"]}, "1 unit is in several households"),
        ({"name": [2**60 + 5] * 200}, "one unit has .* more than n/k"),
    ]
    for number, (change, words) in enumerate(changes):
        folder = tmp_path / str(number)
        folder.mkdir()
        frame = visits(200).astype({"name": "Int64"})
        often = frame.index[frame["name"] == frame["name"].value_counts().index[0]][:1]
        for name, values in change.items():
            frame.loc[often if len(values) == 1 else frame.index[: len(values)], name] = values[0]
        if len(change.get("name", [])) > 1:
            frame["home"] = "one"
        flows = written(folder, frame=frame, columns=WITH_UNITS, publish="")
        memory, pieces = messages_of(flows, (DataError, InfeasibleError), words)
        assert memory == pieces, words


DIVERSITIES = [
    "{criterion: p-sensitivity, p: 2}",
    "{criterion: l-diversity, l: 1.5}",
    "{criterion: t-closeness, t: 0.4}",
]


@pytest.mark.parametrize(
    ("algorithm", "diversify"),
    [
        *(("mondrian", diversity) for diversity in DIVERSITIES[1:]),
        pytest.param("mondrian", DIVERSITIES[0], marks=SLOW),
        *(pytest.param("greedy", diversity, marks=SLOW) for diversity in DIVERSITIES),
    ],
)
def test_diversify(tmp_path: Path, algorithm: str, diversify: str) -> None:
    """Rounds of throwaway draws, closed graphs, united classes: the same bits, and the same promise."""
    steps = f"  - diversify: {diversify}\n  - draw: {{}}\n  - verify: [covers, guarantee]\n"
    flows = written(
        tmp_path, 180, anonymize=f"{{algorithm: {algorithm}, k: 3}}", steps=steps, publish=PARQUET
    )
    report = compared(*flows, exact=False)
    assert any(each.criterion in diversify for each in report.results[0].findings)
    assert report.results[0].said


@pytest.mark.parametrize(
    ("settings", "n", "size"),
    [
        ("{criterion: p-sensitivity, p: 2, risk: 0}", 100, 20),
        pytest.param("{criterion: p-sensitivity, p: 2, risk: 0.3, way: blind}", 260, 130, marks=SLOW),
    ],
)
def test_diversify_where_it_is_hard(tmp_path: Path, settings: str, n: int, size: int) -> None:
    """No risk; the blind way."""
    steps = f"  - diversify: {settings}\n  - draw: {{}}\n  - verify: [covers]\n"
    flows = written(
        tmp_path, n, anonymize="{algorithm: greedy, k: 3}", steps=steps, publish=PARQUET,
        partition=f"{{size: {size}}}",
    )  # fmt: skip
    report = compared(*flows, exact=False)
    assert report.results[0].suppressed == 0


def test_a_partition_without_diversity_refuses_the_table_as_in_memory(tmp_path: Path) -> None:
    frame = people(100)
    frame["age"] = range(100)
    frame["income"] = ["i0"] * 40 + ["i1", "i2"] * 30
    steps = "  - diversify: {criterion: l-diversity, l: 2}\n  - draw: {}\n  - verify: [covers]\n"
    flows = written(
        tmp_path, frame=frame, anonymize="{algorithm: greedy, k: 3}", steps=steps, publish=PARQUET,
        partition="{size: 20}",
    )  # fmt: skip
    for flow in flows:
        with pytest.raises(InfeasibleError, match="a partition or boundary has less diversity"):
            engine.run(flow, seed=SEED)
        assert not (flow.parent / "out" / "release.parquet").exists()


def test_closeness_along_the_hierarchy_of_a_sensitive_column(tmp_path: Path) -> None:
    """The tree that the schema has for the column is the distance in pieces, too."""
    tree = r'{nested: {any: {low: [poor, modest], high: ["rich, \"very\"\nrich"]}}}'
    columns = COLUMNS.replace("{role: sensitive}", f"{{role: sensitive, hierarchy: {tree}}}")
    steps = "  - diversify: {criterion: t-closeness, t: 0.3}\n  - draw: {}\n  - verify: [covers, {t-closeness: {t: 0.3, per: class}}]\n"
    flows = written(
        tmp_path, 180, anonymize="{algorithm: mondrian, k: 3}", steps=steps, publish=PARQUET, columns=columns
    )
    compared(*flows, exact=False)


@pytest.mark.parametrize("way", ["classes", "blind"])
def test_both_ways_of_diversify_agree_with_memory(tmp_path: Path, way: str) -> None:
    steps = (
        f"  - diversify: {{criterion: p-sensitivity, p: 2, risk: 0.01, way: {way}}}\n"
        "  - draw: {}\n  - verify: [covers]\n"
    )
    flows = written(tmp_path, 100, anonymize="{algorithm: greedy, k: 6}", steps=steps, publish=PARQUET)
    compared(*flows, exact=False)


@pytest.mark.slow
def test_a_resumed_run_repeats_one_batch_of_diversify(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Batches that were diverse before it stopped are not made diverse again."""
    monkeypatch.setattr(checkpoints, "EVERY", 0.0)
    monkeypatch.setattr(batches, "ROWS", 1)  # a batch is a partition
    done: list[str] = []
    stops_after = 1_000

    real = tasks.diverse_part

    def step(*args: Any, **settings: Any) -> Any:
        if len(done) >= stops_after:
            raise AnonflowError("the power is out")
        done.append("diversify")
        return real(*args, **settings)

    monkeypatch.setattr(tasks, "diverse_part", step)
    steps = "  - diversify: {criterion: p-sensitivity, p: 2, risk: 0.3}\n  - draw: {}\n  - verify: [covers]\n"
    files = []
    for name in ("whole", "stopped"):
        (tmp_path / name).mkdir()
        flows = written(
            tmp_path / name, 160, anonymize="{algorithm: greedy, k: 6}", steps=steps, publish=PARQUET
        )
        files.append(flows[1])
    whole, stopped = files
    engine.run(whole, seed=SEED, workers=1)
    parts = len(done)
    assert parts >= 4
    done.clear()
    stops_after = 2
    with pytest.raises(AnonflowError, match="the power is out"):
        engine.run(stopped, seed=SEED, workers=1)
    stops_after = 1_000
    done.clear()
    engine.run(stopped, workers=1)
    # what was at work when it stopped is a batch a worker
    assert parts - 2 <= len(done) <= parts - 2 + 1
    paths = [engine.load_flow(file).table_path for file in files]
    pd.testing.assert_frame_equal(*(pd.read_parquet(path) for path in paths))


@pytest.mark.slow
def test_diversify_is_the_same_where_tasks_are_done_again(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """A worker that ends after it wrote its results has its task done again by another one."""
    real = partitions.solve_batch

    @functools.wraps(real)
    def twice(*args: Any) -> Any:
        real(*args)
        return real(*args)

    monkeypatch.setattr(partitions, "solve_batch", twice)
    steps = "  - diversify: {criterion: p-sensitivity, p: 2}\n  - draw: {}\n  - verify: [covers]\n"
    flows = written(
        tmp_path, 260, anonymize="{algorithm: greedy, k: 3}", steps=steps, publish=PARQUET,
        partition="{size: 20}",
    )  # fmt: skip
    compared(*flows, exact=False)


@pytest.mark.parametrize("algorithm", ["mondrian", pytest.param("greedy", marks=SLOW)])
def test_diversify_without_a_draw(tmp_path: Path, algorithm: str) -> None:
    steps = "  - diversify: {criterion: l-diversity, l: 1.5}\n  - verify: [covers, guarantee]\n"
    flows = written(tmp_path, 180, anonymize=f"{{algorithm: {algorithm}, k: 3}}", steps=steps, publish="")
    item, two = (engine.run(flow, seed=SEED) for flow in flows)
    a, b = item.results[0], two.results[0]
    assert a.measures == pytest.approx(b.measures, rel=1e-12)
    assert [(each.criterion, each.holds, each.failed) for each in a.findings] == [
        (each.criterion, each.holds, each.failed) for each in b.findings
    ]
    assert a.said == b.said


def test_a_diversity_that_the_table_does_not_have_is_refused_as_in_memory(tmp_path: Path) -> None:
    steps = "  - diversify: {criterion: p-sensitivity, p: 50}\n  - draw: {}\n"
    messages = []
    for flow in written(tmp_path, 200, steps=steps, publish=PARQUET):
        with pytest.raises(InfeasibleError, match="the largest feasible p is") as caught:
            engine.run(flow, seed=SEED)
        messages.append(str(caught.value))
    assert messages[0] == messages[1]


def test_more_values_than_k_are_refused_before_work_as_in_memory(tmp_path: Path) -> None:
    steps = "  - diversify: {criterion: delta-disclosure, delta: 3, column: visits}\n  - draw: {}\n"
    messages = []
    for flow in written(tmp_path, 200, steps=steps, publish=PARQUET):
        began: list[str] = []
        with pytest.raises(ParameterError, match="more than k = 3") as caught:
            engine.run(
                flow, seed=SEED, on_event=lambda event, to=began: to.append(getattr(event, "step", ""))
            )
        assert "anonymize" not in began
        messages.append(str(caught.value))
    assert messages[0] == messages[1]


DRAW = "  - draw: {}\n"
SPANNING = [
    ("pattern-guided", "{pattern: {at-most: 4, fallback: strict}}"),
    ("pattern-guided", "{pattern: {at-most: 1}}"),
    ("greedy", "boundary"),
    ("k-concealment", "boundary"),
    ("mondrian", "{p-sensitivity: {p: 2}}"),
    ("mondrian", "{t-closeness: {t: 0.9, distance: equal}}"),
    ("mondrian", "{t-closeness: {t: 0.2, column: score}}"),
]


@pytest.mark.parametrize(
    ("algorithm", "criterion", "draw"),
    [
        *((*each, "") for each in SPANNING),
        (*SPANNING[1], DRAW),
        (*SPANNING[4], DRAW),
        *(pytest.param(*each, DRAW, marks=SLOW) for at, each in enumerate(SPANNING) if at not in (1, 4)),
    ],
)
def test_criteria_of_more_than_a_partition(tmp_path: Path, algorithm: str, criterion: str, draw: str) -> None:
    """What they find, and of how many records, is what it is in memory, suppressed records included."""
    frame = people(180)
    frame.loc[[3, 77, 141], "age"] = 38
    frame.loc[:, "age"] = frame["age"].where(frame["age"] != 39, 29)
    columns = COLUMNS if algorithm in ("pattern-guided", "mondrian") else BOUNDED
    flows = written(
        tmp_path, frame=frame, columns=columns, anonymize=f"{{algorithm: {algorithm}, k: 4}}",
        steps=f"{draw}  - verify: [covers, {criterion}]\n", publish=PARQUET if draw else "",
    )  # fmt: skip
    results = [
        [
            (each.criterion, each.holds, each.failed, each.parameters)
            for each in engine.run(flow, seed=SEED).results[0].findings
            if each.criterion != "certificate"
        ]
        for flow in flows
    ]
    assert results[0] == results[1]
    assert len(results[0]) == 2


LIMITED = """\
    age: {role: quasi-identifier, kind: numeric, max-width: %s}
    city: {role: quasi-identifier, kind: categorical, max-set: 2}
    income: {role: sensitive}
    visits: {role: insensitive}
"""


@pytest.mark.parametrize(
    ("algorithm", "width"),
    [
        ("greedy", "12"),
        ("mondrian", "1.5"),
        pytest.param("greedy", "1.5", marks=SLOW),
        pytest.param("k-concealment", "1.5", marks=SLOW),
    ],
)
def test_suppressed_records(tmp_path: Path, algorithm: str, width: str) -> None:
    """Few or many: their other columns are permuted among them all, or hidden."""
    limits = LIMITED % width
    settings = {"columns": limits, "anonymize": f"{{algorithm: {algorithm}, k: 4}}", "publish": PARQUET}
    frame = people(180).dropna(subset=["age"])
    report = compared(*written(tmp_path, frame=frame, **settings))
    assert report.results[0].suppressed or width == "12"


BOUNDED = COLUMNS.replace("missing: suppress", "boundary: {width: 9}, missing: suppress").replace(
    "{office: [clerk, boss], field: [farmer, hunter]}}}",
    "{office: [clerk, boss], field: [farmer, hunter]}}}, boundary: [office, field]",
)


@pytest.mark.parametrize(
    ("algorithm", "order"),
    [
        ("greedy", "lexicographic"),
        ("mondrian", "random"),
        pytest.param("mondrian", "input", marks=SLOW),
        pytest.param("k-concealment", "input", marks=SLOW),
        pytest.param("greedy-cka", "lexicographic", marks=SLOW),
    ],
)
def test_boundaries(tmp_path: Path, algorithm: str, order: str) -> None:
    """Boundary classes stand one after the other, whatever the pieces; those of fewer than k are suppressed."""
    frame = people(240)
    frame.loc[[3, 77, 201], "age"] = 38  # with one of the jobs a class of its own, in the order's midst
    frame.loc[:, "age"] = frame["age"].where(frame["age"] != 39, 29)
    settings = {"columns": BOUNDED, "anonymize": f"{{algorithm: {algorithm}, k: 12}}", "publish": PARQUET}
    flows = written(tmp_path, frame=frame, partition=f"{{size: 30, order: {order}}}", **settings)
    report = compared(*flows)
    assert report.results[0].suppressed
    assert 1 > report.results[0].columns[0].whole >= report.results[0].suppressed / 240


def test_boundaries_that_nobody_can_keep_are_refused_as_in_memory(tmp_path: Path) -> None:
    flows = written(tmp_path, columns=BOUNDED, anonymize="{algorithm: greedy, k: 100}", partition="{}")
    messages = []
    for flow in flows:
        with pytest.raises(InfeasibleError, match="within the boundaries") as caught:
            engine.run(flow, seed=SEED)
        messages.append(str(caught.value))
    assert messages[0] == messages[1]


def test_runs_with_and_without_boundaries_share_a_table(tmp_path: Path) -> None:
    more = "matrix: {anonymize.boundaries: [true, false]}\n"
    flows = written(tmp_path, columns=BOUNDED, publish="", more=more)
    item, two = (engine.run(flow, seed=SEED) for flow in flows)
    for a, b in zip(item.results, two.results, strict=True):
        assert b.measures == pytest.approx(a.measures)
        assert a.suppressed == b.suppressed


def test_other_columns_are_hidden_of_fewer_than_k(tmp_path: Path) -> None:
    frame = people(180)
    frame["age"] = [20 + i % 3 for i in range(179)] + [900]
    frame["city"] = "Athens"
    columns = LIMITED % "5"
    flows = written(
        tmp_path, frame=frame, columns=columns, anonymize="{algorithm: greedy, k: 4}", publish=PARQUET
    )
    report = compared(*flows)
    assert 0 < report.results[0].suppressed < 4
    shown = pd.read_parquet(flows[1].parent / "out" / "release.parquet")
    assert (shown["visits"] == "*").sum() == report.results[0].suppressed


def test_numbers_texts_and_truth_values_are_published_as_in_memory(tmp_path: Path) -> None:
    """What a column is published as depends on all of its cells, not on those of a piece."""
    n = 160
    frame = pd.DataFrame(
        {
            "age": [20 + i % 9 for i in range(n)],
            "whole": pd.array([None if i == 150 else i % 7 for i in range(n)], "Int64"),
            "all": [i % 5 for i in range(n)],
            "flag": [i % 3 == 0 for i in range(n)],
            "maybe": pd.array([None if i == 3 else i % 2 == 0 for i in range(n)], "boolean"),
            "empty": pd.array([None] * n, "Int64"),
            "wide": np.array([(1 << 63) + 5 if i == 140 else i % 4 for i in range(n)], np.uint64),
            "day": pd.to_datetime(["2020-01-01 00:00:00", "2021-05-06 07:08:09"] * (n // 2)),
            "kind": pd.Categorical(["a", "b"] * (n // 2)),
        }
    )
    others = "".join(f"    {name}: {{role: insensitive}}\n" for name in frame.columns if name != "age")
    columns = "    age: {role: quasi-identifier, kind: numeric}\n" + others
    compared(*written(tmp_path, frame=frame, columns=columns, publish=PARQUET))


@pytest.mark.parametrize("rows", [20, 500], ids=["groups", "rewritten"])
def test_files_that_declare_blanks_and_files_that_do_not(tmp_path: Path, rows: int) -> None:
    """A file without blanks may say so of its columns; it is still of the types of the others."""
    memory, pieces = written(tmp_path, form="folder", publish=PARQUET)
    for number, file in enumerate(sorted((tmp_path / "t.folder").iterdir())):
        table = pq.read_table(file)
        fields = [
            field.with_nullable(number % 2 == 0 or table.column(field.name).null_count > 0)
            for field in table.schema
        ]
        pq.write_table(table.cast(pa.schema(fields)), file, row_group_size=rows)
    text = pieces.read_text(encoding="utf-8").replace("pieces: 60", "pieces: 25")
    pieces.write_text(text, encoding="utf-8")
    compared(memory, pieces)


def test_a_task_maps_a_part_of_the_codes_at_a_time(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Rows of any order lie everywhere in the codes; all of these, mapped at once, would count as the worker's memory."""
    codes = np.arange(200, dtype=np.int32).reshape(100, 2)
    places = np.random.default_rng(4).permutation(100)
    order = arrays.TableOrder(
        arrays.write_array(str(tmp_path / "codes.npy"), codes),
        arrays.write_array(str(tmp_path / "order.npy"), places),
    )
    real, looks = arrays.mapped, []

    class Looked:
        def __init__(self, path: str) -> None:
            self.array = real(path)

        def __getitem__(self, at: np.ndarray) -> np.ndarray:
            looks.append(at.tolist())
            return np.asarray(self.array[at])

    monkeypatch.setattr(arrays, "TOGETHER", 16)
    monkeypatch.setattr(arrays, "mapped", Looked)
    positions, records, _ = order.rows(7, 90).load(())
    assert positions.tolist() == places[7:90].tolist()
    assert records.codes.tolist() == codes[places[7:90]].tolist()
    assert [len(at) for at in looks] == [16, 16, 16, 16, 16, 3]
    assert [place for at in looks for place in at] == sorted(places[7:90].tolist())


COLUMNS_OF_EACH_TYPE = {
    "whole": pa.array([1, None, 3, 4], pa.int16()),
    "all": pa.array([5, 6, 7, 8], pa.int64()),
    "wide": pa.array([2**53 + 1, None, 3, 4], pa.int64()),
    "float": pa.array([0.5, 1.5, None, -0.0], pa.float32()),
    "truth": pa.array([True, None, False, True]),
    "sure": pa.array([True, True, False, True]),
    "text": pa.array(["a", None, "", "äöü"]),
    "large": pa.array(["x", "yy", "zzz", ""], pa.large_string()),
    "empty": pa.array(["", "", "", ""]),
    "bytes": pa.array([b"a", b"", None, b"ccc"]),
    "time": pa.array([1, 2, None, 4], pa.timestamp("us", "UTC")),
    "day": pa.array([1, 2, 3, None], pa.date32()),
    "decimal": pa.array([1, None, 3, 4], pa.decimal128(9, 2)),
    "nothing": pa.nulls(4),
}


@given(st.lists(st.tuples(st.integers(0, 4), st.integers(0, 4)), max_size=4))
def test_columns_in_files_are_the_columns(cuts: list[tuple[int, int]]) -> None:
    """Slices of batches, empty ones too, come back: whole, as a frame, and taken in any order."""
    batch = pa.record_batch(COLUMNS_OF_EACH_TYPE)
    parts = [batch.slice(start, max(0, stop - start)) for start, stop in cuts]
    whole = pa.Table.from_batches(parts, batch.schema)
    with tempfile.TemporaryDirectory() as folder:
        columns = written_columns(f"{folder}/columns", batch.schema, parts)
        assert columns.rows == whole.num_rows
        assert columns.table().cast(whole.schema).equals(whole)
        pd.testing.assert_frame_equal(columns.frame(), exact_frame(whole))
        places = np.random.default_rng(whole.num_rows).permutation(whole.num_rows)
        names = ["text", "wide", "truth"]
        again = pickle.loads(pickle.dumps(columns)).take(names, places)
        pd.testing.assert_frame_equal(
            exact_frame(again), exact_frame(whole.select(names).take(pa.array(places)))
        )


def test_numbers_and_texts_stay_in_their_files(tmp_path: Path) -> None:
    batch = pa.record_batch({"age": np.arange(50.0), "job": [f"job {i}" for i in range(50)]})
    columns = written_columns(str(tmp_path / "columns"), batch.schema, [batch, batch])
    table, frame = columns.table(), columns.frame()
    assert frame["age"].to_numpy().base is not None
    assert not frame["age"].to_numpy().flags.writeable
    assert [len(table.column(name).chunks) for name in table.column_names] == [1, 1]
    assert [stat.S_IMODE(file.stat().st_mode) for file in tmp_path.iterdir()] == [0o600] * 3


def test_whole_numbers_that_floats_cannot_hold_stay_exact_beside_blanks(tmp_path: Path) -> None:
    n = 180
    exact = [None if i % 40 == 7 else 2**53 + 1 + 2 * (i % 5) for i in range(n)]
    frame = pd.DataFrame(
        {
            "age": [20 + i % 9 for i in range(n)],
            "born": pd.array([None if i == 170 else 2**53 + 1 + 2 * (i % 7) for i in range(n)], "Int64"),
            "account": pd.array([i % 4 if i < 120 else exact[i] for i in range(n)], "Int64"),
            "count": pd.array([None if i < 60 else (1 << 63) + i % 4 for i in range(n)], "UInt64"),
        }
    )
    columns = """\
    age: {role: quasi-identifier, kind: numeric}
    born: {role: quasi-identifier, kind: numeric, missing: suppress}
    account: {role: sensitive}
    count: {role: insensitive}
"""
    steps = "  - diversify: {criterion: p-sensitivity, p: 2, column: account}\n  - draw: {}\n  - verify: [covers]\n"
    flows = written(tmp_path, frame=frame, columns=columns, publish=PARQUET, steps=steps,
                    anonymize="{algorithm: mondrian, k: 3}")  # fmt: skip
    compared(*flows, exact=False)
    shown = pd.read_parquet(flows[1].parent / "out" / "release.parquet")
    for name in ("account", "count"):
        assert sorted(shown[name].dropna()) == sorted(frame[name].dropna().astype(str))


def test_a_csv_release_and_input_order(tmp_path: Path) -> None:
    flows = written(tmp_path, form="csv", partition="{order: input, size: 20}")
    compared(*flows, table="release.csv")
    item, two = ((flow.parent / "out" / "release.csv").read_bytes() for flow in flows)
    assert item == two


def test_a_csv_release_with_a_return_in_one_cell(tmp_path: Path) -> None:
    """For it all cells are quoted, those of other buckets, too."""
    frame = people(200)
    frame.loc[7, "income"] = "rich\rand famous"
    flows = written(tmp_path, frame=frame)
    for flow in flows:
        assert engine.run(flow, seed=SEED).ok
    item, two = ((flow.parent / "out" / "release.csv").read_bytes() for flow in flows)
    assert item == two


def test_a_random_order(tmp_path: Path) -> None:
    """It comes from the seed and the positions alone, wherever the table is divided."""
    compared(*written(tmp_path, partition="{order: random, size: 20}", publish=PARQUET))


def test_a_partition_size_within_a_budget(tmp_path: Path) -> None:
    """What was chosen is recorded, and a replay takes it again, in pieces and in memory."""
    memory, pieces = written(tmp_path, partition="{size: auto, budget: 3}", publish=PARQUET)
    assert engine.run(pieces, seed=SEED).ok
    owner = pieces.parent / "owner" / "test"
    (run,) = json.loads((owner / "record.json").read_text())["runs"]
    assert run["partition-size"] >= 3
    assert run["pilots"]
    item = (pieces.parent / "out" / "release.parquet").read_bytes()
    assert engine.run(pieces, replay=owner).ok
    assert (pieces.parent / "out" / "release.parquet").read_bytes() == item
    text = memory.read_text(encoding="utf-8").replace(
        "size: auto, budget: 3", f"size: {run['partition-size']}"
    )
    memory.write_text(text, encoding="utf-8")
    assert engine.run(memory, seed=SEED).ok
    frames = [pd.read_parquet(path.parent / "out" / "release.parquet") for path in (memory, pieces)]
    pd.testing.assert_frame_equal(*frames)


@pytest.mark.parametrize("algorithm", ["mondrian", pytest.param("greedy", marks=SLOW)])
def test_query_error_and_bounds_are_as_in_memory(tmp_path: Path, algorithm: str) -> None:
    steps = "  - measure: [query-error, partition-lower-bound]\n"
    columns = COLUMNS.replace("missing: suppress", "missing: drop")
    report = compared(
        *written(
            tmp_path,
            columns=columns,
            anonymize=f"{{algorithm: {algorithm}, k: 4}}",
            steps=steps,
            publish=PARQUET,
        )
    )
    measures = report.results[0].measures
    assert 0 < measures["partition-lower-bound"] < measures["gcp"]
    assert measures["query-error"] > 0


def test_a_data_set_in_pieces(tmp_path: Path) -> None:
    """A built-in data set is put aside first; the bits are those in memory."""
    columns = "".join(
        f"    {name}: {{role: quasi-identifier, kind: categorical}}\n" for name in ("Gender", "Marital", "Race")
    ) + "    Salary-class: {role: sensitive}\n"  # fmt: skip
    reports = []
    for name, more in (("memory", ""), ("pieces", ", pieces: 100")):
        (tmp_path / name).mkdir()
        flow = write_flow(
            tmp_path / name, source=f"{{dataset: census_like, n: 400{more}}}", columns=columns, publish=PARQUET,
            anonymize="{algorithm: mondrian, k: 5}",
        )  # fmt: skip
        reports.append(engine.run(flow, seed=SEED))
    item, two = (
        pd.read_parquet(tmp_path / name / "out" / "release.parquet") for name in ("memory", "pieces")
    )
    pd.testing.assert_frame_equal(item, two)
    assert reports[0].results[0].measures == pytest.approx(reports[1].results[0].measures, rel=1e-12)
    assert reports[1].release is None


def test_a_table_in_hand_in_pieces(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """A flow that is no file puts its pieces into a folder of its own, which is gone with the run."""
    schema = {
        "age": {"role": "quasi-identifier", "kind": "numeric", "missing": "drop"},
        "city": {"role": "quasi-identifier", "kind": "categorical"},
        "visits": {"role": "insensitive"},
    }
    table = Table(people(300), schema)
    monkeypatch.setattr(tempfile, "tempdir", str(tmp_path))
    item, two = (
        engine.run(
            Flow.for_table(table, ["greedy", "mondrian"], [3, 5], partition_size=40, pieces=pieces), seed=SEED
        )
        for pieces in (None, 50)
    )
    for a, b in zip(item.results, two.results, strict=True):
        assert a.measures == pytest.approx(b.measures, rel=1e-12)
        assert (a.records, a.suppressed, a.sizes) == (b.records, b.suppressed, b.sizes)
    assert item.results[0].anonymization is not None
    assert two.results[0].anonymization is None
    assert item.warnings == two.warnings
    assert not list(tmp_path.iterdir())


def test_a_table_of_mixed_values_in_pieces() -> None:
    frame = pd.DataFrame({"age": range(40), "note": ["a", 3] * 20})
    table = Table(
        frame, {"age": {"role": "quasi-identifier", "kind": "numeric"}, "note": {"role": "insensitive"}}
    )
    memory, pieces = (engine.run(Flow.for_table(table, ["greedy"], [3], pieces=rows)) for rows in (None, 10))
    assert memory.ok
    assert pieces.ok
    assert memory.results[0].measures == pieces.results[0].measures


def test_records_with_a_missing_value_may_be_dropped(tmp_path: Path) -> None:
    columns = COLUMNS.replace("missing: suppress", "missing: drop")
    report = compared(*written(tmp_path, columns=columns, publish=PARQUET))
    assert report.results[0].records < 180
    assert any("left out" in warning for warning in report.warnings)


def test_columns_that_tell_are_named(tmp_path: Path) -> None:
    frame = people(150)
    frame["visits"] = range(150)  # unique
    frame["score"] = [i // 30 for i in range(150)]  # monotone
    report = compared(*written(tmp_path, frame=frame, publish=PARQUET))
    assert any("'visits' is nearly unique: 150 records" in warning for warning in report.warnings)
    assert any("'score' is monotone: its 5 values" in warning for warning in report.warnings)


def test_columns_that_are_unique_together_are_named(tmp_path: Path) -> None:
    frame = people(180)
    frame["visits"] = [i % 60 for i in range(180)]
    frame["score"] = random.Random(1).sample([i // 60 for i in range(180)], 180)
    report = compared(*written(tmp_path, frame=frame, publish=PARQUET))
    assert any("together are nearly unique" in warning for warning in report.warnings)


def test_columns_that_follow_from_quasi_identifiers_are_named(tmp_path: Path) -> None:
    frame = people(180)
    frame["age"] = [20 + i * 7 % 60 for i in range(180)]
    frame["income"] = [f"p{age // 2}" for age in frame["age"]]
    report = compared(*written(tmp_path, frame=frame, publish=PARQUET))
    assert any(
        "'income' follows from 'age' and leads back to people" in warning for warning in report.warnings
    )


@pytest.mark.parametrize("form", ["parquet", pytest.param("csv", marks=SLOW)])
def test_people_of_an_earlier_release_are_recognized(tmp_path: Path, form: str) -> None:
    """By their identifiers, whether either release was made in memory or in pieces; the same one again is the same."""
    memory, pieces = written(tmp_path, 80, form=form)
    owner = tmp_path / "shared"
    for number, flow in enumerate((memory, pieces, pieces, memory)):
        home = flow.parent / "owner"
        if home.is_dir() and not home.is_symlink():
            shutil.rmtree(home)
        owner.mkdir(exist_ok=True)
        shutil.copytree(owner, home, dirs_exist_ok=True)
        report = engine.run(flow, seed=SEED + (number == 2))
        results = [warning for warning in report.warnings if "80 of 80 people are in" in warning]
        assert len(results) == (number == 2), number  # the other ones are the first release again
        if results:
            assert "by 'name'" in results[0]
            continue
        shutil.copytree(home / ".releases", owner / ".releases", dirs_exist_ok=True)


def test_cells_that_begin_like_a_formula_are_counted(tmp_path: Path) -> None:
    frame = people(150)
    frame["income"] = ["=1+1" if i % 10 == 0 else "rich" for i in range(150)]
    report = compared(*written(tmp_path, form="csv", frame=frame), table="release.csv")
    assert any(warning.startswith("15 cells begin like a formula") for warning in report.warnings)


def test_ties_are_cut_as_in_memory(tmp_path: Path) -> None:
    """One record a thousand times: only positions tell rows apart, and pieces cut among them."""
    frame = pd.DataFrame({"age": [30] * 400, "city": ["Volos"] * 400, "income": range(400), "visits": 1})
    columns = LIMITED.replace(", max-width: %s", "").replace(", max-set: 2", "")
    compared(*written(tmp_path, frame=frame, columns=columns, publish=PARQUET))


OF_ALL_ROWS: list[dict[str, Any]] = [
    {"steps": "  - draw: {}\n  - measure: [gcp, lower-bound]\n"},
    {"steps": "  - draw: {}\n  - measure: [k-marginals]\n"},
    {"steps": "  - draw: {}\n  - verify: [covers, {linkable-columns: {threshold: 1}}]\n"},
    {"steps": "  - draw: {}\n  - verify: [{average-risk: {most: 0.9}}]\n", "anonymize": "{algorithm: mondrian, k: 3}"},
    {"steps": "  - draw: {}\n  - verify: [{share-at-risk: {threshold: 1.0}}]\n", "anonymize": "{algorithm: mondrian, k: 3}"},
    {"steps": "  - draw: {}\n  - verify: [{key-sets: {sets: [[job], [zip]]}}]\n"},
    {
        "steps": "  - diversify: {criterion: p-sensitivity, p: 2, column: income}\n  - draw: {}\n"
        "  - verify: [covers, {p-sensitivity: {p: 2, column: income}}]\n",
        "anonymize": "{algorithm: k-concealment, k: 3}",
    },
]  # fmt: skip


@pytest.mark.parametrize(
    "settings", OF_ALL_ROWS, ids=lambda settings: settings["steps"].split("- ")[-1].strip()
)
def test_what_needs_the_results_of_all_rows(tmp_path: Path, settings: dict[str, Any]) -> None:
    compared(*written(tmp_path, publish=PARQUET, **settings))


def test_bad_values_are_said_as_in_memory(tmp_path: Path) -> None:
    frame = people(200)
    frame["city"] = [f"c{i}" for i in range(200)]
    columns = COLUMNS.replace(
        "city: {role: quasi-identifier, kind: categorical}", "city: {role: quasi-identifier, kind: numeric}"
    )
    memory, pieces = written(tmp_path, frame=frame, columns=columns, publish=PARQUET)
    for flow in (memory, pieces):
        with pytest.raises(DataError, match=r"column 'city': 200 values are not numbers"):
            engine.run(flow)
    assert not list((pieces.parent / "owner" / "test").glob("pieces-*"))


PROBLEMS = [
    (
        "city: {role: quasi-identifier, kind: categorical}",
        "city: {role: quasi-identifier, kind: numeric}",
        "column 'city': 200 values are not numbers",
    ),
    (", missing: suppress", "", r"column 'age': \d+ missing values"),
    ("    age:", "    agee:", r"column 'agee': not in the table"),
    ("    name: {role: identifier}", "    name: {role: unit}", r"column 'name': 1 rows? .*"),
]


def test_problems_with_a_table_name_its_file(tmp_path: Path) -> None:
    """A pipeline has several tables: a message says which to mend."""
    frame = people(200)
    frame.loc[3, "name"] = None
    for number, (before, after, problem) in enumerate(PROBLEMS):
        folder = tmp_path / str(number)
        folder.mkdir()
        columns = COLUMNS.replace(before, after)
        assert columns != COLUMNS
        for flow in written(folder, frame=frame, columns=columns, publish=PARQUET):
            source = engine.load_flow(flow).source_path
            with pytest.raises(AnonflowError) as caught:
                engine.run(flow)
            assert any(
                re.match(f"{re.escape(str(source))}: {problem}", text) for text in caught.value.problems
            ), problem


def test_a_file_that_cannot_be_read_is_named_once(tmp_path: Path) -> None:
    for flow in written(tmp_path, publish=PARQUET):
        source = engine.load_flow(flow).source_path
        assert source is not None
        source.write_text("no Parquet file")
        with pytest.raises(DataError) as caught:
            engine.run(flow)
        assert str(caught.value).count(source.name) == 1


def test_missing_values_are_counted_in_all_pieces(tmp_path: Path) -> None:
    frame = people(200)
    frame["age"] = frame["age"].mask(frame.index % 5 == 0)
    columns = COLUMNS.replace(", missing: suppress", "")
    memory, pieces = written(tmp_path, frame=frame, columns=columns, publish=PARQUET)
    for flow in (memory, pieces):
        with pytest.raises(DataError, match=rf"column 'age': {frame['age'].isna().sum()} missing values"):
            engine.run(flow)


@pytest.mark.parametrize(
    ("texts", "problem"), [(["x", "y", "7"], "values are not numbers"), (["1e999", "7"], "infinite values")]
)
def test_cells_that_are_no_numbers_are_counted_in_all_pieces(
    tmp_path: Path, texts: list[str], problem: str
) -> None:
    """Each cell, as in memory, and not each of their values."""
    frame = people(200)
    frame["city"] = np.resize(texts, 200)
    columns = COLUMNS.replace(
        "city: {role: quasi-identifier, kind: categorical}", "city: {role: quasi-identifier, kind: numeric}"
    )
    count = (frame["city"] != "7").sum()
    memory, pieces = written(tmp_path, frame=frame, columns=columns, publish=PARQUET)
    for flow in (memory, pieces):
        with pytest.raises(DataError, match=rf"column 'city': {count} {problem}"):
            engine.run(flow)


def test_lists_in_a_column_without_a_role_are_not_published(tmp_path: Path) -> None:
    memory, pieces = written(tmp_path, frame=people(200).assign(tags=[["a"]] * 200), publish=PARQUET)
    compared(memory, pieces)
    assert "tags" not in pd.read_parquet(pieces.parent / "out" / "release.parquet").columns


def test_declared_domains_are_told_and_held_as_in_memory(tmp_path: Path) -> None:
    zips = "zip: {role: quasi-identifier, kind: positions, domain: ['0', '1', '2', '3']}"
    columns = COLUMNS.replace("zip: {role: quasi-identifier, kind: positions}", zips)
    assert columns != COLUMNS
    memory, pieces = written(tmp_path, n=200, columns=columns, publish=PARQUET)
    compared(memory, pieces)
    column = read_release(pieces.parent / "out" / "release.parquet").column("zip")
    assert column.about.values == ("0", "1", "2", "3")
    for flow in (memory, pieces):
        flow.write_text(flow.read_text().replace(", '3'", ""))
        with pytest.raises(DataError, match=r"column 'zip': 1 characters lie outside the domain"):
            engine.run(flow)


def test_a_table_too_large_for_memory_goes_to_pieces_by_itself(tmp_path: Path) -> None:
    _, pieces = written(tmp_path, publish=PARQUET, more="run: {memory: 1KB}\n")
    text = pieces.read_text(encoding="utf-8")
    pieces.write_text(text.replace(", pieces: 60", ""), encoding="utf-8")
    assert pieces_of(engine.load_flow(pieces)) is not None
    report = engine.run(pieces)
    assert report.ok
    assert report.release is None


def test_a_matrix_shares_the_order_and_publishes_one(tmp_path: Path) -> None:
    more = "matrix: {anonymize.k: [3, 5, 181]}\n"
    publish = "{table: out/release.parquet, run: {anonymize.k: 5}}"
    _, flow = written(tmp_path, publish=publish, more=more, partition="{size: 200}")
    report = engine.run(flow, seed=SEED)
    assert not report.ok
    assert report.results[2].problem is not None
    assert not (flow.parent / "out").exists()
    flow.write_text(flow.read_text(encoding="utf-8").replace(", 181", ""), encoding="utf-8")
    report = engine.run(flow, seed=SEED)
    assert report.ok
    assert (flow.parent / "out" / "release.parquet").exists()


def test_rows_that_cannot_be_read_are_one_line(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Also where the client reads them, to look for what an earlier run left."""

    def refused(*args: Any) -> Any:
        raise OSError(errno.EMFILE, "Too many open files")

    monkeypatch.setattr(arrays.OrderedRows, "load", refused)
    _, flow = written(tmp_path, publish=PARQUET)
    with pytest.raises(AnonflowError, match="Too many open files; allow more"):
        engine.run(flow, seed=SEED)


@pytest.mark.parametrize("of_all_rows", [False, True])
def test_a_run_without_a_result_has_no_arrays(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, of_all_rows: bool
) -> None:
    """Whether a partition has no solution, or all partitions together are refused."""
    match, diversified, end = tasks.match, storage.with_diverse_parts, Storage.__exit__
    nothing = InfeasibleError("nothing goes", subject="anonymize")

    def refused(settings: tasks.TaskSettings, records: Any, partition: int) -> Any:
        if settings.k == 4 and partition == 1 and not of_all_rows:
            return tasks.Failed(nothing, nothing.message)
        return match(settings, records, partition)

    def refused_whole(anonymization: Any, *rest: Any, **settings: Any) -> Any:
        if anonymization.k == 4 and of_all_rows:
            raise nothing
        return diversified(anonymization, *rest, **settings)

    left: list[int] = []

    def ended(storage: Storage, *rest: Any) -> None:
        left.extend((len(storage._outcomes), len(storage._diverse), len(storage._classes)))
        end(storage, *rest)

    monkeypatch.setattr(tasks, "match", refused)
    monkeypatch.setattr(storage, "with_diverse_parts", refused_whole)
    monkeypatch.setattr(Storage, "__exit__", ended)
    steps = (
        "  - diversify: {criterion: p-sensitivity, p: 2, column: income}\n  - draw: {}\n  - measure: [lm]\n"
    )
    more = "matrix: {anonymize.k: [3, 4]}\n"
    for flow in written(tmp_path, publish="", more=more, steps=steps, partition="{size: 30}"):
        report = engine.run(flow, seed=SEED, workers=1)
        assert [result.problem is None for result in report.results] == [True, False]
    assert left == [0] * 6


def test_copies_share_files(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """A system allows a process about a thousand open files, and a large table has more batches."""
    files: list[str] = []
    new_array = spill_module.new_array

    def counted(file: str, *rest: Any) -> np.ndarray:
        files.append(file)
        return new_array(file, *rest)

    monkeypatch.setattr(spill_module, "new_array", counted)
    monkeypatch.setattr(spill_module, "_ROOM", 1000)
    contents = [{"keys": [np.arange(size), np.zeros(0), "text"]} for size in (3, 20, 0, 40, 5, 300)]
    with Spill(tmp_path) as spill:
        copies = [spill.copy(content) for content in contents]
    assert len(files) == 2
    for content, copied in zip(contents, copies, strict=True):
        for cells, again in zip(content["keys"], copied["keys"], strict=True):
            np.testing.assert_array_equal(cells, again)


def test_too_many_open_files_are_not_a_full_disk(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    def refused(*args: Any) -> Any:
        raise OSError(errno.EMFILE, "Too many open files")

    monkeypatch.setattr(spill_module, "new_array", refused)
    _, flow = written(tmp_path, publish=PARQUET)
    with pytest.raises(AnonflowError, match="Too many open files; allow more open files and run again"):
        engine.run(flow, seed=SEED)
    assert not list((flow.parent / "owner" / "test").glob("pieces-*"))


def test_a_folder_whose_files_cannot_be_mapped(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """As on some network file systems: the temporary files are on a local disk, the run says so, and the report does not."""

    class MapOnLocalDisk(np.memmap):
        def __new__(cls, path: Any, *args: Any, **settings: Any) -> Any:
            if Path(path).is_relative_to(tmp_path / "shared"):
                raise OSError(errno.ENODEV, "No such device")
            return super().__new__(cls, path, *args, **settings)

    (tmp_path / "shared").mkdir()
    memory, flow = written(tmp_path / "shared", publish=PARQUET)
    (tmp_path / "local").mkdir()
    monkeypatch.setattr(tempfile, "tempdir", str(tmp_path / "local"))
    monkeypatch.setattr(np, "memmap", MapOnLocalDisk)
    events = EventStream()
    messages: list[str] = []
    events.listen(lambda event: messages.append(event.message) if isinstance(event, Log) else None)
    result = compared(memory, flow, events=events)
    (message,) = [message for message in messages if "mapped" in message]
    assert str(tmp_path / "local") in message
    assert not list((tmp_path / "local").iterdir())
    assert not any("mapped" in warning for warning in result.warnings)


def test_a_cancelled_run_keeps_its_batches(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(checkpoints, "EVERY", 0.0)
    memory, flow = written(tmp_path, publish=PARQUET)
    events = EventStream()

    def listen(event: Event) -> None:
        if isinstance(event, PartitionDone) and event.done >= 5:
            events.cancel()

    events.listen(listen)
    with pytest.raises(Cancelled):
        engine.run(flow, seed=SEED, events=events, workers=1)
    owner = flow.parent / "owner" / "test"
    assert list((owner / "checkpoints").glob("*.npz"))
    assert not (flow.parent / "out").exists()
    assert not list(owner.glob("pieces-*"))
    messages = []
    report = engine.run(flow, on_event=lambda event: messages.append(getattr(event, "message", "")))
    assert report.ok
    assert any("partitions are there from an earlier run" in item for item in messages)
    assert engine.run(memory, seed=SEED).ok
    entry, two = (pd.read_parquet(path.parent / "out" / "release.parquet") for path in (memory, flow))
    pd.testing.assert_frame_equal(entry, two)  # the seed of the run that was cancelled


def test_a_release_that_fails_its_check_is_not_published(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Rows that change after the draw are found by their marks."""
    real = publish.publish

    def changed(*args: Any, **settings: Any) -> Any:
        drawn = real(*args, **settings)
        return replace(drawn, frame=drawn.frame.assign(visits=9))

    monkeypatch.setattr(publish, "publish", changed)
    _, flow = written(tmp_path, publish=PARQUET)
    report = engine.run(flow)
    failed = {finding.criterion for finding in report.results[0].findings if not finding.holds}
    assert "certificate" in failed
    assert not (flow.parent / "out").exists()


def test_a_table_without_memory_is_named(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    def hungry(*args: Any) -> Any:
        raise MemoryError

    monkeypatch.setattr(load, "written_columns", hungry)
    _, flow = written(tmp_path, publish=PARQUET)
    with pytest.raises(AnonflowError, match=r"load: .*not enough memory") as caught:
        engine.run(flow, seed=SEED)
    assert caught.value.exit_status == 3
    assert not (flow.parent / "out").exists()
    assert not list((flow.parent / "owner" / "test").glob("pieces-*"))


def test_texts_of_a_parquet_file_that_are_none(tmp_path: Path) -> None:
    torn = pa.array([b"fine", b"t\xffrn"] * 20).view(pa.string())
    _, flow = written(tmp_path, publish=PARQUET)
    file = tmp_path / "t.parquet"
    table = pq.read_table(file)
    table = table.slice(0, 40).set_column(table.column_names.index("city"), "city", torn)
    pq.write_table(table, file)
    with pytest.raises(DataError, match=r"\.parquet: is not a readable Parquet file \(ArrowInvalid\)"):
        engine.run(flow, seed=SEED)


def test_a_column_whose_first_rows_are_missing_has_the_others(tmp_path: Path) -> None:
    """A block without any text does not say that it is of texts."""
    blocks = [
        pd.DataFrame({"seen": categories_at(np.array(cells, object), np.arange(2))})
        for cells in ([None, None], ["Volos", None])
    ]
    with Spill(tmp_path) as spill:
        whole = spill.frame(iter(blocks))
    assert whole["seen"].isna().tolist() == [True, True, False, True]
    assert whole["seen"][2] == "Volos"


@pytest.mark.parametrize("is_file", [True, False])
def test_pieces_of_a_killed_process_are_removed(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, is_file: bool
) -> None:
    """In the owner's folder, and in the system's temporary one, where those of a flow lie that is no file."""
    monkeypatch.setattr(tempfile, "tempdir", str(tmp_path))
    home = tmp_path if is_file else None
    gone = 2**22 + 1  # no process has so high a number
    with Spill(home) as own:
        assert own.path.parent == tmp_path
        left = own.path.with_name(own.path.name.replace(f"-{os.getpid()}-", f"-{gone}-"))
        left.mkdir()
        with Spill(home):
            assert not left.exists()
            assert own.path.exists()  # its process is alive
        assert stat.S_IMODE(own.path.stat().st_mode) == 0o700
    assert not list(tmp_path.iterdir())


def test_a_task_that_is_late_keeps_no_folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """It writes a file while the folder is being emptied, between the list of its files and its end."""
    rmtree = shutil.rmtree
    spill = Spill(tmp_path)

    def emptied(path: Path, **settings: Any) -> None:
        for file in path.iterdir():
            file.unlink()
        with pytest.raises(FileNotFoundError):
            arrays.write_array(spill.file("late"), np.arange(3))
        rmtree(path, **settings)

    with spill:
        arrays.write_array(spill.file("early"), np.arange(3))
        monkeypatch.setattr(shutil, "rmtree", emptied)
    assert not list(tmp_path.iterdir())


def test_suppressed_rows_of_one_person_are_hidden_in_pieces(tmp_path: Path) -> None:
    """k suppressed rows of fewer than k people show nothing, as in memory."""
    frame = visits(200).dropna(subset=["age"])
    frame["name"] = frame["name"].to_numpy() - frame["name"].min()
    frame = frame[frame.groupby("name")["name"].transform("size") >= 3].reset_index(drop=True)
    frame.loc[frame["name"] == frame["name"][0], "age"] = range(
        90, 90 + int((frame["name"] == frame["name"][0]).sum())
    )
    columns = WITH_UNITS.replace("missing: suppress", "max-width: 12")
    flows = written(
        tmp_path, frame=frame, columns=columns, publish=PARQUET, anonymize="{algorithm: mondrian, k: 3}",
        partition="{size: 30}",
    )  # fmt: skip
    report = compared(*flows)
    assert 3 <= report.results[0].suppressed < 12
    cells = pd.read_parquet(flows[1].parent / "out" / "release.parquet").astype(str)
    hidden = (cells[["age", "city", "zip", "job"]] == "*").all(axis=1)
    assert hidden.sum() == report.results[0].suppressed
    assert (cells[hidden] == "*").all(axis=None)


def test_rows_are_written_into_an_array_in_any_order(tmp_path: Path) -> None:
    path, whole = str(tmp_path / "array.npy"), np.arange(12, dtype=np.int32).reshape(6, 2)
    arrays.create_array(path, whole.shape, np.int32)
    for start, stop in ((4, 6), (0, 1), (1, 1), (1, 4)):
        arrays.write_rows(path, start, whole[start:stop])
    np.testing.assert_array_equal(arrays.mapped(path), whole)
    for wrong in (whole[:3].astype(np.int64), whole[:3, :1], np.zeros((7, 2), np.int32)):
        with pytest.raises(ValueError, match="are none of an array"):
            arrays.write_rows(path, 0, wrong)
    np.testing.assert_array_equal(arrays.mapped(path), whole)
