"""Batches of partitions: one task solves one, and tells the client sums, never a record."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Any, Protocol

import numpy as np

from anonflow import utility
from anonflow.algorithms.assembly import gathered, left_out
from anonflow.algorithms.method import Outcome
from anonflow.criteria.verification import Finding
from anonflow.engine.execution import tasks
from anonflow.engine.execution.tasks import Failed, Matched, Measured, PartitionResult, TaskSettings
from anonflow.loss import record_costs
from anonflow.partition import Cuts
from anonflow.system import peak_memory
from anonflow.table import Domain, Records
from anonflow.utility.measures import MeasureRequest

__all__ = [
    "Batch",
    "BatchDone",
    "BatchFailed",
    "Place",
    "Results",
    "Rows",
    "Shared",
    "Summary",
    "Tally",
    "added",
    "batches_of",
    "done_of",
    "joined",
    "solve_batch",
    "summary_of",
    "tallied",
]

ROWS = 1 << 16
"""Rows of a batch, at most, where partitions are smaller."""

SHARE = 1 / 64
"""Of a table's rows that a batch has, at most, where partitions are smaller: the workers have several each."""


@dataclass(frozen=True)
class Batch:
    """Consecutive partitions of a run, and the rows between them: what lies in no partition is suppressed.

    Attributes
    ----------
    number : int
    first : int
        Number of its first partition.
    start, stop : int
        Places in the run's order.
    bounds : tuple of (int, int)
        Places where each partition starts and ends.
    """

    number: int
    first: int
    start: int
    stop: int
    bounds: tuple[tuple[int, int], ...]

    @property
    def parts(self) -> list[np.ndarray]:
        """Which of the batch's rows each partition has."""
        return [np.arange(start - self.start, stop - self.start) for start, stop in self.bounds]

    @property
    def left(self) -> np.ndarray:
        """Which of the batch's rows lie in no partition."""
        out = np.ones(self.stop - self.start, bool)
        for start, stop in self.bounds:
            out[start - self.start : stop - self.start] = False
        return np.flatnonzero(out)

    def __str__(self) -> str:
        last = self.first + len(self.bounds) - 1
        return f"partition {last}" if last == self.first else f"partitions {self.first} to {last}"


def batches_of(cuts: Cuts, n: int) -> Iterator[Batch]:
    """Yield partitions as batches, one after the other; together they have every row once.

    Which they are depends on the cuts and on n alone, so that what is added up batch by batch is the same whoever
    adds it up. A partition is never divided.
    """
    most = min(ROWS, int(n * SHARE))
    waiting: list[tuple[int, int]] = []
    number = begin = first = 0
    for cut in cuts:
        if waiting and cut.stop - begin > most:
            yield Batch(number, first, begin, waiting[-1][1], tuple(waiting))
            number, first, begin, waiting = number + 1, first + len(waiting), waiting[-1][1], []
        waiting.append((cut.start, cut.stop))
    yield Batch(number, first, begin, n, tuple(waiting))


class Rows(Protocol):
    """Rows of an order, which are there once they are loaded: what a task is given of a table."""

    def load(self, domains: tuple[Domain, ...]) -> tuple[np.ndarray, Records]:
        """Return their positions in the table, and the records.

        Raises
        ------
        OSError
            If they cannot be read.
        """


class Results(Protocol):
    """The results of one batch, where they are put."""

    @property
    def resumed(self) -> Mapping[int, PartitionResult]:
        """Partition -> what an earlier run left of it."""

    def keep(self, results: Mapping[int, PartitionResult]) -> Any:
        """Keep the results of partitions; what it gives back is found with it again.

        Raises
        ------
        AnonflowError, OSError
            If they cannot be kept.
        """

    def put(self, positions: np.ndarray, whole: Outcome, classes: Mapping[str, list[Any]]) -> Any:
        """Put aside what the batch adds to measures of classes, and what else a release needs of it.

        Raises
        ------
        OSError
            If it cannot be written.
        """


class Place(Protocol):
    """Where the results of a run are put, by whoever made them."""

    def open(
        self, settings: TaskSettings, batch: Batch, domains: tuple[Domain, ...], parts: Sequence[Records]
    ) -> Results:
        """Return the results of a batch, whose partitions have these records."""


@dataclass(frozen=True, eq=False)
class Shared:
    """What all tasks of a flow need.

    Attributes
    ----------
    domains : tuple of Domain
    measures : dict
        Run -> the measures that add up over partitions, or over classes.
    """

    domains: tuple[Domain, ...]
    measures: Mapping[int, MeasureRequest]


