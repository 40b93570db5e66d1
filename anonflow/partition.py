"""Partitions: an order of the records and the cuts in it."""

from __future__ import annotations

import numpy as np

from anonflow.errors import InfeasibleError, ParameterError
from anonflow.table.records import Records

__all__ = ["ORDERS", "cut", "lexicographic_order", "ordered", "plan"]

ORDERS = ("lexicographic", "input", "random")


def lexicographic_order(records: Records) -> np.ndarray:
    """Positions of the records in lexicographic order, QIs with fewer distinct values first.

    Few values first means that large changes between neighbours are rare (paper 1, section 5). Equal records
    keep their order; QIs with equally many values keep the schema's.

    Parameters
    ----------
    records : Records
        n records over q QIs.

    Returns
    -------
    numpy.ndarray, shape (n,), int64
        O(q n log n) time, O(n) memory besides.

    Raises
    ------
    None
    """
    if not records.q:
        return np.arange(records.n, dtype=np.int64)
    present = [int(np.count_nonzero(domain.counts)) + domain.has_missing for domain in records.domains]
    first_to_last = sorted(range(records.q), key=lambda a: (present[a], a))
    return np.lexsort([records.codes[:, a] for a in reversed(first_to_last)]).astype(np.int64)


def ordered(records: Records, order: str, rng: np.random.Generator | None = None) -> np.ndarray:
    """Positions of the records in an order that partitions are cut along.

    Parameters
    ----------
    records : Records
    order : {"lexicographic", "input", "random"}
    rng : numpy.random.Generator, optional
        For ``random``.

    Returns
    -------
    numpy.ndarray, shape (n,), int64

    Raises
    ------
    ParameterError
        If the order is unknown, or random without a generator.
    """
    if order == "lexicographic":
        return lexicographic_order(records)
    if order == "input":
        return np.arange(records.n, dtype=np.int64)
    if order == "random" and rng is not None:
        return rng.permutation(records.n)
    if order == "random":
        raise ParameterError("partition order random needs a generator")
    raise ParameterError(f"unknown partition order {order!r} (known: {', '.join(ORDERS)})")


def cut(n: int, size: int | None, k: int) -> list[slice]:
    """Cut ``range(n)`` into runs of `size`; a last one of fewer than k joins its neighbour.

    Parameters
    ----------
    n : int
        Number of records.
    size : int or None
        Records in a partition, at least k; None is one partition.
    k : int

    Returns
    -------
    list of slice
        Every run has at least k records.

    Raises
    ------
    ParameterError
        If `size` is smaller than k.
    InfeasibleError
        If there are fewer than k records.
    """
    if n < k:
        raise InfeasibleError(f"{n} records cannot hide among k = {k}; use a k of at most {n}")
    if size is None or size >= n:
        return [slice(0, n)]
    if size < k:
        raise ParameterError(f"partition size {size} is smaller than k = {k}; use at least {k}")
    starts = list(range(0, n, size))
    if n - starts[-1] < k:
        starts.pop()
    return [slice(start, stop) for start, stop in zip(starts, [*starts[1:], n], strict=True)]


def plan(
    records: Records,
    size: int | None,
    k: int,
    order: str = "lexicographic",
    rng: np.random.Generator | None = None,
) -> list[np.ndarray]:
    """The partitions of some records: their positions, each partition in the order's order.

    Parameters
    ----------
    records : Records
    size : int or None
        Records in a partition; None is the whole table.
    k : int
    order : {"lexicographic", "input", "random"}
    rng : numpy.random.Generator, optional
        For ``random``.

    Returns
    -------
    list of numpy.ndarray, int64
        Together each position once; each of at least k records.

    Raises
    ------
    ParameterError
        If the order is unknown or the size is smaller than k.
    InfeasibleError
        If there are fewer than k records.
    """
    runs = cut(records.n, size, k)
    positions = ordered(records, order, rng)
    return [positions[run] for run in runs]
