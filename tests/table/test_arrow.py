"""Frames of other libraries: whatever speaks Arrow's PyCapsule interface goes in, and comes back in kind."""

from __future__ import annotations

import json
import sys
import warnings
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
import pyarrow as pa
import pyarrow.compute as pc
import pyarrow.parquet as pq
import pytest

import anonflow as af
from anonflow.errors import DataError, ParameterError
from anonflow.table.arrow import pandas_frame
from tests.strategies import loop

SCHEMA: dict[str, Any] = {
    "age": {"role": "quasi-identifier", "kind": "numeric", "missing": "suppress"},
    "city": {"role": "quasi-identifier", "kind": "categorical"},
    "born": {"role": "quasi-identifier", "kind": "numeric"},
    "pay": {"role": "sensitive"},
}


def people(n: int = 24) -> pa.Table:
    rng = np.random.default_rng(3)
    return pa.table(
        {
            "age": pa.array([None, *rng.integers(18, 80, n - 1).tolist()], pa.int64()),
            "city": pa.array([None, *rng.choice(["Bonn", "Kiel", "Ulm"], n - 1).tolist()]),
            "born": pa.array(rng.choice(pd.date_range("1980-01-01", periods=5), n)),
            "pay": pa.array(rng.choice(["low", "high"], n).tolist()).dictionary_encode(),
        }
    )


class Stream:
    """Nothing but the interface: what a library has of which nobody here has heard."""

    def __init__(self, table: pa.Table) -> None:
        self._table = table

    def __arrow_c_stream__(self, requested_schema: object = None) -> object:
        return self._table.__arrow_c_stream__(requested_schema)


def _polars(table: pa.Table) -> Any:
    return pytest.importorskip("polars").from_arrow(table)


def _run_lengths(table: pa.Table) -> pa.Table:
    return table.set_column(1, "city", pc.run_end_encode(table["city"]))


def _duckdb(table: pa.Table) -> Any:
    return pytest.importorskip("duckdb").from_arrow(table)


KINDS: dict[str, Callable[[pa.Table], Any]] = {
    "pyarrow": lambda table: table,
    "reader": lambda table: table.to_reader(7),
    "stream": Stream,
    "views": lambda table: table.set_column(1, "city", pa.array(table["city"].to_pylist(), pa.string_view())),
    "run lengths": _run_lengths,
    "polars": _polars,
    "duckdb": _duckdb,
}


@loop("kind", KINDS)
def test_every_kind_of_frame_gives_the_same_bits(kind: str) -> None:
    want = af.Table(
        people()
        .cast(pa.schema([f.with_type(pa.string()) if f.name == "pay" else f for f in people().schema]))
        .to_pandas(),
        SCHEMA,
    )
    table = af.Table(KINDS[kind](people()), SCHEMA)
    assert (table.codes == want.codes).all()
    seed = "5eed" * 8
    own = af.anonymize(KINDS[kind](people()), "greedy", k=3, schema=SCHEMA, seed=seed)
    other = af.anonymize(want, "greedy", k=3, seed=seed)
    assert own.frame().equals(other.frame())
    assert own.release(seed=seed).frame.equals(other.release(seed=seed).frame)
    published = KINDS[kind](own.release(seed=seed).to_arrow())
    assert af.verify(KINDS[kind](people()), published, ["covers", "k-regular"], k=3, schema=SCHEMA)
    published = KINDS[kind](own.release(seed=seed).to_arrow())
    assert af.measure(want, published, ["gcp"]) == pytest.approx(af.measure(want, own, ["gcp"]))


def test_a_release_comes_back_as_an_arrow_table_without_metadata() -> None:
    release = af.anonymize(people(), k=3, schema=SCHEMA).release()
    back = release.to_arrow()
    assert isinstance(back, pa.Table)
    assert back.schema.metadata is None
    assert back.column_names == list(release.frame.columns)
    assert {str(kind) for kind in back.schema.types} == {"string"}
    assert back.to_pandas().astype(object).equals(release.frame.astype(object))


def test_a_release_comes_back_as_a_polars_frame() -> None:
    polars = pytest.importorskip("polars")
    release = af.anonymize(_polars(people()), k=3, schema=SCHEMA).release()
    back = release.to_polars()
    assert isinstance(back, polars.DataFrame)
    assert back.to_arrow().cast(release.to_arrow().schema).equals(release.to_arrow())


def test_without_polars_a_sentence_says_what_to_install(monkeypatch: pytest.MonkeyPatch) -> None:
    release = af.anonymize(people(), k=3, schema=SCHEMA).release()
    monkeypatch.setitem(sys.modules, "polars", None)
    with pytest.raises(ParameterError, match=r"pip install polars$"):
        release.to_polars()


def test_a_schema_is_guessed_from_a_stream() -> None:
    assert af.Schema.infer(Stream(people()))["pay"].role == af.Schema.infer(people().to_pandas())["pay"].role
    assert len(af.Schema.advise(Stream(people()))) == 4


