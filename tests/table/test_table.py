"""Schema and Table: roles, kinds, missing values, files read without guessing."""

from __future__ import annotations

import datetime as dt
import gzip
import pickle
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from hypothesis import given

import anonflow as af
from anonflow.errors import AnonflowError, DataError, HierarchyError, ParameterError, SchemaError
from anonflow.hierarchy import Hierarchy
from anonflow.table import Schema, Table
from anonflow.table.files.read import read_frame
from tests.strategies import city_tree, loop, tables


def qi(kind: str, **entry: Any) -> dict[str, Any]:
    return {"role": "quasi-identifier", "kind": kind, **entry}


def table_of(cells: Any, kind: str, **entry: Any) -> Table:
    return Table(pd.DataFrame({"a": cells}), {"a": qi(kind, **entry)})


# ---------------------------------------------------------------------------------------- values


@loop(
    ("cells", "labels"),
    [
        (pd.Series([3, 1, 2]), ("1", "2", "3")),
        (pd.Series([3.0, 1.5, 1.5]), ("1.5", "3")),
        (pd.Series([3, 1], dtype="Int64"), ("1", "3")),
        (pd.Series([3, 1], dtype="uint8"), ("1", "3")),
        (pd.Series(["10", "9", "8.5"]), ("8.5", "9", "10")),
        (pd.Series([3, 1], dtype=pd.ArrowDtype(pa.int64())), ("1", "3")),
        (pd.Series([2, 1]).astype("category"), ("1", "2")),
        (pd.Series(pd.to_datetime(["2020-05-01", "2019-01-01"])), ("2019-01-01", "2020-05-01")),
        (pd.Series(pd.to_datetime(["2020-05-01 10:00"])), ("2020-05-01T10:00:00",)),
        (pd.Series([dt.date(2020, 5, 1), dt.date(2019, 1, 1)]), ("2019-01-01", "2020-05-01")),
        (pd.Series([dt.date(2020, 5, 1)], dtype=pd.ArrowDtype(pa.date32())), ("2020-05-01",)),
        (pd.Series(["2020-05-01", "2019-01-01"]), ("2019-01-01", "2020-05-01")),
        (pd.Series([-0.0, 0.0]), ("0",)),
    ],
)
def test_numeric_values_and_their_shortest_text(cells: pd.Series, labels: tuple[str, ...]) -> None:
    table = table_of(cells, "numeric")
    assert table.domains[0].labels == labels
    assert table.codes.dtype == np.int32
    assert table.codes.flags.c_contiguous
    assert (np.diff(table.domains[0].points) > 0).all()
    assert table.domains[0].counts.sum() == table.n


@loop(
    ("cells", "labels"),
    [
        (pd.Series(["b", "a", None]), ("", "a", "b")),
        (pd.Series([True, False]), ("False", "True")),
        (pd.Series(["b", "a"], dtype="category"), ("a", "b")),
        (pd.Series(["b", "a"], dtype=pd.ArrowDtype(pa.string())), ("a", "b")),
        (pd.Series([2.0, 1.5]), ("1.5", "2")),
        (pd.Series([2, 1]), ("1", "2")),
        (pd.Series([dt.date(2020, 5, 1)], dtype=object), ("2020-05-01",)),
    ],
)
def test_categorical_values(cells: pd.Series, labels: tuple[str, ...]) -> None:
    assert table_of(cells, "categorical").domains[0].labels == labels


def test_an_unused_category_is_in_no_domain() -> None:
    cells = pd.Series(pd.Categorical(["a", "b"], categories=["a", "b", "ghost"]))
    assert table_of(cells, "categorical").domains[0].labels == ("a", "b")


