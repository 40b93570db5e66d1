"""A run that stops is picked up: same bits, nothing done twice, nothing half published."""

from __future__ import annotations

import json
import os
import signal
import stat
import subprocess
import sys
from collections.abc import Mapping
from dataclasses import replace
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import numpy as np
import pytest

import anonflow as af
from anonflow import engine
from anonflow.algorithms.method import Outcome
from anonflow.engine.duration import seconds_of
from anonflow.engine.execution import tasks
from anonflow.engine.owner import checkpoints
from anonflow.engine.owner.folder import OwnerFolder
from anonflow.errors import AnonflowError, DataError, InfeasibleError, ParameterError
from anonflow.generalization import Generalization
from tests.cases.flow_files import write_flow
from tests.cases.runs import SEED, counted, published, stopped_after
from tests.strategies import loop

__all__ = ["counted"]


def test_a_cancelled_run_is_picked_up_with_the_same_bits(tmp_path: Path, counted: list[int]) -> None:
    quiet = tmp_path / "quiet"
    quiet.mkdir()
    write_flow(quiet, partition="{size: 6}")
    engine.run(quiet / "flow.yaml", seed=SEED)
    counted.clear()
    write_flow(tmp_path, partition="{size: 6}")
    stopped_after(tmp_path, 4, seed=SEED)
    assert not (tmp_path / "out").exists()
    before = len(counted)
    assert before < 10
    messages = []
    engine.run(tmp_path / "flow.yaml", on_event=messages.append)
    assert published(tmp_path) == published(quiet)
    assert len(counted) - before == 6  # the four that were told of are there
    assert any("partitions are there from an earlier run" in str(event.to_mapping()) for event in messages)
    folder = OwnerFolder(tmp_path / "owner" / "test")
    assert folder.seed() == SEED
    assert folder.unfinished() is None


def test_checkpoints_are_the_owners_alone(tmp_path: Path, counted: list[int]) -> None:
    write_flow(tmp_path, partition="{size: 6}")
    stopped_after(tmp_path, 4)
    owner = tmp_path / "owner" / "test"
    files = [path for path in owner.rglob("*") if path.is_file()]
    assert {path.name for path in files} > {"key", "unfinished.json"}
    assert all(stat.S_IMODE(path.stat().st_mode) == 0o600 for path in files)
    folders = [owner, *(path for path in owner.rglob("*") if path.is_dir())]
    assert all(stat.S_IMODE(path.stat().st_mode) == 0o700 for path in folders)


def test_fresh_starts_over_with_another_seed(tmp_path: Path, counted: list[int]) -> None:
    write_flow(tmp_path, partition="{size: 6}")
    stopped_after(tmp_path, 4, seed=SEED)
    counted.clear()
    engine.run(tmp_path / "flow.yaml", fresh=True)
    assert len(counted) == 10
    assert OwnerFolder(tmp_path / "owner" / "test").seed() != SEED


@pytest.mark.parametrize("version", ["0.0.1", None])
def test_an_unfinished_run_of_another_version_is_refused(
    tmp_path: Path, counted: list[int], version: str | None
) -> None:
    """In one sentence, before work; nothing of it is read, and nothing is lost before the owner says so."""
    write_flow(tmp_path, partition="{size: 6}")
    stopped_after(tmp_path, 4, seed=SEED)
    file = tmp_path / "owner" / "test" / "unfinished.json"
    file.write_text(json.dumps({**json.loads(file.read_text()), "version": version}))
    before = sorted((tmp_path / "owner").rglob("*"))
    counted.clear()
    with pytest.raises(
        DataError, match=r"was begun with another version.*--fresh in the shell, fresh=True in Python$"
    ) as caught:
        engine.run(tmp_path / "flow.yaml")
    assert "\n" not in caught.value.message
    assert counted == []
    assert sorted((tmp_path / "owner").rglob("*")) == before
    engine.run(tmp_path / "flow.yaml", fresh=True)
    assert OwnerFolder(tmp_path / "owner" / "test").seed() != SEED


