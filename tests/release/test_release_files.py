"""The owner's certificate and the published files: whole, plain, and believed only when checked."""

from __future__ import annotations

import os
import stat
import tempfile
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
import pytest

from anonflow.algorithms import anonymize
from anonflow.criteria import verify
from anonflow.engine.storage.spill import Spill
from anonflow.errors import AnonflowError, DataError, ParameterError
from anonflow.hierarchy import Hierarchy
from anonflow.release import Certificate, Release, publish, read_release, tables, write_release
from anonflow.table import Schema, Table
from anonflow.table.forms.text_columns import plain_frame
from tests.cases.releases import SCHEMA, people, released_like
from tests.naive.draw import beside, ring
from tests.strategies import loop

# --------------------------------------------------------------------------------------- certificate


@pytest.fixture
def certificate() -> Certificate:
    result = (
        released_like(people(20), matches=beside(ring(9, 3), ring(11, 3)))
        .release(seed=2**130 + 7)
        .certificate
    )
    assert result is not None
    return result


def test_certificate_comes_back_and_is_its_owners(certificate: Certificate, tmp_path: Path) -> None:
    path = tmp_path / "c.npz"
    before = os.umask(0)
    try:
        certificate.save(path)
    finally:
        os.umask(before)
    assert stat.S_IMODE(path.stat().st_mode) == 0o600
    assert os.listdir(tmp_path) == ["c.npz"]
    back = Certificate.load(path)
    assert (back.k, back.criterion, back.algorithm) == (3, "k-regular", "greedy")
    assert back.versions == certificate.versions
    assert set(back.versions) == {"anonflow", "numpy", "python"}
    for name in ("row_list", "list_offsets", "list_originals", "offsets", "originals"):
        assert (getattr(back, name) == getattr(certificate, name)).all()
    assert str(2**130 + 7).encode() not in path.read_bytes()
    assert (2**130 + 7).to_bytes(17, "big") not in path.read_bytes()


def test_large_classes_do_not_make_large_certificates(tmp_path: Path) -> None:
    anon = released_like(people(1000), classes=np.zeros(1000, int))
    certificate = anon.release(seed=1).certificate
    assert certificate is not None
    certificate.save(tmp_path / "c.npz")
    assert (tmp_path / "c.npz").stat().st_size < 50_000
    assert certificate.complete
    assert len(certificate.originals) == 1000 * 1000  # written out only when asked for


def _rewritten(certificate: Certificate, path: Path, **changes: Any) -> Path:
    certificate.save(path)
    with np.load(path) as content:
        arrays = dict(content)
    for name, change in changes.items():
        if name == "about":
            import json

            about = json.loads(arrays["about"].tobytes()) | change
            arrays["about"] = np.frombuffer(json.dumps(about).encode(), np.uint8)
        elif change is None:
            del arrays[name]
        else:
            arrays[name] = change(arrays[name].copy())
    np.savez(path, **arrays)
    return path


def _set(at: Any, value: int) -> Any:
    def change(array: np.ndarray) -> np.ndarray:
        array[at] = value
        return array

    return change


@pytest.mark.parametrize(
    "changes",
    [
        {"row_list": None},
        {"row_list": lambda a: a.astype(float)},
        {"row_list": lambda a: a[:, None]},
        {"row_list": _set(0, 99)},
        {"row_list": _set(0, -1)},
        {"list_offsets": _set(-1, 10**12)},
        {"list_offsets": _set(2, 50)},
        {"list_offsets": lambda a: a[:0]},
        {"list_originals": _set(0, 77)},
        {"list_originals": _set(0, -1)},
        {"list_originals": lambda a: a[::-1].copy()},
        {"list_originals": lambda a: np.array([None], object)},
        {"extra": lambda a: a},
        {"about": {"k": "3"}},
        {"about": {"k": True}},
        {"about": {"criterion": "x" * 1000}},
        {"about": {"algorithm": "a\x1b[31m"}},
        {"about": {"versions": [1]}},
        {"about": {"format": 99}},
    ],
)
def test_hostile_certificates_are_refused(
    certificate: Certificate, tmp_path: Path, changes: dict[str, Any]
) -> None:
    path = tmp_path / "c.npz"
    if "extra" in changes:
        _rewritten(certificate, path)
        with np.load(path) as content:
            np.savez(path, extra=np.arange(3), **dict(content))
    else:
        _rewritten(certificate, path, **changes)
    with pytest.raises(DataError) as refused:
        Certificate.load(path)
    assert str(path) in str(refused.value)
    assert "\n" not in str(refused.value)


def test_other_files_are_no_certificates(certificate: Certificate, tmp_path: Path) -> None:
    path = tmp_path / "c.npz"
    with pytest.raises(DataError, match="does not exist"):
        Certificate.load(path)
    for content in (b"", b"PK\x03\x04 broken", b"\x93NUMPY\x01\x00", b"\x80\x04."):
        path.write_bytes(content)
        with pytest.raises(DataError, match="not a certificate"):
            Certificate.load(path)
    certificate.save(path)
    with np.load(path) as content:
        np.savez_compressed(path, **dict(content))  # could unpack to far more than the file
    with pytest.raises(DataError, match="not a certificate"):
        Certificate.load(path)


