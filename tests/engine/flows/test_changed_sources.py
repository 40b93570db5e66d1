"""Files that change while a run reads them: status 2, one sentence, nothing published; never a mix of two tables."""

from __future__ import annotations

import dataclasses
import functools
import hashlib
import json
import os
import random
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pandas as pd
import pytest

from anonflow import engine
from anonflow.datasets import files
from anonflow.engine import publish
from anonflow.engine.execution import batches
from anonflow.engine.execution.events import Cancelled, Event, EventStream, PartitionDone, StepStarted
from anonflow.engine.flows import source
from anonflow.engine.flows.fingerprint import FileFingerprint, Fingerprint
from anonflow.engine.owner import checkpoints
from anonflow.engine.owner.folder import OwnerFolder
from anonflow.engine.storage import load
from anonflow.errors import DataError, FlowError
from anonflow.release import Certificate
from anonflow.table.files import parquet_reading
from anonflow.table.files.csv_reading import read_csv
from anonflow.table.files.parquet_reading import read_parquet
from tests.cases.flow_files import write_flow
from tests.cases.workers import Workers

SEED = 0x1234567890ABCDEF1234567890ABCDEF
N = 160

COLUMNS = """\
    age: {role: quasi-identifier, kind: numeric}
    job: {role: quasi-identifier, kind: hierarchy, hierarchy: jobs.csv}
    income: {role: sensitive}
"""

JOBS = "clerk;office;*\nboss;office;*\nfarmer;field;*\nhunter;field;*\n"
OTHER_JOBS = "clerk;field_;*\nboss;office;*\nfarmer;field_;*\nhunter;office;*\n"

FORMS = ("csv", "csv.gz", "parquet", "one row group", "folder")
STORAGES = ("memory", "pieces")
SLOW = pytest.mark.slow
SOURCES = [
    ("csv", "memory"),
    ("folder", "pieces"),
    *(
        pytest.param(form, storage, marks=SLOW)
        for form in FORMS
        for storage in STORAGES
        if (form, storage) not in (("csv", "memory"), ("folder", "pieces"))
    ),
]
"""Forms and storages, of which two are quick: a file in memory, and several in pieces."""
UNPACKED = [
    ("csv", "memory"),
    *(
        pytest.param(form, storage, marks=SLOW)
        for form in ("csv", "parquet", "folder")
        for storage in STORAGES
        if (form, storage) != ("csv", "memory")
    ),
]


@pytest.fixture(autouse=True)
def small(monkeypatch: pytest.MonkeyPatch) -> None:
    """Units of a few partitions, several buckets, and every result worth a file."""
    monkeypatch.setattr(batches, "ROWS", 60)
    monkeypatch.setattr(batches, "SHARE", 1.0)
    monkeypatch.setattr(checkpoints, "EVERY", 0.0)


def people(income: str) -> pd.DataFrame:
    """Everybody has the same income, so that it tells which of two tables a row is of."""
    rng = random.Random(5)
    return pd.DataFrame(
        {
            "age": [rng.randint(20, 60) for _ in range(N)],
            "job": [rng.choice(["clerk", "boss", "farmer", "hunter"]) for _ in range(N)],
            "income": [income] * N,
        }
    )


def put(place: Path, form: str, income: str) -> None:
    """Write a table, in place where it is there already."""
    frame = people(income)
    if form.startswith("csv"):
        frame.to_csv(place, index=False, compression={"method": "gzip", "mtime": 1} if "gz" in form else None)
    elif form == "folder":
        place.mkdir(exist_ok=True)
        for part, start in enumerate(range(0, N, 70)):
            frame[start : start + 70].to_parquet(place / f"{part}.parquet", index=False, row_group_size=30)
    else:
        frame.to_parquet(place, index=False, row_group_size=30 if form == "parquet" else N)


def flow_of(folder: Path, form: str, storage: str, **settings: Any) -> tuple[Path, Path]:
    """A flow, and its source."""
    name = {"csv": "t.csv", "csv.gz": "t.csv.gz", "folder": "t"}.get(form, "t.parquet")
    put(folder / name, form, "old")
    (folder / "jobs.csv").write_text(JOBS)
    key = "csv" if form.startswith("csv") else "parquet"
    pieces = {"memory": "false", "pieces": "50"}[storage]
    settings.setdefault("columns", COLUMNS)
    path = write_flow(
        folder, source=f"{{{key}: {name}, pieces: {pieces}}}", partition="{size: 20}", **settings
    )
    return path, folder / name


