"""The definition of each guarantee, applied to any algorithm's result, without the verifier.

`check_result(anonymization)` asserts everything that a result must keep; `check_release(anonymization,
release)` what a release made of it must. Dense matrices and plain loops: for tables of up to about 2,000.
"""

from __future__ import annotations

import itertools
import sys
import time
from collections.abc import Callable
from typing import Any, TypeVar

import numpy as np

from anonflow.algorithms import REGISTRY
from anonflow.generalization import Generalization
from anonflow.kernels.jit import ready_here
from anonflow.table import Records

DENSE = 2000
Result = TypeVar("Result")

SOON: dict[str, dict[str, Any]] = {
    "optimal": {"time_limit": 0.1},
    "pattern-guided-optimal": {"time_limit": 0.1},
}
"""Options with which methods that may search for long end soon, by name."""

TAKE_EVERY_KIND = sorted(name for name, method in REGISTRY.items() if not method.needs_hierarchies)
"""The methods that take every kind of column; the others have tests of their own."""


def when_ready(work: Callable[[], Result]) -> tuple[Result, float]:
    """What `work` returns and its seconds of processor time, without those of compilation: it is repeated while kernels become ready.

    The processor's time, because a busy machine is no fault of a method.
    """
    while True:
        ready, begin = ready_here(), time.process_time()
        result = work()
        seconds = time.process_time() - begin
        if ready_here() == ready:
            return result, seconds


class Ticks:
    """A clock of a test: a look at it takes a tick, whatever the machine does meanwhile."""

    def __init__(self, tick: float = 0.001) -> None:
        self.tick, self.now = tick, 0.0

    def perf_counter(self) -> float:
        self.now += self.tick
        return self.now


def calls_of(work: Callable[[], object]) -> int:
    """How many functions `work` calls, on this thread: what must not grow is counted, whatever machine it is."""
    calls, before = 0, sys.getprofile()

    def count(frame: object, event: str, argument: object) -> None:
        nonlocal calls
        calls += event in ("call", "c_call")

    sys.setprofile(count)
    try:
        work()
    finally:
        sys.setprofile(before)
    return calls


def adjacency(records: Records, generalization: Generalization, columns: Any = None) -> np.ndarray:
    """covers[i, j]: generalized record j covers original i; (n, n), bool; on some columns alone where they are named."""
    n = records.n
    covers = np.ones((n, generalization.n), bool)
    layout = generalization.layout
    for t, a in enumerate(layout.ranges):
        if columns is not None and records.domains[a].column not in columns:
            continue
        code = records.codes[:, a]
        lo, hi = generalization.lo[t], generalization.hi[t]
        inside = (lo <= code[:, None]) & (code[:, None] <= hi)
        whole = (lo == 0) & (hi == records.domains[a].size - 1)
        none = np.ones(n, bool)[:, None] if records.domains[a].has_codes else whole
        covers &= np.where((code < 0)[:, None], none, inside)
    for t, a in enumerate(layout.sets):
        if columns is not None and records.domains[a].column not in columns:
            continue
        code = records.codes[:, a]
        words = generalization.bits[layout.offset[t] : layout.offset[t + 1]]
        covers &= (words[code >> 6] >> (code & 63).astype(np.uint64)[:, None] & np.uint64(1)).astype(bool)
    return covers


def on_perfect_matchings(covers: np.ndarray) -> np.ndarray:
    """Which edges lie on a perfect matching, given that the diagonal is one: those on a cycle."""
    reach = covers | np.eye(len(covers), dtype=bool)
    while True:
        longer = (reach.astype(np.float32) @ reach.astype(np.float32)) > 0
        if (longer == reach).all():
            return covers & reach.T
        reach = longer


# ------------------------------------------------------------------------------------------ guarantees


def is_k_anonymous(result: Any, covers: np.ndarray, k: int) -> bool:
    """Every published row is equal to k - 1 others."""
    frame = result.frame()
    sizes = frame.groupby(list(frame.columns))[frame.columns[0]].transform("size").to_numpy()
    return bool((sizes[~exempt(result, k)] >= k).all())


def is_one_k(result: Any, covers: np.ndarray, k: int) -> bool:
    """Every original is covered by k generalized records."""
    return bool((covers.sum(axis=1)[~exempt(result, k)] >= k).all())


def is_k_one(result: Any, covers: np.ndarray, k: int) -> bool:
    """Every generalized record covers k originals."""
    return bool((covers.sum(axis=0)[~exempt(result, k)] >= k).all())


def is_k_k(result: Any, covers: np.ndarray, k: int) -> bool:
    """Both."""
    return is_one_k(result, covers, k) and is_k_one(result, covers, k)


def is_concealed(result: Any, covers: np.ndarray, k: int) -> bool:
    """Every original has k matches."""
    matches = on_perfect_matchings(covers)
    return bool((matches.sum(axis=1)[~exempt(result, k)] >= k).all())