# --------------------------------------------------------------------------------------------- files


@pytest.mark.parametrize("name", ["r.csv", "r.parquet", "r.pq", "R.CSV"])
def test_releases_are_written_and_read_back(tmp_path: Path, name: str) -> None:
    frame = people(60)
    frame["ill"] = np.where(np.arange(60) % 7 == 0, None, frame["ill"])
    frame.loc[3, "ill"] = 'a,"quoted"\nline'
    frame["cost"] = np.where(np.arange(60) % 5 == 0, np.nan, frame["cost"] / 4)
    anon = released_like(frame, matches=ring(60, 3))
    release = anon.release(seed=1)
    before = os.umask(0o027)
    try:
        release.write(tmp_path / "new" / name)
    finally:
        os.umask(before)
    path = tmp_path / "new" / name
    beside = f"{name}-metadata.json" if path.suffix.lower() == ".csv" else "datapackage.json"
    assert sorted(os.listdir(path.parent)) == sorted([name, beside])
    assert stat.S_IMODE(path.stat().st_mode) == 0o640
    back = read_release(path, SCHEMA)
    assert back.certificate is None
    assert len(back) == 60
    for column in release.frame:
        ours, theirs = (
            cells.map(lambda cell: "" if pd.isna(cell) else str(cell).removesuffix(".0"))
            for cells in (release.frame[column], back.frame[column])
        )
        assert (ours == theirs).all()
    assert verify(anon.table, back, ["covers", "k-regular"], 3)
    assert verify(anon.table, back, ["covers", "k-regular"], 3, certificate=release.certificate)


@pytest.mark.filterwarnings("ignore:columns:anonflow.release.ReleaseWarning")
def test_text_cells_stay_text(tmp_path: Path) -> None:
    frame = people(9)
    frame["ill"] = ["007", "NA", "None", "1e3", "007", "NA", "None", "1e3", "007"]
    release = released_like(frame, matches=ring(9, 3)).release(seed=1)
    for name in ("r.csv", "r.parquet"):
        release.write(tmp_path / name)
        back = read_release(tmp_path / name, Schema(SCHEMA)).frame["ill"]
        assert back.tolist() == release.frame["ill"].tolist()


@pytest.mark.parametrize("odd", ["a\rb", "a\nb", "\r", 'say "a"', "a,b", "=1+1", " a ", "\u2028"])
def test_any_text_is_read_back_from_a_csv_file(tmp_path: Path, odd: str) -> None:
    frame = pd.DataFrame(
        {"age": [30, 31, 32, 33] * 2, f"of {odd}": ["x", odd] * 4, "ill": [odd, odd, None, "d"] * 2}
    )
    schema = Schema(
        {
            "age": {"role": "quasi-identifier", "kind": "numeric"},
            f"of {odd}": {"role": "quasi-identifier", "kind": "categorical"},
            "ill": {"role": "sensitive"},
        }
    )
    table = Table(frame, schema)
    release = publish(anonymize(table, "mondrian", k=2), seed=2**130)
    write_release(release, tmp_path / "r.csv")
    back = read_release(tmp_path / "r.csv", schema)
    assert list(back.frame.columns) == list(frame.columns)
    assert back.frame.fillna("").to_numpy().tolist() == release.frame.fillna("").to_numpy().tolist()
    assert verify(table, back, k=2, certificate=release.certificate)


@pytest.mark.filterwarnings("ignore:columns:anonflow.release.ReleaseWarning")
@pytest.mark.filterwarnings("ignore:.*begin like a formula:anonflow.release.ReleaseWarning")
@loop("end", ["csv", "parquet", "dta"])
def test_a_release_on_disk_is_the_same_and_is_written_the_same(end: str) -> None:
    """There texts are categories: formulas are guarded, line ends quoted, missing cells empty, as they are of texts."""
    frame = people(40)
    frame["ill"] = np.array(["=1+1", "a\rb", "7", None, "*"] * 8, object)
    anon = released_like(frame, matches=ring(40, 3))
    with (
        tempfile.TemporaryDirectory() as home,
        Spill(Path(home)) as spill,
        pytest.MonkeyPatch.context() as patch,
    ):
        patch.setattr(Spill, "rows", 7)
        patch.setattr(tables, "_GROUP", 16)
        patch.setattr(tables, "_ROWS", 16)
        of_memory, of_disk = publish(anon, seed=5), publish(anon, seed=5, arrays=spill)
        assert {str(kind) for kind in of_disk.frame[["work", "ill"]].dtypes} == {"category"}
        for release, name in ((of_memory, "memory"), (of_disk, "disk")):
            release.write(Path(home) / name / f"r.{end}")
        files = {path.name for path in (Path(home) / "memory").iterdir()}
        assert len(files) == 2
        for file in files:
            written = {(Path(home) / name / file).read_bytes() for name in ("memory", "disk")}
            assert len(written) == 1, file
        pd.testing.assert_frame_equal(plain_frame(of_disk.frame), of_memory.frame)
        assert of_disk.about == of_memory.about
        assert of_disk.certificate is not None
        assert of_memory.certificate is not None
        np.testing.assert_array_equal(of_disk.certificate.row_marks, of_memory.certificate.row_marks)
        of_files, wanted = (verify(anon.table, release, k=3) for release in (of_disk, of_memory))
        assert of_files
        assert of_files.findings == wanted.findings
        changed = of_disk.frame.assign(work=of_disk.frame["work"].cat.rename_categories({"Self": "nobody"}))
        with pytest.raises(DataError, match=r"cells? (is|are) no generalization"):
            verify(anon.table, replace(of_disk, frame=changed), k=3)


