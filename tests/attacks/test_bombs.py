"""Files that unpack to too much: certificates, packed CSV files and Parquet files that repeat one value, files of SPSS, Stata and SAS.

Figures: a certificate of 1 MB unpacked to 1 GB; a Parquet file of 30 kB and a packed CSV file of 130 kB held a table of 60 MB, which is 2,000 and
500 times their size. None may take 200 MB here, and what unpacks to more than there is memory must be refused before it is read. An SPSS file
of 600 bytes that declared 2^28 rows took 4 GB and 48 seconds before it was refused.
"""

from __future__ import annotations

import gzip
import tracemalloc
from collections.abc import Callable
from pathlib import Path

import numpy as np
import pandas as pd
import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from anonflow.errors import DataError
from anonflow.release import Certificate, read_release
from anonflow.table.files import opening, parquet_reading, statistics_files
from anonflow.table.files.read import read_frame
from tests.cases.sas_files import write_sas

SCHEMA = {"x": {"role": "quasi-identifier", "kind": "categorical"}}


@pytest.mark.slow
def test_a_certificate_that_unpacks_to_too_much(tmp_path: Path) -> None:
    """A zip bomb: a third of a gigabyte of zeros in a third of a megabyte. It must be refused before it is unpacked."""
    bomb = tmp_path / "certificate.npz"
    np.savez_compressed(bomb, about=np.array("{}"), row_list=np.zeros(80_000_000, np.int32))
    assert bomb.stat().st_size < 700_000
    tracemalloc.start()
    with pytest.raises(DataError):
        Certificate.load(bomb)
    peak = tracemalloc.get_traced_memory()[1]
    tracemalloc.stop()
    assert peak < 200_000_000


def parquet_bomb(path: Path, rows: int = 60_000) -> Path:
    """One long text, once in the file, and a reference to it for each row."""
    pq.write_table(pa.table({"x": pa.array(["y" * 1000] * rows), "n": pa.array([1] * rows)}), path)
    assert path.stat().st_size < 60_000
    return path


def csv_bomb(path: Path) -> Path:
    with gzip.open(path, "wb") as stream:
        stream.write(b"x,n\n" + (b"y" * 998 + b",1\n") * 60_000)
    assert path.stat().st_size < 200_000
    return path


@pytest.mark.parametrize("make", [parquet_bomb, csv_bomb])
def test_what_does_not_fit_is_refused_before_it_is_read(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, make: object
) -> None:
    path = (parquet_bomb if make is parquet_bomb else csv_bomb)(
        tmp_path / ("b.parquet" if make is parquet_bomb else "b.csv.gz")
    )
    for module in (opening, parquet_reading):
        monkeypatch.setattr(module, "total_memory", lambda: 50_000_000)
    before = pa.total_allocated_bytes()
    for reads in (lambda: read_frame(path), lambda: read_release(path, SCHEMA)):
        with pytest.raises(DataError, match="unpacks to more than"):
            reads()
    assert pa.total_allocated_bytes() - before < 20_000_000
    for module in (opening, parquet_reading):
        monkeypatch.setattr(module, "total_memory", lambda: 1_000_000_000)
    assert len(read_frame(path)) == 60_000


def test_the_upload_of_a_bomb_is_refused(tmp_path: Path) -> None:
    """The caps of a hosted server are for what a file unpacks to."""
    pytest.importorskip("panel", reason="the dashboards are an extra")
    from anonflow.dashboards.session.workspace import Workspace
    from anonflow.dashboards.work.user_limits import Limits

    workspace = Workspace(limits=Limits(upload_bytes=5_000_000, rows=200_000))
    try:
        for path in (parquet_bomb(tmp_path / "b.parquet"), csv_bomb(tmp_path / "b.csv.gz")):
            with pytest.raises(DataError, match=r"(?:that is taken|at most)"):
                workspace.opener.open_file(path.name, path)
            assert workspace.data.frame is None
    finally:
        workspace.close()


ROWS = pd.DataFrame({"a": [1.0, 2.0] * 12, "t": ["Ulm", "Bonn"] * 12})


