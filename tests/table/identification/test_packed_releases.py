"""An owner's folder as one file, which a stranger may have made."""

from __future__ import annotations

import io
import json
import zipfile
from contextlib import suppress
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

import anonflow as af
from anonflow.errors import DataError
from anonflow.release import Earlier
from anonflow.table.identification.packed_releases import packed, unpack
from tests.cases.released_twice import NAMED, people
from tests.strategies import examples


@pytest.fixture(scope="module")
def folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """An owner's folder with a release, and what a flow keeps beside it."""
    place = tmp_path_factory.mktemp("owner")
    af.anonymize(af.Table(people(40), NAMED), "mondrian", k=4).release(seed=2**127, owner=place)
    (place / "people").mkdir()
    (place / "people" / "seed").write_text("00ff" * 8)
    return place


def zipped(files: dict[str, bytes], kind: int = zipfile.ZIP_DEFLATED) -> bytes:
    held = io.BytesIO()
    with zipfile.ZipFile(held, "w", kind) as archive:
        for name, content in files.items():
            archive.writestr(name, content)
    return held.getvalue()


def members(content: bytes) -> dict[str, bytes]:
    with zipfile.ZipFile(io.BytesIO(content)) as archive:
        return {name: archive.read(name) for name in archive.namelist()}


def taken(tmp_path: Path, content: bytes, into: str = "into", **options: Any) -> Earlier:
    file = tmp_path / "upload"
    file.write_bytes(content)
    unpack(file, "owner.zip", Earlier(tmp_path / into), **options)
    return Earlier(tmp_path / into)


def test_a_folder_comes_back_and_its_people_are_recognized(folder: Path, tmp_path: Path) -> None:
    """Also a folder that its owner packed, with all that lies in it; twice is once."""
    table = af.Table(people(60), NAMED)
    whole = {
        f"my owner/{file.relative_to(folder)}": file.read_bytes()
        for file in folder.rglob("*")
        if file.is_file()
    }
    assert any(name.endswith("/seed") for name in whole)
    for content in (packed(Earlier(folder)), zipped(whole)):
        for _ in range(2):
            again = taken(tmp_path, content)
            assert again.kept == 1
            assert again.overlap(table).again == 40
            assert again.key() == Earlier(folder).key()
    assert not list((tmp_path / "into").rglob("seed"))
    assert all(file.stat().st_mode & 0o077 == 0 for file in (tmp_path / "into").rglob("*"))
    assert members(packed(Earlier(tmp_path / "nothing"))) == {}


