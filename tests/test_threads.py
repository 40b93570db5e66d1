"""Work in the threads of a pool: in order, and not handed on where there is a single item."""

from __future__ import annotations

import threading
from concurrent.futures import ThreadPoolExecutor

from anonflow.threads import in_threads, run_each


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
