"""What a run is expected to take: powers through stretches, and runs of which nothing can be expected."""

from __future__ import annotations

import itertools
import sys
import threading
from dataclasses import replace
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import numpy as np
import psutil
import pytest

import anonflow as af
from anonflow import engine
from anonflow.algorithms import pilots
from anonflow.algorithms.budget import TimedTable
from anonflow.algorithms.pilots import Pilot, PilotModel
from anonflow.algorithms.registry import REGISTRY
from anonflow.engine import expected as expected_module
from anonflow.engine.execution import tasks
from anonflow.engine.execution.events import Expectation
from anonflow.engine.expected import ExpectedRun, expected_of, read_and_expect
from anonflow.engine.flows.flow import Flow
from anonflow.errors import ParameterError
from anonflow.system import with_peak
from anonflow.table.records import Records
from tests.cases.flow_files import CENSUS_COLUMNS, flow_text


@pytest.mark.parametrize("power", [1.0, 1.5, 2.0, 3.0])
def test_a_power_is_found_again(power: float) -> None:
    pilots = tuple(Pilot(n, 1e-6 * n**power, 0.1, int(10 * n**power)) for n in (64, 256, 1024))
    model = PilotModel(pilots)
    for n in (128, 500, 1024, 8192, 100_000):
        assert model.seconds(n) == pytest.approx(1e-6 * n**power, rel=1e-6)
        assert model.memory(n) == pytest.approx(10 * n**power, rel=1e-3)
    whole = model.expected(np.array([1024, 500]), np.array([9, 1]), 2)
    by_hand = sum([model.seconds(1024)] * 9) + model.seconds(500)
    assert whole.seconds == pytest.approx(by_hand)
    assert whole.wall == pytest.approx(by_hand / 2)
    assert whole.memory == pytest.approx(2 * model.memory(1024), rel=1e-3)


def test_it_never_falls_as_a_partition_grows_and_a_linear_method_grows_in_proportion() -> None:
    pilots = (Pilot(64, 0.2, 0.1), Pilot(256, 0.1, 0.2), Pilot(2048, 3.0, 0.3))
    model = PilotModel(pilots)
    seconds = [model.seconds(n) for n in range(2, 5000, 7)]
    assert all(a <= b for a, b in itertools.pairwise(seconds))
    linear = PilotModel(pilots, linear=True)
    assert linear.seconds(20_480) == pytest.approx(30.0)
    assert PilotModel(pilots[:1]).seconds(640) == pytest.approx(2.0)
    assert model.loss(64) == 0.1
    assert model.loss(9_999) == 0.3


def test_every_run_of_a_flow_is_answered() -> None:
    frame = af.datasets.load("census_like", n=120, seed=1)
    table = af.Table(frame, af.datasets.schema("census_like"))
    flow = Flow.for_table(table, ["mondrian", "greedy"], [3, 5], partition_size=60)
    answers = expected_of(flow, seconds=0.2)
    assert [answer.name for answer in answers] == [run.name for run in flow.runs]
    for answer in answers:
        assert answer.problem == ""
        assert answer.seconds is not None
        assert answer.seconds > 0
        assert answer.memory is not None
        assert answer.memory > 0
        assert answer.error(answer.seconds) == pytest.approx(0.0)
    assert expected_of(flow, stopped=lambda: True) == []
    (open_one,) = expected_of(Flow.for_table(table, ["auto"], [3], budget=1.0, guarantee="k-anonymity"))
    assert open_one.problem == "its budget decides how long it takes: 1 s", (
        "the number is known before the run"
    )
    (hopeless,) = expected_of(Flow.for_table(table, ["mondrian"], [500]))
    assert hopeless.seconds is None
    assert "500" in hopeless.problem
    assert hopeless.error(1.0) is None
    assert ExpectedRun("a", 1.5).error(1.0) == pytest.approx(0.5)


def test_without_its_table_nothing_is_expected() -> None:
    frame = af.datasets.load("census_like", n=60, seed=1)
    flow = Flow.for_table(af.Table(frame, af.datasets.schema("census_like")), ["mondrian"], [3])
    with pytest.raises(ParameterError, match="its table in memory"):
        expected_of(replace(flow, table=None))


def test_a_flow_file_is_read_also_in_pieces(tmp_path: Path) -> None:
    af.datasets.load("census_like", n=120, seed=1)[["Age", "Gender"]].to_csv(
        tmp_path / "people.csv", index=False
    )
    place = tmp_path / "flow.yaml"
    steps = "steps:\n  - anonymize: {algorithm: mondrian, k: 3}\n  - draw: {}\n"
    text = flow_text("planned", CENSUS_COLUMNS, steps + "publish: {table: out/r.csv}\n")
    place.write_text(text)
    (answer,) = read_and_expect(place, seconds=0.1)
    assert answer.seconds is not None
    assert sorted(path.name for path in tmp_path.iterdir()) == ["flow.yaml", "people.csv"]
    place.write_text(text.replace("{csv: people.csv}", "{csv: people.csv, pieces: 50}"))
    (in_pieces,) = read_and_expect(place, seconds=0.1)
    assert in_pieces.seconds is not None
    assert in_pieces.largest == answer.largest
    assert sorted(path.name for path in tmp_path.iterdir()) == ["flow.yaml", "people.csv"]