@loop(
    ("cells", "kind", "entry", "error", "words"),
    [
        ([1.0, None], "numeric", {}, DataError, "1 missing"),
        ([1.0, np.inf], "numeric", {}, DataError, "1 infinite"),
        (["1", "inf"], "numeric", {}, DataError, "1 value is no number"),
        (["1", "x", "x"], "numeric", {}, DataError, "2 values are not numbers"),
        ([1, "2"], "numeric", {}, DataError, "mixes"),
        ([1, "1"], "categorical", {}, DataError, "1 text stands for values of different types"),
        ([True, False], "numeric", {}, DataError, "truth values"),
        ([1j, 2j], "numeric", {}, DataError, "complex"),
        (["2020-01-01", "2020-13-01"], "numeric", {}, DataError, "do not exist"),
        (["2020-01-01", "0000-12-31"], "numeric", {}, DataError, "do not exist|outside the years 1 to 9999"),
        (["2020-01-01T00:00:00Z", "2020-01-01"], "numeric", {}, DataError, "time zone"),
        ([[1], [2]], "categorical", {}, DataError, "no single value"),
        ([b"x"], "categorical", {}, DataError, "bytes"),
        ([1.0, np.inf], "categorical", {}, DataError, "infinite"),
        ([None, None], "numeric", {"missing": "suppress"}, DataError, "no value at all"),
        (["a", None], "categorical", {"missing": "refuse"}, DataError, "1 missing"),
        (["12", "123"], "positions", {}, DataError, "2 different lengths"),
        (["1*"], "positions", {}, DataError, "hidden position"),
        (["12", None], "positions", {}, DataError, "1 missing"),
        (["Lincoln", "Boston", "Boston"], "hierarchy", {"hierarchy": city_tree()}, HierarchyError, "2 cells"),
        (["Lincoln"], "hierarchy", {"hierarchy": city_tree(), "boundary": ["Mars"]}, SchemaError, "boundary"),
        (["Lincoln"], "hierarchy", {"hierarchy": "nowhere.csv"}, HierarchyError, "'a'"),
    ],
)
def test_values_that_do_not_go_with_their_kind(
    cells: list[Any], kind: str, entry: dict[str, Any], error: type[AnonflowError], words: str
) -> None:
    frame = pd.DataFrame(
        {"a": pd.Series(cells, dtype=object if kind != "numeric" or isinstance(cells[0], str) else None)}
    )
    with pytest.raises(error, match=words) as caught:
        Table(frame, {"a": qi(kind, **entry)})
    assert "'a'" in str(caught.value)
    assert "Boston" not in str(caught.value)


def test_a_day_beyond_the_year_9999_is_refused() -> None:
    days = pd.Series(np.array(["2020-01-01", "10000-01-01"], "datetime64[s]"))
    with pytest.raises(DataError, match="'a': has a date outside the years 1 to 9999"):
        Table(pd.DataFrame({"a": days}), {"a": qi("numeric")})


def test_all_bad_columns_are_named_at_once() -> None:
    frame = pd.DataFrame({"a": [1.0, None], "b": [np.inf, 1.0]})
    with pytest.raises(DataError) as caught:
        Table(frame, {"a": qi("numeric"), "b": qi("numeric")})
    assert len(caught.value.problems) == 2


def test_missing_rules() -> None:
    cells = [1.0, None, 3.0]
    kept = table_of(cells, "numeric", missing="suppress")
    assert kept.codes[:, 0].tolist() == [0, -1, 1]
    assert kept.domains[0].has_missing
    dropped = table_of(cells, "numeric", missing="drop")
    assert (dropped.n, dropped.dropped) == (2, 1)
    assert dropped.index.tolist() == [0, 2]
    tree = table_of(["Lincoln", None], "hierarchy", hierarchy=city_tree())
    assert "" in tree.domains[0].labels
    with pytest.raises(DataError, match="every record"):
        table_of([None, None], "categorical", missing="drop")


# ---------------------------------------------------------------------------------------- tables