@pytest.mark.parametrize(
    ("anonymize", "again"),
    [
        ("{algorithm: greedy, k: 3}", 0),
        ("{algorithm: greedy, k: 4}", 10),
        pytest.param("{algorithm: greedy, k: 3, loss: lm}", 10, marks=pytest.mark.slow),
    ],
)
def test_only_what_changed_is_done_again(
    tmp_path: Path, counted: list[int], anonymize: str, again: int
) -> None:
    write_flow(tmp_path, partition="{size: 6}")
    engine.run(tmp_path / "flow.yaml", seed=SEED)
    counted.clear()
    write_flow(tmp_path, partition="{size: 6}", anonymize=anonymize)
    engine.run(tmp_path / "flow.yaml", seed=SEED, again=True)
    assert len(counted) == again


def test_a_matrix_reuses_the_run_it_already_has(tmp_path: Path, counted: list[int]) -> None:
    write_flow(tmp_path, partition="{size: 6}")
    engine.run(tmp_path / "flow.yaml", seed=SEED)
    counted.clear()
    write_flow(tmp_path, partition="{size: 6}", publish="", more="matrix: {anonymize.k: [3, 5]}\n")
    report = engine.run(tmp_path / "flow.yaml", seed=SEED)
    assert report.ok
    assert len(counted) == 10


def test_another_cell_or_another_seed_finds_nothing(tmp_path: Path, counted: list[int]) -> None:
    path = write_flow(tmp_path, partition="{size: 60}")
    engine.run(path, seed=SEED)
    counted.clear()
    engine.run(path, seed=SEED + 1, again=True)
    assert len(counted) == 1
    text = (tmp_path / "people.csv").read_text()
    head, first, rest = text.split("\n", 2)
    (tmp_path / "people.csv").write_text("\n".join([head, "81" + first[2:], rest]))
    engine.run(path, seed=SEED)
    assert len(counted) == 2


@pytest.mark.parametrize(
    "damage",
    [b"PK\x03\x04 no archive", *(pytest.param(damage, marks=pytest.mark.slow) for damage in (b"", None))],
)
def test_a_damaged_checkpoint_is_done_again(tmp_path: Path, counted: list[int], damage: bytes | None) -> None:
    path = write_flow(tmp_path, partition="{size: 6}")
    engine.run(path, seed=SEED)
    whole = published(tmp_path)
    counted.clear()
    for file in (tmp_path / "owner" / "test" / "checkpoints").iterdir():
        file.write_bytes(file.read_bytes()[:-200] if damage is None else damage)
    engine.run(path, seed=SEED, again=True)
    assert len(counted) == 10
    assert published(tmp_path) == whole


def test_whatever_byte_is_damaged_is_as_if_it_were_not_there(tmp_path: Path) -> None:
    table = af.Table(af.datasets.census_like(20, seed=1), af.datasets.schema("census_like"))
    settings = tasks.TaskSettings(0, "greedy", 3, "ncp", {}, ("covers",), SEED)
    result = tasks.match(settings, table.records, 0)
    assert isinstance(result, tasks.Matched)
    store = checkpoints.Checkpoints(tmp_path / "kept")
    ((name,),) = checkpoints.ResultNames(b"k" * 32, checkpoints.domains_digest(table.domains))(
        settings, [table.records]
    )
    file = store.folder / f"{name}.npz"
    store.write(file, {name: result})
    whole = file.read_bytes()

    def there() -> Mapping[str, tasks.Matched]:
        again = checkpoints.Checkpoints(store.folder)
        again.find()
        return again.read([name], table.domains)

    assert set(there()) == {name}
    lost = 0
    directory = whole.index(b"PK\x01\x02")
    for at in (*range(40), *range(directory, directory + 60), *range(0, len(whole), 97)):
        for bit in (1, 8, 128):
            file.write_bytes(whole[:at] + bytes([whole[at] ^ bit]) + whole[at + 1 :])
            lost += not there()
    assert lost > 100