def is_k_regular(result: Any, covers: np.ndarray, k: int) -> bool:
    """The claimed matches are covering edges, and every record on both sides has at least k in a regular
    component; without a claim, classes of equal records are big enough.
    """
    matches = result.matches
    if matches is None:
        return is_k_anonymous(result, covers, k)
    n = len(matches)
    claimed = np.zeros((n, n), int)
    for j, row in enumerate(matches):
        for i in row[row >= 0]:
            claimed[i, j] += 1
    if claimed.max() > 1 or (claimed.astype(bool) & ~covers).any():
        return False
    alone = np.asarray(result.suppressed)
    if (claimed[alone][:, ~alone]).any() or (claimed[~alone][:, alone]).any():
        return False
    out, back = claimed.sum(axis=0), claimed.sum(axis=1)
    i, j = np.nonzero(claimed[~alone][:, ~alone])
    degrees = out[~alone]
    return bool((degrees >= k).all() and (back[~alone][i] == degrees[j]).all())


def is_k_k_on_pairs(result: Any, covers: np.ndarray, k: int) -> bool:
    """On each pair of columns every person is covered by k rows, and every row covers k people; of one column, on this one."""
    names = result.table.qi_columns
    return all(
        is_k_k(result, adjacency(result.table.records, result.generalization, pair), k)
        for pair in itertools.combinations(names, min(2, len(names)))
    )


DEFINITIONS: dict[str, Callable[[Any, np.ndarray, int], bool]] = {
    "k-anonymity": is_k_anonymous,
    "(1,k)": is_one_k,
    "(k,1)": is_k_one,
    "(k,k)": is_k_k,
    "k-concealment": is_concealed,
    "k-regular": is_k_regular,
    "key-sets(of=1, hidden=any, rows=matches)": is_k_k_on_pairs,
    "key-sets(of=2, hidden=any, rows=matches)": is_k_k_on_pairs,
}


def exempt(result: Any, k: int) -> np.ndarray:
    """Suppressed records, where they are fewer than k."""
    suppressed = np.asarray(result.suppressed)
    return suppressed if suppressed.sum() < k else np.zeros(len(suppressed), bool)


def check_result(result: Any, k: int | None = None) -> None:
    """Assert that an anonymization is sound and keeps its guarantee."""
    table, outcome = result.table, result.generalization
    k = result.k if k is None else k
    n = table.n
    assert outcome.n == n <= DENSE
    assert outcome.lo.dtype == outcome.hi.dtype == np.int32
    assert outcome.bits.dtype == np.uint64
    for t, a in enumerate(outcome.layout.ranges):
        domain = outcome.domains[a]
        empty = (outcome.lo[t] == domain.size) & (outcome.hi[t] == -1)
        assert ((outcome.lo[t] <= outcome.hi[t]) | (domain.has_codes & empty)).all()
    closed = outcome.closure()
    assert np.array_equal(closed.lo, outcome.lo), "hierarchy QIs are runs of nodes"
    assert np.array_equal(closed.hi, outcome.hi)
    covers = adjacency(table.records, outcome)
    assert covers.diagonal().all(), "every generalized record covers its own original"

    suppressed = np.asarray(result.suppressed)
    assert suppressed.shape == (n,)
    assert outcome.suppressed_rows()[suppressed].all()
    frame = result.frame()
    assert list(frame.columns) == list(table.qi_columns)
    assert frame.index.equals(table.index)
    assert (frame[suppressed] == "*").all(axis=None)
    read = Generalization.parse(frame, table.domains)
    for mine, theirs in ((outcome.lo, read.lo), (outcome.hi, read.hi), (outcome.bits, read.bits)):
        assert np.array_equal(mine, theirs), "what is published reads back as what was made"

    if result.matches is not None:
        matches = result.matches
        assert matches.dtype == np.int32
        assert matches.shape[0] == n
        assert np.array_equal(matches[:, 0], np.arange(n))
        assert (matches[suppressed, 1:] == -1).all()
        assert is_k_regular(result, covers, k)
    if result.classes is not None:
        classes = np.asarray(result.classes)
        assert classes.shape == (n,)
        text = ["\0".join(row) for row in frame.to_numpy().tolist()]
        assert len(set(zip(classes.tolist(), text, strict=True))) == len(set(classes.tolist()))
        assert len(set(classes[suppressed].tolist())) <= 1, "suppressed records share one label"
        sizes = np.unique(classes, return_inverse=True, return_counts=True)
        assert (sizes[2][sizes[1]][~exempt(result, k)] >= k).all()
    assert DEFINITIONS[result.guarantee](result, covers, k), result.guarantee


def check_release(result: Any, release: Any) -> None:
    """Assert that a release shows the table's people under generalized records that cover them."""
    import pandas as pd

    table, frame = result.table, release.frame
    names, others = list(table.qi_columns), list(table.other_columns)
    assert list(frame.columns) == list(table.frame.columns)
    assert isinstance(frame.index, pd.RangeIndex)
    assert len(frame) == table.n

    def sorted_rows(part: pd.DataFrame) -> list[tuple[str, ...]]:
        return sorted(tuple(map(str, row)) for row in part.to_numpy().tolist())

    assert sorted_rows(frame[names]) == sorted_rows(result.frame())
    if not others:
        return
    few = exempt(result, result.k)
    blank = int(few.sum())
    shown = sorted_rows(frame[others])
    if blank:
        missing = [("*",) * len(others)] * blank
        shown = [row for row in shown if row != ("*",) * len(others)]
        assert len(shown) == table.n - blank == len(sorted_rows(frame[others])) - len(missing)
    assert shown == sorted_rows(table.frame.loc[~few, others])
