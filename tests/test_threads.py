"""Work in the threads of a pool: in order, and not handed on where there is a single item."""

from __future__ import annotations

import os
import threading
from concurrent.futures import ThreadPoolExecutor
from contextlib import closing
from typing import Any

import pytest

from anonflow import threads
from anonflow.threads import default_threads, in_threads, results_of, run_each


def test_a_single_item_stays_in_this_thread() -> None:
    with ThreadPoolExecutor(2) as pool:
        assert run_each(pool, lambda _: threading.get_ident(), [0]) == [threading.get_ident()]
        assert threading.get_ident() not in run_each(pool, lambda _: threading.get_ident(), range(4))


def test_results_keep_the_order_of_items() -> None:
    with ThreadPoolExecutor(3) as pool:
        assert run_each(pool, abs, range(-5, 0)) == [5, 4, 3, 2, 1]
        assert run_each(pool, abs, [-5]) == [5]
        assert run_each(pool, abs, []) == []


def test_each_item_is_worked_on_once_by_as_many_threads_as_asked_for() -> None:
    assert in_threads(abs, range(-5, 0)) == in_threads(abs, range(-5, 0), 1) == [5, 4, 3, 2, 1]
    assert in_threads(abs, []) == []
    assert in_threads(lambda _: threading.get_ident(), [0]) == [threading.get_ident()]


def test_results_come_in_turn_and_an_error_in_its_turn() -> None:
    for workers in (1, 3):
        with closing(results_of(abs, range(-50, 0), workers)) as results:
            assert list(results) == list(range(50, 0, -1))
        taken = []
        with closing(results_of(lambda number: 10 // number, [5, 2, 0, 1], workers)) as results:
            with pytest.raises(ZeroDivisionError):
                taken.extend(results)
            assert taken == [2, 5]
        assert list(results_of(abs, [], workers)) == []


def test_nothing_begins_once_nobody_takes_results() -> None:
    begun: list[int] = []
    goes_on = threading.Event()

    def work(number: int) -> int:
        begun.append(number)
        if number:
            goes_on.wait(300)
        return number

    with closing(results_of(work, range(9), 1)) as results:
        assert next(results) == 0
    goes_on.set()
    for thread in threading.enumerate():
        if thread.name == "anonflow-method":
            thread.join()
    assert begun in ([0], [0, 1])


def test_outside_the_main_thread_a_single_worker_is_the_caller() -> None:
    with ThreadPoolExecutor(1) as pool:
        same = pool.submit(
            lambda: (
                [
                    set(results_of(lambda _: threading.get_ident(), range(items), workers))
                    for items, workers in ((3, 1), (1, 2))
                ]
                == [{threading.get_ident()}] * 2
            )
        )
        assert same.result()


def test_who_waits_for_a_result_is_told_so(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(threads, "WAIT", 0.01)
    begun = threading.Event()
    assert list(results_of(lambda item: begun.wait(300), [1], 1, begun.set)) == [True]


@pytest.mark.parametrize(
    ("sizes", "cores", "threads"),
    [
        ([250], 16, 4),
        ([250], 2, 2),
        ([250, 1000], 16, 4),
        ([250, 5000], 16, 16),
        ([None], 16, 16),
        (["auto"], 8, 8),
    ],
)
def test_small_partitions_are_worked_on_by_few_threads(
    sizes: list[int | str | None], cores: int, threads: int, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(os, "cpu_count", lambda: cores)
    assert default_threads(sizes) == threads
    assert default_threads(sizes, together=True) == cores


def test_columns_of_a_small_or_large_table_are_worked_on_one_after_the_other(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    """A small table is done before a thread begins; of a large one the rows that are worked on at the same time are limited."""
    threads_at_work: list[int | None] = []

    def recorded(work: Any, items: Any, workers: int | None = None) -> list[Any]:
        threads_at_work.append(workers)
        return [work(item) for item in items]

    monkeypatch.setattr(threads, "in_threads", recorded)
    monkeypatch.setattr(threads.os, "cpu_count", lambda: 16)
    little, most = threads.FEW_ROWS, threads.COLUMN_ROWS
    for rows in (0, little, little + 1, 100_000, 500_000, most // 2, most, 10_000_000):
        assert threads.by_column(str.upper, ["a", "b"], rows) == ["A", "B"]
    assert threads_at_work == [16, 16, 8, 2]  # the others in this thread