@pytest.mark.parametrize(
    ("size", "seconds", "words"),
    [
        ("", 943.0, "about 940 s on 300 records at once; partition: {size: 250} takes less time"),
        ("", 9.0, ""),
        ("partition: {size: 50}\n", 943.0, ""),
    ],
)
def test_a_run_of_a_table_at_once_says_how_long(
    size: str, seconds: float, words: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    module = sys.modules["anonflow.engine.run"]  # the package has the function under this name
    monkeypatch.setattr(module, "AT_ONCE", 100)
    monkeypatch.setattr(
        module, "expected_of", lambda flow, **settings: [ExpectedRun("greedy", seconds, elapsed=seconds)]
    )
    path = tmp_path / "flow.yaml"
    path.write_text(
        "flow: long\nversion: 1\ntable:\n  source: {dataset: census_like, n: 300, seed: 1}\n"
        f"  columns:\n{CENSUS_COLUMNS}{size}steps:\n  - anonymize: {{algorithm: greedy, k: 5}}\n"
    )
    logged: list[str] = []
    engine.run(path, on_event=lambda event: logged.append(getattr(event, "message", "")))
    expected = [message for message in logged if "is expected to take" in message]
    assert [words in message for message in expected] == ([True] if words else [])


def test_a_comparison_says_before_it_starts_how_long_each_run_takes(monkeypatch: pytest.MonkeyPatch) -> None:
    """Two threads: the longest run decides. Runs in partitions say nothing, and nothing is computed where nobody listens."""
    module = sys.modules["anonflow.engine.run"]
    monkeypatch.setattr(module, "AT_ONCE", 100)
    counts: list[int] = []

    def expected(flow: Flow, **settings: Any) -> list[ExpectedRun]:
        counts.append(len(flow.runs))
        return [ExpectedRun(run.name, 1.0, elapsed=at * 943.0) for at, run in enumerate(flow.runs, start=1)]

    monkeypatch.setattr(module, "expected_of", expected)
    table = af.Table(af.datasets.census_like(300, seed=1), af.datasets.schema("census_like"))
    logged: list[Any] = []
    for size in (None, 50):
        engine.compared(
            table, ["mondrian", "nh"], [5], workers=2, partition_size=size, on_event=logged.append
        )
    (sentence,) = {(event.message, event.seconds) for event in logged if isinstance(event, Expectation)}
    assert sentence == (
        "mondrian k=5 is expected to take about 940 s, nh k=5 about 1,900 s on 300 records at once; partitions of 250 take less time",
        2 * 943.0,
    )
    assert set(counts) == {2}
    counts.clear()
    af.compare(table, ["mondrian"], 5)
    assert counts == []


@pytest.mark.parametrize("busy", [(1.0, 5.0), (3.0, 3.0)])
def test_a_busy_machine_changes_how_long_one_waits_and_not_the_power(
    monkeypatch: pytest.MonkeyPatch, busy: tuple[float, float]
) -> None:
    """Other programs have the processor for a random part of each call; the method's seconds grow with the square."""
    rng, now, used = np.random.default_rng(1), [0.0], [0.0]
    real = pilots.solve

    def solve(method: Any, part: Any, *arguments: Any) -> Any:
        seconds = 1e-6 * part.n**2
        used[0] += seconds
        now[0] += seconds * rng.uniform(*busy)
        return real(method, part, *arguments)

    monkeypatch.setattr(pilots, "solve", solve)
    clock = SimpleNamespace(perf_counter=lambda: now[0], process_time=lambda: used[0])
    monkeypatch.setattr(pilots, "time", clock)
    table = af.Table(af.datasets.census_like(2100, seed=1), af.datasets.schema("census_like"))
    records = TimedTable.of(table.records, "lexicographic")
    model = pilots.run_pilots(REGISTRY["mondrian"], records, 3, loss="ncp", options={}, seconds=100.0)
    assert model.seconds(20_000) == pytest.approx(400.0)
    assert busy[0] - 1e-9 <= model.load <= busy[1] + 1e-9
    expected = model.expected(np.array([20_000]), np.array([1]), 2)
    assert expected.wall == pytest.approx(400.0 * model.load)


def test_a_stretch_in_which_a_kernel_became_ready_does_not_count(monkeypatch: pytest.MonkeyPatch) -> None:
    """The first call of each of two stretches compiles for a second; a clock that stands still but for that."""
    now, ready, calls = [0.0], [0], {}  # type: ignore[var-annotated]
    real = pilots.solve

    def solve(method: Any, part: Any, *args: Any) -> Any:
        calls[part.n] = calls.get(part.n, 0) + 1
        now[0] += 0.5
        if calls[part.n] == 1:
            now[0] += 1.0
            ready[0] += 1
        return real(method, part, *args)

    monkeypatch.setattr(pilots, "solve", solve)
    monkeypatch.setattr(pilots, "ready_here", lambda: ready[0])
    monkeypatch.setattr(
        pilots, "time", SimpleNamespace(perf_counter=lambda: now[0], process_time=lambda: now[0])
    )
    frame = af.datasets.load("census_like", n=300, seed=1)
    table = af.Table(frame, af.datasets.schema("census_like"))
    records = TimedTable.of(table.records, "lexicographic")
    method = REGISTRY["mondrian"]
    model = pilots.run_pilots(method, records, 3, loss="ncp", options={}, seconds=100.0)
    assert [pilot.seconds for pilot in model.pilots] == [0.5, 0.5]
    assert set(calls.values()) == {2}


@pytest.mark.parametrize(("method", "seconds"), [("k-member", 0.75), ("mondrian", 0.5)])
def test_what_a_run_does_for_each_partition_beside_the_method_counts(
    method: str, seconds: float, monkeypatch: pytest.MonkeyPatch
) -> None:
    """A partition's generator depends on its records, which are hashed for a method that draws, and for no other."""
    now = [0.0]
    real_solve, real_fingerprint = pilots.solve, Records.fingerprint

    def solve(*arguments: Any, **settings: Any) -> Any:
        now[0] += 0.5
        return real_solve(*arguments, **settings)

    def fingerprint(records: Records) -> str:
        now[0] += 0.25
        return real_fingerprint(records)

    monkeypatch.setattr(pilots, "solve", solve)
    monkeypatch.setattr(tasks, "solve", solve)
    monkeypatch.setattr(Records, "fingerprint", fingerprint)
    for module in (pilots, tasks):
        monkeypatch.setattr(
            module, "time", SimpleNamespace(perf_counter=lambda: now[0], process_time=lambda: now[0])
        )
    frame = af.datasets.load("census_like", n=500, seed=1)
    table = af.Table(frame, af.datasets.schema("census_like"))
    flow = Flow.for_table(table, [method], [5], partition_size=100)
    (expected,) = expected_of(flow, workers=1, seconds=100.0)
    assert expected.seconds == pytest.approx(5 * seconds)
    assert engine.run(flow, workers=1).results[0].seconds == pytest.approx(5 * seconds)


def test_the_peak_of_a_call_is_seen(monkeypatch: pytest.MonkeyPatch) -> None:
    looks, held = threading.Semaphore(0), [100]

    def memory(process: psutil.Process) -> SimpleNamespace:
        bytes_now = held[0]
        # not what Dask looks at for a cluster of another test
        if bytes_now == 900 and threading.current_thread().name == "anonflow-memory":
            looks.release()
        return SimpleNamespace(rss=bytes_now)

    monkeypatch.setattr(psutil.Process, "memory_info", memory)

    def work() -> str:
        held[0] = 900
        for _ in range(2):  # what the first one saw is counted when the second one looks
            looks.acquire()
        held[0] = 200
        return "done"

    assert with_peak(work) == ("done", 800)


def test_the_peak_of_a_call_is_memory_of_this_process() -> None:
    arrays: list[np.ndarray] = []
    _, peak = with_peak(lambda: arrays.append(np.ones(8_000_000)))
    assert peak > 32_000_000


def test_each_method_is_asked_whether_it_takes_the_table_in_any_order() -> None:
    """greedy-cka keeps boundaries: without them it is refused, also after a method that takes the same records."""
    frame = af.datasets.load("census_like", n=120, seed=1)
    table = af.Table(frame, af.datasets.schema("census_like"))
    for names in (["k-member", "greedy-cka"], ["greedy-cka", "k-member"]):
        answers = expected_of(Flow.for_table(table, names, [3], boundaries=False), seconds=0.1)
        problems = {answer.name.split()[0]: answer.problem for answer in answers}
        assert "keeps boundaries" in problems["greedy-cka"]
        assert problems["k-member"] == ""


def test_partitions_of_several_sizes_are_expected_from_the_same_stretches(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    frame = af.datasets.load("census_like", n=300, seed=1)
    table = af.Table(frame, af.datasets.schema("census_like"))
    runs = [
        run
        for size in (50, None)
        for run in Flow.for_table(table, ["mondrian"], [3], partition_size=size).runs
    ]
    ends: list[tuple[int, int]] = []
    real = expected_module.run_pilots

    def noting(*arguments: Any, **more: Any) -> PilotModel:
        ends.append((more["smallest"], more["largest"]))
        return real(*arguments, **more)

    monkeypatch.setattr(expected_module, "run_pilots", noting)
    small, whole = expected_module.expected_runs(table, runs, workers=1, seconds=100.0)
    assert ends == [(50, 300)]
    assert small.problem == whole.problem == ""
    assert small.largest == whole.largest == 300
