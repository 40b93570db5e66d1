"""Batches of partitions: a task solves a batch and returns the results of its partitions, and sums, to the client."""

from __future__ import annotations

import time
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Any, Protocol

import numpy as np

from anonflow import utility
from anonflow.algorithms.assembly import gathered
from anonflow.algorithms.method import Outcome
from anonflow.criteria.verification import Finding
from anonflow.engine.execution import tasks
from anonflow.engine.execution.tasks import Failed, Matched, Measured, TaskSettings
from anonflow.loss import record_costs
from anonflow.partition import Cuts
from anonflow.system import peak_memory
from anonflow.table import Domain, Records
from anonflow.utility.measures import MeasureRequest

ROWS = 1 << 16
"""The most rows of a batch if partitions are smaller."""

SHARE = 1 / 64
"""The largest share of a table's rows in a batch if partitions are smaller, so that each worker has several batches."""


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
        """The rows of the batch that each partition has."""
        return [np.arange(start - self.start, stop - self.start) for start, stop in self.bounds]

    @property
    def left(self) -> np.ndarray:
        """The rows of the batch that lie in no partition."""
        out = np.ones(self.stop - self.start, bool)
        for start, stop in self.bounds:
            out[start - self.start : stop - self.start] = False
        return np.flatnonzero(out)

    def __str__(self) -> str:
        last = self.first + len(self.bounds) - 1
        return f"partition {last}" if last == self.first else f"partitions {self.first} to {last}"


def batches_of(cuts: Cuts, n: int) -> Iterator[Batch]:
    """Yield partitions as batches, one after the other; together they have every row once.

    The batches depend on the cuts and on n alone, so sums over batches have the same bits on every scheduler. A
    partition is never divided.
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
    """Rows of an order, which a task loads: its part of a table."""

    def load(self, domains: tuple[Domain, ...]) -> tuple[np.ndarray, Records, np.ndarray | None]:
        """Return their positions in the table, the records, and their values that must be diverse, if any must.

        Raises
        ------
        OSError
            If they cannot be read.
        """


class Names(Protocol):
    """Gives results of partitions their names, by which they are stored."""

    def __call__(
        self,
        settings: TaskSettings,
        parts: Sequence[Records],
        first: int = 0,
        values: Sequence[np.ndarray] | None = None,
    ) -> Sequence[Sequence[str]]:
        """Return the names of each partition's result, and of its diverse one if it must be diverse."""


@dataclass(frozen=True, eq=False)
class Shared:
    """The data that all tasks of a flow need.

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
    """A summary of some generalized records.

    Attributes
    ----------
    measures : dict
        Their part of each measure, except measures of classes.
    classes : dict
        Their part of these measures.
    sizes : numpy.ndarray, int64
        Records by number of matches, or by size of their class. Suppressed records have no size where there are classes.
    spread : numpy.ndarray, int64
        Records by percent lost.
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
    """The checks of a criterion over several parts, with their results.

    Attributes
    ----------
    first : Finding
        Of those that failed, if one did.
    checked : int
        Parts.
    passed : int
        Those of them where it holds.
    failed : int
        The records that fail.
    """

    first: Finding
    checked: int
    passed: int
    failed: int

    @property
    def holds(self) -> bool:
        """Whether the criterion holds in all parts."""
        return self.passed == self.checked

    def then(self, other: Tally) -> Tally:
        """Return the sum of this tally and a later one."""
        first = self.first if not self.first.holds else other.first
        return Tally(
            first, self.checked + other.checked, self.passed + other.passed, self.failed + other.failed
        )

    def finding(self) -> Finding:
        """Return the finding for all parts."""
        return Finding(
            self.first.criterion,
            self.holds,
            self.failed,
            self.first.side if not self.first.holds else "",
            (),
            f"{self.passed} of {self.checked} partitions",
            self.first.parameters,
        )

    @classmethod
    def of(cls, finding: Finding, parts: int = 1) -> Tally:
        """Return the tally of a finding for some parts together, none of which holds if it does not."""
        return cls(finding, parts, parts if finding.holds is True else 0, finding.failed)


def folded(tallies: Iterable[tuple[Tally, ...]]) -> tuple[Tally, ...]:
    """Return the sum of several parts' tallies for each criterion; a part that was not checked has none."""
    totals: tuple[Tally, ...] = ()
    for part in tallies:
        totals = (
            tuple(a.then(b) for a, b in zip(totals, part, strict=True)) if totals and part else totals or part
        )
    return totals


