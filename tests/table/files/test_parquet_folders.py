"""Folders of Parquet files whose parts differ: joined where nothing is lost, else named, in memory and in pieces alike."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pyarrow as pa
import pyarrow.parquet as pq
import pytest

import anonflow as af
from anonflow.errors import DataError
from anonflow.table.files.parquet_reading import read_parquet
from tests.strategies import loop

FLOW = """\
flow: people
version: 1
table:
  source: {parquet: people, pieces: %s}
  columns:
    age: {role: quasi-identifier, kind: numeric}
    x: {role: insensitive}
steps:
  - anonymize: {algorithm: mondrian, k: 3}
"""
AGES = [20, 25, 31] * 4


def folder_of(place: Path, *columns: pa.Array) -> Path:
    folder = place / "people"
    folder.mkdir(exist_ok=True)
    for at, cells in enumerate(columns):
        table = pa.table({"age": AGES[: len(cells)], "x": cells}) if at % 2 == 0 else None
        table = table or pa.table({"x": cells, "age": AGES[: len(cells)]})
        pq.write_table(table, folder / f"{at}.parquet")
    return folder


def whole(*numbers: Any, kind: pa.DataType | None = None) -> pa.Array:
    return pa.array([*numbers] * (12 // len(numbers)), kind)


@loop(
    ("first", "second", "dtype"),
    [
        (whole(1, 2), whole(0.5, 2.0), "float64"),
        (whole(0.5, 2.0), whole(1, 2), "float64"),
        (whole(1, 2, kind=pa.int8()), whole(1, 2), "int64"),
        (whole("a", "b").dictionary_encode(), whole("b", "c"), "str"),
        (whole("a", "b"), whole("b", "c").dictionary_encode(), "str"),
        (whole("a", "b", kind=pa.large_string()), whole("b", "c"), "str"),
        (whole(None, None), whole("b", "c"), "str"),
        (whole(1, 2), whole(None, None), "float64"),
    ],
)
def test_parts_are_joined_where_nothing_is_lost(
    tmp_path: Path, first: pa.Array, second: pa.Array, dtype: str
) -> None:
    frame = read_parquet(folder_of(tmp_path, first, second))
    assert frame["x"].astype(object).where(frame["x"].notna(), None).tolist() == [
        *first.to_pylist(),
        *second.to_pylist(),
    ]
    assert frame["x"].dtype == dtype or dtype == "str"
    for pieces in ("true", "false"):
        (tmp_path / "flow.yaml").write_text(FLOW % pieces)
        assert af.run(tmp_path / "flow.yaml").results[0].records == 24


@loop(
    ("first", "second", "words"),
    [
        (whole("a", "b"), whole(1, 2), "column 'x': is int64 in {1} and string in {0}, which cannot be joined without loss"),
        (whole(True, False), whole(1, 2), "column 'x': is int64 in {1} and bool in {0}"),
        (whole(0.5, 2.0), whole(2**53 + 1, 2), "column 'x': is int64 in {1} and double in {0}"),
        (whole(2**53 + 1, 2), whole(0.5, 2.0), "column 'x': is int64 in {0} and double in {1}"),
        (whole(0.5, 2.0), whole(1, 2).cast(pa.decimal128(21, 1)), "column 'x': is decimal128(21, 1) in {1} and double in {0}"),
    ],
)  # fmt: skip
def test_else_the_column_both_types_and_both_files_are_named(
    tmp_path: Path, first: pa.Array, second: pa.Array, words: str
) -> None:
    folder = folder_of(tmp_path, first, second)
    says = words.format(folder / "0.parquet", folder / "1.parquet")
    with pytest.raises(DataError) as caught:
        read_parquet(folder)
    assert says in str(caught.value)
    for pieces in ("true", "false"):
        (tmp_path / "flow.yaml").write_text(FLOW % pieces)
        with pytest.raises(DataError) as caught:
            af.run(tmp_path / "flow.yaml")
        assert says in str(caught.value), pieces


def test_files_in_folders_below_are_not_left_out_without_a_word(tmp_path: Path) -> None:
    """The rows of `people/year=2021/b.parquet` were left out."""
    table = pa.table({"age": [1, 2]})
    (tmp_path / "people" / "year=2021").mkdir(parents=True)
    (tmp_path / "people" / "_temporary").mkdir()
    pq.write_table(table, tmp_path / "people" / "_temporary" / "a.parquet")
    pq.write_table(table, tmp_path / "people" / "a.parquet")
    assert len(read_parquet(tmp_path / "people")) == 2
    pq.write_table(table, tmp_path / "people" / "year=2021" / "b.parquet")
    with pytest.raises(
        DataError,
        match=r"folders such as year=2021, which are not read; put all files into one",
    ):
        read_parquet(tmp_path / "people")


def test_a_column_that_one_part_lacks_is_named(tmp_path: Path) -> None:
    folder = folder_of(tmp_path, whole(1, 2))
    pq.write_table(pa.table({"age": AGES}), folder / "1.parquet")
    with pytest.raises(DataError, match=r"1\.parquet: has no column 'x', which .*0\.parquet has"):
        read_parquet(folder)
    pq.write_table(pa.table({"age": AGES, "x": AGES, "y": AGES}), folder / "1.parquet")
    with pytest.raises(DataError, match=r"0\.parquet: has no column 'y', which .*1\.parquet has"):
        read_parquet(folder)
