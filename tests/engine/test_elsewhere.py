"""Sources and targets that are no files beside the flow: addresses, Dask frames, streams of batches."""

from __future__ import annotations

import os
import sys
import uuid
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import dask.array as da
import dask.dataframe as dd
import fsspec
import pyarrow as pa
import pyarrow.parquet as pq
import pytest

import anonflow as af
from anonflow.dashboards.session.draft_spec import NO_FLOW
from anonflow.dashboards.session.files.paths import check_confined
from anonflow.engine.execution.events import PartitionDone
from anonflow.engine.expected import read_and_expect
from anonflow.engine.flows.addresses import address_problem, fetched, is_address, shown_address, uploaded
from anonflow.engine.flows.loader import load_flow
from anonflow.engine.search.search import search_flow
from anonflow.errors import AnonflowError, DataError, FlowError, ParameterError
from anonflow.release import Earlier
from tests.cases.elsewhere import people, write_flow
from tests.cases.flow_files import everything_in
from tests.cases.runs import shell

SEED = bytes(range(16))


@pytest.fixture
def bucket() -> Iterator[str]:
    """A folder of fsspec's store in memory, one for each test."""
    place = f"memory://{uuid.uuid4().hex}"
    yield place
    system = fsspec.filesystem("memory")
    if system.exists(place):
        system.rm(place, recursive=True)


@pytest.fixture
def plain(tmp_path: Path) -> str:
    """What a flow over the same rows in a file beside it publishes."""
    folder = tmp_path / "plain"
    folder.mkdir()
    people().to_parquet(folder / "people.parquet", index=False)
    af.run(write_flow(folder, "{parquet: people.parquet}"), seed=SEED)
    return (folder / "out" / "people.csv").read_text(encoding="utf-8")


def test_a_flow_reads_and_writes_at_addresses(tmp_path: Path, bucket: str, plain: str) -> None:
    with fsspec.open(f"{bucket}/people.parquet", "wb") as stream:
        people().to_parquet(stream, index=False)
    flow = write_flow(
        tmp_path,
        f"{{parquet: '{bucket}/people.parquet'}}",
        f"{bucket}/out/people.csv",
        f"{bucket}/out/people.html",
    )
    report = af.run(flow, seed=SEED)
    described = f"{bucket}/out/people.csv-metadata.json"
    assert report.published == (f"{bucket}/out/people.csv", described, f"{bucket}/out/people.html")
    with fsspec.open(report.published[0], "rt", encoding="utf-8", newline="") as stream:
        assert stream.read() == plain
    with fsspec.open(report.published[2], "rt", encoding="utf-8") as stream:
        assert "</html>" in stream.read()
    names = fsspec.filesystem("memory").ls(f"{bucket}/out", detail=False)
    assert sorted(name.rpartition("/")[2] for name in names) == [
        "people.csv",
        "people.csv-metadata.json",
        "people.html",
    ]
    left = {name for name in everything_in(tmp_path) if not name.startswith("plain")}
    assert "owner/elsewhere/record.json" in left
    assert not [name for name in left if "staging" in name or name.endswith((".parquet", ".csv"))]
    unchanged = af.run(flow).unchanged
    assert "--replay" in unchanged, "another draw would be the second of this table"
    again = af.run(flow, replay=tmp_path / "owner" / "elsewhere")
    assert again.ok


@pytest.mark.skipif(sys.platform != "linux", reason="other systems have no such names")
@pytest.mark.parametrize("pieces", ["", ", pieces: 20"])
@pytest.mark.parametrize("kind", ["csv", "gz", "parquet"])
def test_names_that_are_no_utf_8(tmp_path: Path, plain: str, kind: str, pieces: str) -> None:
    """A folder that was packed on another system, or any name with an umlaut where LANG=C."""
    folder = tmp_path / os.fsdecode(b"Stra\xdfe")
    folder.mkdir()
    name = "people.csv.gz" if kind == "gz" else f"people.{kind}"
    if kind == "parquet":
        (tmp_path / name).write_bytes(b"")
        people().to_parquet(tmp_path / name, index=False)
    else:
        people().to_csv(tmp_path / name, index=False)
    (tmp_path / name).rename(folder / name)
    source = f"{{{'parquet' if kind == 'parquet' else 'csv'}: {name}{pieces}}}"
    assert af.run(write_flow(folder, source), seed=SEED).ok
    assert len((folder / "out" / "people.csv").read_text(encoding="utf-8")) > 0
    assert af.Table.read(folder / name, load_flow(folder / "flow.yaml").schema).n == len(people())