@loop("greatest", [0, 127, 128, 255, 256, 32_767, 32_768, 2**31 - 1])
@loop("least", [0, -1])
def test_stored_integers_take_few_bytes_and_come_back_as_they_were(
    tmp_path: Path, least: int, greatest: int
) -> None:
    table = af.Table(af.datasets.census_like(20, seed=1), af.datasets.schema("census_like"))
    ends = np.array([least, greatest], np.int32)
    lo = np.tile(ends, (3, 10))
    bits = np.array([[0, 2**64 - 1] * 10], np.uint64)
    outcome = Outcome(
        Generalization(table.domains, lo, lo[::-1].copy(), bits),
        matches=np.tile(ends, (20, 2)),
        classes=np.tile(ends, 10).astype(np.int64),
        suppressed=np.arange(20) > 17,
    )
    store = checkpoints.Checkpoints(tmp_path / "kept")
    store.write(store.folder / "a.npz", {"a": tasks.Matched(outcome, 0.5)})
    store.find()
    again = store.read(["a"], table.domains)["a"].outcome
    for before, after in (
        (outcome.generalization.lo, again.generalization.lo),
        (outcome.generalization.hi, again.generalization.hi),
        (outcome.generalization.bits, again.generalization.bits),
        (outcome.matches, again.matches),
        (outcome.classes, again.classes),
        (outcome.suppressed, again.suppressed),
    ):
        assert before is not None
        assert after is not None
        assert after.dtype == before.dtype
        np.testing.assert_array_equal(after, before)
    with np.load(store.folder / "a.npz") as stored:
        size = stored["lo"].dtype.itemsize
        assert size == min(
            width for width in (1, 2, 4) if np.iinfo(f"{'iu'[least >= 0]}{width}").max >= greatest
        )


def test_a_checkpoint_is_never_code(tmp_path: Path, counted: list[int]) -> None:
    path = write_flow(tmp_path, partition="{size: 60}")
    engine.run(path, seed=SEED)
    (file,) = (tmp_path / "owner" / "test" / "checkpoints").iterdir()

    class Evil:
        def __reduce__(self) -> tuple[Any, ...]:
            return (os.mkdir, (str(tmp_path / "evil"),))

    np.savez(file, header=np.array([Evil()], object))
    engine.run(path, seed=SEED, again=True)
    assert not (tmp_path / "evil").exists()


def test_keep_says_how_long(tmp_path: Path, counted: list[int], monkeypatch: pytest.MonkeyPatch) -> None:
    now = [4e9]  # seconds, after every file
    monkeypatch.setattr(checkpoints, "time", SimpleNamespace(time=lambda: now[0]))
    path = write_flow(tmp_path)
    home = tmp_path / "owner" / "test" / "checkpoints"
    engine.run(path, keep=5e9)
    assert list(home.iterdir())
    engine.run(path, keep=0.0, again=True)
    assert not list(home.iterdir())
    now[0] = 1e9  # before every file, but for those that the test makes older
    old = now[0] - 3600
    for keep, there in ((1800.0, False), (3600.0, False), (3601.0, True)):
        engine.run(path, again=True)
        for file in home.iterdir():
            os.utime(file, (old, old))
        engine.run(path, keep=keep, again=True)
        assert any(file.stat().st_mtime == old for file in home.iterdir()) == there, keep


def test_durations_are_read_as_seconds() -> None:
    texts = {"0": 0.0, "90s": 90.0, "30m": 1800.0, "1.5h": 5400.0, "7d": 604800.0}
    assert {text: seconds_of(text) for text in texts} == texts


def test_what_is_no_duration_is_refused() -> None:
    for text in ("", "7", "-1d", "1w", "d", "1e3s", "nan", "1 d"):
        with pytest.raises(ParameterError, match="7d"):
            seconds_of(text)


def test_keep_must_be_seconds(tmp_path: Path) -> None:
    for keep in (-1.0, float("nan"), True, "7d"):
        with pytest.raises(ParameterError, match="keep"):
            engine.run(write_flow(tmp_path), keep=keep)  # type: ignore[arg-type]


