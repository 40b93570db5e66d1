"""Tables whose columns and codes are mapped: what is left of them when a run ends, and what they take."""

from __future__ import annotations

import pickle
import tempfile
import threading
from collections.abc import Iterator
from datetime import date
from decimal import Decimal
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from anonflow import engine
from anonflow.engine.execution.schedulers import Executor
from anonflow.engine.owner.resume import ResumeStore
from anonflow.engine.storage import mapped_columns
from anonflow.engine.storage.arrays import TableOrder, mapped, write_array
from anonflow.engine.storage.mapped_columns import written_columns
from anonflow.engine.storage.spill import Spill
from anonflow.engine.storage.storage import Storage
from anonflow.errors import AnonflowError, DataError
from anonflow.table.forms.text_columns import plain_frame, text_type
from tests.cases.flow_files import write_flow
from tests.strategies import loop

SEED = 0x1234567890ABCDEF1234567890ABCDEF


def test_a_wide_table_needs_no_more_files_at_once_than_a_process_may_open(tmp_path: Path) -> None:
    """Texts take two files a column, and three with blanks; a table may have 10,000 columns."""
    resource = pytest.importorskip("resource")
    soft, hard = resource.getrlimit(resource.RLIMIT_NOFILE)
    texts = pa.array(["a", None, "b"])
    batch = pa.record_batch([texts] * 300, names=[f"c{number}" for number in range(300)])
    resource.setrlimit(resource.RLIMIT_NOFILE, (256, hard))
    try:
        columns = written_columns(str(tmp_path / "columns"), batch.schema, [batch, batch])
    finally:
        resource.setrlimit(resource.RLIMIT_NOFILE, (soft, hard))
    assert columns.table(["c299"]).column(0).to_pylist() == ["a", None, "b"] * 2


