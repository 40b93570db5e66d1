"""Estimate a method's time, memory and loss on a table, from runs on short stretches of the same table."""

from __future__ import annotations

import math
import time
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from functools import partial

import numpy as np

from anonflow.algorithms.anonymize import partition_rng, solve
from anonflow.algorithms.budget import TimedTable
from anonflow.algorithms.method import Algorithm, Outcome
from anonflow.errors import InfeasibleError
from anonflow.kernels.jit import ready_here
from anonflow.loss import information_loss
from anonflow.table.records import Records

__all__ = ["SIZES", "Expected", "Pilot", "PilotModel", "run_pilots"]

SIZES = (64, 256, 1024, 4096)
"""Records of the stretches; longer ones follow while there are seconds left."""

STEEPEST = 4.0
"""Beyond the largest stretch, time and memory are assumed to grow with at most this power of the records."""

HELD = 3
"""How many times a run holds the results of its partitions at its peak: each, put together, and while they are checked."""

ATTEMPTS = 4
"""Calls of a stretch, at most, until none of its kernels is compiled or read from disk meanwhile; threads beside may compile, too."""

STRETCHES = 3
"""Stretches of a size that are run, where one is short."""

SHORT = 0.02
"""Seconds below which a stretch is run again."""

REPEATS = 3
"""Runs of a short stretch."""

SETTLED = 1_000
"""Records beyond which the time of a linear method (:class:`anonflow.algorithms.method.Algorithm`) grows in proportion."""


@dataclass(frozen=True)
class Pilot:
    """One stretch.

    Attributes
    ----------
    records : int
    seconds : float
        On one thread, without those of the compiler.
    loss : float
        Of the information loss that the method keeps low.
    memory : int
        Bytes at the peak, beyond what was held before; 0 where it was not measured.
    kept : int
        Bytes of the result.
    """

    records: int
    seconds: float
    loss: float
    memory: int = 0
    kept: int = 0


@dataclass(frozen=True)
class Expected:
    """The expected time, memory and loss of a whole table.

    Attributes
    ----------
    seconds : float
        Of the method, added up over partitions, as a run reports them.
    wall : float
        Wall clock, with partitions in parallel.
    memory : int
        Bytes, beyond what is held before the run.
    loss : float
        A guess: that of a stretch as long as a partition.
    """

    seconds: float
    wall: float
    memory: int
    loss: float


@dataclass(frozen=True)
class PilotModel:
    """Powers of the number of records, through the pilots of one method with one k.

    Attributes
    ----------
    pilots : tuple of Pilot
        By increasing records; at least one.
    k : int
    linear : bool
        As :class:`anonflow.algorithms.method.Algorithm` has it.

    Notes
    -----
    Between two pilots seconds and memory are interpolated on logarithmic scales, so they never fall as a partition grows.
    Beyond the largest, they grow with the power that the last two show, between 1 and 4; with 1 for the seconds of a linear
    method beyond 1,000 records.
    """

    pilots: tuple[Pilot, ...]
    k: int
    linear: bool = False

    def seconds(self, records: int) -> float:
        """Return seconds of one partition."""
        return self._at(records, [pilot.seconds for pilot in self.pilots], SETTLED if self.linear else None)

    def memory(self, records: int) -> float:
        """Return bytes at the peak of one partition."""
        return self._at(records, [float(pilot.memory) for pilot in self.pilots], None)

    def loss(self, records: int) -> float:
        """Return the loss of one partition: that of the nearest pilots."""
        sizes = np.log([pilot.records for pilot in self.pilots])
        return float(np.interp(math.log(records), sizes, [pilot.loss for pilot in self.pilots]))

    def expected(self, lengths: np.ndarray, counts: np.ndarray, threads: int) -> Expected:
        """Return the expected figures of partitions that run in parallel on threads.

        Parameters
        ----------
        lengths, counts : numpy.ndarray, shape (m,)
            Records of partitions, and how many partitions have so many.
        threads : int
        """
        each = np.array([self.seconds(int(length)) for length in lengths])
        whole = float(each @ counts)
        largest = int(lengths.max())
        at_once = min(threads, int(counts.sum()))
        kept = HELD * max(pilot.kept / pilot.records for pilot in self.pilots) * float(lengths @ counts)
        losses = np.array([self.loss(int(length)) for length in lengths])
        return Expected(
            whole,
            max(float(each.max()), whole / threads),
            int(at_once * self.memory(largest) + kept),
            float((losses * lengths) @ counts / (lengths @ counts)),
        )

    def _at(self, records: int, values: list[float], settled: int | None) -> float:
        sizes = np.array([float(pilot.records) for pilot in self.pilots])
        grown = np.maximum.accumulate(np.maximum(values, 1e-9))
        if records <= sizes[0]:
            return float(grown[0] * records / sizes[0])
        if records <= sizes[-1]:
            return float(np.exp(np.interp(math.log(records), np.log(sizes), np.log(grown))))
        power = 1.0
        if len(sizes) > 1:
            power = math.log(grown[-1] / grown[-2]) / math.log(sizes[-1] / sizes[-2])
        power = min(max(power, 1.0), STEEPEST)
        if settled is None or records <= settled:
            return float(grown[-1] * (records / sizes[-1]) ** power)
        bend = max(float(settled), sizes[-1])
        return float(grown[-1] * (bend / sizes[-1]) ** power * (records / bend))


