"""Projects: what is saved comes back; what is no project is refused in a sentence; nothing is unpacked by name."""

from __future__ import annotations

import base64
import gzip
import io
import json
import random
import stat
import zipfile
from collections.abc import Iterator
from contextlib import suppress
from pathlib import Path
from typing import Any

import pandas as pd
import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from anonflow import datasets
from anonflow.errors import AnonflowError, DataError, FlowError

pytest.importorskip("param", reason="the dashboards are an extra")
from anonflow.dashboards import Limits, Workspace
from anonflow.dashboards.session import project
from anonflow.dashboards.session.files.paths import names_a_dataset
from anonflow.engine.attempt import StopReason
from tests.cases.drafts import put_at, value_at

WAIT = 300.0


@pytest.fixture
def workspace() -> Iterator[Workspace]:
    item = Workspace()
    yield item
    item.close()


@pytest.fixture
def other() -> Iterator[Workspace]:
    item = Workspace(limits=Limits(upload_bytes=200_000))
    yield item
    item.close()


def people(folder: Path, name: str = "people.csv") -> Path:
    path = folder / name
    datasets.census_like(40, seed=1).to_csv(path, index=False)
    return path


def run_once(item: Workspace) -> None:
    item.draft.set_algorithms(["mondrian"])
    item.draft.set_ks([4])
    item.start()
    item.wait(WAIT)


def written(folder: Path, content: bytes) -> Path:
    path = folder / "saved.anonflow.zip"
    path.write_bytes(content)
    return path


def changed(content: bytes, **members: bytes | None) -> bytes:
    """The archive with members put in, replaced or (None) left out; ``__`` stands for a dot."""
    stream = io.BytesIO()
    with (
        zipfile.ZipFile(io.BytesIO(content)) as old,
        zipfile.ZipFile(stream, "w", zipfile.ZIP_DEFLATED) as new,
    ):
        wanted = {name.replace("__", "."): value for name, value in members.items()}
        for name in old.namelist():
            if name not in wanted:
                new.writestr(name, old.read(name))
        for name, value in wanted.items():
            if value is not None:
                new.writestr(name, value)
    return stream.getvalue()


def test_a_project_brings_flow_hierarchies_runs_and_notes_back(
    workspace: Workspace, other: Workspace, tmp_path: Path
) -> None:
    workspace.opener.open_file("people.csv", people(tmp_path))
    (workspace.folder / "sex.csv").write_text("Male;any\nFemale;any\n")
    workspace.data.set_column("Gender", kind="hierarchy", hierarchy="sex.csv")
    run_once(workspace)
    workspace.runs.edit(1, label="the first", note="for the board", pinned=True)
    saved = workspace.save_project()
    names = zipfile.ZipFile(io.BytesIO(saved)).namelist()
    assert names == ["project.json", "flow.yaml", "files/sex.csv"]
    cells = b"".join(zipfile.ZipFile(io.BytesIO(saved)).read(name) for name in names)
    assert f"{workspace.runs.finished[0].seed:x}".encode() not in cells
    assert saved == workspace.save_project()

    other.opener.read_project_file(written(tmp_path, saved))()
    assert other.data.frame is None
    assert other.opener.waits_for == "people.csv"
    assert "people.csv" in other.starts.status
    wrong = tmp_path / "wrong.csv"
    wrong.write_text("a,b\n1,2\n3,4\n")
    with pytest.raises(DataError, match="the column 'Age'"):
        other.opener.open_file("wrong.csv", wrong)
    other.opener.open_file("renamed.csv", people(tmp_path))
    assert value_at(other.draft, ("table", "source")) == {"csv": "renamed.csv"}
    assert value_at(other.draft, ("steps",)) == value_at(workspace.draft, ("steps",))
    assert other.data.problems == ()
    (run,) = other.runs.finished
    assert (run.name, run.note, run.pinned) == ("the first", "for the board", True)
    assert run.row().keys() == workspace.runs.finished[0].row().keys()
    assert run.result.measures == workspace.runs.finished[0].result.measures
    assert run.result.columns == workspace.runs.finished[0].result.columns
    assert other.runs.chosen_run is None  # its records are not in a project
    assert stat.S_IMODE((other.folder / "sex.csv").stat().st_mode) == 0o600
    run_once(other)
    assert [run.id for run in other.runs.finished] == [1, 2]
    assert other.runs.chosen_run is other.runs.finished[1]
    assert other.runs.finished[1].result.measures["gcp"] == run.result.measures["gcp"]