def declare_rows(path: Path, rows: int) -> Path:
    """A file of 24 records that says that it has more."""
    stats = pytest.importorskip("pyreadstat")
    if path.suffix == ".sas7bdat":
        content = write_sas(path, {"a": [1.0, 2.0] * 12, "t": ["Ulm", "Bonn"] * 12}).read_bytes()
        at, size = content.index((24).to_bytes(4, "little"), 1024), 4
    elif path.suffix == ".dta":
        stats.write_dta(ROWS, path)
        content = path.read_bytes()
        at = content.index(b"<N>") + 3
        size = 8
    else:
        stats.write_sav(ROWS, path, compress=path.suffix == ".zsav")
        content, at, size = path.read_bytes(), 80, 4
    assert content[at : at + size] == (24).to_bytes(size, "little")
    path.write_bytes(content[:at] + rows.to_bytes(size, "little") + content[at + size :])
    return path


@pytest.mark.parametrize(
    ("ending", "rows"),
    [(".sav", 1 << 28), (".zsav", 1 << 28), (".sas7bdat", (1 << 31) - 1), *((".dta", (1 << power) - 1) for power in (28, 31, 32, 41, 63, 64))],
)  # fmt: skip
def test_rows_that_a_file_only_declares_take_no_memory(tmp_path: Path, ending: str, rows: int) -> None:
    path = declare_rows(tmp_path / f"b{ending}", rows)
    tracemalloc.start()
    with pytest.raises(DataError, match=rf"b{ending}: is not a readable {ending} file; save it again"):
        read_frame(path)
    peak = tracemalloc.get_traced_memory()[1]
    tracemalloc.stop()
    assert peak < 200_000_000


def packed_bomb(path: Path) -> int:
    """Long texts that are equal."""
    pytest.importorskip("pyreadstat").write_sav(pd.DataFrame({"x": ["y" * 1000] * 20_000}), path, compress=True)  # fmt: skip
    return 20_000


def label_bomb(path: Path) -> int:
    """A long label of the value of each row."""
    frame = pd.DataFrame({"x": np.ones(1000, np.int8)})
    labels = {"x": {1: "y" * 20_000}}
    pytest.importorskip("pyreadstat").write_dta(frame, path, variable_value_labels=labels)
    return 1000


def reference_bomb(path: Path) -> int:
    """A long text, once in the file, to which each row refers."""
    pytest.importorskip("pyreadstat").write_dta(pd.DataFrame({"x": ["y" * 20_000] * 1000}), path)
    return 1000


@pytest.mark.parametrize(
    ("bomb", "ending"), [(packed_bomb, ".zsav"), (label_bomb, ".dta"), (reference_bomb, ".dta")]
)
def test_a_small_statistics_file_that_is_a_large_table(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, bomb: Callable[[Path], int], ending: str
) -> None:
    """20 MB each; it is read in pieces, and is refused when what was read does not fit."""
    path = tmp_path / f"b{ending}"
    rows = bomb(path)
    assert path.stat().st_size < 200_000
    monkeypatch.setattr(statistics_files, "PIECE", 1_000_000)
    for module in (opening, parquet_reading):
        monkeypatch.setattr(module, "total_memory", lambda: 5_000_000)
    tracemalloc.start()
    with pytest.raises(DataError, match="unpacks to more than"):
        read_frame(path)
    peak = tracemalloc.get_traced_memory()[1]
    tracemalloc.stop()
    assert peak < 10_000_000
    for module in (opening, parquet_reading):
        monkeypatch.setattr(module, "total_memory", lambda: 1_000_000_000)
    cells = read_frame(path)["x"]
    assert len(cells) == rows
    assert set(cells) == {"y" * (1000 if bomb is packed_bomb else 20_000)}


def test_a_torn_statistics_file_is_one_sentence(tmp_path: Path) -> None:
    """Wherever it ends: a reader in C must not end the process either."""
    stats = pytest.importorskip("pyreadstat")
    stats.write_sav(ROWS, tmp_path / "b.sav")
    stats.write_sav(ROWS, tmp_path / "b.zsav", compress=True)
    stats.write_dta(ROWS, tmp_path / "b.dta", variable_value_labels={"a": {1: "one"}})
    for whole in list(tmp_path.iterdir()):
        content = whole.read_bytes()
        torn = tmp_path / f"torn{whole.suffix}"
        for size in range(0, len(content), 23):
            torn.write_bytes(content[:size])
            with pytest.raises(DataError) as caught:
                read_frame(torn)
            assert len(caught.value.problems) == 1