def test_columns_that_are_written_hold_at_most_a_bit_for_each_cell(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """A byte for each cell of all columns would be 10 GB of 100 million rows and 100 columns, also where nothing is missing."""
    writers: list[Any] = []
    start = mapped_columns._ColumnFiles.__init__

    def noted(self: Any, file: str, kind: pa.DataType) -> None:
        writers.append(self)
        start(self, file, kind)

    monkeypatch.setattr(mapped_columns._ColumnFiles, "__init__", noted)
    batch = pa.record_batch(
        [pa.array([1.0, None] * 2_000), pa.array([True, False] * 2_000)], names=["number", "truth"]
    )
    held = []

    def batches() -> Iterator[pa.RecordBatch]:
        for _ in range(10):
            yield batch
        for writer in writers:
            arrays = [part for value in vars(writer).values() if isinstance(value, list) for part in value]
            held.append(sum(part.nbytes for part in arrays))

    written_columns(str(tmp_path / "columns"), batch.schema, batches())
    numbers, truths = held
    assert numbers <= 40_000 // 8 + 8 * 10
    assert truths <= 2 * (40_000 // 8 + 8 * 10)  # the truth values, and which cells have one


@loop("count", [0, 1, 126, 127, 128, 300, 32_766, 32_767, 40_000])
def test_texts_of_a_published_column_are_numbers_as_wide_as_pandas_has_them(count: int) -> None:
    """So that they stay in their file: of each block the texts are others, some are missing, and the last ones widen all before."""
    rng = np.random.default_rng(count)
    texts = np.array([f"t{number}" for number in range(count)] + [None], object)
    blocks = [texts[rng.integers(count + 1, size=50)] for _ in range(3)] + [texts, texts[::-1]]
    frames = [
        pd.DataFrame({"text": pd.Categorical(block), "number": np.arange(len(block))}) for block in blocks
    ]
    with tempfile.TemporaryDirectory() as home, Spill(Path(home)) as spill:
        whole = spill.frame(iter(frames))
        codes = whole["text"].array.codes
        assert codes.dtype == pd.Categorical([], categories=range(count)).codes.dtype
        assert not count or buffer_of(codes) is not None
        cells = plain_frame(whole)
        assert cells["text"].dtype == text_type()
        wanted = np.concatenate(blocks)
        assert [None if pd.isna(text) else text for text in cells["text"]] == wanted.tolist()
        np.testing.assert_array_equal(
            cells["number"], np.concatenate([np.arange(len(block)) for block in blocks])
        )


def buffer_of(array: Any) -> Any:
    """What the numbers of an array lie in that is a view; None of one that has its own."""
    while isinstance(array, np.ndarray):
        array = array.base
    return array


def test_files_of_a_run_go_also_if_its_results_cannot_be_stored(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """A full disk stops the run, and is still full when its results are to be stored."""
    flow = write_flow(
        tmp_path,
        source="{csv: people.csv, pieces: true}",
        steps="  - measure: [k-marginals]\n",
        publish="",
    )

    def full(self: ResumeStore, seed: int, early: bool) -> None:
        raise AnonflowError("no room")

    def stopped(*arguments: object) -> None:
        raise AnonflowError("no room")

    monkeypatch.setattr(ResumeStore, "ended", full)
    monkeypatch.setattr(Storage, "completed", stopped)
    with pytest.raises(AnonflowError):
        engine.run(flow, seed=SEED)
    assert not list((tmp_path / "owner").rglob("pieces-*"))


def test_rows_that_a_step_leaves_out_are_not_on_disk_when_it_is_done(tmp_path: Path) -> None:
    flow = write_flow(
        tmp_path,
        source="{csv: people.csv, pieces: 20}",
        columns="    age: {role: quasi-identifier, kind: numeric}\n    city: {role: insensitive}\n"
        "  prepare:\n    - filter: {column: age, at-least: 30}\n",
        publish="",
    )
    names: list[str] = []

    def look(event: Any) -> None:
        if getattr(event, "step", "") == "cut":
            names.extend(file.name for file in (tmp_path / "owner").rglob("*") if file.is_file())

    assert engine.run(flow, seed=SEED, on_event=look).ok
    assert any(name.startswith("columns-") for name in names)
    assert not [name for name in names if name.startswith(("before-", "source-"))]


@pytest.mark.parametrize("values", [None, "memory", "mapped"])
@pytest.mark.parametrize("positions", ["memory", "mapped"])
def test_rows_travel_with_all_they_have(tmp_path: Path, positions: str, values: str | None) -> None:
    """By their files where all arrays are mapped, else taken out of them."""
    arrays = {
        "codes": np.arange(20, dtype=np.int32).reshape(10, 2),
        "positions": np.arange(10)[::-1].copy(),
        "values": np.arange(10, dtype=np.int64)[:, None],
    }
    for name, where in (("codes", "mapped"), ("positions", positions), ("values", values)):
        if where == "mapped":
            arrays[name] = write_array(str(tmp_path / f"{name}.npy"), arrays[name])
    order = TableOrder(arrays["codes"], arrays["positions"], None if values is None else arrays["values"])
    at, records, taken = pickle.loads(pickle.dumps(order.rows(2, 5))).load(())
    assert at.tolist() == [7, 6, 5]
    assert records.codes.tolist() == [[14, 15], [12, 13], [10, 11]]
    assert (None if taken is None else taken.ravel().tolist()) == (None if values is None else [7, 6, 5])


def test_what_is_no_array_of_a_run_is_not_mapped(tmp_path: Path) -> None:
    file = tmp_path / "array.npy"
    file.write_bytes(b"\x93NUMPY\x01\x00 torn")
    with pytest.raises(OSError, match="is no array of this run"):
        mapped(str(file))


def both(folder: Path, cells: pa.Array, step: str, name: str = "x") -> list[str]:
    """The release of a flow with a preparation step, or its error, in memory and in pieces."""
    count = len(cells)
    table = pa.table({"age": [20 + row % 9 for row in range(count)], "x": cells})
    pq.write_table(table, folder / "people.parquet", row_group_size=40)
    results = []
    for pieces in ("false", "30"):
        place = folder / pieces
        place.mkdir()
        flow = write_flow(
            place,
            source=f"{{parquet: ../people.parquet, pieces: {pieces}}}",
            columns=f"    age: {{role: quasi-identifier, kind: numeric}}\n    {name}: {{role: insensitive}}\n"
            f"  prepare:\n    - {step}\n",
            publish="{table: out/release.parquet}",
        )
        try:
            engine.run(flow, seed=SEED)
            results.append(str(pq.read_table(place / "out" / "release.parquet")))
        except AnonflowError as error:
            results.append(str(error))
    return [result.replace(str(folder / "false"), "").replace(str(folder / "30"), "") for result in results]


@pytest.mark.parametrize(
    ("cells", "step", "name"),
    [
        (pa.array([date(2020, 1, 1 + row % 9) for row in range(120)]), "rename: {column: x, to: y}", "y"),
        (pa.array([Decimal(row % 9) for row in range(120)]), "filter: {column: x, without: [3]}", "x"),
    ],
)
def test_a_step_takes_dates_and_decimals_in_pieces(
    tmp_path: Path, cells: pa.Array, step: str, name: str
) -> None:
    memory, pieces = both(tmp_path, cells, step, name)
    assert memory == pieces


def test_whole_numbers_after_a_filter_read_alike_in_memory_and_in_pieces(tmp_path: Path) -> None:
    """Without blanks they are whole numbers, with blanks floats: the filter removes the blanks."""
    numbers = pa.array([None if row % 7 == 0 else row % 50 for row in range(120)])
    memory, pieces = both(tmp_path, numbers, "filter: {column: x, at-least: 10}")
    assert memory == pieces


def test_a_step_counts_what_it_cannot_read_in_the_whole_table(tmp_path: Path) -> None:
    """Not in the first batch that has some."""
    texts = pa.array(["x" if row % 40 == 0 else str(row % 50) for row in range(120)])
    memory, pieces = both(tmp_path, texts, "top-code: {column: x, at: 30}")
    assert "3 values" in memory
    assert memory == pieces


def test_a_step_over_small_whole_numbers_shows_no_cell(tmp_path: Path) -> None:
    """pandas puts the cells into its message when 64 bits do not fit a column of 8."""
    memory, pieces = both(
        tmp_path, pa.array([row % 50 for row in range(120)], pa.int8()), "top-code: {column: x, at: 30}"
    )
    assert memory == pieces


def test_workers_start_while_a_large_table_is_read(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    events: list[str] = []

    def noted(owner: type, name: str) -> None:
        real = getattr(owner, name)

        def call(self: object) -> object:
            events.append(name)
            return real(self)

        monkeypatch.setattr(owner, name, call)

    noted(Executor, "begin")
    noted(Storage, "load")
    for pieces, first in (("20", "begin"), ("false", "load")):
        events.clear()
        flow = write_flow(tmp_path, source=f"{{csv: people.csv, pieces: {pieces}}}")
        assert engine.run(flow, again=True).ok
        assert events[0] == first


def test_a_table_that_cannot_be_read_ends_workers_that_have_begun(tmp_path: Path) -> None:
    before = set(threading.enumerate())
    flow = write_flow(tmp_path, source="{csv: people.csv, pieces: 20}")
    with (tmp_path / "people.csv").open("a") as file:
        file.write("1,2,3,4,5,6,7,8,9\n")
    with pytest.raises(DataError):
        engine.run(flow)
    assert not set(threading.enumerate()) - before
