"""Workers of a test: what is under way is bounded, small calls go together, and one task solves a batch of partitions."""

from __future__ import annotations

import itertools
import re
import threading
from collections import Counter
from collections.abc import Iterator
from concurrent.futures import CancelledError
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import numpy as np
import pytest

from anonflow import engine
from anonflow.engine.execution import batches, schedulers, tasks
from anonflow.engine.execution.events import Cancelled, EventStream
from anonflow.engine.execution.schedulers import Call, Executor
from anonflow.engine.flows import source
from anonflow.engine.storage import arrays
from anonflow.errors import AnonflowError, ParameterError
from anonflow.partition import cut_classes
from tests.cases.flow_files import write_flow
from tests.cases.workers import WorkerEnd, Workers, end_worker


def added(*numbers: float) -> float:
    return sum(numbers)


def refused() -> None:
    raise ParameterError("this cannot be used")


def out_of_memory(*_: Any) -> None:
    raise MemoryError


def test_results_and_failures_arrive_with_their_calls() -> None:
    calls = [Call(added, (i, 1), key=i) for i in range(40)] + [Call(out_of_memory, (), key="bad")]
    with Executor("threads", 3, EventStream()) as executor:
        results = {call.key: result for call, result in executor.stream(calls, 0.5)}
        again = executor.all([Call(added, (1, 2)), Call(added, (3,))])
    bad = results.pop("bad")
    assert isinstance(bad, tasks.Failed)
    assert "not enough memory" in bad.message
    assert results == {i: i + 1.5 for i in range(40)}
    assert again == [3, 3]


def test_a_failure_of_the_client_has_the_label_of_its_call() -> None:
    with pytest.raises(AnonflowError, match=r"^sort: .*not enough memory"):
        Call(out_of_memory, (), "sort").done()


def test_the_first_failure_ends_them_all_and_says_which_it_is() -> None:
    with (
        Executor("threads", 1, EventStream()) as executor,
        pytest.raises(AnonflowError, match=r"out of memory 1 of 2: .*not enough memory"),
    ):
        executor.all([Call(added, (1,)), Call(out_of_memory, ())])
    with (
        Executor("threads", 1, EventStream()) as executor,
        pytest.raises(ParameterError, match="this cannot be used"),
    ):
        executor.all([Call(refused, ())])
    with pytest.raises(ParameterError):
        Call(refused, ()).done()


def test_calls_are_made_when_there_is_room(monkeypatch: pytest.MonkeyPatch) -> None:
    """Whoever takes no results is sent none: a million tasks are no more in memory than some."""
    numbers: list[int] = []
    full = threading.Event()  # there is no room, or nothing is left to be made
    has_room = Executor._has_room

    def noted(executor: Executor, under_way: int, most: int) -> bool:
        free = has_room(executor, under_way, most)
        if not free:
            full.set()
        return free

    def calls() -> Iterator[Call]:
        for number in range(10_000):
            numbers.append(number)
            yield Call(added, (number,), key=number)
        full.set()

    monkeypatch.setattr(Executor, "_has_room", noted)
    with Executor("threads", 2, EventStream()) as executor:
        stream = executor.stream(calls())
        first, _ = next(stream)
        full.wait()
        assert len(numbers) <= 1 + 3 * schedulers.AHEAD * 2
        assert {first.key} | {call.key for call, _ in stream} == set(range(10_000))


def test_what_goes_wrong_while_calls_are_made_is_raised() -> None:
    def calls() -> Iterator[Call]:
        yield Call(added, (1,))
        raise ParameterError("no such rows")

    with (
        Executor("threads", 1, EventStream()) as executor,
        pytest.raises(ParameterError, match="no such rows"),
    ):
        list(executor.stream(calls()))


def test_cancelling_ends_a_stream_soon() -> None:
    events = EventStream()
    begun: list[int] = []
    before: list[int] = []

    def work(number: int) -> None:
        begun.append(number)
        if number == 5:
            events.cancel()
            before.append(len(begun))

    with Executor("threads", 2, events) as executor, pytest.raises(Cancelled):
        list(executor.stream(Call(work, (number,)) for number in range(10_000)))
    assert len(begun) <= before[0] + 3 * schedulers.AHEAD * 2


NOW = [0.0]
"""A clock that only long calls move."""


def long() -> None:
    NOW[0] += 0.3