@pytest.mark.parametrize("pieces", ["", ", pieces: 20"])
def test_a_folder_of_parquet_at_an_address(tmp_path: Path, bucket: str, plain: str, pieces: str) -> None:
    for number in range(3):
        with fsspec.open(f"{bucket}/parts/part-{number}.parquet", "wb") as stream:
            people().iloc[16 * number : 16 * number + 16].to_parquet(stream, index=False)
    with fsspec.open(f"{bucket}/parts/_SUCCESS", "wb") as stream:
        stream.write(b"")
    report = af.run(write_flow(tmp_path, f"{{parquet: '{bucket}/parts'{pieces}}}"), seed=SEED)
    assert report.ok
    assert sorted((tmp_path / "out" / "people.csv").read_text().split()) == sorted(plain.split())


def test_a_packed_csv_at_an_address(tmp_path: Path, bucket: str) -> None:
    people().to_csv(f"{bucket}/people.csv.gz", index=False, sep=";")
    assert af.run(write_flow(tmp_path, f"{{csv: '{bucket}/people.csv.gz', delimiter: auto}}"), seed=SEED).ok


@pytest.mark.parametrize(
    "source",
    [
        pytest.param(lambda frame: dd.from_pandas(frame, npartitions=3), marks=pytest.mark.slow),
        pytest.param(lambda frame: pa.Table.from_pandas(frame, preserve_index=False), marks=pytest.mark.slow),
        lambda frame: pa.Table.from_pandas(frame, preserve_index=False).to_reader(7),
        pytest.param(lambda frame: pytest.importorskip("polars").from_pandas(frame), marks=pytest.mark.slow),
        pytest.param(lambda frame: pytest.importorskip("duckdb").from_df(frame), marks=pytest.mark.slow),
        lambda frame: frame,
    ],
    ids=["dask", "arrow", "reader", "polars", "duckdb", "pandas"],
)
def test_a_frame_in_place_of_the_source_is_worked_on_in_pieces(
    tmp_path: Path, plain: str, source: Any
) -> None:
    lines: list[str] = []
    flow = write_flow(tmp_path, "{parquet: nowhere.parquet}")
    report = af.run(flow, source=source(people()), seed=SEED, on_event=lambda event: lines.append(str(event)))
    assert report.ok
    assert any("in pieces" in line for line in lines)
    text = (tmp_path / "out" / "people.csv").read_text(encoding="utf-8")
    assert sorted(text.split()) == sorted(plain.split())
    assert not list((tmp_path / "owner" / "elsewhere").glob("staging*"))


@pytest.mark.parametrize("pieces", ["true", "false"])
def test_a_part_without_rows_says_nothing_of_types(tmp_path: Path, plain: str, pieces: str) -> None:
    """Writers give the texts of such a part the type of nulls, wherever it stands in the folder."""
    (tmp_path / "people").mkdir()
    whole = pa.Table.from_pandas(people(), preserve_index=False)
    empty = pa.table({name: pa.nulls(0) for name in whole.column_names})
    for number, part in enumerate((empty, whole.slice(0, 30), empty, whole.slice(30), empty)):
        pq.write_table(part, tmp_path / "people" / f"{number}.parquet")
    flow = write_flow(tmp_path, f"{{parquet: people, pieces: {pieces}}}")
    af.run(flow, seed=SEED)
    assert sorted((tmp_path / "out" / "people.csv").read_text().split()) == sorted(plain.split())
    pq.write_table(
        whole.cast(pa.schema([(n, pa.string()) for n in whole.column_names])),
        tmp_path / "people" / "6.parquet",
    )
    with pytest.raises(DataError, match="cannot be joined without loss"):
        af.run(flow, seed=SEED)


def test_without_pieces_the_bits_are_those_of_a_file(tmp_path: Path, plain: str) -> None:
    people().iloc[:10].to_parquet(tmp_path / "people.parquet", index=False)
    flow = write_flow(tmp_path, "{parquet: people.parquet, pieces: false}")
    af.run(flow, source=dd.from_pandas(people(), npartitions=3), seed=SEED)
    assert (tmp_path / "out" / "people.csv").read_text(encoding="utf-8") == plain


def test_bad_frames_are_one_sentence(tmp_path: Path) -> None:
    people().to_parquet(tmp_path / "people.parquet", index=False)
    flow = write_flow(tmp_path, "{parquet: people.parquet}")
    before = everything_in(tmp_path)
    with pytest.raises(DataError, match="not a list; name files in the flow"):
        af.run(flow, source=[1, 2])
    mixed = [people(), people().astype({"age": str}).assign(age="old")]
    frame = dd.from_map(lambda number: mixed[number], [0, 1], meta=people().iloc[:0])
    with pytest.raises(DataError, match="part 1 has other columns, or columns of other types"):
        af.run(flow, source=frame)
    with pytest.raises(DataError, match="holds lists or structures"):
        af.run(flow, source=pa.table({"age": [[1]]}))
    with pytest.raises(DataError, match=r"af\.run\(flow, source=frame\)"):
        af.Table(
            dd.from_pandas(people(), npartitions=2), {"age": {"role": "quasi-identifier", "kind": "numeric"}}
        )
    assert {name for name in everything_in(tmp_path) - before if "staging" in name} == set()