def test_with_its_table_a_project_is_opened_whole(
    workspace: Workspace, other: Workspace, tmp_path: Path
) -> None:
    workspace.opener.open_file("people.csv", people(tmp_path))
    run_once(workspace)
    saved = workspace.save_project(with_table=True)
    other.opener.read_project_file(written(tmp_path, saved))()
    assert len(other.data.frame) == 40
    assert other.runs.finished[0].seed == workspace.runs.finished[0].seed
    assert "1 run of the project" in other.starts.status
    # its seeds repeat its runs, for who wants to look at them
    assert [run.id for run in other.runs.repeatable] == [other.runs.finished[0].id]
    other.starts.repeat()
    other.starts.restorer.wait(WAIT)
    other.wait(WAIT)
    assert other.runs.repeatable == []
    assert other.runs.chosen_run is other.runs.finished[0]
    run_once(other)
    assert other.runs.finished[1].seed == workspace.runs.finished[0].seed, "it draws another release"
    repeated, first = (space.runs.finished[0].result.anonymization for space in (other, workspace))
    pd.testing.assert_frame_equal(repeated.frame(), first.frame())
    with pytest.raises(DataError, match="no table is open"):
        Workspace().save_project()


def test_a_flow_waits_for_its_table(workspace: Workspace, tmp_path: Path) -> None:
    workspace.opener.open_file("people.csv", people(tmp_path))
    workspace.draft.set_ks([3, 5])
    path = tmp_path / "flow.yaml"
    path.write_text(workspace.draft.text())
    item = Workspace()
    item.opener.read_project_file(path)()
    assert item.opener.waits_for == "people.csv"
    item.opener.open_file("people.csv", people(tmp_path))
    assert item.data.ks == [3, 5]
    assert item.opener.waits_for == ""
    item.close()


DEEP = b"[" * 5000 + b"]" * 5000


NO_PROJECTS: list[tuple[dict[str, bytes | None], str]] = [
    ({"project__json": None}, "is missing"),
    ({"project__json": b"\xff\xfe"}, "not JSON"),
    ({"project__json": DEEP}, "not JSON"),
    ({"project__json": b"[]"}, "project.json: is not a mapping"),
    ({"project__json": b'{"format": "anonflow project", "version": 2}'}, "version is no part"),
    ({"flow__yaml": b"\xff\xfe"}, "is not text"),
    ({"flow__yaml": b"- 1\n"}, "not a flow"),
    ({"flow__yaml": b"flow: x\nversion: 1\ntable: {source: {csv: /etc/passwd}, columns: {}}\nsteps: [anonymize: {k: 2}]\n"}, "outside"),
    ({"flow__yaml": b"flow: x\nversion: 1\ntable: {source: {csv: ../../secret}, columns: {}}\nsteps: [anonymize: {k: 2}]\n"}, "outside"),
    ({"files/../../evil__csv": b"x"}, "a file that no project has"),
    ({"files/": b""}, "a file that no project has"),
    ({"run__py": b"import os"}, "a file that no project has"),
    ({"files/bomb__csv": b"0" * 300_000}, "larger than 0 MB"),
]  # fmt: skip


def test_what_is_no_project_is_refused_in_a_sentence(
    workspace: Workspace, other: Workspace, tmp_path: Path
) -> None:
    workspace.opener.open_file("people.csv", people(tmp_path))
    project = workspace.save_project()
    before = sorted(other.folder.rglob("*"))
    for members, text in NO_PROJECTS:
        with pytest.raises((DataError, FlowError)) as error:
            other.opener.read_project_file(written(tmp_path, changed(project, **members)))()
        assert text in " ".join([error.value.message, *error.value.problems])
        assert "\n" not in error.value.problems[0]
        assert other.data.frame is None
        assert sorted(other.folder.rglob("*")) == before
        assert not (tmp_path / "evil.csv").exists()


def entry_of(workspace: Workspace, folder: Path) -> dict[str, Any]:
    workspace.opener.open_file("people.csv", people(folder))
    run_once(workspace)
    document = json.loads(zipfile.ZipFile(io.BytesIO(workspace.save_project())).read("project.json"))
    assert isinstance(document, dict)
    return document