def test_roles_decide_what_is_published() -> None:
    frame = pd.DataFrame(
        {"name": ["MARKER1", "MARKER2"], "age": [1, 2], "note": [5, 6], "extra": [0, 0], "pay": ["x", "y"]}
    )
    schema = {
        "pay": {"role": "sensitive"},
        "age": qi("numeric"),
        "name": {"role": "identifier"},
        "note": {"role": "insensitive"},
    }
    before = frame.copy()
    table = Table(frame, schema)
    assert list(table.frame.columns) == ["age", "note", "pay"]
    assert table.unpublished == ("name", "extra")
    assert table.unnamed == ("extra",)
    assert table.qi_columns == ("age",)
    assert table.other_columns == ("note", "pay")
    assert table.sensitive == ("pay",)
    pd.testing.assert_frame_equal(frame, before)
    assert "MARKER" not in repr(table)


def test_positions_are_one_quasi_identifier_each() -> None:
    table = table_of(["9412", "9413"], "positions", weight=2)
    assert [domain.name for domain in table.domains] == ["a[0]", "a[1]", "a[2]", "a[3]"]
    assert [domain.weight for domain in table.domains] == [2.0] * 4
    assert table.q == 4


def test_boundaries_become_runs() -> None:
    table = table_of([3, 9, 10, 25], "numeric", boundary={"width": 10})
    assert table.domains[0].bound is not None
    assert table.domains[0].bound.tolist() == [[0, 1], [0, 1], [2, 2], [3, 3]]
    tree = table_of(
        ["Wichita", "Topeka", "Lincoln"], "hierarchy", hierarchy=city_tree(), boundary=["Kansas", "West"]
    )
    domain = tree.domains[0]
    assert domain.bound is not None
    runs = {label: tuple(domain.bound[code]) for code, label in enumerate(domain.labels)}
    assert runs["Wichita"] == runs["Topeka"]
    assert runs["Lincoln"] == (0, domain.size - 1)


@loop(
    ("frame", "schema", "error", "words"),
    [
        (pd.DataFrame([[1, 2]], columns=["a", "a"]), {"a": qi("numeric")}, DataError, "appears 2 times"),
        (pd.DataFrame({"a": []}), {"a": qi("numeric")}, DataError, "no rows"),
        (pd.DataFrame({0: [1]}), {"a": qi("numeric")}, DataError, "not text"),
        (pd.DataFrame({"age": [1]}), {"aeg": qi("numeric")}, SchemaError, "did you mean 'age'"),
        ([[1]], {"a": qi("numeric")}, DataError, "DataFrame"),
    ],
)
def test_frames_that_are_no_table(frame: Any, schema: Any, error: type[AnonflowError], words: str) -> None:
    with pytest.raises(error, match=words):
        Table(frame, schema)


@given(tables())
def test_a_part_keeps_the_domains(table: Table) -> None:
    part = table.take(np.arange(table.n)[::-1])
    assert part.domains is table.domains
    assert (part.codes == table.codes[::-1]).all()
    assert part.index.tolist() == table.index.tolist()[::-1]


# ---------------------------------------------------------------------------------------- schema


@loop(
    ("entry", "words"),
    [
        ("numeric", "needs a mapping"),
        ({"kind": "numeric"}, "no role; say one of"),
        ({"rol": "quasi-identifier", "kind": "numeric"}, r"no role \(is it 'rol'\?\); say one of"),
        ({"role": "sensitve"}, "did you mean 'sensitive'"),
        ({"role": "sensitive", "kind": "numeric"}, "only for the role"),
        ({"role": "insensitive", "hierarchy": "x.csv"}, "only for the role"),
        ({"role": "sensitive", "hierarchy": 3}, "hierarchy must be: a CSV file"),
        ({"role": "quasi-identifier"}, "no kind"),
        (qi("numerc"), "did you mean 'numeric'"),
        (qi("numeric", wieght=2), "did you mean 'weight'"),
        (qi("numeric", dates="d.m.yy"), "did you mean 'd.m.y'"),
        (qi("numeric", decimal=",", write="sorce"), "did you mean 'source'"),
        (qi("numeric", weight=0), "positive"),
        (qi("numeric", weight=True), "positive"),
        (qi("numeric", weight=float("nan")), "positive"),
        (qi("numeric", hierarchy="x.csv"), "goes with kind hierarchy"),
        (qi("hierarchy"), "needs 'hierarchy'"),
        (qi("numeric", boundary=10), "a boundary is"),
        (qi("numeric", boundary={"width": 0}), "a boundary is"),
        (qi("numeric", boundary=["a"]), "a boundary is"),
        (qi("categorical", boundary=["a"]), "a boundary is"),
        (qi("numeric", missing="blank"), "one of refuse, suppress, drop, value"),
        (qi("positions", missing="suppress"), "one of refuse, drop"),
        (qi("categorical", **{"max-width": 3}), "goes with kind numeric"),
        (qi("numeric", **{"max-width": -1}), "at least 0"),
        (qi("categorical", **{"max-set": 0}), "at least 1"),
    ],
)
def test_schema_problems_name_the_column(entry: Any, words: str) -> None:
    with pytest.raises(SchemaError, match=words) as caught:
        Schema({"good": qi("numeric"), "bad": entry})
    assert "'bad'" in str(caught.value)
    assert "'good'" not in str(caught.value)


