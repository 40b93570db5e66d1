"""Work in threads."""

from __future__ import annotations

import os
from collections.abc import Callable, Iterable
from concurrent.futures import ThreadPoolExecutor
from typing import TypeVar

__all__ = ["in_threads", "run_each"]

Item = TypeVar("Item")
Result = TypeVar("Result")


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