def files_of(place: Path) -> list[Path]:
    return sorted(place.iterdir()) if place.is_dir() else [place]


def replace_by_rename(place: Path, form: str) -> None:
    """As a program that writes a new table does it: another inode, another time."""
    new = place.with_name(f"new-{place.name}")
    put(new, form, "new")
    for file in files_of(new):
        os.replace(file, place / file.name if place.is_dir() else place)


def overwrite_unseen(place: Path, form: str) -> None:
    """The same inode, size and time of modification, and other content in the middle."""
    for file in files_of(place):
        before = file.stat()
        content = bytearray(file.read_bytes())
        at = content.find(b"old")  # of CSV and Parquet; in what is packed, any byte
        at = len(content) // 2 if at < 0 else at
        with file.open("r+b") as stream:
            stream.seek(at)
            stream.write(bytes([content[at] ^ 1]))
        os.utime(file, ns=(before.st_atime_ns, before.st_mtime_ns))
        assert file.stat().st_ino == before.st_ino
        assert file.stat().st_size == before.st_size
        assert file.stat().st_mtime_ns == before.st_mtime_ns


def at_step(step: str, change: Callable[[], None]) -> Callable[[Event], None]:
    """Change something when a step begins, once."""
    left = [change]

    def listen(event: Event) -> None:
        if isinstance(event, StepStarted) and event.step == step and left:
            left.pop()()

    return listen


def refused(flow: Path, place: Path, words: str = "has changed since the run began", **settings: Any) -> None:
    """A run ends with status 2, says so in one sentence that names the file, and leaves nothing published."""
    with pytest.raises(DataError, match=words) as caught:
        engine.run(flow, **settings)
    assert caught.value.exit_status == 2
    assert caught.value.problems == (caught.value.message,)
    assert str(place) in caught.value.message
    assert "\n" not in str(caught.value)
    assert not (flow.parent / "out").exists()
    owner = flow.parent / "owner" / "test"
    assert not any((owner / name).exists() for name in ("record.json", "certificate.npz", "seed"))
    assert not list(owner.glob("pieces-*"))


# ------------------------------------------------------------------------------------------ while a run goes on


@pytest.mark.parametrize(
    ("form", "storage", "step"),
    [
        *((form, "memory", "cut") for form in FORMS),
        *((form, "pieces", "anonymize") for form in FORMS),
        ("parquet", "pieces", "draw"),
        *(
            pytest.param(form, storage, step, marks=SLOW)
            for form in ("csv", "folder")
            for storage, step in (
                ("memory", "anonymize"),
                ("memory", "draw"),
                ("pieces", "cut"),
                ("pieces", "draw"),
            )
        ),
    ],
)
def test_a_source_that_is_replaced_at_a_step(tmp_path: Path, form: str, storage: str, step: str) -> None:
    flow, place = flow_of(tmp_path, form, storage)
    refused(flow, place, seed=SEED, on_event=at_step(step, lambda: replace_by_rename(place, form)))


@pytest.mark.parametrize("storage", STORAGES)
@pytest.mark.parametrize("form", FORMS)
def test_a_source_that_changes_with_its_size_and_time_kept(tmp_path: Path, form: str, storage: str) -> None:
    flow, place = flow_of(tmp_path, form, storage)
    refused(flow, place, seed=SEED, on_event=at_step("cut", lambda: overwrite_unseen(place, form)))