def test_a_schema_needs_a_quasi_identifier_and_collects_its_problems() -> None:
    with pytest.raises(SchemaError, match="no column has the role"):
        Schema({"a": {"role": "sensitive"}})
    with pytest.raises(SchemaError) as caught:
        Schema({"a": qi("numerc"), "b": {}, "c": qi("numeric", weight=-1)})
    assert len(caught.value.problems) == 3
    with pytest.raises(SchemaError, match="mapping"):
        Schema.of(7)  # type: ignore[arg-type]


def test_a_schema_file_and_back(tmp_path: Path) -> None:
    city_tree().to_csv(tmp_path / "city.csv")
    (tmp_path / "s.yaml").write_text(
        "columns:\n"
        "  age: {role: quasi-identifier, kind: numeric, boundary: {width: 10}, weight: 2}\n"
        "  city: {role: quasi-identifier, kind: hierarchy, hierarchy: city.csv, boundary: [Kansas]}\n"
        "  NO: {role: sensitive}\n",
        encoding="utf-8",
    )
    schema = Schema.read(tmp_path / "s.yaml")
    assert list(schema) == ["age", "city", "NO"]
    assert schema.quasi_identifiers == ("age", "city")
    again = Schema(schema.to_mapping(), folder=tmp_path)
    assert again.to_mapping() == schema.to_mapping()
    of_sensitive = {"a": qi("numeric"), "s": {"role": "sensitive", "hierarchy": "illness.csv"}}
    assert Schema(of_sensitive).to_mapping() == of_sensitive
    frame = pd.DataFrame({"age": [1, 2], "city": ["Wichita", "Lincoln"], "NO": ["x", "y"]})
    assert Table(frame, tmp_path / "s.yaml").q == 2
    with pytest.raises(SchemaError, match="to_csv"):
        Schema({"a": qi("hierarchy", hierarchy=city_tree())}).to_mapping()
    (tmp_path / "bad.yaml").write_text("rows: {}\n", encoding="utf-8")
    with pytest.raises(SchemaError, match="columns"):
        Schema.read(tmp_path / "bad.yaml")
    with pytest.raises(SchemaError):
        Schema.read(tmp_path / "nowhere.yaml")


def test_a_hierarchy_from_intervals_of_the_column() -> None:
    table = table_of([20, 25, 31, 47], "hierarchy", hierarchy={"intervals": {"step": 10, "levels": 2}})
    assert isinstance(table.domains[0].hierarchy, Hierarchy)
    assert table.domains[0].has_value.sum() == 4