def test_a_poisoned_partition_is_named_and_the_others_are_kept(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, counted: list[int]
) -> None:
    write_flow(tmp_path, partition="{size: 6}")
    good = tasks.match
    solve = tasks.solve
    generator = tasks.partition_generator
    at: list[int] = []

    def poisoned(*args: Any, **settings: Any) -> Outcome:
        if at[-1] == 3:
            raise ZeroDivisionError("a cell's value")
        return solve(*args, **settings)

    def noted(entropy: int, partition: int, records: Any) -> Any:
        at.append(partition)
        return generator(entropy, partition, records)

    monkeypatch.setattr(tasks, "partition_generator", noted)
    monkeypatch.setattr(tasks, "solve", poisoned)
    with pytest.raises(AnonflowError, match="partition 3 of run") as caught:
        engine.run(tmp_path / "flow.yaml", seed=SEED, workers=1)
    assert "a cell's value" not in str(caught.value)
    assert len(counted) == 9
    assert not (tmp_path / "out").exists()
    monkeypatch.setattr(tasks, "solve", solve)
    report = engine.run(tmp_path / "flow.yaml", workers=1)
    assert report.ok
    assert len(counted) == 10
    assert good is tasks.match


def test_what_cannot_be_kept_is_said_and_the_run_goes_on(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, counted: list[int]
) -> None:
    write_flow(tmp_path, partition="{size: 6}")

    def full(path: Path, results: Any) -> None:
        raise OSError(28, "No space left on device")

    monkeypatch.setattr(checkpoints, "_write_arrays", full)
    report = engine.run(tmp_path / "flow.yaml", seed=SEED)
    assert report.ok
    assert sum("cannot be kept" in warning for warning in report.warnings) == 1
    assert not list((tmp_path / "owner" / "test" / "checkpoints").iterdir())


def test_an_infeasible_run_leaves_nothing(tmp_path: Path) -> None:
    write_flow(tmp_path, anonymize="{algorithm: greedy, k: 61}", partition="{}")
    with pytest.raises(InfeasibleError):
        engine.run(tmp_path / "flow.yaml")
    assert not (tmp_path / "owner").exists()


