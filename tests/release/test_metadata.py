"""The description beside a release: what it says, what it must not say, and columns that are read with it alone."""

from __future__ import annotations

import json
import os
import re
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from hypothesis import example, given
from hypothesis import strategies as st

import anonflow as af
from anonflow.errors import AnonflowError, DataError, ParameterError, SchemaError
from anonflow.release import Release, ReleaseWarning, read_release
from anonflow.release.tables import write_described, write_table
from anonflow.table import Schema
from anonflow.table.files.metadata_file import metadata_path, metadata_text
from anonflow.table.published.metadata import ReleaseMetadata, SeenCells
from tests import strategies
from tests.cases.releases import released_like
from tests.naive.cells import members, stands_for
from tests.strategies import examples, loop

pytestmark = pytest.mark.filterwarnings(
    "ignore::anonflow.release.ReleaseWarning"
)  # few rows tell much of each other

BOTH = pytest.mark.parametrize("name", ["r.csv", "r.parquet"])

ODD_NAMES = (
    "a,b",
    'q"x',
    "line\nbreak",
    "=1+1",
    "é ü",
    "%41",
    "semi;colon",
    "-x",
    "_u",
    "a-b.c",
    "'=",
    "{x|y}",
)


def quasi(kind: str, **more: Any) -> dict[str, Any]:
    return {"role": "quasi-identifier", "kind": kind, **more}


def one_class(frame: pd.DataFrame, schema: Any, hidden: Any = None) -> Release:
    """A release in which all rows are one class; `hidden` rows are suppressed."""
    suppressed = None if hidden is None else np.array(hidden, bool)
    return released_like(
        frame, k=2, classes=np.zeros(len(frame), np.int64), suppressed=suppressed, schema=schema
    ).release(seed=1 << 100)


def by_rows(frame: pd.DataFrame, classes: list[int], schema: Any) -> Release:
    return released_like(frame, k=2, classes=np.array(classes), schema=schema).release(seed=1 << 100)


def description_of(path: Path) -> Any:
    place = metadata_path(path)
    assert place is not None
    return json.loads(place.read_text(encoding="utf-8"))


# ------------------------------------------------------------------------------------- write, read, equal


@examples(40)
@given(st.data())
def test_what_is_written_is_read_for_every_kind_of_column(tmp_path_factory: Any, data: st.DataObject) -> None:
    """Cells, description and meaning are the same from either file, whatever columns are called."""
    table = data.draw(strategies.tables(min_n=2, max_n=8, kinds=strategies.WITHOUT_CODES, weights=False))
    names = data.draw(st.permutations(ODD_NAMES))
    called = dict(zip(table.frame.columns, names, strict=False))
    frame = table.frame.rename(columns=called)
    schema = Schema({called[name]: column.to_mapping() if column.kind != "hierarchy" else quasi(
        "hierarchy", hierarchy=strategies.city_tree()) for name, column in table.schema.columns.items()})  # fmt: skip
    classes = data.draw(strategies.labels(table.n))
    release = released_like(frame, k=2, classes=classes, schema=schema).release(seed=1 << 100)
    folder = tmp_path_factory.mktemp("r")
    tree = strategies.city_tree()
    below = {tree.labels[v]: tree.leaves[tree.first[v] : tree.last[v] + 1] for v in range(tree.n_nodes)}
    for name in ("r.csv", "r.parquet"):
        af.release.published.write_release(release, folder / name)
        alone = read_release(folder / name)
        assert alone.about == release.about
        pd.testing.assert_frame_equal(alone.frame, release.frame, check_dtype=False)
        again = read_release(folder / name, schema)
        assert release.truth is not None
        for column in schema.quasi_identifiers:
            about = alone.column(column).about
            assert about.notation in ("range", "set", "node", "suppression", "positions")
            own = frame[column].astype(object).where(frame[column].notna(), None)
            for value in own.unique():
                expected = [stands_for(about.notation, cell, below)(value) for cell in release.frame[column]]
                if about.notation == "node":
                    read = again.column(column).contains(value)
                else:
                    read = alone.column(column).contains(value)
                if value is None and about.notation == "range":
                    expected = [cell == "*" for cell in release.frame[column]]
                assert read.tolist() == expected
            if about.notation in ("set", "suppression"):
                for cell, some in zip(release.frame[column], alone.column(column).members, strict=True):
                    assert some is None if cell == "*" else list(some) == members(cell)
            for published in (
                (alone.column(column), again.column(column)) if about.notation != "range" else ()
            ):
                for at, value in enumerate(published.values):
                    assert (
                        published.candidates[published.codes, at].tolist()
                        == published.contains(value).tolist()
                    )


def test_dates_and_times_have_ends(tmp_path: Path) -> None:
    days = pd.to_datetime(["2020-01-01", "2020-01-11", "2021-05-06", "2021-05-06"])
    moments = pd.to_datetime(
        ["2020-01-01 06:00:00", "2020-01-01 18:00:00", "2021-05-06 07:08:09", "2021-05-06 07:08:09"]
    )
    frame = pd.DataFrame({"day": days, "at": moments, "zone": moments.tz_localize("UTC")})
    schema = {name: quasi("numeric") for name in frame}
    release = by_rows(frame, [0, 0, 1, 1], schema)
    release.write(tmp_path / "r.csv")
    back = read_release(tmp_path / "r.csv")
    assert [back.column(name).about.type for name in frame] == ["date", "time", "utc"]
    wide = back.column("day").width > pd.Timedelta(0)
    assert sorted(back.column("day").low.unique()) == [days[0], days[2]]
    assert set(back.column("day").middle[wide]) == {pd.Timestamp("2020-01-06")}
    assert back.column("day").share_of(("2020-01-02", "2020-01-03"))[wide].tolist() == pytest.approx(
        [2 / 11] * 2
    )
    assert back.column("at").share_of(("2020-01-01", "2020-01-01T12:00"))[wide].tolist() == [0.5, 0.5]
    assert back.column("zone").contains("2020-01-01T12:00")[wide].all()
    intervals = back.to_frame("interval")["day"]
    assert pd.Timestamp("2020-01-05") in intervals[wide].iloc[0]
    assert back.to_frame("nullable")["day"].isna().tolist() == wide.tolist()