def test_what_is_no_packed_folder_is_one_sentence(folder: Path, tmp_path: Path) -> None:
    other = tmp_path / "other"
    af.anonymize(af.Table(people(40), NAMED), "mondrian", k=4).release(seed=2**127, owner=other)
    parts, strangers = members(packed(Earlier(folder))), members(packed(Earlier(other)))
    key, release = sorted(parts, key=lambda name: name.endswith(".npz"))
    with np.load(io.BytesIO(parts[release])) as arrays:
        about = json.loads(str(arrays["about"]))

    def changed(**to: Any) -> bytes:
        held = io.BytesIO()
        with np.load(io.BytesIO(parts[release])) as arrays:
            np.savez(held, **{**arrays, **to})
        return zipped(parts | {release: held.getvalue()})

    def message(text: str) -> bytes:
        return changed(about=np.array(text))

    with np.load(io.BytesIO(parts[release])) as arrays:
        lists, marks = dict(arrays), arrays["units"]
    long = io.BytesIO()
    with zipfile.ZipFile(long, "w") as archive:
        archive.writestr(
            "units.npy",
            b"\x93NUMPY\x01\x00v\x00"
            + b"{'descr': '<u8', 'fortran_order': False, 'shape': (1000000000000000,), }".ljust(117)
            + b"\n",
        )
    for content, words in (
        (b"", "is damaged, or no ZIP file"),
        (b"name,age\n", "is damaged, or no ZIP file"),
        (packed(Earlier(folder))[:-40], "is damaged, or no ZIP file"),
        (zipped(parts, zipfile.ZIP_BZIP2), "is damaged, or no ZIP file"),
        (zipped({}), "has no releases; pack the whole owner's folder"),
        (zipped({key: parts[key]}), "has no releases"),
        (zipped({release: parts[release]}), "has 0 keys"),
        (zipped(parts | {"b/" + name: content for name, content in strangers.items()}), "has 2 keys"),
        (zipped(parts | {"b/" + release: b"x"}), "two releases of one name"),
        (zipped(parts | {key: b"no key"}), "is no key"),
        (zipped(parts | {key: b"0" * 2_000}), "is larger than"),
        (zipped(parts | {release: b"PK"}), "cannot be read"),
        (zipped(parts | {release: long.getvalue()}), "cannot be read"),
        (message("[" * 100_000), "cannot be read"),
        (message("7"), "cannot be read"),
        (message(json.dumps(about | {"k": float("inf")})), "cannot be read"),
        (message(json.dumps(about | {"when": "<script>"})), "cannot be read"),
        (message(json.dumps(about | {"columns": 5})), "cannot be read"),
        (changed(offsets=np.zeros(0, np.int64)), "cannot be read"),
        (changed(row_list=np.roll(lists["row_list"], 7)), "cannot be read"),
        (changed(originals=np.zeros_like(lists["originals"])), "cannot be read"),
        (changed(units=marks[::-1].copy()), "cannot be read"),
        (changed(units=marks.astype(float)), "cannot be read"),
    ):
        with pytest.raises(DataError) as caught:
            taken(tmp_path, content)
        assert words in str(caught.value)
        assert "owner.zip" in str(caught.value)
        assert str(tmp_path) not in str(caught.value)
        assert "\n" not in str(caught.value)
        assert not (tmp_path / "into").exists()
    taken(tmp_path, packed(Earlier(folder)))
    with pytest.raises(DataError, match="has another key than the releases that are here"):
        taken(tmp_path, packed(Earlier(other)))
    assert Earlier(tmp_path / "into").kept == 1


def test_a_file_unpacks_to_no_more_than_the_cap(folder: Path, tmp_path: Path) -> None:
    parts = members(packed(Earlier(folder)))
    bomb = zipped(parts | {"owner/.releases/20260101-000000-00000000.npz": bytes(10_000_000)})
    assert len(bomb) < 100_000
    with pytest.raises(DataError, match="larger than 5 MB when it is unpacked"):
        taken(tmp_path, bomb, most=5_000_000)
    with pytest.raises(DataError, match="holds 10,003 files"):
        taken(tmp_path, zipped(parts | {f"{number}": b"" for number in range(10_001)}))


def test_names_of_a_file_lead_nowhere(folder: Path, tmp_path: Path) -> None:
    parts = members(packed(Earlier(folder)))
    names = {
        f"../../../{name}" if name.endswith("npz") else f"/etc/{name}": content
        for name, content in parts.items()
    }
    (tmp_path / "a").mkdir()
    taken(tmp_path, zipped(names), into="a/b")
    assert {file.name for file in (tmp_path / "a").iterdir()} == {"b"}
    assert Earlier(tmp_path / "a/b").kept == 1


@examples(200)
@given(data=st.data())
def test_damaged_files_raise_nothing_else(
    data: st.DataObject, folder: Path, tmp_path_factory: pytest.TempPathFactory
) -> None:
    """Any bytes of the file, or of a release in it, are others."""
    place = tmp_path_factory.mktemp("damaged")
    content = packed(Earlier(folder))
    parts = members(content)
    (release,) = (name for name in parts if name.endswith(".npz"))
    inside = data.draw(st.booleans(), label="inside")
    damaged = bytearray(parts[release] if inside else content)
    for _ in range(data.draw(st.integers(1, 6), label="changes")):
        damaged[data.draw(st.integers(0, len(damaged) - 1))] = data.draw(st.integers(0, 255))
    whole = zipped(parts | {release: bytes(damaged)}) if inside else bytes(damaged)
    with suppress(DataError):
        assert taken(place, whole).kept == 1