def run_pilots(
    method: Algorithm,
    table: TimedTable,
    k: int,
    *,
    loss: str,
    options: Mapping[str, object],
    seconds: float,
    largest: int | None = None,
    peak: Callable[[Callable[[], Outcome]], tuple[Outcome, int]] | None = None,
) -> PilotModel:
    """Run a method on stretches of a table, each longer than the one before, while there are seconds left.

    Parameters
    ----------
    method : Algorithm
    table : TimedTable
        n records, as the method sees them.
    k : int
        At most n.
    loss : str
        The information loss to keep low.
    options : mapping
        The method's own.
    seconds : float
        That may be taken; a first stretch is run in any case.
    largest : int, optional
        Records of the longest stretch that is wanted; n without it.
    peak : callable, optional
        Calls its argument; returns the result and the bytes at the peak.

    Returns
    -------
    PilotModel

    Raises
    ------
    InfeasibleError
        If no stretch has a solution.
    ParameterError
        If the method refuses an option.
    """
    most = min(table.n, largest or table.n)
    floor = min(table.n, max(2 * k, SIZES[0]))
    sizes = sorted({min(max(size, floor), max(most, floor)) for size in SIZES})
    begin = time.perf_counter()
    pilots: list[Pilot] = []
    failed: InfeasibleError | None = None
    for size in sizes:
        middle, *others = table.cuts(size, k).longest(STRETCHES)[::-1]
        part = table.rows(middle)
        if pilots and part.n <= pilots[-1].records:
            break  # boundary classes are no larger
        spent = time.perf_counter() - begin
        if pilots and spent + PilotModel(tuple(pilots), k).seconds(part.n) > seconds:
            break

        def work(part: Records) -> Outcome:
            # as a run does: a generator that depends on the records takes as long as some methods
            return solve(method, part, k, loss, partition_rng(0, 0, part), options)

        try:
            outcome, took, memory, compiling = _timed(work, partial(table.rows, middle), peak)
            if others and took < SHORT:  # partitions differ: the mean of some
                more = [_timed(work, partial(table.rows, other), None) for other in others]
                took = sum((took, *(each[1] for each in more))) / (1 + len(more))
                compiling += sum(each[3] for each in more)
        except InfeasibleError as error:
            failed = error
            if time.perf_counter() - begin > seconds:
                break
            continue
        begin += compiling
        pilots.append(
            Pilot(
                part.n, took, float(information_loss(outcome.generalization, loss)), memory, _bytes(outcome)
            )
        )
    if not pilots:
        assert failed is not None, "each stretch has a result or an error"
        raise failed
    return PilotModel(tuple(pilots), k, method.linear)


def _timed(
    work: Callable[[Records], Outcome],
    rows: Callable[[], Records],
    peak: Callable[[Callable[[], Outcome]], tuple[Outcome, int]] | None,
) -> tuple[Outcome, float, int, float]:
    """Return what a stretch gives, its seconds, the bytes at its peak, and the seconds in which kernels were compiled or read.

    A call in which a kernel became ready does not count. The least of a few calls counts where they are short, each with records
    of its own: what is computed once for all calls on the same records is computed in each partition of a run. Memory is that of a
    call by itself.
    """
    compiling, least, most = 0.0, math.inf, 0
    attempts = repeats = 0
    while True:
        part = rows()
        ready, start = ready_here(), time.perf_counter()
        outcome = work(part)
        took = time.perf_counter() - start
        attempts += 1
        if ready_here() != ready and attempts < ATTEMPTS:
            compiling += took
            continue
        repeats += 1
        least = min(least, took)
        if took >= SHORT or repeats >= REPEATS:
            break
    if peak is not None:  # in a run of its own, because reading the memory again and again takes time
        _, most = peak(partial(work, rows()))
    return outcome, max(least, 1e-6), most, compiling


def _bytes(outcome: Outcome) -> int:
    arrays = [
        outcome.matches,
        outcome.classes,
        outcome.suppressed,
        *vars(outcome.generalization).values(),
    ]
    return sum(array.nbytes for array in arrays if isinstance(array, np.ndarray))