def tallied(findings: Iterable[Sequence[Finding]]) -> tuple[Tally, ...]:
    """Return the tallies of several parts' findings, for each criterion."""
    return folded(tuple(map(Tally.of, part)) for part in findings)


@dataclass(frozen=True, eq=False)
class BatchDone:
    """The summary of a batch that the client gets.

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
    new : mapping
        Partition -> its result, of those that the task was not given.
    names : sequence of sequence of str
        Of the result of each partition of the batch, and of its diverse one; empty where none are stored.
    resumed : int
        Partitions whose results come from an earlier run.
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
    new: Mapping[int, Matched]
    names: Sequence[Sequence[str]]
    resumed: int
    memory: int


@dataclass(frozen=True, eq=False)
class BatchFailed:
    """A batch in which some partitions have no result; it has the other results.

    Attributes
    ----------
    failed : tuple of (int, Failed)
        Their numbers, and why.
    new : mapping
    names : sequence of sequence of str
    memory : int
        As of :class:`BatchDone`.
    """

    failed: tuple[tuple[int, Failed], ...]
    new: Mapping[int, Matched]
    names: Sequence[Sequence[str]]
    memory: int


def solve_batch(
    shared: Shared,
    settings: TaskSettings,
    batch: Batch,
    rows: Rows,
    resumed: Mapping[int, Matched],
    names_of: Names | None = None,
) -> BatchDone | BatchFailed:
    """Match the partitions of a batch, make them diverse where that is asked for, verify and measure them.

    Parameters
    ----------
    shared : Shared
    settings : TaskSettings
    batch : Batch
    rows : Rows
        The batch's.
    resumed : mapping
        Partition -> its result from an earlier run.
    names_of : Names, optional
        Where results are stored.

    Returns
    -------
    BatchDone or BatchFailed

    Raises
    ------
    AnonflowError, OSError
        If rows cannot be read.
    """
    _, records, values = rows.load(shared.domains)
    parts = [records.take(at) for at in batch.parts]
    part_values = values_of_parts(settings, batch, values)
    names = () if names_of is None else names_of(settings, parts, batch.first, part_values)
    results: dict[int, Matched] = {}
    failed: list[tuple[int, Failed]] = []
    new = [at for at in range(len(parts)) if batch.first + at not in resumed]
    solved = tasks.match_together(settings, [parts[at] for at in new], [batch.first + at for at in new])
    matched = dict(zip(new, solved, strict=True))
    for at, part in enumerate(parts):
        number = batch.first + at
        result = matched[at] if at in matched else resumed[number]
        if isinstance(result, Matched) and part_values is not None and result.diverse is None:
            results[number] = result
            result = tasks.diversify(settings, part, part_values[at], number, result)
        if isinstance(result, Failed):
            failed.append((number, result))
        else:
            results[number] = result
    if failed:
        return BatchFailed(tuple(failed), _new(results, resumed), names, peak_memory())
    return _done(shared, settings, batch, records, results, resumed, names)


def _new(results: Mapping[int, Matched], resumed: Mapping[int, Matched]) -> dict[int, Matched]:
    return {number: result for number, result in results.items() if result is not resumed.get(number)}


def values_of_parts(
    settings: TaskSettings, batch: Batch, values: np.ndarray | None
) -> list[np.ndarray] | None:
    """Return the values of each partition's records that must be diverse; None if a run's partitions need not be."""
    if settings.diversity is None or values is None:
        return None
    return [values[at] for at in batch.parts]


def _done(
    shared: Shared,
    settings: TaskSettings,
    batch: Batch,
    records: Records,
    results: Mapping[int, Matched],
    resumed: Mapping[int, Matched],
    names: Sequence[Sequence[str]],
) -> BatchDone | BatchFailed:
    """Verify and measure a batch in which all partitions have a result."""
    matched = list(results.values())
    outcomes = [result.last for result in matched]
    whole = joined(batch, records, outcomes)
    start = time.perf_counter()
    tallies, failed = _verified(settings, batch, records, whole, outcomes)
    if failed:
        broken = dict(failed)
        sound = {number: result for number, result in results.items() if number not in broken}
        return BatchFailed(failed, _new(sound, resumed), names, peak_memory())
    verified = time.perf_counter()
    measured = tasks.measure(records, whole)
    summary = summary_of(shared.measures[settings.run], records, whole, batch.parts)
    costs = record_costs(whole.generalization, "ncp")
    steps = {"match": sum(result.seconds for p, result in results.items() if p not in resumed)}
    if settings.diversity is not None:
        steps["diversify"] = sum(
            result.diversify_seconds
            for p, result in results.items()
            if p not in resumed or resumed[p].diverse is None
        )
    steps |= {"verify": verified - start, "measure": time.perf_counter() - verified}
    return BatchDone(
        np.array([len(at) for at in batch.parts]),
        np.array([result.seconds + result.diversify_seconds for result in matched]),
        np.array([costs[at].mean() for at in batch.parts]),
        steps,
        tallies,
        measured,
        summary,
        _new(results, resumed),
        names,
        sum(p in resumed for p in results),
        peak_memory(),
    )


def _verified(
    settings: TaskSettings, batch: Batch, records: Records, whole: Outcome, outcomes: Sequence[Outcome]
) -> tuple[tuple[Tally, ...], tuple[tuple[int, Failed], ...]]:
    """Return the verifier's findings over a batch's partitions, and the partitions that break the verifier.

    Rows with lists or classes are verified together, which is faster; if that fails, by partitions, to name those that fail.
    """
    if len(batch.left) == 0 and (whole.matches is not None or whole.classes is not None):
        together = tasks.check(settings, records, whole)
        if not isinstance(together, Failed) and all(finding.holds for finding in together):
            return tuple(Tally.of(finding, len(outcomes)) for finding in together), ()
    findings, failed = [], []
    for number, (at, outcome) in enumerate(zip(batch.parts, outcomes, strict=True), batch.first):
        checked = tasks.check(settings, records.take(at), outcome)
        if isinstance(checked, Failed):
            failed.append((number, checked))
        else:
            findings.append(checked)
    return tallied(findings), tuple(failed)


def joined(batch: Batch, records: Records, outcomes: Sequence[Outcome]) -> Outcome:
    """Return the outcomes of a batch's partitions as one, positions in the batch; rows in no partition are suppressed."""
    return gathered(records.domains, outcomes, batch.parts, records.n)