def test_runs_of_a_stranger_are_checked(workspace: Workspace, other: Workspace, tmp_path: Path) -> None:
    entry = entry_of(workspace, tmp_path)
    run = entry["runs"][0]
    outside = json.loads(json.dumps(run["document"]))
    outside["table"]["columns"]["Age"] = {
        "role": "quasi-identifier", "kind": "hierarchy", "hierarchy": "../../../etc/passwd"
    }  # fmt: skip
    for change, text in (
        ({"algorithm": "evil"}, "a method that this version does not have"),
        ({"k": "5"}, "run 1 of this project: k is no part"),
        ({"k": 1}, "run 1 of this project: k is no part"),
        ({"k": 10**400}, "run 1 of this project: k is no part"),
        ({"k": True}, "run 1 of this project: k is no part"),
        ({"when": 10**400}, "run 1 of this project: when is no part"),
        ({"when": True}, "run 1 of this project: when is no part"),
        ({"measures": {"gcp": 10**400}}, "measures is no part"),
        ({"seconds": -1.0}, "run 1 of this project: seconds is no part"),
        ({"note": "x" * 30_000}, "run 1 of this project: note is no part"),
        ({"sizes": [[1, 2, 3]]}, "sizes is no part"),
        ({"measures": {"gcp": [1]}}, "measures is no part"),
        ({"measures": {"gcp": "x"}}, "measures is no part"),
        ({"measures": {"gcp": {"a": 1}}}, "measures is no part"),
        ({"columns": [{"column": "a"}]}, "columns is no part"),
        ({"surprise": 1}, "a key that no project has"),
        ({"document": outside}, "outside"),
        ({"document": {**run["document"], "steps": "none"}}, "steps must be a mapping"),
    ):
        bad = {**entry, "runs": [{**run, **change}]}
        content = changed(workspace.save_project(), project__json=json.dumps(bad).encode())
        with pytest.raises(AnonflowError) as error:
            other.opener.read_project_file(written(tmp_path, content))()
        assert text in " ".join([error.value.message, *error.value.problems]), change
        assert "evil" not in " ".join(error.value.problems)
    # a run that cannot be loaded is refused when its table is there
    steps = [{"anonymize": {"algorithm": "nobody", "k": 5}}]
    bad = {**entry, "runs": [{**run, "document": {**run["document"], "steps": steps}}]}
    content = changed(workspace.save_project(), project__json=json.dumps(bad).encode())
    other.opener.read_project_file(written(tmp_path, content))()
    with pytest.raises(AnonflowError):
        other.opener.open_file("people.csv", people(tmp_path))


def test_a_draft_that_cannot_run_comes_back_with_what_it_lacks(
    workspace: Workspace, other: Workspace, tmp_path: Path
) -> None:
    """Saved between two edits: what was done until then would be lost."""
    entry_of(workspace, tmp_path)
    for column in workspace.draft.spec.columns:
        put_at(workspace.draft, ("table", "columns", column), {"role": "insensitive"})
    assert workspace.data.problems
    content = workspace.save_project(True)
    other.opener.read_project_file(written(tmp_path, content))()
    assert other.draft.spec.columns == workspace.draft.spec.columns
    assert other.data.problems == workspace.data.problems
    assert len(other.runs.finished) == len(workspace.runs.finished) == 1


def test_a_file_that_is_no_archive_is_no_flow_either(workspace: Workspace, tmp_path: Path) -> None:
    for content in (b"PK\x03\x04" + b"x" * 100, b"\x00\x01\x02", b""):
        path = tmp_path / "some.zip"
        path.write_bytes(content)
        with pytest.raises(AnonflowError):
            workspace.opener.read_project_file(path)()
    assert project.ENDING == ".anonflow.zip"


