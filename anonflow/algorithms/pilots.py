"""Estimate a method's time, memory and loss on a table, from runs on short stretches of the same table."""

from __future__ import annotations

import math
import time
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from functools import partial
from typing import Any

import numpy as np

from anonflow.algorithms.classes.class_chains import BLOCK
from anonflow.algorithms.method import MOST_EFFORT, Algorithm, Outcome
from anonflow.algorithms.solve import partition_generator, solve
from anonflow.errors import InfeasibleError
from anonflow.kernels.jit import ready_here
from anonflow.loss import information_loss
from anonflow.partition import Cuts, bounded, cut_classes, ordered, sizes_kept_apart
from anonflow.table.records import Records
from anonflow.threads import results_of

LOOK = 1.0
"""Seconds of the stretches from which whoever waits is told how long a call may take; Ctrl-C waits for them."""

SMALLEST = 128
"""Records of the first stretches, at least; fewer are solved by other means in some methods."""

RAISED = 512
"""Records of the stretches that are run with efforts, at most; more where they take little of the seconds without any."""

LITTLE = 1 / 64
"""Share of the seconds that such stretches take at most: with efforts of 1 and 8 class chains take some 15 times as long."""

CHEAPEST = 1 / 16
"""What a further unit of effort is assumed to take at least, as a share of the first: smaller differences are noise."""

LONGER = 4
"""How many times as long each stretch is as the one before; twice, where that would take too long."""

CAUTION = 1.5
"""How many times as long as expected the next stretch may take."""

STEEPEST = 4.0
"""Beyond the largest stretch, time and memory are assumed to grow with at most this power of the records."""

HELD = 3
"""How many times a run holds the results of its partitions at its peak: each, put together, and while they are checked."""

ATTEMPTS = 4
"""Calls of a stretch, at most, until none of its kernels is compiled or read from disk meanwhile; threads beside may compile, too."""

STRETCHES = 3
"""Stretches of a size that are run, where one is short."""

SHORT = 0.01
"""Seconds below which a stretch is run again."""

REPEATS = 3
"""Runs of a short stretch."""

SETTLED = 2_000
"""Records beyond which the time of a linear method (:class:`anonflow.algorithms.method.Algorithm`) grows in proportion."""

A_THREAD = 2_048
"""Records of a partition for each thread that a method gives work to, at least; of class chains a block of classes, if that is more."""

FULL_BLOCKS = 1.3
"""How many times as long a kick of class chains takes in a full block as in a stretch, which has fewer classes (1.0 to 1.6 on Adult)."""


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