@loop("kind", ["pandas", "Float32", "pyarrow", "table", "parquet", "pieces", "stata"])
def test_floats_of_32_bits_are_published_as_they_are_written(
    kind: str, tmp_path_factory: pytest.TempPathFactory
) -> None:
    """0.1 was published as 0.10000000149011612. Whole numbers are not shortened to 123456790."""
    folder = tmp_path_factory.mktemp("floats")
    numbers = np.array([0.1, 0.2, 0.3, 16777216, 123456792, np.nan], np.float32)
    frame = pd.DataFrame({"x": np.array([0.1, 0.2, 0.3, 0.7, 1.5, 2.5], np.float32), "y": numbers})
    schema = {"x": {"role": "quasi-identifier", "kind": "numeric"}, "y": {"role": "sensitive"}}
    if kind in ("parquet", "pieces", "stata"):
        file = folder / ("people.dta" if kind == "stata" else "people.parquet")
        if kind == "stata":
            pytest.importorskip("pyreadstat")
            frame.to_stata(file, write_index=False)
        else:
            frame.to_parquet(file)
    if kind == "pieces":
        columns = {name: dict(column) for name, column in schema.items()}
        spec = {
            "flow": "floats", "version": 1,
            "table": {"source": {"parquet": file.name, "pieces": 2}, "columns": columns},
            "steps": [{"anonymize": {"algorithm": "mondrian", "k": 2}}, {"draw": {}}],
            "publish": {"table": "out/release.csv"},
        }  # fmt: skip
        (folder / "flow.yaml").write_text(json.dumps(spec), encoding="utf-8")
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")
            assert af.run(folder / "flow.yaml").ok
        text = (folder / "out" / "release.csv").read_text(encoding="utf-8")
        assert sorted(text.splitlines()[1:]) == sorted(
            ["0.1-0.3,0.1", "0.1-0.3,0.2", "0.1-0.3,0.3", "0.7-2.5,16777216", "0.7-2.5,123456792", "0.7-2.5,"]
        )
        return
    source: Any = {"Float32": lambda: frame.astype("Float32"), "pyarrow": lambda: frame.astype("float[pyarrow]"),
                   "table": lambda: pa.table(frame)}.get(kind, lambda: frame)()  # fmt: skip
    table = af.Table.read(file, schema) if kind in ("parquet", "stata") else af.Table(source, schema)
    anon = af.anonymize(table, "mondrian", k=2)
    assert anon.frame()["x"].tolist() == ["0.1-0.3"] * 3 + ["0.7-2.5"] * 3
    assert table.frame["y"].tolist()[:5] == [0.1, 0.2, 0.3, 16777216, 123456792]
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        assert af.verify(table, anon.release(seed=2**127))


def test_a_pandas_frame_stays_itself() -> None:
    frame = people().to_pandas()
    assert pandas_frame(frame) is frame
    assert pandas_frame("people.csv") == "people.csv"


def with_lists(table: pa.Table) -> pa.Table:
    """The same people with a column of lists and one of structures, which no schema names."""
    return table.append_column("tags", pa.array([["a"], None] * (len(table) // 2))).append_column(
        "place", pa.array([{"x": 1}] * len(table))
    )


@loop("kind", [kind for kind in KINDS if kind != "run lengths"])
def test_lists_in_a_column_without_a_role_are_not_published(kind: str) -> None:
    """As any other column that the schema does not name."""
    table = af.Table(KINDS[kind](with_lists(people())), SCHEMA)
    assert table.unnamed == ("tags", "place")
    assert list(af.anonymize(table, "greedy", k=3).release().frame.columns) == list(SCHEMA)


def test_lists_in_a_file_are_not_published_either(tmp_path: Path) -> None:
    pq.write_table(with_lists(people()), tmp_path / "people.parquet")
    table = af.Table.read(tmp_path / "people.parquet", SCHEMA)
    assert table.unnamed == ("tags", "place")
    assert (table.codes == af.Table(people(), SCHEMA).codes).all()
    with pytest.raises(DataError, match="column 'tags': holds lists or structures"):
        af.Table.read(tmp_path / "people.parquet", SCHEMA | {"tags": {"role": "sensitive"}})


def test_lists_in_a_column_with_a_role_are_refused() -> None:
    for frame in (with_lists(people()), with_lists(people()).to_pandas()):
        with pytest.raises(DataError, match="column 'tags': holds lists or structures"):
            af.Table(frame, SCHEMA | {"tags": {"role": "sensitive"}})


def test_bad_frames_are_one_sentence() -> None:
    lists = pa.table({"age": [[1], [2]], "city": ["a", "b"]})
    with pytest.raises(DataError, match="column 'age': holds lists or structures"):
        af.Table(lists, SCHEMA)
    # capsules of a stream without columns: an array of numbers is no table
    with pytest.raises(DataError, match="cannot be read as a table"):
        af.Table(pa.chunked_array([[1, 2]]), SCHEMA)
    with pytest.raises(DataError, match="PyCapsule"):
        af.Table([1, 2], SCHEMA)
    lazy = pytest.importorskip("polars").from_arrow(people()).lazy()
    if not hasattr(type(lazy), "__arrow_c_stream__"):
        with pytest.raises(DataError, match=r"compute a lazy frame \(collect\) before"):
            af.Table(lazy, SCHEMA)
    with pytest.raises(ParameterError, match="say schema= of a frame"):
        af.anonymize(people(), k=3)
    table = af.Table(people(), SCHEMA)
    with pytest.raises(ParameterError, match="leave schema out"):
        af.anonymize(table, k=3, schema=SCHEMA)
    with pytest.raises(ParameterError, match="or a frame with schema="):
        af.verify(people(), people(), k=3)
    with pytest.raises(ParameterError, match="say schema= of a frame"):
        af.measure(people(), table)


def test_text_that_is_no_utf_8_is_one_sentence() -> None:
    """Arrow compares nothing when a column is made of buffers."""
    bad = pa.Array.from_buffers(
        pa.utf8(), 1, [None, pa.py_buffer(np.array([0, 2], np.int32).tobytes()), pa.py_buffer(b"\xff\xfe")]
    )
    table = pa.table({"age": pa.array([1]), "city": bad})
    schema = {"city": {"role": "quasi-identifier", "kind": "categorical"}}
    for used in (lambda: af.Table(table, schema), lambda: af.Schema.infer(table)):
        with pytest.raises(DataError, match="column 'city': is not text in UTF-8"):
            used()
