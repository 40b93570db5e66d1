"""A large release is verified in temporary files that are mapped: the verdict of memory, in few bytes of memory a row."""

from __future__ import annotations

import json
import tracemalloc
from pathlib import Path

import numpy as np
import pandas as pd
import pytest

import anonflow as af
from anonflow.criteria import order
from anonflow.criteria.verification import Verification
from anonflow.engine.storage import storage
from anonflow.engine.storage.spill import Spill
from anonflow.errors import DataError
from anonflow.large_arrays import IN_MEMORY, Arrays
from anonflow.release import Certificate
from anonflow.table import Table
from tests.cases.runs import shell

N = 80_000
COLUMNS = [f"q{number}" for number in range(1, 9)]
SCHEMA = {name: {"role": "quasi-identifier", "kind": "numeric"} for name in COLUMNS[:-1]} | {
    COLUMNS[-1]: {"role": "sensitive"}
}
BYTES = 150
"""Of memory for a row, beside what is mapped: 5,000,000 rows take three quarters of a GiB."""


def released(folder: Path, ending: str, n: int, k: int = 5) -> tuple[Path, Path, Path]:
    """Write a table, its release and the certificate; return where they are."""
    frame = af.datasets.random_normal(n, len(COLUMNS), seed=1)
    original, shown, proof = folder / f"people{ending}", folder / f"shown{ending}", folder / "proof.npz"
    frame.to_csv(original, index=False) if ending == ".csv" else frame.to_parquet(original)
    seed = b"the seed of a test, which is longer than 16 bytes"
    release = af.anonymize(Table.read(original, SCHEMA), "nh", k=k, seed=seed).release(seed=seed)
    release.write(shown)
    assert release.certificate is not None
    release.certificate.save(proof)
    return original, shown, proof


def verified(files: tuple[Path, Path, Path], arrays: Arrays) -> Verification:
    original, shown, proof = files
    table = Table.read(original, SCHEMA, arrays=arrays)
    return af.verify(table, shown, certificate=Certificate.load(proof, arrays))


@pytest.mark.slow
def test_memory_a_row(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(Spill, "rows", 1_000)
    monkeypatch.setattr(order, "DRAWS", 9)  # what these need does not grow with the rows
    files = released(tmp_path, ".parquet", N)
    bytes_of = {}
    with Spill(None) as spill:
        for place, arrays in (("files", spill), ("memory", IN_MEMORY)):
            verified(files, arrays)  # what is loaded and cached once is not a row's
            tracemalloc.start()
            try:
                assert verified(files, arrays)
                bytes_of[place] = tracemalloc.get_traced_memory()[1] / N
            finally:
                tracemalloc.stop()
    assert bytes_of["files"] < BYTES < bytes_of["memory"]


@pytest.mark.parametrize("ending", [".csv", ".parquet"])
def test_the_verdict_is_that_of_memory(
    ending: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    """In the shell, with and without a certificate, of the release and of one with other cells."""
    monkeypatch.setattr(Spill, "rows", 70)
    original, shown, proof = released(tmp_path, ending, 300)
    schema = tmp_path / "schema.json"
    schema.write_text(json.dumps({"columns": SCHEMA}))
    changed = tmp_path / f"changed{ending}"
    frame = pd.read_csv(shown, dtype=str) if ending == ".csv" else pd.read_parquet(shown)
    frame["q1"] = np.where(np.arange(300) < 4, "0", frame["q1"])
    frame.to_csv(changed, index=False) if ending == ".csv" else frame.to_parquet(changed)
    answers: dict[int, list[tuple[int, str, str]]] = {}
    for much in (storage.MUCH, 0):
        monkeypatch.setattr(storage, "MUCH", much)
        answers[much] = [
            shell(
                capsys, "verify", "--original", original, "--release", release, "--schema", schema, "--k", 5,
                *(["--certificate", proof] if certified else []),
            )
            for release in (shown, changed) for certified in (True, False)
        ]  # fmt: skip
    (in_memory, in_files) = answers.values()
    assert in_memory == in_files
    assert [status for status, _, _ in in_files] == [0, 0, 1, 1]


def test_a_certificate_with_another_byte_is_none(tmp_path: Path) -> None:
    _, _, proof = released(tmp_path, ".csv", 60)
    content = proof.read_bytes()
    place = content.index(b"list_originals") + 300
    proof.write_bytes(content[:place] + bytes([content[place] ^ 1]) + content[place + 1 :])
    with Spill(tmp_path) as spill:
        for arrays in (IN_MEMORY, spill):
            with pytest.raises(DataError, match="is not a certificate"):
                Certificate.load(proof, arrays)