@dataclass(frozen=True)
class Pilot:
    """One stretch.

    Attributes
    ----------
    records : int
    seconds : float
        Of the processor, on one thread, without those of the compiler: other programs do not change them.
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
        Of the processor, added up over partitions.
    wall : float
        Elapsed, with partitions in parallel, and with as little of the processor as the stretches had.
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
    """Powers of the number of records, through the pilots of one method with one k and its options.

    Attributes
    ----------
    pilots : tuple of Pilot
        By increasing records; at least one.
    k : int
    linear : bool
        As :class:`anonflow.algorithms.method.Algorithm` has it.
    efforts : tuple of (int, float)
        Units of effort, from 0, and the seconds of a record with them.
    threaded : bool
        Whether the method uses threads of its own; its pilots had one.
    spent : float
        Elapsed seconds of all pilots, without those of the compiler.
    load : float
        Elapsed seconds for each of the processor, at least 1: where other programs are at work, a call waits for them.

    Notes
    -----
    Between two pilots seconds and memory are interpolated on logarithmic scales, so they never fall as a partition grows.
    Beyond the largest, they grow with the power that the last two show, between 1 and 4; with 1 for the seconds of a linear
    method beyond 2,000 records. What an effort adds grows in proportion to the records, and beyond the first unit to itself.
    """

    pilots: tuple[Pilot, ...]
    linear: bool = False
    efforts: tuple[tuple[int, float], ...] = ()
    threaded: bool = False
    spent: float = 0.0
    load: float = 1.0

    def unit_seconds(self) -> tuple[float, float]:
        """Return the seconds that the first unit of effort adds for each record, and each further one; infinite if it is not known."""
        if len(self.efforts) < 2:
            return math.inf, math.inf
        (_, least), (_, first), *_ = self.efforts
        units, longest = self.efforts[-1]
        added = max(first - least, 0.0)
        further = (longest - first) / (units - 1) if units > 1 else added
        return added, max(further, CHEAPEST * added, 1e-6)

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
        durations = np.array([self.seconds(int(length)) for length in lengths])
        largest = int(lengths.max())
        at_once = min(threads, int(counts.sum()))
        inner = max(1, min(threads, largest // A_THREAD)) if self.threaded and self.linear else 1
        result_bytes = (
            HELD * max(pilot.kept / pilot.records for pilot in self.pilots) * float(lengths @ counts)
        )
        losses = np.array([self.loss(int(length)) for length in lengths])
        return Expected(
            float(durations @ counts),
            self._wall(durations, counts, at_once, inner),
            int(at_once * self.memory(largest) + result_bytes),
            float((losses * lengths) @ counts / (lengths @ counts)),
        )

    def effort_wall(self, lengths: np.ndarray, counts: np.ndarray, threads: int, k: int) -> float:
        """Return the elapsed seconds for each second of the processor that an effort adds.

        A method with threads shares its effort among them, also where its start is one thread's, as that of classes is.

        Parameters
        ----------
        lengths, counts, threads
            As :meth:`expected` takes them.
        k : int
        """
        of_classes = self.threaded and not self.linear
        least = max(A_THREAD, BLOCK * k) if of_classes else A_THREAD
        inner = max(1, min(threads, int(lengths.max()) // least)) if self.threaded else 1
        wall = self._wall(lengths, counts, min(threads, int(counts.sum())), inner) / float(lengths @ counts)
        return wall * (FULL_BLOCKS if of_classes else 1.0)

    def _wall(self, durations: np.ndarray, counts: np.ndarray, at_once: int, inner: int) -> float:
        """Return the elapsed time of partitions that take so long on one thread, `at_once` side by side or on `inner` threads each."""
        return self.load * max(
            float(durations.max()) / inner, float(durations @ counts) / max(at_once, inner)
        )

    def _at(self, records: int, values: list[float], settled: int | None) -> float:
        sizes = np.array([float(pilot.records) for pilot in self.pilots])
        # a longer stretch takes no less: where it seemed to, the clock was noisy
        # and more than 0, for its logarithm
        grown = np.maximum.accumulate(np.maximum(values, 1e-9))
        if records <= sizes[0]:
            return float(grown[0] * records / sizes[0])
        if records <= sizes[-1]:
            return float(np.exp(np.interp(math.log(records), np.log(sizes), np.log(grown))))
        power = 1.0
        if len(sizes) > 1:
            power = math.log(grown[-1] / grown[-2]) / math.log(sizes[-1] / sizes[-2])
        # at least in proportion: noise between two stretches must not promise less
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
    options: Mapping[str, Any],
    seconds: float,
    largest: int | None = None,
    smallest: int = SMALLEST,
    at_once: int = 1,
    effort: Mapping[str, Any] | None = None,
    peak: Callable[[Callable[[], Outcome]], tuple[Outcome, int]] | None = None,
) -> PilotModel:
    """Run a method on stretches of a table, each four times as long as the one before, while there are seconds left.

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
    smallest : int, optional
        Records of the first one, at least.
    at_once : int, optional
        Stretches of a size that are run at the same time, as the partitions of a run are.
    effort : mapping, optional
        Of a method with effort: other options that go with an effort above 0. Stretches are run with efforts of 1, 8, 32, ...,
        too, until the time doubles or the seconds are used up.
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
    size = min(most, max(2 * k, smallest))
    threaded = "threads" in method.options and "threads" not in options
    options = {**options, **({"threads": 1} if threaded else {})}
    # the other half is for stretches with efforts
    room = seconds if effort is None else seconds / 2
    begin = time.perf_counter()
    pilots: list[Pilot] = []
    efforts: list[tuple[int, float]] = []
    failed: InfeasibleError | None = None
    raised: list[slice] = []
    worked, elapsed = 0.0, 0.0

    def work(options: Mapping[str, Any], part: Records) -> Outcome:
        # as a run does: a generator that depends on the records takes as long as some methods
        return solve(method, part, k, loss, partition_generator(0, 0, part), options)

    def spent() -> float:
        return time.perf_counter() - begin

    def load() -> float:
        return max(1.0, elapsed / worked) if worked else 1.0

    while True:
        longest = table.cuts(size, k).longest(max(STRETCHES, at_once))[::-1]
        places, others = longest[:at_once], longest[at_once:]
        records = places[0].stop - places[0].start
        if pilots and records <= pilots[-1].records:
            break  # boundary classes are no larger
        try:
            timed = partial(_timed, partial(work, options))
            calls = [timed([partial(table.rows, place) for place in places], peak)]
            if others and calls[0].seconds < SHORT:  # partitions differ: the mean of some
                calls += [timed([partial(table.rows, other)], None) for other in others]
            outcome, memory = calls[0].outcome, calls[0].memory
            took = sum(call.seconds for call in calls) / len(calls)
            worked += sum(call.seconds for call in calls)
            elapsed += sum(call.elapsed for call in calls)
            # kernels are compiled once on a machine: this is no time that the method takes
            begin += sum(call.compiling for call in calls)
            lost = float(information_loss(outcome.generalization, loss))
            pilots.append(Pilot(records, took, lost, memory, _bytes(outcome)))
            if not raised or records <= RAISED or took * len(longest) <= LITTLE * seconds:
                raised, efforts = longest, [(0, took / records)]
        except InfeasibleError as error:
            failed = error
            if spent() > room:
                break
        longer = [min(step * size, most) for step in (LONGER, 2) if size < most]
        size = next((at for at in longer if spent() + load() * _next_seconds(pilots, at) <= room), 0)
        if not size:
            break
    if not pilots:
        assert failed is not None, "each stretch has a result or an error"
        raise failed

    def with_effort(units: int, stretches: Sequence[slice], until: float) -> list[float]:
        """Return the seconds of a record, of stretches that run at once, then of the next ones: partitions differ by a factor of two."""
        nonlocal begin
        solved = partial(work, {**options, **(effort or {}), str(method.effort): units})
        rates: list[float] = []
        for at in range(0, len(stretches), at_once):
            places = stretches[at : at + at_once]
            length = places[0].stop - places[0].start
            if rates and spent() + load() * rates[-1] * length > until:
                break
            call = _timed(solved, [partial(table.rows, place) for place in places], None)
            begin += call.compiling
            rates.append(call.seconds / length)
        return rates

    firsts: list[float] = []
    while effort is not None and method.effort is not None:
        units = 1 if len(efforts) == 1 else LONGER * max(efforts[-1][0], 2)
        slow = len(efforts) > 2 and efforts[-1][1] >= 2.0 * efforts[1][1]
        expected = (2 if firsts else LONGER) * efforts[-1][1] * (raised[0].stop - raised[0].start)
        if slow or units > MOST_EFFORT or spent() + load() * expected > seconds:
            break
        # the first unit leaves half of the seconds to further ones
        until = seconds if firsts else (spent() + seconds) / 2
        rates = with_effort(units, raised[: at_once * len(firsts)] if firsts else raised, until)
        firsts = firsts or rates
        like = sum(firsts) / len(firsts) / (sum(firsts[: len(rates)]) / len(rates))
        efforts.append((units, like * sum(rates) / len(rates)))
    return PilotModel(tuple(pilots), method.linear, tuple(efforts), threaded, spent(), load())


