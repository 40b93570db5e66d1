"""Work in threads."""

from __future__ import annotations

import os
import queue
import threading
from collections.abc import Callable, Generator, Iterable
from concurrent.futures import ThreadPoolExecutor
from typing import Any, TypeVar, cast

WAIT = 1.0
"""Seconds after which who waits for a result is told so."""

Item = TypeVar("Item")
Result = TypeVar("Result")


SMALL, FEW = 1_000, 4
"""Partitions of at most so many records are worked on by at most so many threads, if nobody says how many."""


def default_threads(sizes: Iterable[int | str | None], together: bool = False) -> int:
    """Return how many threads work on partitions of some sizes by default.

    Parameters
    ----------
    sizes : iterable of int, "auto" or None
        Records of a partition; None is the whole table.
    together : bool, optional
        Whether one call of a kernel solves many partitions.

    Returns
    -------
    int
        As many as the machine has cores, but few if all partitions are small.

    Notes
    -----
    Python runs in one thread at a time, and what it does around a small partition's kernel takes nearly as long as the kernel: on 16 cores,
    ``greedy`` in partitions of 250 took 0.69 s with one thread for Adult, 0.26 s with four, and 0.51 s with sixteen when each partition was a
    call of its own. Processes do not wait for each other.
    """
    cores = os.cpu_count() or 1
    return (
        min(cores, FEW)
        if not together and all(isinstance(size, int) and size <= SMALL for size in sizes)
        else cores
    )


def run_each(pool: ThreadPoolExecutor, work: Callable[[Item], Result], items: Iterable[Item]) -> list[Result]:
    """Return what `work` returns for each item, in order; a single item is not handed to another thread.

    Parameters
    ----------
    pool : concurrent.futures.ThreadPoolExecutor
    work : callable
        Of one item.
    items : iterable
    """
    items = list(items)
    return list(map(work, items) if len(items) == 1 else pool.map(work, items))


def in_threads(
    work: Callable[[Item], Result], items: Iterable[Item], workers: int | None = None
) -> list[Result]:
    """Return what `work` returns for each item, in order; a single item is not handed to another thread.

    Parameters
    ----------
    work : callable
        Of one item. What it returns must not depend on the others.
    items : iterable
    workers : int, optional
        Threads; as many as the machine has cores without it.
    """
    with ThreadPoolExecutor(workers or os.cpu_count()) as pool:
        return run_each(pool, work, items)


COLUMN_ROWS = 4_000_000
"""Rows of all columns that are worked on at the same time: each takes some 24 bytes meanwhile, on however many cores."""

FEW_ROWS = 5_000
"""Columns of so many rows, or fewer, take less time than threads need to begin."""


def by_column(work: Callable[[Item], Result], columns: Iterable[Item], rows: int) -> list[Result]:
    """Return what `work` returns for each column of a table with so many rows, in order: side by side where the table is neither small nor large."""
    most = 1 if rows <= FEW_ROWS else max(1, COLUMN_ROWS // rows)
    # a thread of its own would keep freed memory for itself
    return (
        list(map(work, columns)) if most == 1 else in_threads(work, columns, min(most, os.cpu_count() or 1))
    )


def in_blocks(work: Callable[[int, int], object], n: int, size: int) -> None:
    """Run work on the positions from 0 to n in blocks of a size, in threads: it gets the start and the end of each block."""
    in_threads(lambda start: work(start, min(start + size, n)), range(0, n, size))


def results_of(
    work: Callable[[Item], Result],
    items: Iterable[Item],
    workers: int,
    waiting: Callable[[], None] | None = None,
) -> Generator[Result]:
    """Yield what `work` returns for each item, in order. Who takes no more results does not wait for what is at work.

    So Ctrl-C ends a call at once, also while a compiled kernel runs, which nothing can stop: its thread goes on until the
    kernel returns, begins nothing more, and does not keep the process alive.

    Parameters
    ----------
    work : callable
        Of one item. Its error is raised in the item's turn, and no further item is begun.
    items : iterable
    workers : int
        Threads. In another thread than the main one, which Ctrl-C does not reach, a single one is the caller's own.
    waiting : callable, optional
        Called each second in which no result arrives.
    """
    items = list(items)
    workers = min(workers, len(items))
    if workers == 1 and threading.current_thread() is not threading.main_thread():
        yield from map(work, items)
        return
    coming = iter(enumerate(items))
    taking, ended = threading.Lock(), threading.Event()
    ready: queue.SimpleQueue[tuple[int, Any, BaseException | None]] = queue.SimpleQueue()

    def take_turns() -> None:
        while not ended.is_set():
            with taking:
                number, item = next(coming, (-1, None))
            if number < 0:
                return
            try:
                ready.put((number, work(cast("Item", item)), None))
            except BaseException as error:  # who takes the result raises it: in this thread nobody would
                ended.set()
                ready.put((number, None, error))

    arrived: dict[int, tuple[Any, BaseException | None]] = {}
    try:
        for _ in range(workers):
            threading.Thread(target=take_turns, name="anonflow-method", daemon=True).start()
        for turn in range(len(items)):
            while turn not in arrived:
                try:
                    number, result, error = ready.get(timeout=None if waiting is None else WAIT)
                except queue.Empty:
                    assert waiting is not None
                    waiting()
                    continue
                arrived[number] = result, error
            result, error = arrived.pop(turn)
            if error is not None:
                raise error
            yield result
    finally:
        ended.set()
