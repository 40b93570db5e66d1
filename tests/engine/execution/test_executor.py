"""Tasks that are made one give what they gave before, and what is shared is done once."""

from __future__ import annotations

import time
from collections import Counter
from pathlib import Path
from typing import Any

import pytest
from dask.threaded import get

from anonflow import engine
from anonflow.engine.execution import plan, schedulers, tasks
from anonflow.engine.execution.events import EventStream
from anonflow.engine.execution.fusing import batched, fused
from anonflow.engine.flows import source
from tests.cases.flow_files import write_flow


def added(*numbers: int) -> int:
    return sum(numbers)


GRAPH: dict[str, Any] = {
    "values": 5,
    "word": "no key",
    "shared": (added, "values", 1),
    "a": (added, "shared", 10),
    "b1": (added, "a", "values"),
    "b2": (added, "a", 100),
    "left": (added, "b1", "b2", "a"),
    "c": (added, "shared", 20),
    "right": (added, "c", "c"),
    "unused": (added, "right", 1),
    "plain": (added, 1, 2),
}


def test_results_stay_and_private_tasks_go() -> None:
    leaves = ["left", "right", "plain"]
    small = fused(GRAPH, leaves)
    assert set(small) == {"values", "shared", *leaves}
    assert small["plain"] is GRAPH["plain"]
    assert get(small, leaves) == get(GRAPH, leaves)


def test_a_result_that_another_needs_stays_its_own() -> None:
    leaves = ["right", "unused"]
    small = fused(GRAPH, leaves)
    assert get(small, leaves) == get(GRAPH, leaves)


def test_a_flow_is_a_task_for_each_partition(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    seen: list[Any] = []
    real = schedulers.fused

    def noted(graph: Any, leaves: Any) -> Any:
        seen.append(real(graph, leaves))
        return seen[-1]

    monkeypatch.setattr(schedulers, "fused", noted)
    assert engine.run(write_flow(tmp_path), fresh=True).ok
    (built,) = seen
    kinds = Counter(name.split("-")[0] for name in built)
    assert kinds == {"records": 1, "order": 1, "settings": 1, "done": 3}


def test_a_matrix_shares_load_coding_sort_and_partitions(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Six runs: the table is read and coded once, sorted once, and each partition is cut out once."""
    counted: Counter[str] = Counter()

    def counting(home: Any, name: str) -> None:
        real = getattr(home, name)

        def call(*given: Any, **more: Any) -> Any:
            counted[name] += 1
            return real(*given, **more)

        monkeypatch.setattr(home, name, call)

    counting(source, "read")
    counting(tasks, "part")
    counting(tasks, "match")
    counting(plan.partitions, "ordered")
    more = "matrix: {anonymize.algorithm: [greedy, nh, mondrian], anonymize.k: [2, 3]}\n"
    report = engine.run(write_flow(tmp_path, publish="", more=more))
    assert report.ok
    warm = 3  # one small call of each method may compile it
    assert counted["read"] == 1
    assert counted["ordered"] == 1
    assert counted["part"] == 3
    assert 6 * 3 <= counted["match"] <= 6 * 3 + warm


def test_a_batch_has_the_results_of_its_tasks() -> None:
    seconds, results = get({**GRAPH, "batch": batched(GRAPH, ["a", "c", "plain"])}, "batch")
    assert results == [get(GRAPH, name) for name in ("a", "c", "plain")]
    assert seconds >= 0
    whole = fused(
        {**GRAPH, "one": batched(GRAPH, ["left", "plain"]), "two": batched(GRAPH, ["right"])}, ["one", "two"]
    )
    assert [get(whole, name)[1] for name in ("one", "two")] == [
        [get(GRAPH, "left"), get(GRAPH, "plain")],
        [get(GRAPH, "right")],
    ]
    assert "left" not in whole  # it is done inside its batch


@pytest.mark.slow
def test_small_tasks_are_sent_together_and_long_ones_alone(monkeypatch: pytest.MonkeyPatch) -> None:
    sent: list[list[int]] = []
    send = schedulers._Sent.send

    def noted(own: Any, groups: Any) -> None:
        sent.append([len(group) for group in groups])
        send(own, groups)

    monkeypatch.setattr(schedulers._Sent, "send", noted)
    small = {"half": 0.5, **{f"t-{i}": (added, "half", i) for i in range(300)}}
    leaves = [f"t-{i}" for i in range(300)]
    found = dict(schedulers.stream(small, leaves, "processes", 2, EventStream()))
    assert found == {f"t-{i}": 0.5 + i for i in range(300)}
    first, rest = sent
    assert first == [1] * 8
    assert max(rest) > 1
    assert len(rest) >= 8  # each worker has several to do
    sent.clear()
    long = {f"t-{i}": (time.sleep, 0.3) for i in range(20)}
    assert len(list(schedulers.stream(long, list(long), "processes", 2, EventStream()))) == 20
    assert {size for sizes in sent for size in sizes} == {1}