def test_shares_of_numbers_codes_sets_and_nodes(tmp_path: Path) -> None:
    tree = {"Europe": {"France": None, "Greece": None, "Spain": None}, "Asia": {"Japan": None}}
    (tmp_path / "tree.csv").write_text("France;Europe;*\nGreece;Europe;*\nSpain;Europe;*\nJapan;Asia;*\n")
    frame = pd.DataFrame(
        {
            "whole": [1, 4, 7, 7],
            "real": [0.5, 2.5, 3.0, 3.0],
            "code": ["12", "13", "77", "77"],
            "set": ["a", "b", "c", "c"],
            "land": ["France", "Greece", "Japan", "Japan"],
            "ill": [True, True, True, True],
        }
    )
    schema = Schema(
        {
            "whole": quasi("numeric", domain={"low": 0, "high": 9}),
            "real": quasi("numeric"),
            "code": quasi("positions", domain=list("0123456789")),
            "set": quasi("categorical", domain=["a", "b", "c", "d"]),
            "land": quasi("hierarchy", hierarchy="tree.csv", domain="hierarchy"),
            "ill": {"role": "sensitive"},
        },
        folder=tmp_path,
    )
    by_rows(frame, [0, 0, 1, 1], schema).write(tmp_path / "r.csv")
    back = read_release(tmp_path / "r.csv")
    first = back.column("whole").width > 0
    assert first.sum() == 2

    def shares(name: str, values: Any) -> list[float]:
        return sorted(back.column(name).share_of(values)[[first.idxmax(), (~first).idxmax()]])

    assert shares("whole", (2, 3.5)) == [0, 0.5]
    assert shares("real", (1.5, 3)) == [0.5, 1]
    assert shares("code", ["12", "77"]) == [0.1, 1]
    assert shares("set", ["a"]) == [0, 0.5]
    assert shares("land", ["France", "Japan"]) == [1 / 3, 1]
    assert back.column("land").members[first.idxmax()] == tuple(tree["Europe"])
    assert back.column("land").exact.tolist() == (~first).tolist()
    assert back.column("ill").contains(True).all()
    assert back.to_frame("nullable").dtypes.astype(str).tolist() == [
        "Int64", "Float64", "string", "string", "string", "boolean"
    ]  # fmt: skip
    assert back.to_frame("interval")["whole"][first.idxmax()] == pd.Interval(1, 4, closed="both")
    assert back.column("set").values == ("a", "b", "c", "d")
    assert back.column("set").candidates.sum() == 3


def test_codes_that_are_published_stand_in_the_order_of_their_text(tmp_path: Path) -> None:
    codes = ["91", "15", "42", "33", "88", "27", "60", "74"]
    by_rows(
        pd.DataFrame({"code": codes * 2}), list(range(8)) * 2, Schema({"code": quasi("positions")})
    ).write(tmp_path / "r.csv")
    assert read_release(tmp_path / "r.csv").column("code").values == tuple(sorted(codes))


# ------------------------------------------------------------------------------------- what is not told


def _leaks(first: pd.DataFrame, second: pd.DataFrame, schema: Any, folder: Path) -> None:
    """Two originals, one published file: one description."""
    for name in ("r.csv", "r.parquet"):
        files = []
        for number, frame in enumerate((first, second)):
            (folder / str(number)).mkdir(exist_ok=True)
            path = folder / str(number) / name
            one_class(frame, schema).write(path)
            place = metadata_path(path)
            assert place is not None
            files.append((path.read_bytes(), place.read_bytes()))
        assert files[0][0] == files[1][0], "the case is none: the published files differ"
        assert files[0][1] == files[1][1]


@pytest.mark.parametrize(
    ("kind", "item", "two", "more"),
    [
        ("numeric", [17, 90], [20, 30], {}),
        ("numeric", [17, 90], [0.5, 30], {}),
        ("numeric", [17, 90], pd.to_datetime(["2020-01-01", "2021-01-01"]), {}),
        ("numeric", [17, 90], [None, 30.0], {"missing": "suppress"}),
        ("numeric", [17, 90], [20, 30], {"domain": {"low": 0, "high": 120}}),
        ("categorical", ["a", "b"], ["a", "c"], {}),
        ("categorical", ["a", "b"], ["a", None], {"domain": ["a", "b", None]}),
        ("suppression", ["a", "b"], ["d", "c"], {}),
        ("positions", ["12", "34"], ["567", "890"], {}),
        ("hierarchy", ["Wichita", "San Diego"], [None, "Lincoln"], {"hierarchy": strategies.city_tree()}),
        ("hierarchy", ["1", "200"], ["7", "4000"], {"hierarchy": {"intervals": {"step": 10, "levels": 2}}}),
        ("hierarchy", ["Wichita", "San Diego"], [None, "Lincoln"],
         {"hierarchy": {"nested": strategies.TREE["*"], "root": "*"}, "domain": "hierarchy"}),
    ],
)  # fmt: skip
def test_what_the_cells_hide_the_description_hides(
    tmp_path: Path, kind: str, item: Any, two: Any, more: dict[str, Any]
) -> None:
    """Attack: read the oldest person, the codes behind `*`, or what sort of values there are, off the description."""
    schema = {"q": quasi(kind, **more), "s": {"role": "sensitive"}}
    frames = [pd.DataFrame({"q": values, "s": ["x", "x"]}) for values in (item, two)]
    _leaks(*frames, schema, tmp_path)


VALUES = st.one_of(
    st.none(), st.booleans(), st.integers(-2, 2), st.sampled_from([-0.0, 0.5, 1.0, 1e16]), st.sampled_from(ODD_NAMES),
    st.sampled_from(["*", "1", "1.0", "True", "\r", "007"]), st.dates(), st.sampled_from(["2020-01-01", "2020-01-01T03:04"]).map(pd.Timestamp),
)  # fmt: skip


