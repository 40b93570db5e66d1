"""The largest partitions that a budget of seconds allows. The method is timed on a few partitions of the same table.

Quality grows with partitions, and so does time: at equal budgets methods can be compared (Doka 2015, section 8.1).
"""

from __future__ import annotations

import math
import os
import time
from collections.abc import Callable, Mapping
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass, field
from typing import Any

import numpy as np

from anonflow.algorithms.method import MOST_EFFORT, Algorithm, Partition
from anonflow.errors import InfeasibleError, ParameterError
from anonflow.option import is_finite
from anonflow.partition import Cuts, bounded, cut_classes, ordered, sizes_kept_apart
from anonflow.table.records import Records

__all__ = [
    "AUTO",
    "Deadline",
    "Effort",
    "Fitted",
    "TimedTable",
    "check_budget",
    "fitting_effort",
    "fitting_size",
]

AUTO = "auto"
"""The partition size that stands for the largest one that fits the budget."""

MOST_SECONDS = 1e9
"""A longer budget is as good as this one, of 31 years."""

SHARE = 0.25
"""Share of the budget that the pilots may take."""

MARGIN = 0.9
"""Share of the time left after the pilots that the choice plans with."""

ENDING = 0.97
"""Share of the time left after the pilots at which a method ends that can: its result is still to be checked."""

AHEAD = 4
"""How many times the expected effort is allowed where a deadline ends it."""

SLOW = 0.5
"""Of what the pilots leave: what a start may take whose time grows with the square of the records."""

SMALLEST = 32
"""Records of the first pilots, at least."""

REACH = 4
"""Partitions of up to this many times the largest pilot may be chosen."""

CAUTION = 0.25
"""Beyond the largest pilot, the power of growth is assumed to be higher than measured, by this much."""

STEEPEST = 4.0
"""Beyond the largest pilot, time is taken to grow with at most this power of the partition's size."""

SHORT = 0.01
"""Seconds below which a pilot is timed again, up to three times; the least of them counts."""


@dataclass(frozen=True)
class Fitted:
    """A partition size that fits a budget, with the measurements behind the choice.

    Attributes
    ----------
    size : int
    budget : float
        Seconds.
    expected : float
        Seconds that the table is expected to take with this size, pilots included.
    pilots : tuple of (int, float)
        Records of a timed partition, and seconds.
    """

    size: int
    budget: float
    expected: float
    pilots: tuple[tuple[int, float], ...]

    @property
    def fits(self) -> bool:
        """Whether the budget is expected to be kept; otherwise this is the fastest size."""
        return self.expected <= self.budget

    def sentence(self) -> str:
        """Return the choice in words."""
        if self.fits:
            return f"partitions of {self.size} for a budget of {self.budget:g} s"
        return (
            f"no partition size keeps the budget of {self.budget:g} s; "
            f"partitions of {self.size} are expected to take {self.expected:.2g} s"
        )

    def facts(self) -> dict[str, Any]:
        """Return the choice as plain data."""
        return {
            "fits_budget": self.fits,
            "expected_seconds": round(self.expected, 3),
            "pilots": [[size, round(seconds, 6)] for size, seconds in self.pilots],
        }


@dataclass(frozen=True)
class Effort:
    """A value of a method's effort option that fits a budget, with the measurements behind the choice.

    Attributes
    ----------
    option : str
    value : int
        0 or more.
    budget : float
        Seconds.
    expected : float
        Seconds that the table is expected to take with it, pilots included.
    pilots : tuple of (int, int, float)
        Records, the option's value, and seconds on one thread.
    takes : mapping
        Values of other options that go with it.
    """

    option: str
    value: int
    budget: float
    expected: float
    pilots: tuple[tuple[int, int, float], ...]
    takes: Mapping[str, Any] = field(default_factory=dict)

    @property
    def fits(self) -> bool:
        """Whether the budget is expected to be kept; else the effort is 0."""
        return self.expected <= self.budget

    @property
    def options(self) -> dict[str, Any]:
        """The options as they were chosen."""
        return {**self.takes, self.option: self.value}

    def facts(self) -> dict[str, Any]:
        """Return the choice as plain data."""
        return {
            "fits_budget": self.fits,
            "expected_seconds": round(self.expected, 3),
            "pilots": [[size, value, round(seconds, 6)] for size, value, seconds in self.pilots],
        }


