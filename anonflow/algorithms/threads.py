"""Work in the threads of a pool."""

from __future__ import annotations

from collections.abc import Callable, Iterable
from concurrent.futures import ThreadPoolExecutor
from typing import TypeVar

__all__ = ["run_each"]

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