def test_results_are_stored_together_after_a_second_of_work(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    written: list[list[str]] = []
    monkeypatch.setattr(checkpoints, "EVERY", 1.0)
    monkeypatch.setattr(
        checkpoints.Checkpoints, "write", lambda own, path, results: written.append([*results])
    )
    store = checkpoints.Checkpoints(tmp_path)
    result = tasks.Matched(Outcome.__new__(Outcome), 0.6)
    for name in ("a", "b", "c"):
        store.add(name, result)
        if name != "b":
            assert not store.due
            continue
        assert store.due
        store.flush()
        assert not store.due
    assert written == [["a", "b"]]


def test_a_run_without_work_worth_keeping_keeps_none(tmp_path: Path) -> None:
    engine.run(write_flow(tmp_path))
    assert not (tmp_path / "owner" / "test" / "checkpoints").exists()


def test_a_replay_does_everything_again(tmp_path: Path, counted: list[int]) -> None:
    path = write_flow(tmp_path, partition="{size: 6}")
    engine.run(path)
    whole = published(tmp_path)
    counted.clear()
    engine.run(path, replay=tmp_path / "owner" / "test")
    assert len(counted) == 10
    assert published(tmp_path) == whole


def test_a_published_seed_is_not_taken_by_a_changed_flow(tmp_path: Path, counted: list[int]) -> None:
    path = write_flow(tmp_path, partition="{size: 6}")
    stopped_after(tmp_path, 4, seed=SEED)
    owner = OwnerFolder(tmp_path / "owner" / "test")
    left = owner.unfinished()
    assert left is not None
    owner.write_unfinished({**left, "publishing": True})
    write_flow(tmp_path, partition="{size: 7}")
    engine.run(path)
    assert owner.seed() != SEED


KILLED = """
import os, signal, sys
from anonflow import engine
from anonflow.engine.owner import checkpoints, folder
checkpoints.EVERY = 0.0
def listen(event):
    if event.kind == "partition-done" and event.done == 4:
        os.kill(os.getpid(), signal.SIGKILL)
engine.run(sys.argv[1], on_event=listen, workers=1, seed=int(sys.argv[2]))
"""


@pytest.mark.slow
@pytest.mark.machine
def test_a_killed_run_is_picked_up(tmp_path: Path, counted: list[int]) -> None:
    quiet = tmp_path / "quiet"
    quiet.mkdir()
    write_flow(quiet, partition="{size: 6}")
    engine.run(quiet / "flow.yaml", seed=SEED)
    path = write_flow(tmp_path, partition="{size: 6}")
    done = subprocess.run([sys.executable, "-c", KILLED, str(path), str(SEED)], check=False, timeout=600)
    assert done.returncode == -signal.SIGKILL
    assert not (tmp_path / "out").exists()
    left = json.loads((tmp_path / "owner" / "test" / "unfinished.json").read_text())
    assert int(left["seed"], 16) == SEED
    counted.clear()
    engine.run(path)
    assert len(counted) <= 7
    assert published(tmp_path) == published(quiet)


@pytest.mark.parametrize("text", ["", "{", "[]", "{}", "no seed", "no hexadecimal seed"])
def test_a_damaged_note_of_an_unfinished_run_is_said(tmp_path: Path, counted: list[int], text: str) -> None:
    write_flow(tmp_path, partition="{size: 6}")
    stopped_after(tmp_path, 4)
    note = tmp_path / "owner" / "test" / "unfinished.json"
    left = json.loads(note.read_text())
    if text.startswith("no"):
        left.pop("seed")
        text = json.dumps(left | {"seed": "x"} if "hexadecimal" in text else left)
    note.write_text(text)
    report = engine.run(tmp_path / "flow.yaml")
    assert report.ok
    (warning,) = [words for words in report.warnings if "unfinished.json" in words]
    assert warning.endswith("cannot be read: the run starts over, with another seed and other results")


def test_results_are_limited_in_number_and_size_and_proofs_stay(
    tmp_path: Path, counted: list[int], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(checkpoints, "MOST", 3)
    monkeypatch.setattr(checkpoints, "EVERY", 0.0)
    write_flow(tmp_path, partition="{size: 6}")
    owner = tmp_path / "owner" / "test"
    for number in range(5):
        engine.run(tmp_path / "flow.yaml", seed=SEED + number, again=True)
        assert len(list((owner / "checkpoints").glob("*.npz"))) <= 3
    files = list((owner / "earlier").glob("*/certificate.npz"))
    assert sorted(path.parent.name for path in files) == ["0001", "0002", "0003", "0004"]
    kept = json.loads((owner / "record.json").read_text())["kept"]
    assert kept["earlier-releases"] == {
        "releases": 4,
        "bytes": sum(path.stat().st_size for path in (owner / "earlier").glob("*/*")),
    }
    assert kept["results"]["most"] == 3
    files = [owner / "checkpoints" / f"{number}.npz" for number in range(3)]
    for file in files:
        file.write_bytes(b"0" * 100)
    monkeypatch.setattr(checkpoints, "MOST_BYTES", 150)
    engine.run(tmp_path / "flow.yaml", seed=SEED, again=True)
    assert len(list((owner / "checkpoints").glob("*.npz"))) <= 1


def test_a_flow_of_no_file_finds_its_results_in_a_folder(tmp_path: Path, counted: list[int]) -> None:
    """With one seed nothing is computed twice, also after the end; another seed finds nothing."""
    write_flow(tmp_path, partition="{size: 6}", publish="")
    flow = replace(engine.load_flow(tmp_path / "flow.yaml"), path=None)
    results = tmp_path / "results"
    first = engine.run(flow, seed=SEED, results=results).results[0]
    assert len(counted) == 10
    assert results.stat().st_mode & 0o777 == 0o700
    again = engine.run(flow, seed=SEED, results=results).results[0]
    assert len(counted) == 10
    assert (again.measures, again.seconds) == (first.measures, first.seconds)
    assert again.anonymization.matches.tolist() == first.anonymization.matches.tolist()
    assert again.anonymization.facts == first.anonymization.facts
    engine.run(flow, seed=SEED + 1, results=results)
    assert len(counted) == 20
    assert not (tmp_path / "owner").exists()