@dataclass(frozen=True, eq=False)
class Summary:
    """What is said of some generalized records.

    Attributes
    ----------
    measures : dict
        What they add to each measure, but for those of classes.
    classes : dict
        What they add to these.
    sizes, spread : numpy.ndarray, int64
        Records by number of matches, or by size of their class; and by percent lost. Suppressed records have no size
        where there are classes.
    suppressed : int
    kind : {"matches", "classes", "none"}
    """

    measures: dict[str, list[Any]]
    classes: dict[str, list[Any]]
    sizes: np.ndarray
    spread: np.ndarray
    suppressed: int
    kind: str


@dataclass(frozen=True)
class Tally:
    """How often a criterion was checked, and what was found.

    Attributes
    ----------
    first : Finding
        Of those that failed, if one did.
    checked, passed, failed : int
        Parts, those where it holds, and the records that fail.
    """

    first: Finding
    checked: int
    passed: int
    failed: int

    def then(self, other: Tally) -> Tally:
        """Return this one and what was checked after it."""
        first = self.first if not self.first.holds else other.first
        return Tally(
            first, self.checked + other.checked, self.passed + other.passed, self.failed + other.failed
        )

    def finding(self) -> Finding:
        """Return what is to be said of all parts."""
        return Finding(
            self.first.criterion,
            self.passed == self.checked,
            self.failed,
            self.first.side if not self.first.holds else "",
            (),
            f"{self.passed} of {self.checked} partitions",
            self.first.parameters,
        )


def tallied(findings: Sequence[Sequence[Finding]]) -> tuple[Tally, ...]:
    """Return what was found in several parts, as one for each criterion."""
    totals: tuple[Tally, ...] = ()
    for part in findings:
        own = tuple(Tally(finding, 1, int(finding.holds is True), finding.failed) for finding in part)
        totals = tuple(a.then(b) for a, b in zip(totals, own, strict=True)) if totals else own
    return totals


@dataclass(frozen=True, eq=False)
class BatchDone:
    """What the client is told of a batch.

    Attributes
    ----------
    records : numpy.ndarray, shape (p,), int64
        Of each partition.
    seconds, losses : numpy.ndarray, shape (p,), float64
        Of each partition: the method's time, and the mean NCP.
    steps : dict
        Step -> seconds of the worker.
    findings : tuple of Tally
    measured : Measured
        Added up.
    summary : Summary
    texts : dict
        What the method said in words in all partitions; None where these differ.
    beyond : int
        Records in no partition.
    kept, put : object
        What finds the results, and what else was put aside, again.
    resumed : int
        Partitions that an earlier run had left.
    memory : int
        The most bytes that the worker has used so far.
    """

    records: np.ndarray
    seconds: np.ndarray
    losses: np.ndarray
    steps: dict[str, float]
    findings: tuple[Tally, ...]
    measured: Measured
    summary: Summary
    texts: dict[str, str | None]
    beyond: int
    kept: Any
    put: Any
    resumed: int
    memory: int


@dataclass(frozen=True, eq=False)
class BatchFailed:
    """A batch in which partitions have no result; those that have one are kept.

    Attributes
    ----------
    failed : tuple of (int, Failed)
        Their numbers, and why.
    kept : object
    memory : int
        As of :class:`BatchDone`.
    """

    failed: tuple[tuple[int, Failed], ...]
    kept: Any
    memory: int


def solve_batch(
    shared: Shared, settings: TaskSettings, batch: Batch, rows: Rows, place: Place
) -> BatchDone | BatchFailed:
    """Return match, verify and measure the partitions of a batch, and keep the results.

    Parameters
    ----------
    shared : Shared
    settings : TaskSettings
    batch : Batch
    rows : Rows
        The batch's.
    place : Place

    Returns
    -------
    BatchDone or BatchFailed

    Raises
    ------
    AnonflowError, OSError
        If rows cannot be read, or results cannot be kept.
    """
    positions, records = rows.load(shared.domains)
    parts = [records.take(at) for at in batch.parts]
    place_of_batch = place.open(settings, batch, shared.domains, parts)
    kept_results = place_of_batch.resumed
    results: dict[int, PartitionResult] = {}
    failed: list[tuple[int, Failed]] = []
    for number, part in enumerate(parts, batch.first):
        result = (
            kept_results[number] if number in kept_results else tasks.solve_partition(settings, part, number)
        )
        if isinstance(result, Failed):
            failed.append((number, result))
        else:
            results[number] = result
    kept = place_of_batch.keep(results)
    if failed:
        return BatchFailed(tuple(failed), kept, peak_memory())
    return done_of(
        shared, settings, batch, positions, records, results, place_of_batch, kept, resumed=len(kept_results)
    )