@pytest.mark.filterwarnings("ignore:columns:anonflow.release.ReleaseWarning")
def test_numbers_are_written_in_their_shortest_form(tmp_path: Path) -> None:
    frame = people(8)
    frame["cost"] = [1.0, 0.1, 1e20, np.nan] * 2
    release = released_like(frame, matches=ring(8, 3)).release(seed=1)
    release.write(tmp_path / "r.csv")
    cells = {line.rpartition(",")[2] for line in (tmp_path / "r.csv").read_text().splitlines()[1:]}
    assert cells == {"1", "0.1", "1e+20", ""}


@pytest.mark.parametrize(
    ("change", "complaint"),
    [
        (lambda f: f.drop(columns="age"), "'age': missing"),
        (lambda f: f.drop(columns="ill"), "'ill': missing"),
        (lambda f: f.assign(name="x"), "'name': is in the release, but the schema says identifier"),
        (lambda f: f.assign(other="x"), "'other': is in the release, but not in the schema"),
        (lambda f: f.iloc[:0], "no rows"),
    ],
)
def test_a_file_must_have_what_the_schema_publishes(tmp_path: Path, change: Any, complaint: str) -> None:
    release = released_like(people(12), matches=ring(12, 3)).release(seed=1)
    write_release(Release(change(release.frame)), tmp_path / "r.parquet")
    with pytest.raises(DataError, match=complaint):
        read_release(tmp_path / "r.parquet", SCHEMA)


def test_files_appear_whole_or_not_at_all(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    release = released_like(people(12), matches=ring(12, 3)).release(seed=1)
    path = tmp_path / "r.csv"
    path.write_text("before")

    def full(*_: Any, **__: Any) -> None:
        raise OSError(28, "No space left on device")

    with monkeypatch.context() as broken:
        broken.setattr(os, "fsync", full)
        for name in ("r.csv", "r.parquet"):
            with pytest.raises(AnonflowError, match="make room") as failed:
                release.write(tmp_path / name)
            assert failed.value.exit_status == 3
    assert path.read_text() == "before"
    assert os.listdir(tmp_path) == ["r.csv"]
    with pytest.raises(DataError, match="cannot be written") as failed:
        release.write(path / "under-a-file.csv")
    assert failed.value.exit_status == 2
    with pytest.raises(ParameterError, match=r"\.csv, \.parquet, "):
        release.write(tmp_path / "r.xlsx")


def test_each_column_that_a_file_cannot_have_is_named(tmp_path: Path) -> None:
    pytest.importorskip("pyreadstat", reason="SPSS files are an extra")
    target = tmp_path / "release.sav"
    with pytest.raises(DataError, match=f"^{target}: cannot be written: 2 problems") as caught:
        tables.write_table(pd.DataFrame({"a b": ["1"], "c d": ["2"]}), target)
    assert [problem[:12] for problem in caught.value.problems] == ["column 'a b'", "column 'c d'"]
    assert not list(tmp_path.iterdir())


def test_words_about_a_release_hold_no_value() -> None:
    release = publish(released_like(people(12), matches=ring(12, 3)), seed=1)
    assert repr(release) == "Release(12 rows, 4 columns)"
    assert repr(release.certificate) == "Certificate(k-regular, k=3, 12 rows, greedy)"


def test_what_is_no_path_is_refused_in_words(tmp_path: Path) -> None:
    """Wherever a file or a folder is named."""
    table = Table(people(20), SCHEMA)
    anonymization = anonymize(table, "mondrian", k=2)
    release = anonymization.release(seed=2**127)
    assert release.certificate is not None
    tree = Hierarchy.from_nested({"*": {"A": ["a", "b"]}})
    for number in (5, b"release.csv", None):
        for name, call in (
            ("release", release.write),
            ("reading", read_release),
            ("certificate", release.certificate.save),
            ("its reading", Certificate.load),
            ("hierarchy", tree.to_csv),
            ("its reading", Hierarchy.from_csv),
            ("schema", Schema.read),
            ("table", lambda path: Table.read(path, table.schema)),
            ("owner", lambda path: anonymization.release(seed=2**127, owner=path or 5)),
        ):
            with pytest.raises(ParameterError) as refused:
                call(number)  # type: ignore[operator]
            assert str(refused.value).startswith("a file is named by its path, not by a "), name
    with pytest.raises(ParameterError, match="encoding is a text, not a int"):
        Hierarchy.from_csv(tmp_path / "no.csv", encoding=5)  # type: ignore[arg-type]