def test_small_calls_are_sent_together_and_long_ones_alone(
    monkeypatch: pytest.MonkeyPatch, workers: Workers
) -> None:
    under_way: list[int] = []
    send = schedulers._Sent.send

    def noted(tasks: Any, group: Any) -> None:
        send(tasks, group)
        under_way.append(len(tasks))

    monkeypatch.setattr(schedulers._Sent, "send", noted)
    monkeypatch.setattr(schedulers, "time", SimpleNamespace(perf_counter=lambda: NOW[0]))
    with Executor("processes", 2, EventStream()) as executor:
        calls = (Call(added, (i,), "match-verify", i) for i in range(600))
        results = {call.key: result for call, result in executor.stream(calls, 0.5, count=600)}
        assert results == {i: 0.5 + i for i in range(600)}
        sizes = [len(calls) for calls in workers.sent]
        assert sizes[:4] == [1] * 4
        assert max(sizes) > 1
        assert len(sizes) >= 16  # each worker has several to do
        assert max(under_way) <= schedulers.AHEAD * 2
        workers.sent.clear()
        assert len(list(executor.stream([Call(long, ()) for _ in range(20)]))) == 20
    assert [len(calls) for calls in workers.sent] == [1] * 20


def test_what_cannot_be_sent_is_said_before_dask_has_it() -> None:
    with pytest.raises(
        AnonflowError, match=r"^a lock cannot be sent to other processes \(TypeError\)"
    ) as caught:
        schedulers._Packed(threading.Lock(), "a lock")
    assert caught.value.exit_status == 3
    assert schedulers._Packed([1, 2], "a list")() == [1, 2]
    assert schedulers._Packed(schedulers._Group((Call(added, (1,)),)), "calls")(0.5)[1] == [1.5]
    assert "1.5" not in repr(schedulers._Packed(1.5, "a number"))


def test_an_argument_that_cannot_be_sent_hangs_nothing(workers: Workers) -> None:
    """Dask would wait for it for ever: the run ends in one line, and the workers can go on."""
    with Executor("processes", 1, EventStream()) as executor:
        calls = [Call(added, (1,), key=0), Call(added, (threading.Lock(),), key=1)]
        results = {call.key: result for call, result in executor.stream(calls)}
        assert results[0] == 1
        assert isinstance(results[1], tasks.Failed)
        assert results[1].message == (
            "what added needs cannot be sent to other processes (TypeError); use the scheduler threads"
        )
        assert executor.all([Call(added, (2,))]) == [2]
        with pytest.raises(AnonflowError, match="a lock cannot be sent"):
            executor.all([Call(added, (2,))], threading.Lock())
    assert len(workers.sent) == 2


@pytest.mark.parametrize("bad", [1, 4])
def test_what_waits_on_a_worker_that_ends_is_not_given_up_with_it(
    monkeypatch: pytest.MonkeyPatch, workers: Workers, bad: int
) -> None:
    """One worker, all tasks given to it at once, every death counts: the bad ones are found out one by one."""
    monkeypatch.setattr(schedulers, "LOST", 0)
    calls = [Call(*((end_worker, ()) if i < bad else (abs, (i,))), key=i) for i in range(6)]
    with Executor("processes", 1, EventStream()) as executor:
        arrived = {call.key: result for call, result in executor.stream(calls)}
    problems = [arrived[i] for i in range(bad)]
    assert all(isinstance(item, tasks.Failed) and item.error is not None for item in problems)
    alone = [problem for problem in problems if "every worker that worked on it" in problem.message]
    assert len(alone) == min(bad, schedulers.TRIED)
    assert workers.ended == 1 + len(alone)
    if bad < schedulers.TRIED:
        assert [arrived[i] for i in range(bad, 6)] == list(range(bad, 6))


def test_a_worker_that_ends_once_costs_nothing(workers: Workers) -> None:
    """The task runs again on another worker; after as many as are allowed and one more it runs alone."""
    with Executor("processes", 2, EventStream()) as executor:
        for times in (0, schedulers.LOST, schedulers.LOST + 1, schedulers.LOST + 2):
            workers.ended = 0
            ENDS[:] = [WorkerEnd] * times
            assert executor.all([Call(abs, (-1,)), Call(end_sometimes, ())]) == [1, 2]
            assert workers.ended == times


ENDS: list[type[WorkerEnd]] = []
"""How often workers end still."""


def end_sometimes() -> int:
    if ENDS:
        raise ENDS.pop()
    return 2


CLUSTERS: list[Workers] = []
"""The cluster that loses its workers to a task."""


def leave() -> None:
    CLUSTERS[0].count = 0


def test_cancelling_takes_back_what_was_sent(workers: Workers) -> None:
    """The second task is the last that runs: the others are open.

    One worker runs tasks in the order in which they were sent. Which of two has the longer queue depends on when the results are taken.
    """
    workers.count = 1
    CLUSTERS[:] = [workers]
    events = EventStream()
    calls = [Call(added, (1,)), Call(leave, ()), *(Call(added, (number,)) for number in range(100))]
    with Executor("tcp://host:1", None, events) as executor:
        stream = executor.stream(calls)
        assert [next(stream)[1], next(stream)[1]] == [1, None]
        events.cancel()
        with pytest.raises(Cancelled):
            next(stream)
    assert len(workers.cancelled) == len(workers.sent) - 2
    assert schedulers.AHEAD - 2 <= len(workers.cancelled) <= schedulers.AHEAD


