"""The fingerprint of a file: it hands out the bytes that were there at first, and no others."""

from __future__ import annotations

import random
from pathlib import Path
from typing import Any

import pytest

from anonflow.engine.flows import fingerprint
from anonflow.engine.flows.fingerprint import BLOCK, FileFingerprint
from anonflow.errors import DataError


@pytest.mark.parametrize("size", [0, 1, BLOCK - 1, BLOCK, BLOCK + 1, 3 * BLOCK + 17])
def test_a_file_is_handed_out_as_it_is(tmp_path: Path, size: int) -> None:
    rng = random.Random(size)
    content = rng.randbytes(size)
    path = tmp_path / "bytes"
    path.write_bytes(content)
    with FileFingerprint.of(path).open() as stream:
        assert stream.read() == content
        for _ in range(100):
            at = rng.randrange(size + 5)
            count = rng.choice([0, 1, 100, BLOCK - 1, BLOCK, BLOCK + 1, 2 * BLOCK])
            assert stream.seek(at) == at
            assert stream.read(count) == content[at : at + count]
            assert stream.tell() == at + len(content[at : at + count])


@pytest.mark.parametrize("at", [0, BLOCK - 1, BLOCK, 2 * BLOCK + 3])
def test_every_byte_counts(tmp_path: Path, at: int) -> None:
    content = bytearray(random.Random(2).randbytes(2 * BLOCK + 4))
    path = tmp_path / "bytes"
    path.write_bytes(content)
    state = FileFingerprint.of(path)
    content[at] ^= 1
    path.write_bytes(content)
    with pytest.raises(DataError, match="has changed"):
        state.check()
    assert FileFingerprint.of(path).digest != state.digest
    stream = state.open()
    stream.seek(at)
    with pytest.raises(DataError, match="has changed"):
        stream.read(1)
    stream.close()


def test_a_file_that_is_written_to_while_it_is_first_read(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    path = tmp_path / "bytes"
    path.write_bytes(bytes(2 * BLOCK))
    real = fingerprint._fill

    def fill(stream: Any, buffer: memoryview) -> int:
        with path.open("ab") as more:
            more.write(b"x")
        return real(stream, buffer)

    monkeypatch.setattr(fingerprint, "_fill", fill)
    stamps = iter(range(10))
    stamp = fingerprint._stamp
    monkeypatch.setattr(fingerprint, "_stamp", lambda about: (*stamp(about)[:3], next(stamps)))
    with pytest.raises(DataError, match="has changed"):
        FileFingerprint.of(path)