@pytest.mark.parametrize(
    "packing", [zipfile.ZIP_STORED, zipfile.ZIP_DEFLATED, zipfile.ZIP_BZIP2, zipfile.ZIP_LZMA]
)
def test_a_damaged_project_is_refused_in_a_sentence(
    workspace: Workspace, tmp_path: Path, packing: int
) -> None:
    workspace.opener.open_file("people.csv", people(tmp_path))
    whole = io.BytesIO(workspace.save_project())
    stream = io.BytesIO()
    with zipfile.ZipFile(whole) as saved, zipfile.ZipFile(stream, "w", packing) as archive:
        for name in saved.namelist():
            archive.writestr(name, saved.read(name))
    content = stream.getvalue()
    if packing in (zipfile.ZIP_BZIP2, zipfile.ZIP_LZMA):
        with pytest.raises(DataError, match="not an anonflow project"):
            project.read_project(written(tmp_path, content), tmp_path, Limits())
    else:
        assert project.read_project(written(tmp_path, content), tmp_path, Limits()).records == 40
    chance = random.Random(packing)
    for _ in range(200):
        damaged = bytearray(content)
        for _ in range(chance.randint(1, 4)):  # anywhere, or in the directory at the end
            at = chance.choice([chance.randrange(len(content)), len(content) - 1 - chance.randrange(200)])
            damaged[at] = chance.choice([0, 255, chance.randrange(256)])
        with suppress(AnonflowError):
            project.read_project(written(tmp_path, bytes(damaged)), tmp_path, Limits())


def test_runs_are_named_noted_pinned_and_deleted(tmp_path: Path) -> None:
    item = Workspace(limits=Limits(runs=2))
    item.opener.open_file("people.csv", people(tmp_path))
    run_once(item)
    item.runs.edit(1, pinned=True, label="keep")
    run_once(item)
    run_once(item)
    assert [run.id for run in item.runs.finished] == [1, 3]
    item.runs.choose(3)
    item.runs.delete(3)
    assert item.runs.chosen == 1
    with pytest.raises(AnonflowError, match="no run 3"):
        item.runs.delete(3)
    item.close()


@pytest.mark.parametrize("encoding", ["utf-16", "utf-16-le", "utf-8-sig"])
def test_encodings_that_a_file_says_it_has_are_recognized(
    workspace: Workspace, tmp_path: Path, encoding: str
) -> None:
    path = tmp_path / "people.csv"
    text = "age;town\n34;Ærø\n35;Łódź\n36;Ærø\n"
    mark = "\ufeff" if encoding == "utf-16-le" else ""
    path.write_bytes((mark + text).encode(encoding))
    workspace.opener.open_file("people.csv", path)
    assert list(workspace.data.frame.columns) == ["age", "town"]
    assert set(workspace.data.frame["town"]) == {"Ærø", "Łódź"}
    assert workspace.data.problems == () or "k" in workspace.data.problems[0]


@pytest.mark.parametrize(
    ("begins", "text"), [(b"\x89PNG\r\n", "a picture"), (b"PK\x03\x04", "Excel"), (b"%PDF-1.7", "PDF")]
)
def test_files_of_another_kind_get_their_own_sentence(
    workspace: Workspace, tmp_path: Path, begins: bytes, text: str
) -> None:
    path = tmp_path / "people.csv"
    path.write_bytes(begins + b"x" * 50)
    with pytest.raises(DataError, match=text):
        workspace.opener.open_file("people.csv", path)
    with pytest.raises(DataError, match="workbook"):
        workspace.opener.open_file("people.xlsx", path)


def test_after_a_wrong_encoding_the_file_is_read_again(workspace: Workspace, tmp_path: Path) -> None:
    path = tmp_path / "people.csv"
    path.write_bytes("age,town\n34,Århus\n35,Århus\n".encode("latin-1"))
    with pytest.raises(DataError):
        workspace.opener.read_file("people.csv", path, encoding="utf-8")
    assert path.exists()
    workspace.opener.read_file("people.csv", path, encoding="latin-1")()
    assert workspace.data.table_name == "people.csv"
    assert set(workspace.data.frame["town"]) == {"Århus"}
    workspace.opener.reread(encoding="latin-1", missing=["Århus"])()
    assert pd.isna(workspace.data.frame["town"]).all()


def test_an_encoding_that_the_bytes_do_not_prove_is_named(workspace: Workspace, tmp_path: Path) -> None:
    path = tmp_path / "people.csv"
    path.write_bytes("age;town\n34;Zürich\n35;Århus\n".encode("cp1252"))
    workspace.opener.open_file("people.csv", path)
    assert set(workspace.data.frame["town"]) == {"Zürich", "Århus"}
    assert workspace.data.source.encoding == "cp1252"
    assert (
        "letters of the file are read as cp1252; if some are wrong, type its encoding"
        in workspace.starts.status
    )
    workspace.opener.reread(encoding="mac-roman")()
    assert "letters of the file are read as mac-roman" in workspace.starts.status
    path.write_text("age;town\n34;Zürich\n35;Århus\n", encoding="utf-8")
    workspace.opener.open_file("people.csv", path)
    assert "letters" not in workspace.starts.status


