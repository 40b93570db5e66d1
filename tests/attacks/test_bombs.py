"""Files that unpack to too much: certificates, packed CSV files and Parquet files that repeat one value.

Figures: a certificate of 1 MB unpacked to 1 GB; a Parquet file of 30 kB and a packed CSV file of 130 kB held a table of 60 MB, which is 2,000 and
500 times their size. None may take 200 MB here, and what unpacks to more than there is memory must be refused before it is read.
"""

from __future__ import annotations

import gzip
import tracemalloc
from pathlib import Path

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from anonflow.errors import DataError
from anonflow.release import Certificate, read_release
from anonflow.table.files import read
from anonflow.table.files.read import read_frame

SCHEMA = {"x": {"role": "quasi-identifier", "kind": "categorical"}}


def test_a_certificate_that_unpacks_to_too_much(tmp_path: Path) -> None:
    """A zip bomb: a gigabyte of zeros in a megabyte. It must be refused before it is unpacked."""
    bomb = tmp_path / "certificate.npz"
    np.savez_compressed(bomb, about=np.array("{}"), row_list=np.zeros(250_000_000, np.int32))
    assert bomb.stat().st_size < 2_000_000
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
    monkeypatch.setattr(read, "_memory", lambda: 50_000_000)
    before = pa.total_allocated_bytes()
    for reads in (lambda: read_frame(path), lambda: read_release(path, SCHEMA)):
        with pytest.raises(DataError, match="unpacks to more than"):
            reads()
    assert pa.total_allocated_bytes() - before < 20_000_000
    monkeypatch.setattr(read, "_memory", lambda: 1_000_000_000)
    assert len(read_frame(path)) == 60_000


def test_the_upload_of_a_bomb_is_refused(tmp_path: Path) -> None:
    """The caps of a hosted server are for what a file unpacks to."""
    pytest.importorskip("panel", reason="the dashboards are an extra")
    from anonflow.dashboards.session.user_limits import Limits
    from anonflow.dashboards.session.workspace import Workspace

    workspace = Workspace(limits=Limits(upload_bytes=5_000_000, rows=200_000))
    try:
        for path in (parquet_bomb(tmp_path / "b.parquet"), csv_bomb(tmp_path / "b.csv.gz")):
            with pytest.raises(DataError, match=r"(?:that is taken|at most)"):
                workspace.open_file(path.name, path)
            assert workspace.frame is None
    finally:
        workspace.close()