@examples(60)
@given(st.lists(VALUES, min_size=3, max_size=6), VALUES, VALUES)
@example([1, 1, 0], True, "a")
def test_what_a_suppressed_person_has_changes_nothing_of_the_others(
    tmp_path_factory: Any, cells: list[Any], value: Any, other: Any
) -> None:
    """Attack: read off the others' cells, their types or the description what sort of value the hidden one is."""
    schema = {"q": quasi("categorical"), "s": {"role": "sensitive"}}
    published = []
    for hidden in (value, other):
        frame = pd.DataFrame({"q": ["a", *"b" * len(cells)], "s": pd.Series([hidden, *cells])})
        path = tmp_path_factory.mktemp("r") / "r.csv"
        release = one_class(frame, schema, [True] + [False] * len(cells))
        release.write(path)
        # each of them is shuffled by other random numbers
        rows = release.frame.sort_values(["q", "s"], ignore_index=True)
        published.append((rows.to_csv(), description_of(path), str(release.to_arrow().schema)))
    assert published[0] == published[1]


@pytest.mark.parametrize(
    ("items", "two"),
    [
        ([1, 1], [1.0, 1.0]),
        ([1, 1], ["1", "1"]),
        ([True, True], ["True", "True"]),
        ([None, None], [np.nan, np.nan]),
    ],
)
def test_types_are_those_that_a_csv_file_shows(tmp_path: Path, items: list[Any], two: list[Any]) -> None:
    """Attack: learn from the description how the owner holds a column, which the file does not show."""
    schema = {"q": quasi("numeric"), "s": {"role": "sensitive"}}
    texts = []
    for values in (items, two):
        release = one_class(pd.DataFrame({"q": [1, 2], "s": values}), schema)
        assert release.about is not None
        release.write(tmp_path / "r.csv")
        texts.append(((tmp_path / "r.csv").read_bytes(), metadata_text(release.about, "r.csv")))
    assert texts[0] == texts[1]


def test_a_domain_is_told_only_where_it_is_declared(tmp_path: Path) -> None:
    frame = pd.DataFrame(
        {"age": [17, 90], "work": ["spy", "cook"], "zip": ["12", "34"], "ill": ["flu", "flu"]}
    )
    columns = {
        "age": quasi("numeric"),
        "work": quasi("categorical"),
        "zip": quasi("positions"),
        "ill": {"role": "sensitive"},
    }
    one_class(frame, columns).write(tmp_path / "r.csv")
    text = (tmp_path / "r.csv-metadata.json").read_text()
    for word in ("17", "90", "spy", "cook", "12", "34", "flu"):
        assert word not in text.replace(af.__version__, "")
    entries = description_of(tmp_path / "r.csv")["tableSchema"]["columns"]
    assert [entry.get("urn:anonflow:domain") for entry in entries] == ["not published"] * 3 + [None]
    columns["age"]["domain"] = {"low": 0, "high": 120}
    columns["work"]["domain"] = ["spy", "cook", "nurse"]
    one_class(frame, columns).write(tmp_path / "r.csv")
    age, work, *_ = description_of(tmp_path / "r.csv")["tableSchema"]["columns"]
    assert (age["urn:anonflow:lowest"], age["urn:anonflow:highest"]) == ("0", "120")
    assert work["urn:anonflow:values"] == ["cook", "nurse", "spy"]
    back = read_release(tmp_path / "r.csv")
    assert back.column("age").high.tolist() == [120, 120]
    assert back.column("work").members.tolist() == [("cook", "nurse", "spy")] * 2
    assert back.column("zip").members.tolist() == [None, None]


def test_nothing_but_what_is_published_is_told(tmp_path: Path) -> None:
    """No time, no machine, no method, no count but that of the rows."""
    release = one_class(
        pd.DataFrame({"q": [1, 2], "s": ["x", "x"]}), {"q": quasi("numeric"), "s": {"role": "sensitive"}}
    )
    release.write(tmp_path / "r.parquet")
    document = description_of(tmp_path / "r.parquet")
    (resource,) = document["resources"]
    assert set(document) == {"$schema", "anonflow", "resources"}
    assert resource["anonflow"] == {
        "format": 1, "version": af.__version__, "guarantee": "k-anonymity", "k": 2, "rows": 2
    }  # fmt: skip
    assert [field["anonflow"] for field in resource["schema"]["fields"]] == [
        {"role": "quasi-identifier", "notation": "range", "domain": "not published"},
        {"role": "sensitive", "notation": "exact", "type": "text"},
    ]


# ------------------------------------------------------------------------------------- schemas


@loop(
    ("kind", "domain"),
    [
        ("numeric", [0, 9]),
        ("numeric", {"low": 9, "high": 0}),
        ("numeric", {"low": 0}),
        ("numeric", {"low": "a", "high": "b"}),
        ("numeric", {"low": float("inf"), "high": float("inf")}),
        ("categorical", "a"),
        ("categorical", []),
        ("categorical", ["a", "a"]),
        ("categorical", [1]),
        ("positions", ["ab"]),
        ("positions", [None]),
    ],
)
def test_a_domain_that_cannot_be_one_is_refused(kind: str, domain: Any) -> None:
    with pytest.raises(SchemaError, match="domain"):
        Schema({"q": quasi(kind, domain=domain)})


def test_a_hierarchy_made_from_values_is_not_made_public() -> None:
    with pytest.raises(SchemaError, match="made from the values"):
        Schema({"q": quasi("hierarchy", hierarchy={"intervals": {"step": 10}}, domain="hierarchy")})
    with pytest.raises(SchemaError, match="the word hierarchy"):
        Schema({"q": quasi("hierarchy", hierarchy="t.csv", domain=["a"])})


@loop(
    ("kind", "values", "domain"),
    [
        ("numeric", [1, 200], {"low": 0, "high": 120}),
        ("numeric", [1, 2], {"low": "2020-01-01", "high": "2020-12-31"}),
        ("categorical", ["a", None], ["a", "b"]),
        ("suppression", ["a", "x"], ["a", "b"]),
        ("positions", ["1a", "12"], list("12")),
    ],
)
def test_values_outside_a_declared_domain_are_refused(kind: str, values: list[Any], domain: Any) -> None:
    """Else `*` would stand for less than the description says."""
    schema = {"q": quasi(kind, domain=domain), "s": {"role": "sensitive"}}
    with pytest.raises(DataError, match=r"outside the domain") as error:
        af.Table(pd.DataFrame({"q": values, "s": ["x", "x"]}), schema).codes  # noqa: B018
    assert "200" not in str(error.value)