@dataclass(frozen=True, eq=False)
class TimedTable:
    """A table whose partitions are timed: it is cut as in the run, and read one partition at a time, in memory or on disk.

    Attributes
    ----------
    sizes : numpy.ndarray, shape (c,), int64
        Records of each boundary class, in order; one class without boundaries.
    names : tuple of str
        The bounded columns.
    rows : callable
        Consecutive places in the order -> their records, as the method sees them.
    """

    sizes: np.ndarray
    names: tuple[str, ...]
    rows: Callable[[slice], Records]

    @classmethod
    def of(cls, records: Records, order: str) -> TimedTable:
        """Return a table in memory; for timing, a random order is the table's."""
        positions = ordered(records, "input" if order == "random" else order, boundaries=True)
        return cls(sizes_kept_apart(records), bounded(records), lambda cut: records.take(positions[cut]))

    @property
    def n(self) -> int:
        """Records."""
        return int(self.sizes.sum())

    def cuts(self, size: int, k: int) -> Cuts:
        """Return its partitions of some size.

        Raises
        ------
        InfeasibleError
            If no partition can be cut within the boundaries.
        """
        return cut_classes(self.sizes, self.names, max(size, k), k)


def check_budget(size: Any, budget: Any, effort: str | None = None) -> float | None:
    """Return the budget that goes with a partition size: seconds for ``auto``, none for any other.

    Parameters
    ----------
    size : int, str or None
    budget : float or None
    effort : str, optional
        The method's option of effort: with it a budget goes with every size.

    Raises
    ------
    ParameterError
        If only one of them is there, or the budget is not a number of seconds greater than 0.
    """
    if size != AUTO or not isinstance(size, str):
        if isinstance(size, str):
            raise ParameterError("partition_size is a whole number, None for the whole table, or 'auto'")
        if budget is not None and effort is None:
            raise ParameterError("a budget needs partition_size='auto'; set it, or leave the budget out")
        if budget is None:
            return None
    elif budget is None:
        raise ParameterError("partition_size='auto' needs a budget in seconds, such as budget=5.0")
    if not is_finite(budget) or not budget > 0:
        raise ParameterError("budget must be a number of seconds greater than 0, such as 5.0")
    return min(float(budget), MOST_SECONDS)


def fitting_size(
    method: Algorithm,
    records: Records | TimedTable,
    k: int,
    budget: float,
    workers: int | None,
    *,
    order: str,
    loss: str,
    options: Mapping[str, Any],
) -> Fitted:
    """Return the largest partition size with which a method is expected to keep a budget.

    Parameters
    ----------
    method : Algorithm
    records : Records or TimedTable
        n records, as the method sees them.
    k : int
        At most n.
    budget : float
        Seconds for all of the table, pilots included. Compiling is not: it happens once on a machine.
    workers : int, optional
        Partitions that are worked on at once; as many as there are processors without it.
    order : str
        What partitions are cut along; for the pilots, a random order is the table's.
    loss : str
    options : mapping
        The method's own; a `time_limit` is an eighth of the budget for pilots, if it is longer.

    Returns
    -------
    Fitted
        Of at least k records; the table's size if all of it fits.

    Raises
    ------
    ParameterError
        If the method refuses an option.
    InfeasibleError
        If no partition can be cut within the boundaries.

    Notes
    -----
    Pilots double in size while they are expected to take no more than a quarter of the budget in all; each is
    timed with as many partitions at once as there are workers. The model is monotone: seconds never fall as a
    partition grows; between two pilots they are interpolated on logarithmic scales, and beyond the last one, up
    to four times its size, they grow with a little more than the power that the last two show. The largest size
    whose partitions together fit what the pilots have left is chosen. If none fits, the one that takes the least.
    """
    table = records if isinstance(records, TimedTable) else TimedTable.of(records, order)
    n = table.n
    workers = workers or os.cpu_count() or 1
    for name, option in method.options.items():
        if option.time_limit:
            options = {**options, name: min(options.get(name, option.default), budget / 8)}

    def run(part: Records) -> object:
        return method.run(Partition(part, loss, np.random.default_rng(0)), k, **options)

    def runs_of(size: int) -> Cuts:
        return table.cuts(size, k)

    def timed(size: int) -> tuple[int, float]:
        parts = [table.rows(cut) for cut in runs_of(size).longest(workers)]
        least = math.inf
        for _ in range(3):
            begin = time.perf_counter()
            _all(run, parts)
            least = min(least, max(time.perf_counter() - begin, 1e-9))
            if least >= SHORT:
                break
        return parts[0].n, least

    first = min(n, max(2 * k, SMALLEST))
    _all(run, [table.rows(next(iter(runs_of(first))))])  # compiles
    begin = time.perf_counter()
    pilots = [timed(first)]
    size, grows = first, True
    while size < n:
        size = min(2 * size, n)
        spent = time.perf_counter() - begin
        if spent + _seconds(pilots, size) > SHARE * budget:
            break
        pilot = timed(size)
        if pilot[0] <= pilots[-1][0]:
            grows = False  # boundary classes are no larger
            break
        before = _whole(pilots, runs_of(pilots[-1][0]), workers)
        pilots.append(pilot)
        if _whole(pilots, runs_of(size), workers) > max(before, budget):
            break
    spent = time.perf_counter() - begin
    left = MARGIN * (budget - spent)
    last = min(n, REACH * pilots[-1][0]) if grows else n
    sizes = sorted({first, last, *(int(first * 2 ** (step / 4)) for step in range(1, 4 * 40))})
    expected = {at: _whole(pilots, runs_of(at), workers) for at in sizes if at <= last}
    fit = [at for at, seconds in expected.items() if seconds <= left]
    chosen = max(fit) if fit else min(expected, key=lambda at: (expected[at], at))
    return Fitted(chosen, budget, expected[chosen] + spent, tuple(pilots))