def _next_seconds(pilots: list[Pilot], records: int) -> float:
    """Return how long a stretch may take that is longer than all before; after a single one, time may grow with the square."""
    if not pilots:
        return 0.0
    last = pilots[-1]
    square = last.seconds * (records / last.records) ** 2
    return CAUTION * (square if len(pilots) == 1 else PilotModel(tuple(pilots)).seconds(records))


@dataclass(frozen=True)
class _TimedOutcome:
    """What calls on stretches gave and took: the first one's result, its bytes at the peak, seconds, and those in which kernels became ready."""

    outcome: Outcome
    seconds: float
    elapsed: float
    memory: int
    compiling: float


def _timed(
    work: Callable[[Records], Outcome],
    stretches: Sequence[Callable[[], Records]],
    peak: Callable[[Callable[[], Outcome]], tuple[Outcome, int]] | None,
) -> _TimedOutcome:
    """Return what stretches that are run at once give and take.

    A call in which a kernel became ready does not count. The least of a few calls counts where they are short, each with records
    of its own: what is computed once for all calls on the same records is computed in each partition of a run. Seconds are those of
    the processor, at most the elapsed ones: a power of noise would be wrong many times over. Memory is that of a call by itself.
    """
    compiling, least, elapsed, most = 0.0, math.inf, 0.0, 0
    attempts = repeats = 0
    while True:
        parts = [rows() for rows in stretches]
        ready, start, used = ready_here(), time.perf_counter(), time.process_time()
        outcome, *_ = results_of(work, parts, len(parts))
        passed, used = time.perf_counter() - start, time.process_time() - used
        attempts += 1
        if ready_here() != ready and attempts < ATTEMPTS:
            compiling += passed
            continue
        repeats += 1
        # the processor's time where others use the machine, the clock's where the method has several threads
        took = max(min(passed, used / len(parts)), 1e-6)
        if took < least:
            least, elapsed = took, max(passed, took)
        if passed >= SHORT or repeats >= REPEATS:
            break
    if peak is not None:  # in a run of its own, because reading the memory again and again takes time
        _, most = peak(partial(work, stretches[0]()))
    return _TimedOutcome(outcome, least, elapsed, most, compiling)


def _bytes(outcome: Outcome) -> int:
    arrays = [
        outcome.matches,
        outcome.classes,
        outcome.suppressed,
        *vars(outcome.generalization).values(),
    ]
    return sum(array.nbytes for array in arrays if isinstance(array, np.ndarray))