@pytest.mark.parametrize("storage", STORAGES)
@pytest.mark.parametrize("form", FORMS)
def test_a_source_that_is_replaced_while_it_is_loaded(
    tmp_path: Path, form: str, storage: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    """After the first look at the file, and before a row of it is parsed."""
    flow, place = flow_of(tmp_path, form, storage)
    real = Fingerprint.of.__func__  # type: ignore[attr-defined]

    def then_changed(cls: type[Fingerprint], of: engine.Flow) -> Fingerprint:
        fingerprint: Fingerprint = real(cls, of)
        replace_by_rename(place, form)
        return fingerprint

    monkeypatch.setattr(Fingerprint, "of", classmethod(then_changed))
    refused(flow, place, seed=SEED)


@pytest.mark.parametrize(("form", "storage"), SOURCES)
def test_a_source_that_changes_while_it_is_published(
    tmp_path: Path, form: str, storage: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    """All is drawn and verified: files get their names after the content is compared, whatever the times say."""
    flow, place = flow_of(tmp_path, form, storage)
    monkeypatch.setattr(FileFingerprint, "touched", False)
    refused(flow, place, seed=SEED, on_event=at_step("publish", lambda: overwrite_unseen(place, form)))


@pytest.mark.parametrize(("of", "name"), [(publish, "write_table"), (Certificate, "save")])
@pytest.mark.parametrize("storage", STORAGES)
def test_a_source_that_changes_after_the_last_byte_is_written(
    tmp_path: Path, storage: str, of: Any, name: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Nothing but names is left to be given."""
    flow, place = flow_of(tmp_path, "parquet", storage)
    real = getattr(of, name)

    def then_changed(*arguments: Any, **settings: Any) -> Any:
        written = real(*arguments, **settings)
        replace_by_rename(place, "parquet")
        return written

    monkeypatch.setattr(of, name, then_changed)
    refused(flow, place, seed=SEED)


def test_a_cancelled_run_gives_no_names(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Cancelled while the release is written: as before it."""
    flow, _ = flow_of(tmp_path, "csv", "memory")
    stream = EventStream()
    real = publish.write_table

    def then_cancelled(*arguments: Any, **settings: Any) -> Any:
        written = real(*arguments, **settings)
        stream.cancel()
        return written

    monkeypatch.setattr(publish, "write_table", then_cancelled)
    with pytest.raises(Cancelled):
        engine.run(flow, seed=SEED, events=stream)
    assert not (tmp_path / "out").exists()
    assert not (tmp_path / "owner" / "test" / "seed").exists()


@pytest.mark.parametrize("form", ["parquet", "folder"])
def test_a_file_of_another_table_that_is_gone_again(
    tmp_path: Path, form: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The file is another one while its rows are read, and the first one again before anybody looks."""
    flow, place = flow_of(tmp_path, form, "pieces")
    parts, rows = parquet_reading.parquet_files, load.parquet_batches
    first = tmp_path / "first"

    def in_between(path: Path) -> Iterator[Path]:
        for file in parts(path):
            os.rename(place, first)
            put(place, form, "new")
            yield file
            os.rename(place, tmp_path / "other")
            os.rename(first, place)

    def of_rows(*arguments: Any, **settings: Any) -> Iterator[Any]:
        with monkeypatch.context() as patch:
            patch.setattr(parquet_reading, "parquet_files", in_between)
            yield from rows(*arguments, **settings)

    monkeypatch.setattr(load, "parquet_batches", of_rows)
    refused(flow, place, seed=SEED, workers=1)


def test_a_text_file_that_changes_between_being_checked_and_parsed(tmp_path: Path) -> None:
    """A CSV file is read twice: for its encoding, quotes and header, and to be parsed."""
    flow, place = flow_of(tmp_path, "csv", "memory")
    for opening in (1, 2):
        put(place, "csv", "old")
        fingerprint = Fingerprint.of(engine.load_flow(flow))
        openings: list[int] = []

        def opened(path: Path) -> Any:
            openings.append(1)  # noqa: B023
            if len(openings) == opening:  # noqa: B023
                overwrite_unseen(place, "csv")
            return fingerprint.open(path)  # noqa: B023

        with pytest.raises(DataError, match="has changed since"):
            read_csv(place, opener=opened)
        assert len(openings) == opening


def test_a_file_more_in_the_folder(tmp_path: Path) -> None:
    flow, place = flow_of(tmp_path, "folder", "pieces")
    change = functools.partial(people("new").to_parquet, place / "9.parquet")
    refused(flow, place, seed=SEED, on_event=at_step("anonymize", change))


@pytest.mark.parametrize("storage", STORAGES)
def test_a_source_that_is_gone_or_longer(tmp_path: Path, storage: str) -> None:
    for name, change in (
        ("gone", lambda place: place.unlink()),
        ("longer", lambda place: place.write_bytes(place.read_bytes() + b"30,boss,new\n")),
    ):
        folder = tmp_path / name
        folder.mkdir()
        flow, place = flow_of(folder, "csv", storage)
        words = {"gone": "cannot be read any more", "longer": "has changed since"}[name]
        refused(
            flow, place, words, seed=SEED, on_event=at_step("anonymize", functools.partial(change, place))
        )


@pytest.mark.parametrize(("form", "storage"), SOURCES)
def test_a_copy_of_the_same_content_is_the_same_source(tmp_path: Path, form: str, storage: str) -> None:
    flow, place = flow_of(tmp_path, form, storage)

    def copy() -> None:
        for file in files_of(place):
            new = file.with_name(f".{file.name}")
            new.write_bytes(file.read_bytes())
            os.replace(new, file)

    assert engine.run(flow, seed=SEED, on_event=at_step("cut", copy)).ok
    assert set(pd.read_csv(tmp_path / "out" / "release.csv")["income"]) == {"old"}


@pytest.mark.slow
@pytest.mark.machine
def test_a_worker_process_notices_it(tmp_path: Path) -> None:
    flow, place = flow_of(tmp_path, "parquet", "pieces")
    change = at_step("cut", functools.partial(replace_by_rename, place, "parquet"))
    refused(flow, place, seed=SEED, scheduler="processes", workers=1, on_event=change)


@pytest.mark.parametrize("scheduler", ["processes", "tcp://host:1"])
def test_workers_notice_it(tmp_path: Path, workers: Workers, scheduler: str) -> None:
    """Workers read the pieces; a change there, and at the client's last step."""
    for form, storage, step in (
        ("parquet", "pieces", "cut"),
        ("csv", "pieces", "cut"),
        ("folder", "pieces", "draw"),
        ("csv", "pieces", "publish"),
        ("folder", "pieces", "publish"),
        ("parquet", "memory", "publish"),
    ):
        folder = tmp_path / f"{form} {storage} {step}"
        folder.mkdir()
        flow, place = flow_of(folder, form, storage)
        change = at_step(step, functools.partial(replace_by_rename, place, form))
        refused(flow, place, seed=SEED, scheduler=scheduler, on_event=change)
    assert workers.sent


# ------------------------------------------------------------------------------------- hierarchies and registers


@pytest.mark.parametrize("step", ["cut", "anonymize", "draw"])
@pytest.mark.parametrize("storage", STORAGES)
def test_a_hierarchy_that_changes_during_a_run(tmp_path: Path, storage: str, step: str) -> None:
    flow, _ = flow_of(tmp_path, "csv", storage)
    jobs = tmp_path / "jobs.csv"
    refused(flow, jobs, seed=SEED, on_event=at_step(step, lambda: bool(jobs.write_text(OTHER_JOBS))))


@pytest.mark.parametrize("storage", STORAGES)
def test_a_hierarchy_that_is_another_one_only_while_it_is_read(
    tmp_path: Path, storage: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    flow, _ = flow_of(tmp_path, "csv", storage)
    jobs = tmp_path / "jobs.csv"
    room, name = {"memory": (source, "Table"), "pieces": (load, "Table")}[storage]
    real = getattr(room, name)

    def in_between(*args: Any, **named: Any) -> Any:
        jobs.write_text(OTHER_JOBS)
        try:
            return real(*args, **named)
        finally:
            jobs.write_text(JOBS)

    monkeypatch.setattr(room, name, in_between)
    refused(flow, jobs, seed=SEED)


def test_a_register_that_changes_during_a_run(tmp_path: Path) -> None:
    steps = "  - draw: {}\n  - attack: [{journalist: {population: register.csv}}]\n"
    flow, _ = flow_of(tmp_path, "csv", "memory", steps=steps)
    register = tmp_path / "register.csv"
    people("none").drop(columns="income").to_csv(register, index=False)
    assert engine.run(flow, seed=SEED, fresh=True).ok
    other = tmp_path / "other"
    other.mkdir()
    flow, _ = flow_of(other, "csv", "memory", steps=steps)
    content = register.read_bytes()
    register = other / "register.csv"
    register.write_bytes(content)
    change = functools.partial(register.write_bytes, content + b"30,boss\n")
    refused(flow, register, seed=SEED, on_event=at_step("attack", lambda: bool(change())))


# ----------------------------------------------------------------------------------------------------- data sets


def test_the_file_of_a_data_set_is_read_once_and_known_by_its_checksum(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """No fingerprint is needed: what is parsed are the very bytes that were compared, and there is no second look."""
    rng = random.Random(2)
    lines = [
        ",".join(map(str, [rng.randint(16, 49), 2, 3, rng.randint(0, 9), 1, 1, 2, 3, 0, 1]))
        for _ in range(60)
    ]
    digest = hashlib.sha256("\n".join(lines).encode()).hexdigest()
    monkeypatch.setattr(files, "_CMC", dataclasses.replace(files._CMC, sha256=digest))
    monkeypatch.setenv(files.FOLDER, str(tmp_path))
    place = tmp_path / "cmc.data"
    columns = (
        "    wife_age: {role: quasi-identifier, kind: numeric}\n"
        "    children_born: {role: quasi-identifier, kind: numeric}\n"
        "    contraceptive_method_use: {role: sensitive}\n"
    )
    flow = write_flow(tmp_path, source="{dataset: cmc}", columns=columns)
    readings: list[Path] = []
    real = Path.read_bytes

    def read_bytes(path: Path) -> bytes:
        readings.extend([path] if path == place else [])
        return real(path)

    monkeypatch.setattr(Path, "read_bytes", read_bytes)
    other = "\n".join([*lines[1:], lines[0]])
    releases = set()
    for step in ("", "cut", "anonymize", "draw", "publish"):
        place.write_text("\n".join(lines))
        readings.clear()
        change = at_step(step, lambda: bool(place.write_text(other)))
        assert engine.run(flow, seed=SEED, again=True, on_event=change).ok
        assert len(readings) == 1
        releases.add((tmp_path / "out" / "release.csv").read_bytes())
    assert len(releases) == 1
    owner = tmp_path / "owner" / "test"
    for settings in ({"seed": SEED, "again": True}, {"replay": owner}):
        with pytest.raises(DataError, match=r"cmc\.data: not the file of the UCI repository") as caught:
            engine.run(flow, **settings)
        assert caught.value.exit_status == 2
        assert (tmp_path / "out" / "release.csv").read_bytes() in releases


# ------------------------------------------------------------------------------------------- resume and replay


def stopped(flow: Path) -> None:
    """Run a flow until some partitions are kept."""
    stream = EventStream()

    def listen(event: Event) -> None:
        if isinstance(event, PartitionDone) and event.done == 6:
            stream.cancel()

    with pytest.raises(Cancelled):
        engine.run(flow, on_event=listen, events=stream, workers=1, seed=SEED)
    assert list((flow.parent / "owner" / "test" / "checkpoints").glob("*.npz"))


@pytest.mark.parametrize(("form", "storage"), UNPACKED)
def test_a_source_that_changes_between_a_run_and_its_resume(tmp_path: Path, form: str, storage: str) -> None:
    flow, place = flow_of(tmp_path, form, storage)
    stopped(flow)
    replace_by_rename(place, form)
    refused(flow, place, "has changed since the run that stopped.*--fresh")
    put(place, form, "old")
    assert engine.run(flow).ok
    assert OwnerFolder(tmp_path / "owner" / "test").seed() == SEED


@pytest.mark.parametrize("storage", ["memory", pytest.param("pieces", marks=SLOW)])
def test_fresh_starts_over_with_the_changed_source(tmp_path: Path, storage: str) -> None:
    flow, place = flow_of(tmp_path, "parquet", storage)
    stopped(flow)
    replace_by_rename(place, "parquet")
    assert engine.run(flow, fresh=True).ok
    assert OwnerFolder(tmp_path / "owner" / "test").seed() != SEED
    assert set(pd.read_csv(tmp_path / "out" / "release.csv")["income"]) == {"new"}


@pytest.mark.parametrize("storage", ["memory", pytest.param("pieces", marks=SLOW)])
def test_a_source_that_changes_during_a_resumed_run(tmp_path: Path, storage: str) -> None:
    flow, place = flow_of(tmp_path, "parquet", storage)
    stopped(flow)
    for step in ("cut", "draw", "publish"):
        put(place, "parquet", "old")
        refused(flow, place, on_event=at_step(step, lambda: replace_by_rename(place, "parquet")))


@pytest.mark.parametrize("storage", STORAGES)
def test_a_hierarchy_that_changes_between_a_run_and_its_resume(tmp_path: Path, storage: str) -> None:
    flow, _ = flow_of(tmp_path, "csv", storage)
    stopped(flow)
    (tmp_path / "jobs.csv").write_text(OTHER_JOBS)
    refused(flow, tmp_path / "jobs.csv", "has changed since the run that stopped")


def test_a_flow_that_names_another_source_starts_over(tmp_path: Path) -> None:
    flow, place = flow_of(tmp_path, "csv", "memory")
    stopped(flow)
    place.rename(tmp_path / "u.csv")
    put(tmp_path / "u.csv", "csv", "new")
    flow.write_text(flow.read_text().replace("t.csv", "u.csv"))
    assert engine.run(flow).ok
    assert OwnerFolder(tmp_path / "owner" / "test").seed() != SEED


@pytest.mark.parametrize(("form", "storage"), UNPACKED)
def test_a_replay_of_a_source_that_changes(tmp_path: Path, form: str, storage: str) -> None:
    """Before the replay, and at each of its steps: what is published already stays as it is."""
    flow, place = flow_of(tmp_path, form, storage)
    assert engine.run(flow, seed=SEED).ok
    owner = tmp_path / "owner" / "test"
    release = tmp_path / "out" / "release.csv"
    before = [path.read_bytes() for path in (release, owner / "record.json", owner / "certificate.npz")]
    cases: list[tuple[str | None, str]] = [(None, "the source has changed since")]
    cases += [(step, "has changed since the run began") for step in ("cut", "draw", "publish")]
    for step, words in cases:
        put(place, form, "old")
        if step is None:
            replace_by_rename(place, form)
        change = at_step(step or "", lambda: replace_by_rename(place, form))
        with pytest.raises((DataError, FlowError), match=words) as caught:
            engine.run(flow, replay=owner, on_event=change)
        assert caught.value.exit_status == 2
        after = [path.read_bytes() for path in (release, owner / "record.json", owner / "certificate.npz")]
        assert after == before
    put(place, form, "old")
    assert engine.run(flow, replay=owner).ok
    assert release.read_bytes() == before[0]


def test_a_replay_with_another_hierarchy(tmp_path: Path) -> None:
    flow, _ = flow_of(tmp_path, "csv", "memory")
    assert engine.run(flow, seed=SEED).ok
    (tmp_path / "jobs.csv").write_text(OTHER_JOBS)
    with pytest.raises(FlowError, match=r"the file jobs\.csv has changed since") as caught:
        engine.run(flow, replay=tmp_path / "owner" / "test")
    assert caught.value.exit_status == 2


# -------------------------------------------------------------------------------------------------- the record


@pytest.mark.parametrize(("form", "storage"), SOURCES)
def test_the_record_says_what_was_read(tmp_path: Path, form: str, storage: str) -> None:
    flow, place = flow_of(tmp_path, form, storage)
    assert engine.run(flow, seed=SEED).ok
    owner = OwnerFolder(tmp_path / "owner" / "test")
    record = owner.record()
    expected = [FileFingerprint.of(file) for file in (*files_of(place), tmp_path / "jobs.csv")]
    assert [entry["file"] for entry in record["files"]] == [
        os.path.relpath(file.path, tmp_path) for file in expected
    ]
    assert [(entry["inode"], entry["bytes"], entry["hash"]) for entry in record["files"]] == [
        (file.inode, file.size, owner.keyed(file.digest)) for file in expected
    ]
    assert record["hashes"]["source"] is not None
    if place.is_file():
        assert record["hashes"]["source"] == record["files"][0]["hash"]
    # a plain hash confirms guesses
    text = json.dumps(record)
    assert not any(file.digest.hex() in text or file.blocks.hex() in text for file in expected)
    assert "blocks" not in repr(expected[0])


def test_a_flow_file_that_is_edited_during_a_run_is_recorded_as_it_was_run(tmp_path: Path) -> None:
    flow, _ = flow_of(tmp_path, "csv", "memory")
    text = flow.read_text()
    assert engine.run(flow, seed=SEED, on_event=at_step("cut", lambda: bool(flow.write_text(text + "\n")))).ok
    owner = tmp_path / "owner" / "test"
    with pytest.raises(FlowError, match="the flow has changed since"):
        engine.run(flow, replay=owner)
    flow.write_text(text)
    assert engine.run(flow, replay=owner).ok


def test_tables_read_alone_need_nothing(tmp_path: Path) -> None:
    """Without an opener, files are read as ever; with one, the frame is the same."""
    for form in ("csv", "csv.gz", "parquet"):
        path = tmp_path / f"t.{form}"
        put(path, form, "old")
        read = read_parquet if form == "parquet" else read_csv
        opener = Fingerprint((FileFingerprint.of(path),)).open
        pd.testing.assert_frame_equal(read(path), read(path, opener=opener))