def test_a_start_after_a_cancel_does_what_is_missing(workspace: Workspace, tmp_path: Path) -> None:
    workspace.opener.open_file("people.csv", people(tmp_path))
    workspace.draft.set_algorithms(["mondrian"])
    workspace.draft.set_ks([3, 4, 5])
    assert workspace.starts.missing == 3
    workspace.start()
    workspace.wait(WAIT)
    batch = workspace.starts.batch
    assert batch is not None
    first, *others = batch.jobs
    for job in others:  # as if they had been cancelled while the first was done
        job.stop = StopReason.CANCELLED
        workspace.runs.delete(
            next(run.id for run in workspace.runs.finished if run.result.name == job.run.name)
        )
    assert workspace.starts.missing == 2
    workspace.start()
    assert [job.run.name for job in workspace.starts.batch.jobs] == [job.run.name for job in others]
    workspace.wait(WAIT)
    assert sorted(run.result.name for run in workspace.runs.finished) == sorted(
        job.run.name for job in (first, *others)
    )
    assert workspace.starts.missing == 3  # all are done: the next start does all again
    workspace.draft.set_ks([3, 4])
    assert workspace.starts.missing == 2


def test_a_table_with_an_identifier_is_published(workspace: Workspace, tmp_path: Path) -> None:
    frame = datasets.census_like(40, seed=1)
    frame.insert(0, "id", range(40))
    path = tmp_path / "named.csv"
    frame.to_csv(path, index=False)
    workspace.opener.open_file("named.csv", path)
    workspace.data.set_column("id", role="identifier")
    workspace.draft.set_ks([4])
    workspace.start()
    workspace.wait(WAIT)
    published = workspace.publish(workspace.runs.finished[0].id)
    assert published.ok
    assert b"id," not in published.tables[".csv"].splitlines()[0]


def bomb(name: str) -> bytes:
    """A small file of a large table."""
    stream = io.BytesIO()
    if name.endswith(".parquet"):
        pq.write_table(pa.table({"x": ["y" * 1000] * 20_000}), stream)
    elif name.endswith(".gz"):
        stream.write(gzip.compress(b"x\n" + (b"y" * 999 + b"\n") * 20_000))
    elif name.endswith(".xlsx"):
        with zipfile.ZipFile(stream, "w", zipfile.ZIP_DEFLATED) as archive:
            archive.writestr("xl/worksheets/sheet1.xml", b" " * 20_000_000)
    else:
        stream.write(b"$FL2@(#) SPSS DATA FILE" + b" " * 200)
    assert len(stream.getvalue()) < 200_000
    return stream.getvalue()


@pytest.mark.parametrize(
    ("name", "key", "words"),
    [
        ("a.parquet", "parquet", "that is taken|at most"),
        ("a.csv.gz", "csv", "that is taken|at most"),
        ("a.xlsx", "excel", "that is taken|at most|workbook"),
        ("a.sav", "stats", "a table is a .csv, .parquet or .xlsx file"),
        ("a.csv", "csv", "is packed by gzip"),
    ],
)
@pytest.mark.parametrize("is_table", [True, False])
def test_a_project_brings_nothing_that_an_upload_may_not(
    workspace: Workspace, other: Workspace, tmp_path: Path, name: str, key: str, words: str, is_table: bool
) -> None:
    """Attack: what is too large when it is unpacked, or of a kind that the server does not read, inside a project."""
    workspace.opener.open_file("people.csv", people(tmp_path))
    saved = workspace.save_project(with_table=True)
    flow = zipfile.ZipFile(io.BytesIO(saved)).read("flow.yaml").decode()
    content = bomb("a.csv.gz" if name == "a.csv" else name)
    members: dict[str, bytes | None] = {f"files/{name}": content}
    if is_table:
        assert "csv: people.csv" in flow
        text = flow.replace("csv: people.csv", f"{key}: {name}")
        members |= {"flow.yaml": text.encode(), "files/people.csv": None}
    with pytest.raises(DataError, match=words):
        other.opener.read_project_file(written(tmp_path, changed(saved, **members)))()
    assert other.data.frame is None
    assert not (other.folder / name).exists()