def test_a_scheduler_that_is_gone_is_a_lost_cluster(workers: Workers) -> None:
    with Executor("tcp://host:1", None, EventStream()) as executor:
        stream = executor.stream(Call(added, (number,)) for number in range(1000))
        next(stream)
        workers.status = "closed"
        with pytest.raises(AnonflowError, match="tcp://host:1: the cluster is lost; nothing was published"):
            list(stream)
    assert len(workers.sent) < 1000


def test_a_task_that_the_scheduler_cancelled_is_a_lost_cluster(
    workers: Workers, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Dask hands the exception over as the task's result."""
    take = Workers.__next__

    def cancelled(own: Workers) -> tuple[Any, Any]:
        task, _ = take(own)
        return task, CancelledError(task.key)

    monkeypatch.setattr(Workers, "__next__", cancelled)
    with (
        Executor("tcp://host:1", None, EventStream()) as executor,
        pytest.raises(AnonflowError, match="tcp://host:1: the cluster is lost; nothing was published"),
    ):
        executor.all([Call(added, (1,))])


def test_the_steps_are_the_label_of_a_task() -> None:
    """What Dask's own dashboard shows of a task's name, which is its own on a cluster that others use, too."""
    from dask.utils import key_split

    names: list[str] = []

    class Client:
        loop = None

        def submit(self, *args: Any, key: str, **more: Any) -> Any:
            names.append(key)
            raise StopIteration

    for _ in range(2):
        sent = schedulers._Sent.__new__(schedulers._Sent)
        sent._client, sent._shared = Client(), []
        with pytest.raises(StopIteration):
            sent.send((Call(added, (1,), "match-verify-measure-3-17"),))
    assert len(set(names)) == 2
    assert {key_split(name) for name in names} == {"match-verify-measure"}


# ----------------------------------------------------------------------------------------- batches


@pytest.mark.parametrize("sizes", [[100], [3, 50, 2, 1, 44], [2, 2, 96], [97, 3]], ids=str)
def test_batches_have_every_row_once_and_every_partition_whole(
    sizes: list[int], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(batches, "SHARE", 1.0)
    for rows, size in itertools.product((1, 7, 40, 1000), (None, 9, 10)):
        monkeypatch.setattr(batches, "ROWS", rows)
        cuts = cut_classes(np.array(sizes), ("age",), size, 4)
        result = list(batches.batches_of(cuts, 100))
        where = f"{rows} rows, partitions of {size}"
        assert [batch.number for batch in result] == list(range(len(result))), where
        assert [batch.start for batch in result] == [0, *(batch.stop for batch in result[:-1])], where
        assert result[-1].stop == 100, where
        bounds = [(cut.start, cut.stop) for cut in cuts]
        assert [bound for batch in result for bound in batch.bounds] == bounds, where
        first = 0
        for batch in result:
            assert batch.first == first, where
            first += len(batch.bounds)
            assert batch.bounds, where
            assert len(batch.bounds) == 1 or batch.bounds[-1][1] - batch.start <= rows, where
            places = np.concatenate([*batch.parts, batch.left])
            assert sorted(places.tolist()) == list(range(batch.stop - batch.start)), where
        assert first == len(cuts), where


def test_a_flow_is_a_task_for_each_batch(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    seen: list[Call] = []
    real = Executor.stream

    def noted(own: Executor, calls: Any, *shared: Any, **more: Any) -> Any:
        def each() -> Iterator[Call]:
            for call in calls:
                seen.append(call)
                yield call

        return real(own, each(), *shared, **more)

    monkeypatch.setattr(Executor, "stream", noted)
    assert engine.run(write_flow(tmp_path), fresh=True).ok
    assert [call.function for call in seen] == [batches.solve_batch] * 3
    for call in seen:
        assert re.fullmatch(r"match-verify-measure-\d+-\d+", call.label)


def test_a_matrix_shares_load_coding_and_sort(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Six runs: the table is read and coded once, and sorted once."""
    counted: Counter[str] = Counter()

    def counting(home: Any, name: str) -> None:
        real = getattr(home, name)

        def call(*args: Any, **more: Any) -> Any:
            counted[name] += 1
            return real(*args, **more)

        monkeypatch.setattr(home, name, call)

    counting(source, "read")
    counting(tasks, "match")
    counting(arrays, "ordered")
    more = "matrix: {anonymize.algorithm: [greedy, nh, mondrian], anonymize.k: [2, 3]}\n"
    report = engine.run(write_flow(tmp_path, publish="", more=more))
    assert report.ok
    warm = 3  # one small call of each method may compile it
    assert counted["read"] == 1
    assert counted["ordered"] == 1
    assert 6 * 3 <= counted["match"] <= 6 * 3 + warm