def test_inferred_roles_and_kinds() -> None:
    n = 40
    frame = pd.DataFrame(
        {
            "id": range(n),
            "name": [f"person {i}" for i in range(n)],
            "age": [20 + i % 7 for i in range(n)],
            "born": pd.date_range("1980-01-01", periods=n),
            "zip": [f"{90000 + i % 5}" for i in range(n)],
            "sex": ["m", "f"] * (n // 2),
            "diary": [f"long text {i}" for i in range(n)],
            "height": [1.5 + i / 100 if i else None for i in range(n)],
            "disease": ["flu", "cold"] * (n // 2),
            "one": ["same"] * n,
            "married": [True, False] * (n // 2),
            "workclass": ["private", "state"] * (n // 2),
            "income class": ["low", "high"] * (n // 2),
        }
    )
    schema = Schema.infer(frame)
    results = {name: (column.role, column.kind) for name, column in schema.items()}
    assert results == {
        "id": ("identifier", None),
        "name": ("identifier", None),
        "age": ("quasi-identifier", "numeric"),
        "born": ("quasi-identifier", "numeric"),
        "zip": ("quasi-identifier", "positions"),
        "sex": ("quasi-identifier", "categorical"),
        "diary": ("identifier", None),
        "height": ("quasi-identifier", "numeric"),
        "disease": ("sensitive", None),
        "one": ("insensitive", None),
        "married": ("quasi-identifier", "categorical"),
        "workclass": ("quasi-identifier", "categorical"),
        "income class": ("sensitive", None),
    }
    assert Table(frame, schema).n == n


# ---------------------------------------------------------------------------------------- files


def test_csv_cells_stay_text(tmp_path: Path) -> None:
    text = 'code,who,n\n01234,NA,1\nNO,None,?\n"a,b","two\nlines",\n'
    (tmp_path / "t.csv").write_text(text, encoding="utf-8")
    frame = read_frame(tmp_path / "t.csv", missing=["?"])
    assert frame["code"].tolist() == ["01234", "NO", "a,b"]
    assert frame["who"].tolist() == ["NA", "None", "two\nlines"]
    assert frame["n"].isna().tolist() == [False, True, True]
    with gzip.open(tmp_path / "t.csv.gz", "wt", encoding="utf-8") as stream:
        stream.write(text)
    pd.testing.assert_frame_equal(read_frame(tmp_path / "t.csv.gz", missing=["?"]), frame)
    (tmp_path / "u.csv").write_bytes("\ufeffa;b\né;1\n".encode())
    assert read_frame(tmp_path / "u.csv", delimiter=";").columns.tolist() == ["a", "b"]
    (tmp_path / "l.csv").write_bytes("a,b\né,1\n".encode("latin-1"))
    assert read_frame(tmp_path / "l.csv", encoding="latin-1")["a"].tolist() == ["é"]


@pytest.mark.parametrize(
    ("name", "content", "options", "words"),
    [
        ("a.csv", b"a,b\n1,2\n3\n4,5,6\n", {}, "2 rows"),
        ("a.csv", b"", {}, "empty"),
        ("a.csv", b"a,b\n\xff\xfe,2\n", {}, "utf-8"),
        ("a.csv", b"a,a\n1,2\n", {}, "same name"),
        ("a.csv", b"a,\n1,2\n", {}, "no name"),
        ("a.csv", b"a\n1\n", {"encoding": "klingon"}, "unknown encoding"),
        *(
            ("a.csv", b"a\n1\n", {"encoding": codec}, "unknown encoding")
            for codec in ("bz2", "zip", "hex", "uu", "rot13", "punycode", "undefined", "a\0b")
        ),
        ("a.csv", b"a\n1\n", {"delimiter": "||"}, "one character"),
        ("a.xlsx", b"PK", {}, "is not a readable Excel workbook"),
        ("a.docx", b"PK", {}, "csv or .parquet"),
        ("a.parquet", b"PAR1 not", {}, "not a readable Parquet"),
    ],
)
def test_files_that_are_no_table(
    tmp_path: Path, name: str, content: bytes, options: dict[str, Any], words: str
) -> None:
    (tmp_path / name).write_bytes(content)
    with pytest.raises(DataError, match=words):
        read_frame(tmp_path / name, **options)


def test_texts_of_a_parquet_file_that_are_none(tmp_path: Path) -> None:
    torn = pa.array([b"fine", b"t\xffrn"]).view(pa.string())
    pq.write_table(pa.table({"a": [1, 2], "b": torn}), tmp_path / "t.parquet")
    with pytest.raises(DataError, match=r"not a readable Parquet file \(ArrowInvalid\)"):
        read_frame(tmp_path / "t.parquet")


def test_files_that_are_not_there(tmp_path: Path) -> None:
    with pytest.raises(DataError, match="does not exist"):
        read_frame(tmp_path / "no.csv")
    for ending in (".csv", ".parquet", ".xlsx"):
        with pytest.raises(DataError, match="cannot be opened: "):
            read_frame("n" * 5_000 + ending)
    (tmp_path / "a.csv").write_text("a\n1\n")
    for name in ("delimiter", "encoding"):
        with pytest.raises(ParameterError, match=f"{name} is a text, not a int"):
            read_frame(tmp_path / "a.csv", **{name: 5})
    for missing, text in (
        (5, "a list of texts, not a int"),
        ("NA", "a list of texts, not a str"),
        ([5], "a text, not a int"),
    ):
        with pytest.raises(ParameterError, match=f"missing is {text}"):
            read_frame(tmp_path / "a.csv", missing=missing)  # type: ignore[arg-type]
    (tmp_path / "d.csv").mkdir()
    with pytest.raises(DataError, match="is not a file"):
        read_frame(tmp_path / "d.csv")


def test_parquet_without_pandas_metadata(tmp_path: Path) -> None:
    frame = pd.DataFrame({"a": [1, 2], "b": ["x", None]}, index=[7, 9])
    frame.to_parquet(tmp_path / "t.parquet")
    back = read_frame(tmp_path / "t.parquet")
    assert back["a"].tolist() == [1, 2]
    pd.DataFrame({"a": [[1], [2]]}).to_parquet(tmp_path / "nested.parquet")
    with pytest.raises(DataError, match="lists or structures"):
        read_frame(tmp_path / "nested.parquet")


def test_read_is_a_table(tmp_path: Path) -> None:
    (tmp_path / "t.csv").write_text("age,pay\n30,x\n40,y\n", encoding="utf-8")
    table = Table.read(tmp_path / "t.csv", {"age": qi("numeric"), "pay": {"role": "sensitive"}})
    assert table.domains[0].labels == ("30", "40")
    with pytest.raises(DataError) as caught:
        Table.read(tmp_path / "t.csv", {"age": qi("numeric"), "pay": qi("numeric")})
    assert str(caught.value).startswith(f"{tmp_path / 't.csv'}: column 'pay': 2 values are not numbers")


def test_a_schemas_problems_carry_their_path() -> None:
    columns = {
        "age": {"role": "quasi-identifier", "kind": "numeric", "weight": -1, "boundary": ["x"]},
        "city, column 'x': unknown key 'y'": {"role": "nobody"},
        "job": {"role": "quasi-identifier", "kind": "categorical", "max-with": 3},
    }
    with pytest.raises(SchemaError) as caught:
        Schema(columns)
    error = pickle.loads(pickle.dumps(caught.value))
    assert [path for path, _ in error.found] == [
        ("age", "weight"),
        ("age", "boundary"),
        ("city, column 'x': unknown key 'y'", "role"),
        ("job", "max-with"),
    ]
    assert tuple(text for _, text in error.found) == error.problems == caught.value.problems


def test_a_schema_is_guessed_of_names_that_a_table_takes() -> None:
    """Two columns without a name were one column of the guess, and columns of two levels had a name that no table has."""
    cells = np.arange(12).reshape(4, 3)
    two_levels = pd.MultiIndex.from_tuples([("a", "x"), ("a", "y"), ("b", "z")])
    for names, words in (
        ([None, None, "b"], "some columns have no name"),
        ([np.nan, np.nan, "b"], "some columns have no name"),
        (["", "", "b"], "some columns have no name"),
        (two_levels, "names of several levels"),
        (["a", 1, "b"], "some column names are not text"),
        (["a", "a", "b"], "column 'a' appears 2 times"),
    ):
        frame = pd.DataFrame(cells, columns=names)
        for used in (
            lambda frame=frame: Schema.infer(frame),
            lambda frame=frame: Schema.advise(frame),
            lambda frame=frame: Table(frame, {"b": qi("numeric")}),
        ):
            with pytest.raises(DataError, match=words):
                used()


def test_a_name_that_is_no_text_is_advice_for_python_too() -> None:
    with pytest.raises(
        SchemaError, match="a column's name is not text, or empty; in a file, put it in quotes"
    ):
        Schema({5: qi("numeric")})


@pytest.mark.filterwarnings("ignore::anonflow.release.ReleaseWarning")  # few days, each of one person
@pytest.mark.parametrize("ending", ["csv", "parquet"])
@pytest.mark.parametrize(
    "days",
    [
        [dt.date(1850, 1, 1 + day) for day in range(12)],
        pytest.param(
            [dt.date(1600, 1, 1 + day) for day in range(12)],
            marks=pytest.mark.skipif(
                pd.__version__ < "3", reason="pandas 2 has no such dates in a column of objects"
            ),
        ),
        list(pd.date_range("1890-01-01", periods=12, tz="Europe/Berlin")),
        list(pd.date_range("2020-03-28 20:00", periods=12, freq="h", tz="Europe/Berlin")),
    ],
    ids=["before 1900", "before 1677", "a zone before 1900", "a zone in spring"],
)
def test_dates_come_back_as_they_went_in(tmp_path: Path, days: list[Any], ending: str) -> None:
    """Published as a column of its own, each is the same moment, with the same offset; as a QI it verifies."""
    frame = pd.DataFrame({"day": days, "city": list("ab" * 6)})
    schema = {"day": {"role": "sensitive"}, "city": qi("categorical")}
    table = Table(frame, schema)
    release = af.anonymize(table, "mondrian", k=2).release(seed=2**127)
    release.write(tmp_path / f"r.{ending}")
    assert af.verify(table, tmp_path / f"r.{ending}")
    back = af.read_release(tmp_path / f"r.{ending}").frame["day"]
    texts = [str(cell) for cell in back]
    assert sorted(texts) == sorted(day.isoformat() for day in days)
    shown = Table(frame, {"day": qi("numeric"), "city": {"role": "sensitive"}})
    af.anonymize(shown, "mondrian", k=2).release(seed=2**127).write(tmp_path / f"q.{ending}")
    assert af.verify(shown, tmp_path / f"q.{ending}")


def test_lists_in_a_release_and_a_name_that_is_too_long_are_refused() -> None:
    frame = pd.DataFrame({"day": range(12), "city": list("ab" * 6)})
    table = Table(frame, {"day": qi("numeric"), "city": {"role": "sensitive"}})
    release = af.anonymize(table, "mondrian", k=2).release(seed=2**127)
    with pytest.raises(DataError, match="column 'city': has lists"):
        af.verify(table, release.frame.assign(city=[["a"]] * 12), k=2)
    for ending in (".csv", ".parquet"):
        with pytest.raises(DataError, match="cannot be written"):
            release.write("n" * 5_000 + ending)


@pytest.mark.parametrize("ending", ["csv", "parquet"])
def test_columns_without_a_name_do_not_have_the_same_name(tmp_path: Path, ending: str) -> None:
    path = tmp_path / f"people.{ending}"
    if ending == "csv":
        path.write_text(",,b\n1,2,3\n")
    else:
        pq.write_table(pa.table([pa.array([1])] * 3, names=["", "", "b"]), path)
    with pytest.raises(DataError) as caught:
        read_frame(path)
    assert "no name" in str(caught.value)
    assert "same name" not in str(caught.value)


def test_names_of_several_levels_have_a_sentence_for_python() -> None:
    levels = pd.MultiIndex.from_tuples([("a", "x"), ("a", "y")])
    frame = pd.DataFrame([[1, 2], [3, 4]], columns=levels)
    with pytest.raises(DataError, match="MultiIndex") as caught:
        af.Schema.infer(frame)
    frame.columns = eval(str(caught.value).split("frame.columns = ")[1], {"frame": frame})
    assert list(af.Schema.infer(frame)) == ["a_x", "a_y"]