def test_a_schema_with_domains_is_written_and_read() -> None:
    columns = {
        "a": quasi("numeric", domain={"low": 0.5, "high": 9}),
        "d": quasi("numeric", domain={"low": "2020-01-01", "high": "2021-01-01"}),
        "b": quasi("categorical", domain=[None, "x", "y"]),
        "c": quasi("hierarchy", hierarchy="t.csv", domain="hierarchy"),
    }
    assert Schema(columns).to_mapping() == columns


# ------------------------------------------------------------------------------------- files


def people_release(**more: Any) -> Release:
    frame = pd.DataFrame({"age": [20, 30, 40, 40], "ill": ["flu", "cold", "flu", "gout"]})
    return by_rows(frame, [0, 0, 1, 1], {"age": quasi("numeric", **more), "ill": {"role": "sensitive"}})


def test_a_folder_has_one_data_package_for_all_its_releases(tmp_path: Path) -> None:
    for name in ("b.parquet", "A.pq", "a.parquet"):
        people_release().write(tmp_path / name)
    package = description_of(tmp_path / "b.parquet")
    assert [(each["path"], each["name"]) for each in package["resources"]] == [
        ("A.pq", "a"), ("a.parquet", "a-2"), ("b.parquet", "b")
    ]  # fmt: skip
    (tmp_path / "b.parquet").unlink()
    people_release().write(tmp_path / "a.parquet")
    assert [each["path"] for each in description_of(tmp_path / "a.parquet")["resources"]] == [
        "A.pq",
        "a.parquet",
    ]


def test_a_data_package_of_other_data_is_left_alone(tmp_path: Path) -> None:
    (tmp_path / "datapackage.json").write_text('{"resources": []}')
    with pytest.raises(DataError, match="describes other data; publish to another folder"):
        people_release().write(tmp_path / "r.parquet")
    assert os.listdir(tmp_path) == ["datapackage.json"]
    (tmp_path / "datapackage.json").write_text("[")
    with pytest.raises(DataError, match="not JSON"):
        people_release().write(tmp_path / "r.parquet")
    assert os.listdir(tmp_path) == ["datapackage.json"]


@BOTH
def test_nothing_is_half_written(tmp_path: Path, name: str) -> None:
    """What fails before the names are given leaves the earlier table with its description."""
    people_release().write(tmp_path / name)
    before = {path.name: path.read_bytes() for path in tmp_path.iterdir()}
    assert len(before) == 2
    other = people_release(domain={"low": 0, "high": 99})

    def write(draft: Path) -> Any:
        write_table(other.frame, draft)
        return other.about

    def stop() -> None:
        raise AnonflowError("no")

    with pytest.raises(AnonflowError, match="no"):
        write_described(tmp_path / name, write, stop)
    assert {path.name: path.read_bytes() for path in tmp_path.iterdir()} == before