@pytest.mark.parametrize(
    ("address", "written", "expected"),
    [
        ("s3://me:secret@bucket/people.csv", False, "an address must not contain a password"),
        ("zip://a.csv::file:///b.zip", False, "an address inside another"),
        ("memory://", False, "names no file"),
        ("https://host/people.csv", True, "nothing can be written to https"),
        ("nowhere://host/people.csv", False, "not a kind of address that fsspec knows"),
        ("memory://host/people.csv", True, None),
    ],
)
def test_what_is_wrong_with_an_address(address: str, written: bool, expected: str | None) -> None:
    problem = address_problem(address, written=written)
    assert problem is None if expected is None else problem is not None and expected in problem
    assert problem is None or "secret" not in problem


def test_a_missing_package_is_named(monkeypatch: pytest.MonkeyPatch) -> None:
    """Also where fsspec names it in a sentence only, as for all stores that it knows."""
    monkeypatch.setitem(sys.modules, "s3fs", None)
    monkeypatch.delitem(fsspec.registry, "s3", raising=False)
    monkeypatch.delitem(sys.modules, "fsspec.implementations.s3", raising=False)
    problem = address_problem("s3://bucket/people.csv")
    assert problem == "s3:// needs the package s3fs; install it with: pip install 'anonflow[remote]'"


def test_a_file_of_an_address_is_named_by_it(tmp_path: Path, bucket: str) -> None:
    """The copy in the owner's folder is deleted by then."""
    for name, text, words in (
        ("ragged.csv", "age,city,pay\n1\n", "1 row has more or fewer than 3 cells"),
        ("unlike.csv", "age,city\n1,Ulm\n", "column 'pay': not in the table"),
        ("words.csv", "age,city,pay\nold,Ulm,low\n", "column 'age': 1 value is no number"),
    ):
        with fsspec.open(f"{bucket}/{name}", "wt", encoding="utf-8") as stream:
            stream.write(text)
        for pieces in ("false", "20"):
            with pytest.raises(AnonflowError) as caught:
                af.run(write_flow(tmp_path, f"{{csv: '{bucket}/{name}', pieces: {pieces}}}"), seed=SEED)
            assert str(caught.value).startswith(f"{bucket}/{name}: {words}")


def test_a_frame_in_place_of_the_source_is_named(tmp_path: Path) -> None:
    flow = write_flow(tmp_path, "{parquet: nowhere.parquet}")
    with pytest.raises(AnonflowError, match=r"^the source: column 'pay': not in the table"):
        af.run(flow, source=pa.Table.from_pandas(people().drop(columns="pay")), seed=SEED)


@pytest.mark.parametrize(
    ("source", "table", "expected"),
    [
        ("{csv: 's3://me:secret@b/x.csv'}", "out/a.csv", "4:17: an address must not contain a password"),
        ("{stats: 'memory://b/x.csv'}", "out/a.csv", "is a file that ends in .sav or"),
        ("{csv: people.csv}", "https://host/a.csv", "nothing can be written to https"),
        ("{csv: 's3://[::1/people.csv'}", "out/a.csv", "is not a usable address"),
        ("{csv: people.csv}", "s3://[::1/people.csv", "is not a usable address"),
        (
            "{csv: people.csv}",
            "memory://b/a.txt",
            "'table' is a file that ends in .csv, .parquet, .pq, .sav, .zsav or .dta",
        ),
        ("{csv: 'memory://nobody/x.csv'}", "out/a.csv", "cannot be fetched (FileNotFoundError)"),
    ],
)
def test_bad_addresses_are_one_sentence(
    tmp_path: Path, capsys: pytest.CaptureFixture[str], source: str, table: str, expected: str
) -> None:
    people().to_csv(tmp_path / "people.csv", index=False)
    status, out, err = shell(capsys, "run", write_flow(tmp_path, source, table))
    assert (status, out) == (2, "")
    assert len([line for line in err.splitlines() if expected in line]) == 1, err
    assert "secret" not in err