def test_a_shared_server_reads_no_flow_that_takes_long(
    workspace: Workspace, other: Workspace, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Attack: a flow of 1 MiB, which takes 20 to 40 seconds to read, alone or in a project."""
    workspace.opener.open_file("people.csv", people(tmp_path))
    saved = workspace.save_project(with_table=True)
    flow = zipfile.ZipFile(io.BytesIO(saved)).read("flow.yaml").decode()
    long = flow + "# " + "x" * (128 << 10) + "\n"
    alone = tmp_path / "flow.yaml"
    alone.write_text(long)
    packed = written(tmp_path, changed(saved, **{"flow.yaml": long.encode()}))
    workspace.opener.read_project_file(packed)()
    monkeypatch.setattr(project.strict_yaml, "loads", lambda *_: pytest.fail("it is read"))
    for opened in (
        lambda: other.opener.read_project_file(packed),
        lambda: other.opener.read_project_file(alone),
    ):
        with pytest.raises(DataError, match="the flow is larger than 128 KiB"):
            opened()
    assert names_a_dataset(alone, other.limits.flow_bytes)


EARLIER = """\
flow: people
version: 1
table:
  source: {csv: people.csv, delimiter: ","}
  columns:
    Age: {role: quasi-identifier, kind: numeric, boundary: {width: 10}, weight: 2}
    Gender: {role: quasi-identifier, kind: categorical}
    Education: {role: quasi-identifier, kind: numeric, max-width: 3.5}
  prepare: [top-code: {column: Age, at: 80}]
steps:
  - anonymize:
      algorithm: mondrian
      k: 4
      options: {k-member: {kicks: 1}, optimal: {time-limit: 2.0}}
      loss: ncp
      boundaries: true
  - draw: {}
  - measure: [gcp]
  - verify: [covers, guarantee]
partition: {order: lexicographic, size: 20}
matrix: {anonymize.algorithm: [mondrian, k-member], anonymize.k: [4, 6]}
"""
"""A flow as earlier versions wrote it: defaults and the options of forms stand in it."""


def test_a_project_of_an_earlier_version_opens(
    workspace: Workspace, other: Workspace, tmp_path: Path
) -> None:
    entry = entry_of(workspace, tmp_path)
    steps = [
        {"anonymize": {"algorithm": "mondrian", "k": 4, "loss": "ncp"}},
        {"draw": {}},
        {"measure": ["gcp"]},
    ]
    old = {**entry["runs"][0]["document"], "steps": steps, "partition": {"order": "random", "size": 20}}
    text = json.dumps({**entry, "runs": [{**entry["runs"][0], "document": old}]})
    content = changed(workspace.save_project(), project__json=text.encode(), flow__yaml=EARLIER.encode())
    other.opener.read_project_file(written(tmp_path, content))()
    other.opener.open_file("people.csv", people(tmp_path))
    assert other.data.problems == ()
    assert (other.data.algorithms, other.data.ks) == (["mondrian", "k-member"], [4, 6])
    spec = other.draft.spec
    assert (spec.partition.size, spec.columns["Education"].max_width) == (20, 3.5)
    assert spec.method.of_methods == {"k-member": {"kicks": 1}, "optimal": {"time_limit": 2.0}}
    assert other.runs.finished[0].spec.partition.order == "random"


def test_a_link_of_an_earlier_version_opens(workspace: Workspace, tmp_path: Path) -> None:
    shared = {
        "version": 1,
        "partition": {"order": "random", "size": 20},
        "matrix": {"anonymize.k": [4, 6]},
        "steps": [
            {"anonymize": {"algorithm": "nh", "k": 4, "options": {"optimal": {"time-limit": 2.0}}}},
            {"draw": {}},
            {"verify": ["covers", "guarantee"]},
        ],
    }
    workspace.opener.open_link(
        "c=" + base64.urlsafe_b64encode(json.dumps(shared).encode()).decode().rstrip("=")
    )
    workspace.opener.open_file("people.csv", people(tmp_path))
    assert workspace.data.problems == ()
    assert (workspace.data.algorithms, workspace.data.ks) == (["nh"], [4, 6])
    assert workspace.draft.spec.partition.size == 20