def summary_of(
    ready: MeasureRequest, records: Records, whole: Outcome, partitions: Sequence[np.ndarray] | None = None
) -> Summary:
    """Return a summary of generalized records.

    Parameters
    ----------
    ready : MeasureRequest
        The measures.
    records : Records
        m originals.
    whole : Outcome
        Their m generalized records, or an object with the same attributes.
    partitions : sequence of numpy.ndarray, optional
        Which of them each partition has.
    """
    measures = utility.partial(ready, records, whole, partitions)
    by_class = {name: measures.pop(name) for name in utility.measures_by_class() if name in measures}
    # 0.29 * 100 is less than 29 in floats
    percents = np.floor(100 * record_costs(whole.generalization, "ncp") + 1e-9).astype(np.int64)
    return Summary(
        measures,
        by_class,
        _size_counts(whole),
        np.bincount(percents),
        int(whole.suppressed.sum()),
        "matches" if whole.matches is not None else "classes" if whole.classes is not None else "none",
    )


def _size_counts(whole: Outcome) -> np.ndarray:
    if whole.matches is not None:
        return np.bincount((whole.matches >= 0).sum(axis=1))
    if whole.classes is not None:
        labels = whole.classes[~whole.suppressed]
        return np.bincount(np.bincount(labels)[labels]) if len(labels) else np.zeros(1, np.int64)
    return np.zeros(0, np.int64)


def added(measured: Sequence[Measured]) -> Measured:
    """Return information loss of several partitions, or batches, as one."""

    def over(reduce: np.ufunc, name: str) -> np.ndarray:
        return np.asarray(reduce.reduce([getattr(part, name) for part in measured], axis=0))

    return Measured(
        records=sum(part.records for part in measured),
        lowest=over(np.minimum, "lowest"),
        highest=over(np.maximum, "highest"),
        members=over(np.bitwise_or, "members"),
        **{name: over(np.add, name) for name in ("costs", "hidden", "blank", "single", "visible")},
    )