def test_nothing_half_done_lies_at_an_address(
    tmp_path: Path, bucket: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    (tmp_path / "a.csv").write_text("a\n1\n")
    uploaded(tmp_path / "a.csv", f"{bucket}/a.csv")
    store = type(fsspec.filesystem("memory"))

    def full(*arguments: object, **settings: object) -> None:
        raise OSError("no room for secret")

    monkeypatch.setattr(store, "mv", full)
    with pytest.raises(DataError, match=r"b\.csv: cannot be written \(OSError\)") as caught:
        uploaded(tmp_path / "a.csv", f"{bucket}/b.csv")
    assert "secret" not in str(caught.value)
    names = fsspec.filesystem("memory").ls(bucket, detail=False)
    assert [name.rpartition("/")[2] for name in names] == ["a.csv"]


@pytest.mark.parametrize("fails", ["put_file", "mv"])
def test_who_is_at_an_address_is_remembered_though_the_store_failed(
    tmp_path: Path, bucket: str, monkeypatch: pytest.MonkeyPatch, fails: str
) -> None:
    """A store may take the file, and fail when the copy of another name is to go: the release is out."""
    people().assign(name=range(48)).to_csv(tmp_path / "people.csv", index=False)
    flow = write_flow(tmp_path, "{csv: people.csv}", f"{bucket}/people.csv")
    flow.write_text(flow.read_text().replace("{age:", "{name: {role: identifier}, age:"))
    store = type(fsspec.filesystem("memory"))
    own = getattr(store, fails)

    def late(system: Any, *arguments: Any, **settings: Any) -> None:
        if fails == "mv":
            own(system, *arguments, **settings)
        raise ConnectionError

    with monkeypatch.context() as patched:
        patched.setattr(store, fails, late)
        with pytest.raises(DataError, match=r"people\.csv: cannot be written \(ConnectionError\)"):
            af.run(flow, seed=SEED)
    out = fsspec.filesystem("memory").exists(f"{bucket}/people.csv")
    assert out == (fails == "mv")
    assert Earlier(tmp_path / "owner").kept == int(out)
    other = flow.with_name("other.yaml")
    other.write_text(flow.read_text().replace("flow: elsewhere", "flow: other").replace(bucket, "out/other"))
    warnings = af.run(other).warnings
    assert any("48 of 48 people are in an earlier release" in warning for warning in warnings) == out


class Killed(BaseException):
    """Stands for a signal: nothing takes care of it."""


@pytest.mark.parametrize("ending", ["csv", "parquet"])
def test_a_table_at_an_address_has_no_description_or_its_own(
    tmp_path: Path, bucket: str, monkeypatch: pytest.MonkeyPatch, ending: str
) -> None:
    """As in a folder: the old description goes before the table comes, so that whatever ends the run leaves none of another table."""
    people().to_csv(tmp_path / "people.csv", index=False)
    flow = write_flow(tmp_path, "{csv: people.csv}", f"{bucket}/people.{ending}")
    text = flow.read_text()
    flow.write_text(text.replace("/people.", "/other."))
    assert af.run(flow, seed=SEED).ok
    flow.write_text(text)
    assert af.run(flow, seed=SEED).ok
    place = f"{bucket}/{'datapackage.json' if ending == 'parquet' else 'people.csv-metadata.json'}"
    system = fsspec.filesystem("memory")
    assert f"people.{ending}" in system.cat(place).decode()
    store = type(system)
    own, moved = store.mv, []

    def killed(system: Any, part: str, target: str) -> None:
        moved.append(target)
        if target.endswith("json") and moved.count(f"{bucket.removeprefix('memory:/')}/people.{ending}"):
            raise Killed
        own(system, part, target)

    flow.write_text(text.replace("k: 3", "k: 5"))
    with monkeypatch.context() as patched:
        patched.setattr(store, "mv", killed)
        with pytest.raises(Killed):
            af.run(flow)
    described = system.cat(place).decode() if system.exists(place) else ""
    assert f"people.{ending}" not in described
    assert (f"other.{ending}" in described) == (ending == "parquet")
    assert af.run(flow).ok
    assert 'k": 5' in system.cat(place).decode()


def test_two_flows_with_one_address_do_not_mix(tmp_path: Path, bucket: str) -> None:
    """Both would upload under one name for a while, and one would publish the rows of the other."""
    flows = []
    for name, ending in (("first", "parquet"), ("second", "dta"), ("third", "parquet")):
        (tmp_path / name).mkdir()
        people().to_csv(tmp_path / name / "people.csv", index=False)
        flows.append(write_flow(tmp_path / name, "{csv: people.csv}", f"{bucket}/people.{ending}"))
    first, second, third = flows
    refused = []

    def listen(event: Any) -> None:
        if isinstance(event, PartitionDone) and not refused:
            for other in (second, third):  # the second has the description in common
                with pytest.raises(
                    AnonflowError, match="another run is at work and writes this file"
                ) as caught:
                    af.run(other)
                refused.append(str(caught.value))

    assert af.run(first, on_event=listen, workers=1).ok
    assert [text.partition(": ")[0] for text in refused] == [
        f"{bucket}/datapackage.json",
        f"{bucket}/people.parquet",
    ]
    assert af.run(third).ok


def test_what_a_killed_run_left_at_an_address_is_removed_though_the_flow_names_another(
    tmp_path: Path, bucket: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    """It has all rows of another draw, under a name that nobody looks at."""
    people().to_csv(tmp_path / "people.csv", index=False)
    flow = write_flow(tmp_path, "{csv: people.csv}", f"{bucket}/people.csv", f"{bucket}/people.html")
    system = fsspec.filesystem("memory")
    for killed_at in ("people.csv", "people.csv-metadata.json", "people.html"):
        own = type(system).mv

        def killed(system: Any, part: str, target: str, killed_at: str = killed_at, own: Any = own) -> None:
            if target.endswith(f"/{killed_at}"):
                system.cp_file(part, f"{part}-kept")  # a process that is killed tidies nothing
                raise Killed
            own(system, part, target)

        with monkeypatch.context() as patched:
            patched.setattr(type(system), "mv", killed)
            with pytest.raises(Killed):
                af.run(flow)
        part = f"{bucket}/.{killed_at}.part"
        system.mv(f"{part}-kept", part)
        flow.write_text(flow.read_text().replace(f"{bucket}/people", f"{bucket}/other"))
        assert af.run(flow, fresh=True).ok
        assert not system.exists(part)
        flow.write_text(flow.read_text().replace(f"{bucket}/other", f"{bucket}/people"))


def test_an_address_is_shown_without_its_secrets() -> None:
    assert shown_address("https://me:pw@host/a.csv?signature=x") == "https://host/a.csv"
    assert is_address("s3://b/a")
    assert not is_address("out/a.csv")
    assert not is_address("C:/a.csv")
    assert not is_address(None)


def test_the_dashboards_reach_no_address(tmp_path: Path) -> None:
    for path, value, text in (
        (("table", "source", "csv"), "s3://bucket/people.csv", "the dashboards contact no other machine"),
        (("table", "source", "stats"), "https://host/people.sav", "the dashboards contact no other machine"),
        (("publish", "table"), "memory://bucket/people.csv", "the dashboards contact no other machine"),
        (("publish", "report", "file"), "file:///people.html", "a file outside the folder of the flow"),
    ):
        with pytest.raises(FlowError, match=text):
            check_confined(NO_FLOW.changed([(path, value)]), tmp_path)


@pytest.mark.parametrize(
    "criterion",
    [
        {"t-closeness": {"t": 0.2, "hierarchy": "/etc/hostname"}},
        {"t-closeness": {"t": 0.2, "hierarchy": {"csv": "tree.csv"}}},
        "t-closeness(t=0.2, hierarchy=/etc/hostname)",
    ],
)
def test_the_dashboards_read_no_hierarchy_beside_a_criterion(tmp_path: Path, criterion: object) -> None:
    """Its path is relative to where the program runs: a stranger's flow would read the server's files."""
    verify = ("steps", "verify")
    with pytest.raises(FlowError, match="give the hierarchy to the sensitive column"):
        check_confined(NO_FLOW.changed([(verify, ["covers", criterion])]), tmp_path)
    check_confined(NO_FLOW.changed([(verify, ["covers", {"t-closeness": {"t": 0.2}}])]), tmp_path)


def test_the_plan_shows_no_secret(tmp_path: Path) -> None:
    flow = (
        load_flow(write_flow(tmp_path, "{csv: 'https://host/people.csv?signature=secret'}"))
        if _has_http()
        else None
    )
    assert flow is None or "secret" not in flow._repr_html_()


def _has_http() -> bool:
    return address_problem("https://host/people.csv") is None


def test_a_local_address_is_a_file(tmp_path: Path) -> None:
    (tmp_path / "a.csv").write_text("a\n1\n")
    (tmp_path / "here").mkdir()
    place = fetched((tmp_path / "a.csv").as_uri(), tmp_path / "here")
    assert place.read_text() == "a\n1\n"


@pytest.mark.parametrize("scheme", ["file://", "local://", "FILE://", "file://localhost"])
@pytest.mark.parametrize(
    ("source", "table", "report", "words"),
    [
        ("{csv: people.csv}", "@/people.csv", "out/people.html", "'table' would be written over the source"),
        (
            "{csv: '@/people.csv'}",
            "people.csv",
            "out/people.html",
            "'table' would be written over the source",
        ),
        ("{csv: '@/people.csv'}", "@/x/../people.csv", "out/people.html", "would be written over the source"),
        ("{csv: people.csv}", "@/owner/elsewhere/people.csv", "out/a.html", "inside the owner's folder"),
        (
            "{csv: people.csv}",
            "@/people-out.csv",
            "out/a.html",
            "would lie inside the folder that is published",
        ),
        ("{csv: people.csv}", "out/people.csv", "@/owner/x.html", "inside the owner's folder"),
    ],
)
def test_a_local_address_is_checked_like_a_path(
    tmp_path: Path, scheme: str, source: str, table: str, report: str, words: str
) -> None:
    people().to_csv(tmp_path / "people.csv", index=False)
    before = (tmp_path / "people.csv").read_bytes()
    place = f"{scheme}{tmp_path}"
    flow = write_flow(
        tmp_path, source.replace("@", place), table.replace("@", place), report.replace("@", place)
    )
    with pytest.raises(FlowError, match=words):
        af.run(flow, seed=SEED)
    assert (tmp_path / "people.csv").read_bytes() == before


def test_a_local_address_is_published_like_a_path(tmp_path: Path, plain: str) -> None:
    people().to_parquet(tmp_path / "people.parquet", index=False)
    source = f"{{parquet: 'file://{tmp_path}/people.parquet'}}"
    flow = write_flow(tmp_path, source, f"file://{tmp_path}/out/people.csv", f"local://{tmp_path}/out/a.html")
    report = af.run(flow, seed=SEED)
    assert (tmp_path / "out" / "people.csv").read_text(encoding="utf-8") == plain
    assert tmp_path / "out" / "people.csv" in report.published


@pytest.mark.parametrize("name", ["file://other/people.csv", "file://people.csv"])
def test_a_local_address_of_another_machine_is_refused(tmp_path: Path, name: str) -> None:
    people().to_csv(tmp_path / "people.csv", index=False)
    with pytest.raises(FlowError, match="name the file by its path"):
        load_flow(write_flow(tmp_path, "{csv: people.csv}", name))


@pytest.mark.parametrize(
    ("source", "table", "report", "words"),
    [
        ("people.csv", "@/people.csv", "out/a.html", "'table' would be written over the source"),
        ("people.csv", "@/out/..//people.csv", "out/a.html", "'table' would be written over the source"),
        ("people.csv", "@/a.csv", "@/a.csv/../b.html", None),
        ("parts", "@/parts/0.parquet", "out/a.html", "lies inside the source"),
    ],
)
def test_addresses_are_compared_with_one_another(
    tmp_path: Path, bucket: str, source: str, table: str, report: str, words: str | None
) -> None:
    kind = "csv" if source.endswith("csv") else "parquet"
    flow = write_flow(
        tmp_path,
        f"{{{kind}: '{bucket}/{source}'}}",
        table.replace("@", bucket.replace("memory", "MEMORY")),
        report.replace("@", bucket),
    )
    if words is None:
        load_flow(flow)
    else:
        with pytest.raises(FlowError, match=words):
            load_flow(flow)


@pytest.mark.parametrize("table", ["parts/0.parquet", "parts/new.parquet"])
def test_nothing_is_published_among_the_files_that_are_read(tmp_path: Path, table: str) -> None:
    (tmp_path / "parts").mkdir()
    people().to_parquet(tmp_path / "parts" / "0.parquet", index=False)
    before = (tmp_path / "parts" / "0.parquet").read_bytes()
    with pytest.raises(FlowError, match="lies inside the source"):
        af.run(write_flow(tmp_path, "{parquet: parts}", table), seed=SEED)
    assert (tmp_path / "parts" / "0.parquet").read_bytes() == before
    assert not (tmp_path / "parts" / "new.parquet").exists()


@pytest.mark.parametrize(
    ("folder", "table", "report"),
    [("parts", "parts/out/new.parquet", "parts/a.html"), (".", "out/new.parquet", "out/a.html")],
)
def test_a_folder_that_is_read_may_have_other_files(
    tmp_path: Path, folder: str, table: str, report: str
) -> None:
    (tmp_path / "parts").mkdir()
    people().to_parquet(tmp_path / folder / "0.parquet", index=False)
    flow = write_flow(tmp_path, f"{{parquet: {folder}}}", table, report)
    assert [af.run(flow, seed=SEED, again=again).ok for again in (False, True)] == [True, True]
    assert {table, report} <= everything_in(tmp_path)


def test_nothing_is_published_over_a_file_that_the_flow_reads(tmp_path: Path) -> None:
    people().to_csv(tmp_path / "people.csv", index=False)
    (tmp_path / "h").mkdir()
    tree = "Bonn;west;*\nKiel;north;*\nUlm;south;*\n"
    (tmp_path / "h" / "tree.csv").write_text(tree)
    flow = write_flow(tmp_path, "{csv: people.csv}", "h/tree.csv")
    text = flow.read_text(encoding="utf-8")
    flow.write_text(text.replace("kind: categorical", "kind: hierarchy, hierarchy: h/tree.csv"))
    with pytest.raises(FlowError, match="would be written over a file that the flow reads"):
        af.run(flow, seed=SEED)
    assert (tmp_path / "h" / "tree.csv").read_text() == tree


def marks_of(folder: Path) -> list[Path]:
    """The files with marks of released people in the owner's folder beside a flow."""
    return sorted((folder / "owner" / ".releases").glob("*.npz"))


@pytest.mark.parametrize("pieces", ["false", "20"])
def test_who_was_not_published_is_not_remembered(
    tmp_path: Path, bucket: str, monkeypatch: pytest.MonkeyPatch, pieces: str
) -> None:
    people().to_parquet(tmp_path / "people.parquet", index=False)
    flow = write_flow(
        tmp_path, f"{{parquet: people.parquet, pieces: {pieces}}}", f"{bucket}/people.csv", f"{bucket}/a.html"
    )
    store = type(fsspec.filesystem("memory"))

    def full(*arguments: object, **settings: object) -> None:
        raise OSError

    with monkeypatch.context() as patched:
        patched.setattr(store, "mv", full)
        with pytest.raises(DataError, match="cannot be written"):
            af.run(flow, seed=SEED)
    assert marks_of(tmp_path) == []
    move = store.mv

    def no_report(self: object, source: str, target: str, **settings: object) -> None:
        if target.endswith(".html"):
            raise OSError
        move(self, source, target, **settings)

    with monkeypatch.context() as patched:
        patched.setattr(store, "mv", no_report)
        with pytest.raises(DataError, match="cannot be written"):
            af.run(flow, seed=SEED)
    assert len(marks_of(tmp_path)) == 1, "the table is published"
    report = af.run(flow, seed=SEED)
    assert len(marks_of(tmp_path)) == 1
    assert not [text for text in report.warnings if "earlier release" in text]


def test_who_could_not_be_named_here_is_not_remembered(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    people().to_parquet(tmp_path / "people.parquet", index=False)
    flow = write_flow(tmp_path, "{parquet: people.parquet}")
    rename = os.replace

    def refuse(source: Any, target: Any) -> None:
        if str(target).endswith("people.csv"):
            raise PermissionError(13, "Permission denied")
        rename(source, target)

    monkeypatch.setattr(os, "replace", refuse)
    with pytest.raises(DataError, match="cannot be written"):
        af.run(flow, seed=SEED)
    assert marks_of(tmp_path) == []


def test_a_second_draw_is_told_after_a_publication_that_failed(
    tmp_path: Path, bucket: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    people().to_parquet(tmp_path / "people.parquet", index=False)
    flow = write_flow(tmp_path, "{parquet: people.parquet}", f"{bucket}/people.csv")
    af.run(flow, seed=SEED)
    with monkeypatch.context() as patched:
        patched.setattr(type(fsspec.filesystem("memory")), "put_file", lambda *_, **__: 1 / 0)
        with pytest.raises(DataError, match="cannot be written"):
            af.run(flow, fresh=True, again=True)
    assert len(marks_of(tmp_path)) == 1
    report = af.run(flow, fresh=True)
    assert [text for text in report.warnings if "this flow has been released before" in text]


def test_a_data_package_at_an_address_goes_on(tmp_path: Path, bucket: str) -> None:
    """It describes every release of its folder, as one beside files does; one of somebody else is left alone."""
    people().to_csv(tmp_path / "people.csv", index=False)
    for name in ("a", "b"):
        af.run(write_flow(tmp_path, "{csv: people.csv}", f"{bucket}/{name}.parquet"), seed=SEED)
    with fsspec.open(f"{bucket}/datapackage.json", "rt", encoding="utf-8") as stream:
        text = stream.read()
    assert '"a.parquet"' in text
    assert '"b.parquet"' in text
    with fsspec.open(f"{bucket}/datapackage.json", "wt", encoding="utf-8") as stream:
        stream.write('{"resources": [{"name": "theirs", "path": "theirs.csv"}]}')
    with pytest.raises(DataError, match=rf"^{bucket}/datapackage\.json: describes other data"):
        af.run(write_flow(tmp_path, "{csv: people.csv}", f"{bucket}/c.parquet"), seed=SEED)
    with fsspec.open(f"{bucket}/datapackage.json", "rt", encoding="utf-8") as stream:
        assert "theirs" in stream.read()


@pytest.mark.parametrize(
    ("source", "words"),
    [
        (lambda: da.zeros((3, 3)), "a source is a Dask DataFrame"),
        (lambda: dd.from_pandas(people(), npartitions=2)["age"], "a source is a Dask DataFrame"),
        (lambda: dd.from_pandas(people(), npartitions=2).map_partitions(_raise, meta=people().iloc[:0]),
         r"the source: part 0 cannot be computed \(RuntimeError\)"),
        (lambda: dd.from_pandas(people().set_axis(["a", "a", *people().columns[2:]], axis=1), npartitions=2),
         "column 'a' appears 2 times"),
        (lambda: people().set_axis(["a", "a", *people().columns[2:]], axis=1), "column 'a' appears 2 times"),
    ],
)  # fmt: skip
def test_a_source_that_is_no_frame_or_raises_is_one_sentence(tmp_path: Path, source: Any, words: str) -> None:
    with pytest.raises(DataError, match=words) as caught:
        af.run(write_flow(tmp_path, "{parquet: nowhere.parquet}"), source=source(), seed=SEED)
    assert "93" not in str(caught.value)
    assert caught.value.__cause__ is None
    assert caught.value.__context__ is None or caught.value.__suppress_context__


def _raise(part: Any) -> Any:
    raise RuntimeError("Ann is 93")


@pytest.mark.parametrize("flow", [5, None, ["flow.yaml"], {"flow": "a"}])
def test_what_is_no_flow_is_one_sentence(flow: Any) -> None:
    for called in (af.run, search_flow, load_flow):
        with pytest.raises(FlowError, match="a flow is named by the path of its file"):
            called(flow)


@pytest.mark.parametrize("pieces", ["false", "20"])
def test_an_unknown_time_zone_is_one_sentence(
    tmp_path: Path, capsys: pytest.CaptureFixture[str], pieces: str
) -> None:
    table = pa.Table.from_pandas(people(), preserve_index=False)
    times = pa.array([0] * len(table), pa.timestamp("us", tz="Mars/Phobos"))
    pq.write_table(table.append_column("x", times), tmp_path / "people.parquet")
    flow = write_flow(tmp_path, f"{{parquet: people.parquet, pieces: {pieces}}}")
    assert af.run(flow, seed=SEED).ok, "the column is not named"
    flow.write_text(flow.read_text().replace("pay: {", "x: {role: insensitive}, pay: {"))
    words = "column 'x': has a time zone that is not known here; write its times as UTC"
    with pytest.raises(DataError, match=words):
        af.run(flow, seed=SEED)
    status, _, err = shell(capsys, "schema", tmp_path / "people.parquet")
    assert (status, words in err) == (2, True)


@pytest.mark.parametrize("kind", [pa.binary(), pa.binary(2), pa.large_binary()])
def test_bytes_are_not_published(tmp_path: Path, capsys: pytest.CaptureFixture[str], kind: Any) -> None:
    table = pa.Table.from_pandas(people(), preserve_index=False)
    content = pa.array([bytes([255, row]) for row in range(len(table))], kind)
    pq.write_table(table.append_column("x", content), tmp_path / "people.parquet")
    status, out, err = shell(capsys, "schema", tmp_path / "people.parquet")
    assert (status, err) == (0, "")
    assert "x: {role: identifier}" in out
    flow = write_flow(tmp_path, "{parquet: people.parquet}")
    flow.write_text(flow.read_text().replace("pay: {", "x: {role: identifier}, pay: {"))
    assert af.run(flow, seed=SEED).ok


def test_the_name_of_an_encoding_is_shortened(tmp_path: Path) -> None:
    people().to_csv(tmp_path / "people.csv", index=False)
    with pytest.raises(DataError, match="unknown encoding") as caught:
        af.run(write_flow(tmp_path, f"{{csv: people.csv, encoding: {'x' * 5000}}}"), seed=SEED)
    assert len(str(caught.value)) < 400


@pytest.mark.parametrize("workers", [-1, 0, 1025, True, 1.5])
def test_workers_are_a_number_of_them(tmp_path: Path, workers: Any) -> None:
    people().to_csv(tmp_path / "people.csv", index=False)
    flow = write_flow(tmp_path, "{csv: people.csv}")
    for called in (af.run, read_and_expect):
        with pytest.raises(ParameterError, match="workers is a number of at least 1"):
            called(flow, workers=workers)
    text = (
        flow.read_text()
        .replace("partition: {size: 16}\n", "")
        .replace("algorithm: mondrian, k: 3", "loss: ncp")
    )
    more = "target: {loss: 0.9}\nmatrix: {anonymize.algorithm: [mondrian], anonymize.k: [3]}\n"
    flow.write_text(text.replace(", report: 'out/people.html'", "") + more)
    with pytest.raises(ParameterError, match="workers is a number of at least 1"):
        search_flow(flow, workers=workers)