@BOTH
def test_a_table_never_stands_beside_the_description_of_another(
    tmp_path: Path, name: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Fault: the run is killed between the two names. Left: the new table, without a description."""
    people_release(domain={"low": 0, "high": 99}).write(tmp_path / name)
    real = os.replace

    def replaced(source: Any, target: Any) -> None:
        if Path(target).suffix == ".json":
            raise OSError(5, "lost")
        real(source, target)

    monkeypatch.setattr(os, "replace", replaced)
    with pytest.raises(AnonflowError):
        people_release().write(tmp_path / name)
    assert os.listdir(tmp_path) == [name]
    write_described(tmp_path / name, lambda draft: write_table(people_release().frame, draft))
    assert os.listdir(tmp_path) == [name]


# ------------------------------------------------------------------------------------- bad input


def change(path: Path, **own: Any) -> None:
    """Change what is said of the first column."""
    place = metadata_path(path)
    assert place is not None
    document = json.loads(place.read_text())
    if path.suffix == ".csv":
        document["tableSchema"]["columns"][0] |= {f"urn:anonflow:{key}": own[key] for key in own}
    else:
        document["resources"][0]["schema"]["fields"][0]["anonflow"] |= own
    place.write_text(json.dumps(document))


@pytest.mark.parametrize(
    ("own", "text"),
    [
        ({"notation": "riddle"}, "unknown notation 'riddle'"),
        ({"notation": ["range"]}, "unknown notation"),
        ({"notation": "exact"}, "a role that does not go"),
        ({"role": "identifier"}, "a role that does not go"),
        ({"type": "colour"}, "unknown type 'colour'"),
        ({"type": "date"}, "4 cells are not a range"),
        ({"notation": "positions"}, "cells are not a code of one length"),
        ({"notation": "set", "values": ["1"]}, "4 cells are not a set"),
        ({"notation": "set", "values": [1]}, "values must be a list of texts"),
        ({"notation": "node", "nodes": ["a"], "parents": []}, "lists of one length"),
        ({"notation": "node", "nodes": ["a"], "parents": [-1]}, "its nodes are no tree"),
        ({"notation": "node", "nodes": ["*", "a"], "parents": [-1, 0]}, "4 cells are not a node"),
        ({"lowest": "30", "highest": "50"}, "cells are not in the domain"),
        ({"lowest": "50", "highest": "30"}, "lowest and highest"),
        ({"lowest": "2020-01-01", "highest": "30"}, "lowest and highest"),
    ],
)
def test_a_description_that_contradicts_the_release_is_refused(tmp_path: Path, own: Any, text: str) -> None:
    path = tmp_path / "r.csv"
    frame = pd.DataFrame({"age": [20, 30, 140, 140], "ill": ["flu", "cold", "flu", "gout"]})
    by_rows(frame, [0, 0, 1, 1], {"age": quasi("numeric"), "ill": {"role": "sensitive"}}).write(path)
    change(path, **own)
    with pytest.raises(DataError, match=text) as error:
        read_release(path)
    assert len(str(error.value).splitlines()) == 1


def test_without_the_original_the_description_is_compared_as_well(tmp_path: Path) -> None:
    """Attack: publish the oldest person beside the file, and let who has the schema only verify it."""
    release = one_class(
        pd.DataFrame({"q": [1, 2], "s": ["x", "x"]}), {"q": quasi("numeric"), "s": {"role": "sensitive"}}
    )
    release.write(tmp_path / "r.csv")
    schema = Schema({"q": quasi("numeric"), "s": {"role": "sensitive"}})
    assert af.verify(schema, tmp_path / "r.csv", "k-anonymity")
    place = metadata_path(tmp_path / "r.csv")
    assert place is not None
    document = description_of(tmp_path / "r.csv")
    entry = document["tableSchema"]["columns"][0]
    del entry["urn:anonflow:domain"]
    entry |= {"urn:anonflow:lowest": "1", "urn:anonflow:highest": "97"}
    place.write_text(json.dumps(document), encoding="utf-8")
    check = af.verify(schema, tmp_path / "r.csv", "k-anonymity")
    assert [(each.criterion, each.holds) for each in check] == [("k-anonymity", True), ("description", False)]
    assert "97" not in str(check.frame())


@pytest.mark.parametrize(
    ("text", "words"),
    [
        ("", "not JSON"),
        ("[" * 100_000, "not JSON"),
        ("[]", "describes no table"),
        ("{}", "has no columns"),
        ('{"tableSchema": {"columns": [1]}}', "has no columns"),
        ('{"tableSchema": {"columns": []}}', "says nothing of generalized cells"),
        ('{"urn:anonflow:format": 2, "tableSchema": {"columns": []}}', "is of format 2"),
        (
            '{"urn:anonflow:format": 1, "urn:anonflow:k": "x", "tableSchema": {"columns": []}}',
            "whole numbers",
        ),
        ('{"urn:anonflow:format": 1, "tableSchema": {"columns": [{}]}}', "has no name"),
        (
            '{"urn:anonflow:format": 1, "tableSchema": {"columns": []}}',
            "is in the release, but not described",
        ),
    ],
)
def test_what_is_no_description_is_refused(tmp_path: Path, text: str, words: str) -> None:
    people_release().write(tmp_path / "r.csv")
    (tmp_path / "r.csv-metadata.json").write_text(text)
    with pytest.raises(DataError, match=words):
        read_release(tmp_path / "r.csv")


def test_a_release_that_somebody_has_cut_is_what_its_description_says(tmp_path: Path) -> None:
    path = tmp_path / "r.csv"
    people_release().write(path)
    whole = read_release(path)
    lines = path.read_text().splitlines()
    cut = [line.split(",")[0] for line in lines[:-1]]
    path.write_text("\n".join(cut) + "\n")
    with pytest.warns(
        ReleaseWarning, match=r"has 3 of 4 rows and 1 of \d columns that its description is about"
    ):
        part = read_release(path)
    assert part.about is not None
    assert whole.about is not None
    (column,) = part.about.columns
    assert column == whole.about.columns[0]
    assert (part.about.rows, part.about.k) == (3, whole.about.k)
    path.write_text("\n".join([*lines, lines[-1]]) + "\n")
    with pytest.raises(DataError, match="describes 4 rows, and the release has 5"):
        read_release(path)
    path.write_text("\n".join(f"{line},{at}" for at, line in enumerate(lines)) + "\n")
    with pytest.raises(DataError, match="column '0': is in the release, but not described"):
        read_release(path)


def test_a_release_without_a_description_needs_a_schema(tmp_path: Path) -> None:
    release = people_release()
    release.write(tmp_path / "r.csv")
    (tmp_path / "r.csv-metadata.json").unlink()
    with pytest.raises(DataError, match=r"give the schema, or put r.csv-metadata.json beside it"):
        read_release(tmp_path / "r.csv")
    schema = {"age": quasi("numeric"), "ill": {"role": "sensitive"}}
    assert (
        read_release(tmp_path / "r.csv", schema).column("age").low.tolist()
        == release.column("age").low.tolist()
    )


def test_a_schema_that_the_description_contradicts(tmp_path: Path) -> None:
    people_release(domain={"low": 0, "high": 99}).write(tmp_path / "r.csv")
    for entry in (quasi("categorical"), quasi("numeric", domain={"low": 0, "high": 98})):
        with pytest.raises(DataError, match="'age': the description and the schema"):
            read_release(tmp_path / "r.csv", {"age": entry, "ill": {"role": "sensitive"}})


def test_what_a_column_is_not_asked_for(tmp_path: Path) -> None:
    release = people_release()
    age, ill = release.column("age"), release.column("ill")
    with pytest.raises(ParameterError, match="ask for its members"):
        ill.low  # noqa: B018
    with pytest.raises(ParameterError, match="ask for low and high"):
        age.values  # noqa: B018
    with pytest.raises(ParameterError, match="is not a number"):
        age.contains("x")
    with pytest.raises(ParameterError, match=r"takes \(low, high\)"):
        age.share_of(3)
    with pytest.raises(ParameterError, match="takes a list of values"):
        ill.share_of("flu")
    with pytest.raises(DataError, match="is not in the release"):
        release.column("x")
    with pytest.raises(ParameterError, match="text, nullable or interval"):
        release.to_frame("polars")
    assert "flu" not in repr(ill)


# ------------------------------------------------------------------------------------- hidden cells, domains


def test_what_a_star_stands_for_can_be_supplied() -> None:
    frame = pd.DataFrame({"age": [20, 30], "work": ["a", "b"], "ill": ["flu", "cold"]})
    schema = {"age": quasi("numeric"), "work": quasi("categorical"), "ill": {"role": "sensitive"}}
    release = one_class(frame, schema)
    age, work = release.column("age"), release.column("work")
    assert age.hidden.all()
    assert age.low.isna().all()
    assert age.share_of((1, 2)).isna().all()
    assert age.contains(1000).all()
    assert work.members.tolist() == [None, None]
    assert age.with_domain((0, 99)).high.tolist() == [99, 99]
    assert not age.with_domain((0, 99)).contains(100).any()
    assert work.with_domain(["b", "a", None]).members.tolist() == [(None, "a", "b")] * 2
    for column, domain in (
        (age, 3),
        (age, (9, 0)),
        (work, "ab"),
        (work, []),
        (release.column("ill"), ["flu"]),
    ):
        with pytest.raises(ParameterError, match="domain"):
            column.with_domain(domain)


def test_other_columns_of_few_suppressed_rows_are_hidden(tmp_path: Path) -> None:
    frame = pd.DataFrame({"age": [20, 20, 20, 90], "ill": ["flu", "cold", "flu", "gout"]})
    release = released_like(
        frame, k=2, classes=np.array([0, 0, 0, 1]), suppressed=np.array([False, False, False, True]),
        schema={"age": quasi("numeric"), "ill": {"role": "sensitive"}},
    ).release(seed=1 << 100)  # fmt: skip
    release.write(tmp_path / "r.csv")
    ill = read_release(tmp_path / "r.csv").column("ill")
    assert ill.hidden.sum() == 1
    assert ill.values == ("cold", "flu")
    assert ill.contains("gout").sum() == 1
    assert ill.share_of(["flu"]).isna().tolist() == ill.hidden.tolist()
    summary = read_release(tmp_path / "r.csv").summary()
    assert summary.hidden_rows == 1
    assert any("the values of ill in the rows that are hidden" in each for each in summary.cannot)


@BOTH
def test_numbers_beside_hidden_rows_are_numbers(tmp_path: Path, name: str) -> None:
    """With a missing value that is declared: the star of the rows that are hidden."""
    frame = pd.DataFrame(
        {
            "age": [20, 20, 20, 90],
            "pay": [1.5, 2.0, 3.0, 9.0],
            "size": [1, 2, 3, 4],
            "seen": [True, False, True, False],
            "ill": ["flu", "cold", "*", "gout"],
        }
    )
    plain: dict[str, Any] = {each: {"role": "insensitive"} for each in ("pay", "size", "seen", "ill")}
    release = released_like(
        frame, k=2, classes=np.array([0, 0, 0, 1]), suppressed=np.array([False, False, False, True]),
        schema={"age": quasi("numeric")} | plain,
    ).release(seed=1 << 100)  # fmt: skip
    release.write(tmp_path / name)
    place = metadata_path(tmp_path / name)
    assert place is not None
    document = json.loads(place.read_text())
    if name.endswith(".csv"):
        columns = document["tableSchema"]["columns"]
        assert [each["null"] for each in columns] == [
            "",
            *[["", "*"]] * 3,
            "",
        ]  # a star that is a value stays one
        assert [each["datatype"] for each in columns][1:3] == ["double", "integer"]
    else:
        fields = document["resources"][0]["schema"]["fields"]
        assert [each.get("missingValues") for each in fields] == [None, *[["", "*"]] * 3, None]
        assert [each["type"] for each in fields] == ["string", "number", "integer", "boolean", "string"]
    back = read_release(tmp_path / name)
    assert back.about == release.about
    table = back.to_frame("nullable")
    assert [str(kind) for kind in table.dtypes][1:4] == ["Float64", "Int64", "boolean"]
    assert table[["pay", "size", "seen"]].isna().sum().tolist() == [1, 1, 1]
    assert sorted(table["pay"].dropna()) == [1.5, 2.0, 3.0]
    assert back.column("pay").contains(9.0).sum() == 1
    assert af.verify(af.Table(frame, {"age": quasi("numeric")} | plain), tmp_path / name, "k-anonymity")
    # the hidden person may earn anything, and a model says what is plausible
    earning = af.count(back, {"pay": {"from": 2}})
    assert (earning.certain, earning.possible) == (2, 3)
    assert af.plausible(back, m=2, seed=1)[0]["pay"].between(1.5, 3).all()


def test_hidden_rows_decide_about_a_type_where_their_values_are_published() -> None:
    about = ReleaseMetadata.declared(
        af.Schema.of({"age": quasi("numeric"), "pay": {"role": "insensitive"}}), ["age", "pay"]
    )

    def seen(ages: list[str], pays: list[str]) -> SeenCells:
        return SeenCells.of(pd.DataFrame({"age": ages, "pay": pays}, dtype="str"), about)

    assert about.seeing(seen(["20", "*"], ["1", "*"]))["pay"].type == "integer"
    assert about.seeing(seen(["20", "*"], ["1", "7.5"]))["pay"].type == "number"
    assert about.seeing(seen(["20", "*"], ["*", "*"]))["pay"].type == "text"


# ------------------------------------------------------------------------------------- summary, verify, validators


def test_what_a_receiver_sees(tmp_path: Path) -> None:
    people_release().write(tmp_path / "r.csv")
    summary = read_release(tmp_path / "r.csv").summary()
    assert summary.headline() == "4 rows, 2 columns; k-anonymity, k = 2"
    age, ill = summary.columns
    assert (age.exact, age.generalized, age.hidden, age.domain) == (0.5, 0.5, 0.0, False)
    assert (ill.exact, ill.generalized, ill.hidden, ill.domain) == (1.0, 0.0, 0.0, True)
    assert summary.frame().shape == (2, 7)
    assert json.loads(summary.to_json())["can"] == list(summary.can)
    assert (
        "counts, means and relations of ill among themselves: exact" in summary.can
    )  # of age they are no longer exact
    assert any("2 people or more" in each for each in summary.cannot)
    assert "flu" not in repr(summary) + summary.to_json()


@BOTH
def test_the_verifier_knows_the_description(tmp_path: Path, name: str) -> None:
    frame = pd.DataFrame({"age": [20, 30, 40, 40], "ill": ["flu", "cold", "flu", "gout"]})
    table = af.Table(frame, {"age": quasi("numeric"), "ill": {"role": "sensitive"}})
    people_release().write(tmp_path / name)
    check = af.verify(table, tmp_path / name)  # k is that of the description
    assert check
    assert check.k == 2
    people_release(domain={"low": 20, "high": 40}).write(tmp_path / name)
    check = af.verify(table, tmp_path / name)
    assert not check
    assert "it says of 'age' more than the schema and the cells say" in check["description"].detail


@BOTH
@pytest.mark.parametrize(
    ("own", "altered"), [(r'k": 2\b', 'k": 50'), ("k-anonymity", "k-concealment")], ids=["k", "guarantee"]
)
def test_a_description_promises_what_the_certificate_does(
    tmp_path: Path, name: str, own: str, altered: str
) -> None:
    frame = pd.DataFrame({"age": [20, 30, 40, 40], "ill": ["flu", "cold", "flu", "gout"]})
    table = af.Table(frame, {"age": quasi("numeric"), "ill": {"role": "sensitive"}})
    release = people_release()
    release.write(tmp_path / name)
    proof = release.certificate
    assert af.verify(table, tmp_path / name, k=2, certificate=proof)
    place = metadata_path(tmp_path / name)
    assert place is not None
    text, times = re.subn(own, altered, place.read_text(encoding="utf-8"))
    assert times == 1
    place.write_text(text, encoding="utf-8")
    check = af.verify(table, tmp_path / name, k=2, certificate=proof)
    assert "it promises what the certificate does not" in check["description"].detail
    assert not check
    remarks = " ".join(af.verify(table, tmp_path / name, k=2).remarks)
    assert ("the description beside the file says k = 50; what was checked is k = 2" in remarks) == (
        own != "k-anonymity"
    )


@BOTH
@pytest.mark.parametrize("another_tool", [False, True])
def test_a_description_is_verified_without_the_original(
    tmp_path: Path, name: str, another_tool: bool
) -> None:
    schema = af.Schema.of(
        {"age": quasi("numeric", domain={"low": 20, "high": 40}), "ill": {"role": "sensitive"}}
    )
    path = tmp_path / name
    people_release(domain={"low": 20, "high": 40}).write(path)
    subject: Any = schema
    if another_tool:
        frame = pd.DataFrame({"age": [20, 30, 40, 40, 25], "ill": ["flu", "cold", "flu", "gout", "flu"]})
        subject = af.Table(frame, schema)  # one of five was deleted
    check = af.verify(subject, path, "k-anonymity", another_tool=another_tool)
    assert check
    assert check.k == 2
    assert check["description"].holds
    for own, words in (
        ({"lowest": "0"}, "it says of 'age' more than the schema and the cells say"),
        ({"type": "date"}, "it says of 'age' more than"),
    ):
        people_release(domain={"low": 20, "high": 40}).write(path)
        change(path, **own)
        check = af.verify(subject, path, "k-anonymity", another_tool=another_tool)
        assert not check
        assert check["k-anonymity"].holds
        assert words in check["description"].detail


def test_cells_that_the_description_does_not_allow_are_counted(tmp_path: Path) -> None:
    """What it says is what the schema declares, and yet not what the cells are."""
    path = tmp_path / "r.csv"
    schema = af.Schema.of(
        {
            "age": quasi("numeric", domain={"low": 20, "high": 40}),
            "job": quasi("categorical", domain=["a", "b"]),
            "zip": quasi("positions"),
            "ill": {"role": "sensitive"},
        }
    )
    names = ["age", "job", "zip", "ill"]
    about = ReleaseMetadata.declared(schema, names, None, None)
    good = pd.DataFrame(
        {"age": ["20-40", "*", "30"], "job": ["{a|b}", "*", "a"], "zip": ["941*7", "*", "94107"], "ill": ["x", "y", "x"]}
    )  # fmt: skip
    for column, cell, failing in (
        ("age", "30", 0), ("age", "10-30", 1), ("age", "30-41", 1), ("age", "old", 1),
        ("job", "c", 1), ("job", "{a|c}", 1), ("zip", "9410", 3),
    ):  # fmt: skip
        frame = good.copy()
        frame.loc[2, column] = cell
        release = Release(frame, about=about.seeing(SeenCells.of(frame, about)))
        release.write(path)
        check = af.verify(schema, path, "k-anonymity", k=2)["description"]
        assert (check.holds, check.failed) == (not failing, failing)
        assert repr(cell) not in check.detail


def test_a_description_of_others_is_left_alone(tmp_path: Path) -> None:
    path = tmp_path / "r.csv"
    people_release().write(path)
    (tmp_path / "r.csv-metadata.json").write_text('{"tableSchema": {"columns": [{"name": "age"}]}}')
    schema = af.Schema.of({"age": quasi("numeric"), "ill": {"role": "sensitive"}})
    check = af.verify(schema, path, "k-anonymity", 2)
    assert [each.criterion for each in check] == ["k-anonymity"]
    with pytest.raises(DataError, match="says nothing of generalized cells"):
        read_release(path)


@BOTH
def test_validators_accept_it(tmp_path: Path, name: str) -> None:
    """Other people's validators, where they are installed: csvw, and frictionless with its extra for Parquet."""
    frame = pd.DataFrame(
        {called: [20, 30, 40, 40] for called in ODD_NAMES} | {"ill": ["=1", 'a,"b"\n', None, "*"]}
    )
    release = by_rows(
        frame,
        [0, 0, 1, 1],
        {called: quasi("numeric") for called in ODD_NAMES} | {"ill": {"role": "sensitive"}},
    )
    af.release.published.write_release(release, tmp_path / name)
    place = metadata_path(tmp_path / name)
    assert place is not None
    if name.endswith(".csv"):
        csvw = pytest.importorskip("csvw")
        document = csvw.CSVW(str(place), validate=True)
        assert document.is_valid, [str(each.message) for each in document.warnings]
        assert len(list(document.tables[0])) == 4
    else:
        frictionless = pytest.importorskip("frictionless")
        report = frictionless.validate(str(place), type="package")
        assert report.valid, report.flatten(["message"])


def _set(*path: Any) -> Any:
    """What sets a value at a place of a document."""

    def at(document: Any) -> None:
        *inside, last, value = path
        for key in inside:
            document = document[key]
        document[last] = value

    return at


CSVW_ADDITIONS = {
    "a key of ours": _set("urn:anonflow:seed", "5"),
    "a key of others": _set("dc:creator", "Ann"),
    "the table's sentences": _set("http://purl.org/dc/terms/description", "Ann is 93"),
    "the name of the file": _set("url", "ann-93.csv"),
    "the form of the file": _set("dialect", "commentPrefix", "93"),
    "notes": _set("notes", [{"text": "93"}]),
    "the schema's own": _set("tableSchema", "primaryKey", "age"),
    "a column's title": _set("tableSchema", "columns", 0, "titles", ["age", "93"]),
    "a column's sentences": _set("tableSchema", "columns", 0, "http://purl.org/dc/terms/description", "93"),
    "a column's facets": _set("tableSchema", "columns", 0, "datatype", {"base": "string", "maximum": 93}),
    "a column's null": _set("tableSchema", "columns", 0, "null", ["", "93"]),
    "a column's own": _set("tableSchema", "columns", 0, "urn:anonflow:lowest-hidden", "93"),
    "the version": _set("urn:anonflow:version", "0.2.0 Ann is 93"),
}
RESOURCE = ("resources", 0)
FIELD = (*RESOURCE, "schema", "fields", 0)
PACKAGE_ADDITIONS = {
    "a key of ours": _set("anonflow", "seed", "5"),
    "a key of others": _set("contributors", [{"title": "Ann"}]),
    "the table's own": _set(*RESOURCE, "anonflow", "seed", "5"),
    "the table's sentences": _set(*RESOURCE, "description", "93"),
    "the table's name": _set(*RESOURCE, "name", "ann-93"),
    "a source": _set(*RESOURCE, "sources", [{"title": "93"}]),
    "a column's title": _set(*FIELD, "title", "93"),
    "a column's constraints": _set(*FIELD, "constraints", {"maximum": 93}),
    "a column's own": _set(*FIELD, "anonflow", "oldest", "93"),
    "the version": _set(*RESOURCE, "anonflow", "version", "93"),
}


@pytest.mark.parametrize(
    ("name", "case"),
    [*(("r.csv", case) for case in CSVW_ADDITIONS), *(("r.parquet", case) for case in PACKAGE_ADDITIONS)],
)
def test_a_description_says_only_what_its_writer_writes(tmp_path: Path, name: str, case: str) -> None:
    """Attack: carry what is not published in a place of the description that nobody compares."""
    frame = pd.DataFrame({"age": [20, 30, 40, 40], "ill": ["flu", "cold", "flu", "gout"]})
    table = af.Table(frame, {"age": quasi("numeric"), "ill": {"role": "sensitive"}})
    path = tmp_path / name
    people_release().write(path)
    assert af.verify(table, path)
    place = metadata_path(path)
    assert place is not None
    document = description_of(path)
    (CSVW_ADDITIONS if name == "r.csv" else PACKAGE_ADDITIONS)[case](document)
    place.write_text(json.dumps(document), encoding="utf-8")
    for subject in (table, table.schema):
        check = af.verify(subject, path)
        assert not check, case
        assert check["description"].holds is False
        assert "93" not in check["description"].detail


def test_a_renamed_table_is_told_from_other_additions(tmp_path: Path) -> None:
    people_release().write(tmp_path / "r.csv")
    for ending in ("", "-metadata.json"):
        (tmp_path / f"r.csv{ending}").rename(tmp_path / f"other.csv{ending}")
    schema = af.Schema({"age": quasi("numeric"), "ill": {"role": "sensitive"}})
    check = af.verify(schema, tmp_path / "other.csv")["description"]
    assert not check.holds
    assert check.detail.endswith("all that it says of the name, which is not the file's")


def test_a_description_with_a_key_twice_is_refused(tmp_path: Path) -> None:
    people_release().write(tmp_path / "r.csv")
    place = tmp_path / "r.csv-metadata.json"
    place.write_text(place.read_text().replace('"url":', '"url": "ann-is-93", "url":'))
    with pytest.raises(DataError, match="has a key twice"):
        read_release(tmp_path / "r.csv")


def test_parquet_says_nothing_besides(tmp_path: Path) -> None:
    """Attack: metadata of the file itself, which no reader of rows shows."""
    frame = pd.DataFrame({"age": [20, 30, 40, 40], "ill": ["flu", "cold", "flu", "gout"]})
    table = af.Table(frame, {"age": quasi("numeric"), "ill": {"role": "sensitive"}})
    path = tmp_path / "r.parquet"
    people_release().write(path)
    rows = pq.read_table(path)
    field = rows.schema.field(0).with_metadata({"oldest": "93"})
    for change in (
        lambda: pq.write_table(rows.replace_schema_metadata({"oldest": "93"}), path),
        lambda: pq.write_table(rows.cast(pa.schema([field, rows.schema.field(1)])), path),
        lambda: pq.write_table(rows, path, store_schema=False, write_statistics=True),
    ):
        people_release().write(path)
        assert af.verify(table, path)
        change()
        check = af.verify(table, path)
        assert not check
        assert "the Parquet file carries metadata that anonflow does not write" in check["description"].detail


@BOTH
def test_a_description_that_promises_too_much_fails_without_a_certificate(tmp_path: Path, name: str) -> None:
    frame = pd.DataFrame({"age": [20, 30, 40, 40], "ill": ["flu", "cold", "flu", "gout"]})
    table = af.Table(frame, {"age": quasi("numeric"), "ill": {"role": "sensitive"}})
    path = tmp_path / name
    for own, altered, holds in (
        (r'k": 2\b', 'k": 3', False),
        (r'k": 2\b', 'k": 50', False),
        ("k-anonymity", "p-sensitivity(p=4, column=ill)", False),
        ("k-anonymity", "secrecy", False),
        ("k-anonymity", "k-regular", None),
    ):
        people_release().write(path)
        place = metadata_path(path)
        assert place is not None
        place.write_text(re.sub(own, altered, place.read_text(encoding="utf-8")), encoding="utf-8")
        for subject in (table, table.schema):
            for criteria in (None, ["k-anonymity"]):
                check = af.verify(subject, path, criteria, k=2)
                if holds is False:
                    assert not check, altered
                    assert check["description"].holds is False
                elif subject is table:
                    assert check
                else:
                    assert "k-regular is not checked: it needs the original" in check["description"].detail


@BOTH
def test_a_description_that_promises_too_much_without_a_k_fails(tmp_path: Path, name: str) -> None:
    """The k is then that of the check."""
    frame = pd.DataFrame({"age": [20, 30, 40, 40], "ill": ["flu", "cold", "flu", "gout"]})
    table = af.Table(frame, {"age": quasi("numeric"), "ill": {"role": "sensitive"}})
    people_release().write(tmp_path / name)
    place = metadata_path(tmp_path / name)
    assert place is not None
    text = re.sub(r'"[^"]*\bk": 2,?\s*', "", place.read_text(encoding="utf-8"))
    place.write_text(text, encoding="utf-8")
    assert read_release(tmp_path / name).about.k is None
    for subject in (table, table.schema):
        check = af.verify(subject, tmp_path / name, {"p-sensitivity": 1}, k=3)
        assert check["p-sensitivity"].holds
        assert check["description"].holds is False
        assert "k-anonymity with k = 3, which the rows do not keep" in check["description"].detail