def done_of(
    shared: Shared,
    settings: TaskSettings,
    batch: Batch,
    positions: np.ndarray,
    records: Records,
    results: Mapping[int, PartitionResult],
    place: Results,
    kept: Any,
    *,
    resumed: int = 0,
) -> BatchDone:
    """Return what is told of a batch whose partitions all have a result; what a release needs of it is put aside.

    Parameters
    ----------
    shared : Shared
    settings : TaskSettings
    batch : Batch
    positions : numpy.ndarray, shape (m,), int64
        Of the batch's rows in the table.
    records : Records
        The batch's.
    results : mapping
        Partition -> its result, in order.
    place : Results
    kept : object
        What finds the results again.
    resumed : int, optional
        How many of them an earlier run had left.

    Raises
    ------
    OSError
        If something cannot be put aside.
    """
    outcomes = [result.matched.outcome for result in results.values()]
    whole, left = joined(batch, records, outcomes)
    measured = [result.measured for result in results.values()]
    weights = np.array([domain.weight for domain in shared.domains])
    counts = np.array([part.records for part in measured], np.int64)
    losses = np.array([part.costs @ weights for part in measured]) / np.maximum(
        counts * weights.sum(), 1e-300
    )
    if left is not None:
        own = tasks.measure(records.take(batch.left), Matched(left, 0.0))
        assert isinstance(own, Measured)
        measured.append(own)
    summary = summary_of(shared.measures[settings.run], records, whole, batch.parts)
    steps: dict[str, float] = {}
    for result in results.values():
        for step, seconds in result.seconds.items():
            steps[step] = steps.get(step, 0.0) + seconds
    return BatchDone(
        counts,
        np.array([result.matched.seconds for result in results.values()]),
        losses,
        steps,
        tallied([result.findings for result in results.values()]),
        added(measured),
        summary,
        _texts([outcome.facts for outcome in outcomes]),
        0 if left is None else left.generalization.n,
        kept,
        place.put(positions, whole, summary.classes),
        resumed,
        peak_memory(),
    )


def joined(batch: Batch, records: Records, outcomes: Sequence[Outcome]) -> tuple[Outcome, Outcome | None]:
    """Return the outcomes of a batch's partitions as one, and that of its rows in no partition, which is a part of it.

    Parameters
    ----------
    batch : Batch
    records : Records
        All of the batch.
    outcomes : sequence of Outcome
        Of each partition.

    Returns
    -------
    whole : Outcome
        Positions are those in the batch.
    left : Outcome or None
        Suppressed records; None if there are none.
    """
    index, own, left = batch.parts, list(outcomes), None
    beyond = batch.left
    if len(beyond):
        left = left_out(records.take(beyond), outcomes)
        own.append(left)
        index.append(beyond)
    return gathered(records.domains, own, index, records.n), left


def summary_of(
    ready: MeasureRequest, records: Records, whole: Outcome, partitions: Sequence[np.ndarray] | None = None
) -> Summary:
    """Return what is said of records that were generalized.

    Parameters
    ----------
    ready : MeasureRequest
        The measures.
    records : Records
        m originals.
    whole : Outcome
        Their m generalized records, or what has the same attributes.
    partitions : sequence of numpy.ndarray, optional
        Which of them each partition has.
    """
    measures = utility.partial(ready, records, whole, partitions)
    by_class = {name: measures.pop(name) for name in utility.measures_by_class() if name in measures}
    percents = np.floor(100 * record_costs(whole.generalization, "ncp") + 1e-9).astype(np.int64)
    return Summary(
        measures,
        by_class,
        _sizes(whole),
        np.bincount(percents),
        int(whole.suppressed.sum()),
        "matches" if whole.matches is not None else "classes" if whole.classes is not None else "none",
    )


def _sizes(whole: Outcome) -> np.ndarray:
    if whole.matches is not None:
        return np.bincount((whole.matches >= 0).sum(axis=1))
    if whole.classes is not None:
        kept = whole.classes[~whole.suppressed]
        return np.bincount(np.bincount(kept)[kept]) if len(kept) else np.zeros(1, np.int64)
    return np.zeros(0, np.int64)


def added(measured: Sequence[Measured]) -> Measured:
    """Return information loss of several partitions, or batches, as one."""
    return Measured(
        sum(part.records for part in measured),
        np.sum([part.costs for part in measured], axis=0),
        np.sum([part.exact for part in measured], axis=0),
        np.sum([part.whole for part in measured], axis=0),
    )


def _texts(parts: Sequence[Mapping[str, Any]]) -> dict[str, str | None]:
    """Return what partitions said in words; None where these differ."""
    texts: dict[str, str | None] = {}
    for part in parts:
        for name, value in part.items():
            if isinstance(value, str):
                texts[name] = value if texts.get(name, value) == value else None
    return texts