class Deadline:
    """When a method that works in rounds is to end: before a round that is expected to take longer than what is left.

    Parameters
    ----------
    seconds : float
        From now on.
    """

    def __init__(self, seconds: float) -> None:
        self._end = time.perf_counter() + seconds
        self._last: float | None = None
        self._longest = 0.0

    def __call__(self) -> bool:
        """Return whether to end; called after each round, which is taken to be as long as the longest since the first call."""
        now = time.perf_counter()
        if self._last is not None:
            self._longest = max(self._longest, now - self._last)
        self._last = now
        return now + self._longest > self._end


def fitting_effort(
    method: Algorithm,
    records: Records | TimedTable,
    k: int,
    budget: float,
    workers: int | None,
    *,
    size: int | None,
    loss: str,
    options: Mapping[str, Any],
) -> Effort:
    """Return the greatest effort with which a method is expected to keep a budget.

    Parameters
    ----------
    method : Algorithm
        With an option of effort.
    records : Records or TimedTable
        n records, as the method sees them.
    k : int
        At most n.
    budget : float
        Seconds for all of the table, pilots included. Compiling is not: it happens once on a machine.
    workers : int, optional
        Threads that the table is worked on by; as many as there are processors without it.
    size : int, optional
        Records in a partition; n without it.
    loss : str
    options : mapping
        The method's own but for that of effort; a number of `threads` is set to 1.

    Raises
    ------
    ParameterError
        If the method refuses an option, or its effort is among them.
    InfeasibleError
        If no partition can be cut within the boundaries.

    Notes
    -----
    Pilots without effort grow two- or fourfold up to a sixteenth of a partition, 1,024 records at least, while they are
    expected to take no more than a quarter of the budget in all; the last one is repeated with efforts of 1 and 2, and 8, 32, ... until the time doubles or the quarter is used up. Without
    effort, the time of a partition grows with the power of its size that the last two pilots show, that of a linear
    method beyond 2,000 records in proportion to it. Where a method chooses by the table between a slow way and a quick one
    (`slow_or_quick`), the slow one is timed on the last pilot's records, too; its time is taken to grow with the square of them. If that is more
    than half of what is left, the quick one is chosen. What an effort adds grows in proportion to the records, and beyond 1 to itself. All of it is
    shared by as many threads as there are workers, for a partition of n records n / 2,048 at most.
    """
    option = method.effort
    assert option is not None, "the caller has checked it"
    if option in options:
        raise ParameterError(
            f"{method.name}: {option} and a budget exclude each other; leave one of the two out"
        )
    table = records if isinstance(records, TimedTable) else TimedTable.of(records, "lexicographic")
    n = table.n
    whole = min(size or n, n)
    workers = workers or os.cpu_count() or 1
    threads = min(workers, max(-(-n // whole), whole // 2048, 1))
    alone = {"threads": 1} if "threads" in method.options else {}
    takes = {name: value for name, value in method.effort_takes.items() if name not in options}
    slow, quick = (method.slow_or_quick and method.slow_or_quick(k, options)) or ({}, {})

    def stretch(wanted: int) -> Records:
        return table.rows(table.cuts(wanted, k).longest(1)[0])

    def timed(part: Records, value: int, ways: Mapping[str, Any] = quick) -> float:
        settings = {**options, **ways, **alone, **(takes if value else {}), option: value}
        start = time.perf_counter()
        _all(
            lambda records: method.run(Partition(records, loss, np.random.default_rng(0)), k, **settings),
            [part],
        )
        return max(time.perf_counter() - start, 1e-9)

    part = stretch(min(whole, 4 * SMALLEST))
    timed(part.take(np.arange(min(part.n, max(k, 2 * SMALLEST + 1)))), 1)  # compiles
    begin = time.perf_counter()
    pilots = [(part.n, 0, timed(part, 0))]
    least = [(part.n, pilots[0][2])]
    target = min(whole, max(1024, whole // 16))

    def left() -> float:
        return budget - (time.perf_counter() - begin)

    while least[-1][0] < target and n / part.n * least[-1][1] / threads < left():
        room = SHARE * budget - (budget - left())
        steps = [min(step * least[-1][0], target) for step in (4, 2)]
        wanted = next((at for at in steps if 2 * _seconds(least, at) <= room), 0)
        if not wanted:
            break
        larger = stretch(wanted)
        if larger.n <= part.n:
            break  # boundary classes are no larger
        part = larger
        least.append((part.n, timed(part, 0)))
        pilots.append((part.n, 0, least[-1][1]))
    power = 1.5
    if len(least) > 1:
        power = math.log(max(least[-1][1] / least[-2][1], 1.0)) / math.log(least[-1][0] / least[-2][0])
    reach = min(whole, 2000) if method.linear else whole
    growth = max(reach / part.n, 1.0) ** (min(max(power, 1.0), STEEPEST) - 1.0)
    share = n / part.n / threads
    base = least[-1][1] * growth * share
    if slow and least[-1][1] * (whole / part.n) * share <= SLOW * left():
        timed(part.take(np.arange(min(part.n, max(k, 2 * SMALLEST + 1)))), 0, slow)  # compiles
        squared = timed(part, 0, slow) * (whole / part.n) * share
        if squared <= SLOW * left():
            quick, base = {}, max(base, squared)  # the method may choose
    value, expected = 0, base
    if base < MARGIN * left():
        first = timed(part, 1)
        efforts = [2]
        pilots += [(part.n, 1, first), (part.n, 2, timed(part, 2))]
        # if the time of this effort is hardly measurable, that of more effort is
        while pilots[-1][2] < 2.0 * first and budget - left() + 4.0 * pilots[-1][2] <= SHARE * budget:
            efforts.append(4 * efforts[-1])
            pilots.append((part.n, efforts[-1], timed(part, efforts[-1])))
            if efforts[-1] >= MOST_EFFORT // 4:
                break
        each = max((pilots[-1][2] - first) / (efforts[-1] - 1), 1e-6 * part.n) * share
        rest = MARGIN * left() - base - max(first - least[-1][1], 0.0) * share
        value = min(1 + int(rest / each), MOST_EFFORT) if rest >= 0 else 0
        if value:
            expected = base + max(first - least[-1][1], 0.0) * share + (value - 1) * each
    more = {**quick, **(takes if value else {})}
    return Effort(option, value, budget, budget - left() + expected, tuple(pilots), more)


def _all(run: Callable[[Records], object], parts: list[Records]) -> None:
    """Run the method on some partitions in parallel; a partition without a solution counts with its time."""

    def run_part(part: Records) -> None:
        try:
            run(part)
        except InfeasibleError:
            return

    if len(parts) == 1:
        run_part(parts[0])
        return
    with ThreadPoolExecutor(len(parts)) as pool:
        list(pool.map(run_part, parts))


def _seconds(pilots: list[tuple[int, float]], size: int) -> float:
    """Return seconds of one partition: never falling as it grows."""
    sizes = np.array([float(pilot[0]) for pilot in pilots])
    times = np.maximum.accumulate([pilot[1] for pilot in pilots])
    if size <= sizes[-1]:
        return float(np.exp(np.interp(np.log(size), np.log(sizes), np.log(times))))
    power = 2.0
    if len(pilots) > 1:
        power = math.log(times[-1] / times[-2]) / math.log(sizes[-1] / sizes[-2])
    return float(times[-1] * (size / sizes[-1]) ** min(max(power, 1.0) + CAUTION, STEEPEST))


def _whole(pilots: list[tuple[int, float]], cuts: Cuts, workers: int) -> float:
    """Return seconds of all partitions: as many at once as there are workers, the longest at least."""
    lengths, counts = cuts.lengths
    each = np.array([_seconds(pilots, int(length)) for length in lengths])
    return max(float(each.max()), float(each @ counts) / workers)
