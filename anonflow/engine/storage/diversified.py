"""The step diversify of a table in pieces: batch by batch, with the bits that it has in memory.

Figures of the whole table are summed afterwards: refused throwaway draws, and values of suppressed records.
:func:`diversified` is the client's part; the functions before it are its tasks.
"""

from __future__ import annotations

import hashlib
import json
import time
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, Any

import numpy as np

from anonflow.algorithms.anonymize import solve
from anonflow.algorithms.diversity.diversify import (
    blind_rows,
    check_blind,
    compared,
    diversity_rng,
    promise_in_words,
    refuse_beyond,
    refuse_suppressed,
    suppressed_in_words,
)
from anonflow.algorithms.diversity.refusal import refusal_at_most
from anonflow.algorithms.diversity.target import Targets, sensitive_column, target_of_values
from anonflow.algorithms.diversity.within_partition import (
    Diverse,
    Request,
    diverse_partition,
)
from anonflow.algorithms.method import Outcome, Partition
from anonflow.algorithms.registry import algorithm_named
from anonflow.engine.context import Session
from anonflow.engine.execution.batches import Batch, BatchDone, BatchFailed, Shared, batches_of, done_of
from anonflow.engine.execution.plan import RunPlan, settings_of
from anonflow.engine.execution.schedulers import Call, Executor, raised
from anonflow.engine.execution.tasks import Failed, Matched, TaskSettings
from anonflow.engine.execution.totals import Totals
from anonflow.engine.storage.arrays import OrderedRows, OtherColumns
from anonflow.engine.storage.scan import ValueCounts
from anonflow.errors import AnonflowError, InfeasibleError
from anonflow.generalization import Generalization
from anonflow.loss import measure_named
from anonflow.partition import limited, unbounded
from anonflow.system import peak_memory
from anonflow.table import Domain, Records, Schema
from anonflow.table.files.read import exact_frame
from anonflow.utility.violations import beyond_cells

if TYPE_CHECKING:
    from anonflow.engine.flows.spec import DiversifySpec
    from anonflow.engine.storage.batch_files import BatchFiles, InFiles

__all__ = [
    "DiverseRound",
    "DiversityContext",
    "context_of",
    "diverse_batch",
    "diversified",
    "finish_batch",
    "target_of_table",
]


@dataclass(frozen=True, eq=False)
class DiversityContext:
    """The data that every task of the step needs.

    Attributes
    ----------
    domains : tuple of Domain
    column : str
    values : ValueCounts
        Of the column.
    places : numpy.ndarray, shape (V,), int64
        The code of each value.
    targets : Targets
    n, k, rows : int
        Records; what the method promises; of the blind way, how many rows list everybody.
    risk : float
    way : str
    others : OtherColumns
    source, results : InFiles
        Where the method's results are, and beside them the diverse ones of each partition, for a run that takes this one
        up; and where the table's are put in the end.
    """

    domains: tuple[Domain, ...]
    column: str
    values: ValueCounts
    places: np.ndarray
    targets: Targets
    n: int
    k: int
    rows: int
    risk: float
    way: str
    others: OtherColumns
    source: InFiles
    results: InFiles

    def request(self, settings: TaskSettings) -> Request:
        """Return the request for every partition."""
        method = algorithm_named(settings.algorithm)
        options = {name: value for name, value in settings.options.items() if name in method.options}
        loss = measure_named(settings.loss)

        def rematch(part: Partition, k: int) -> Outcome:
            return solve(method, part.records, k, loss, part.rng, options, sensitive=part.sensitive)

        return Request(
            self.targets,
            self.n,
            self.k,
            self.risk,
            self.way,
            self.rows,
            rematch,
            method.hides,
            method.is_diverse(options),
        )

    def round(self, values: np.ndarray) -> InFiles:
        """Return the place of the diverse results of a batch whose records have these values.

        The name depends on everything besides the method's results: another request or other values give another name.
        """
        calls = [
            self.column,
            self.n,
            self.k,
            self.rows,
            self.risk,
            self.way,
            repr(self.targets),
        ]
        key = hashlib.blake2b(json.dumps(calls).encode(), key=self.source.key)
        for each in (
            self.places,
            *(target.overall for target in self.targets.each),
            np.ascontiguousarray(values),
        ):
            key.update(f"{each.dtype} {each.shape}".encode() + each.tobytes())
        return replace(self.source, key=key.digest()[:32])


@dataclass(frozen=True, eq=False)
class DiverseRound:
    """The summary of a batch that the client gets.

    Attributes
    ----------
    refused : numpy.ndarray, shape (draws,), bool
        Throwaway draws in which somebody's values are not diverse.
    open : bool
        Whether a draw changes what somebody's rows show.
    hidden : numpy.ndarray, shape (V,), int64
        How often the suppressed records have each value.
    steps : int
        Classes united or records that became classes.
    memory : int
        The most bytes that the worker has used so far.
    """

    refused: np.ndarray
    open: bool
    hidden: np.ndarray
    steps: int
    memory: int


class _Parts:
    """A batch's partitions, with their records and values."""

    def __init__(
        self, context: DiversityContext, settings: TaskSettings, batch: Batch, rows: OrderedRows
    ) -> None:
        self.context, self.settings, self.batch = context, settings, batch
        self.positions, self.whole = rows.load(context.domains)
        cells = exact_frame(context.others.take([context.column], self.positions)).iloc[:, 0]
        self.values = context.places[context.values.codes(cells)][:, None]
        self.records = [self.whole.take(at) for at in batch.parts]

    def open(self, place: InFiles) -> BatchFiles:
        """Return the batch's results in a place."""
        return place.open(self.settings, self.batch, self.context.domains, self.records)

    def round(self) -> BatchFiles:
        """Return its diverse results."""
        return self.open(self.context.round(self.values))

    def partition(self, number: int, rng: np.random.Generator) -> Partition:
        """Return one partition in the step's form."""
        own = self.records[number - self.batch.first]
        free = own if self.settings.boundaries else unbounded(own)
        return Partition(free, measure_named(self.settings.loss), rng)

    def results(self, files: BatchFiles) -> dict[int, Matched]:
        """Return the results of all partitions.

        Raises
        ------
        AnonflowError
            If some are gone.
        """
        if len(files.resumed) < len(self.records):
            raise AnonflowError("results of this run are gone or damaged; run the flow again")
        return {p: files.resumed[p] for p in sorted(files.resumed)}

    def outcome(self, part: Partition, result: Outcome) -> Outcome:
        """Return the method's outcome of a partition in the step's form."""
        plain = Generalization(
            part.records.domains,
            result.generalization.lo,
            result.generalization.hi,
            result.generalization.bits,
        ).with_suppressed(result.suppressed)
        if result.matches is None:
            return Outcome(plain, classes=result.classes, suppressed=result.suppressed)
        width = max(1, int((result.matches >= 0).sum(axis=1).max(initial=1)))
        return Outcome(
            plain, matches=result.matches[:, :width].astype(np.int32), suppressed=result.suppressed
        )


def diverse_batch(
    context: DiversityContext,
    shared: Shared,
    settings: TaskSettings,
    batch: Batch,
    rows: OrderedRows,
) -> DiverseRound:
    """Return the step over a batch's partitions.

    Parameters
    ----------
    context : DiversityContext
    shared : Shared
    settings : TaskSettings
    batch : Batch
    rows : OrderedRows

    Raises
    ------
    InfeasibleError
        If the blind way needs more rows than a partition has records.
    AnonflowError, OSError
        If files are gone, or cannot be written.
    """
    parts = _Parts(context, settings, batch, rows)
    files = parts.round()
    if len(files.resumed) < len(parts.records):
        files.keep(_next_results(parts))
        files = parts.round()
    each = [_diverse_of(result.outcome) for result in parts.results(files).values()]
    hidden = np.bincount(
        parts.values[_suppressed(batch, each)].ravel(), minlength=context.targets.size
    ).astype(np.int64)
    return DiverseRound(
        np.logical_or.reduce([part.refused for part in each]),
        any(part.open for part in each),
        hidden,
        sum(part.steps for part in each),
        peak_memory(),
    )


def _next_results(parts: _Parts) -> dict[int, Matched]:
    """Return a batch's diverse results, with the data that the whole table's figures need."""
    context, settings, batch = parts.context, parts.settings, parts.batch
    request = context.request(settings)
    results = {}
    for number, result in parts.results(parts.open(context.source)).items():
        begin = time.perf_counter()
        p = number - batch.first
        rng = diversity_rng(settings.entropy, number, parts.records[p])
        part = parts.partition(number, rng)
        values = parts.values[batch.parts[p]]
        outcome = parts.outcome(part, result.outcome)
        diverse = diverse_partition(part, outcome, values, request)
        seconds = result.seconds + time.perf_counter() - begin
        results[number] = Matched(_with_round(diverse), seconds)
    return results


_ROUND = "diversify-round"
"""The fact of an outcome with the whole table's figures, for a run that resumes this one."""


def _with_round(diverse: Diverse) -> Outcome:
    left = {
        "draws": len(diverse.refused),
        "refused": np.flatnonzero(diverse.refused).tolist(),
        "open": int(diverse.open),
        "steps": int(diverse.steps),
    }
    return replace(diverse.outcome, facts={**diverse.outcome.facts, _ROUND: left})


def _diverse_of(outcome: Outcome) -> Diverse:
    left = outcome.facts[_ROUND]
    refused = np.zeros(left["draws"], bool)
    refused[left["refused"]] = True
    return Diverse(outcome, refused, left["open"], left["steps"])


def _suppressed(batch: Batch, results: Sequence[Diverse]) -> np.ndarray:
    """Return which of the batch's rows are suppressed."""
    suppressed = np.zeros(batch.stop - batch.start, bool)
    for at, result in zip(batch.parts, results, strict=True):
        suppressed[at] = result.outcome.suppressed
    suppressed[batch.left] = True
    return suppressed


def finish_batch(
    context: DiversityContext,
    shared: Shared,
    settings: TaskSettings,
    batch: Batch,
    rows: OrderedRows,
) -> tuple[BatchDone, int]:
    """Put a batch's diverse results in their place, and return the summary of :func:`anonflow.engine.execution.batches.solve_batch`.

    Parameters
    ----------
    context : DiversityContext
    shared : Shared
    settings : TaskSettings
    batch : Batch
    rows : OrderedRows

    Returns
    -------
    done : BatchDone
    beyond : int
        Records that are generalized beyond ``max-width`` or ``max-set``.

    Raises
    ------
    AnonflowError, OSError
        If files are gone, or cannot be written.
    """
    parts = _Parts(context, settings, batch, rows)
    names = limited(parts.whole) if settings.boundaries else ()
    results: dict[int, Matched] = {}
    beyond = 0
    for number, result in parts.results(parts.round()).items():
        outcome, own = result.outcome, parts.records[number - batch.first]
        facts = {name: fact for name, fact in outcome.facts.items() if name != _ROUND}
        if names:
            over = beyond_cells(own, outcome.generalization, outcome.suppressed)[list(names)]
            beyond += int(over.any(axis=0).sum())
        results[number] = replace(result, outcome=replace(outcome, facts=facts))
    place = parts.open(context.results)
    place.write(results)
    done = done_of(shared, settings, batch, parts.positions, parts.whole, results, place, keep=False)
    if isinstance(done, BatchFailed):
        ((_, failed), *_) = done.failed
        raise failed.error or AnonflowError(failed.message)
    return done, beyond


def target_of_table(
    spec: DiversifySpec,
    schema: Schema,
    others: Sequence[str],
    values: Mapping[str, ValueCounts],
    spare: int,
) -> tuple[str, np.ndarray, Targets]:
    """Return the requested diversity, with the whole table's values.

    Parameters
    ----------
    spec : DiversifySpec
    schema : Schema
    others : sequence of str
        The published columns that are no quasi-identifiers.
    values : mapping
        Of the columns whose diversity is asked for.
    spare : int
        Records that a run may suppress without a class of their own.

    Returns
    -------
    column : str
    places : numpy.ndarray, shape (V,), int64
        The code of each value.
    targets : Targets

    Raises
    ------
    ParameterError
        If the column cannot be used.
    InfeasibleError
        If the whole table has less diversity; with the largest feasible value.
    DataError, HierarchyError
        As :func:`~anonflow.algorithms.diversity.target.target_of_values`.
    """
    sensitive = tuple(name for name in others if schema[name].role == "sensitive")
    column = sensitive_column(spec.column, sensitive, tuple(others))
    of_column = values[column]
    target, places = target_of_values(
        spec.criterion, spec.needed, schema, column, of_column.values, of_column.counts
    )
    target.refuse(of_column.counts[np.argsort(places)], column, spare)
    return column, places, Targets((target,))


def diversified(
    session: Session,
    executor: Executor,
    run_plan: RunPlan,
    totals: Totals,
    shared: Shared,
    context: DiversityContext,
) -> tuple[Totals, list[int], tuple[str, ...]]:
    """Make a run's results diverse.

    Parameters
    ----------
    session : Session
    executor : Executor
    run_plan : RunPlan
    totals : Totals
        Of the method's results.
    shared : Shared
    context : DiversityContext

    Returns
    -------
    totals : Totals
        Of the diverse results.
    hidden : list of int
        Batches with suppressed records.
    said : tuple of str
        Its cost and its promise.

    Raises
    ------
    InfeasibleError
        If suppressed records are not diverse, limits would be broken, or the blind way refuses too many draws.
    AnonflowError
        If results are gone, or cannot be put aside.
    """
    settings = settings_of(session.flow, run_plan.run, session.seed)
    request = context.request(settings)

    def each_batch(function: Any) -> Iterator[tuple[Batch, Any]]:
        calls = (
            Call(
                function,
                (settings, batch, run_plan.order.rows(batch.start, batch.stop)),
                f"diversify-{run_plan.run.number}-{batch.number}",
                batch,
            )
            for batch in batches_of(run_plan.cuts, context.n)
        )
        for call, result in executor.stream(calls, context, shared):
            if isinstance(result, Failed):
                raise raised(result, f"diversify, {call.key} of run {run_plan.run.name!r}")
            yield call.key, result

    by_number = {batch.number: result for batch, result in each_batch(diverse_batch)}
    done = [by_number[number] for number in sorted(by_number)]
    for each in done:
        session.used(each.memory)
    refused = np.logical_or.reduce([each.refused for each in done])
    moves = any(each.open for each in done)
    bound = refusal_at_most(int(refused.sum()), len(refused)) if moves or refused.any() else 0.0
    if context.way == "blind":
        check_blind(refused, context.risk, context.rows)
    hidden = np.sum([each.hidden for each in done], axis=0)
    refuse_suppressed(hidden, context.k, context.targets)
    suppressed = int(hidden.sum())
    if suppressed == context.n:
        raise InfeasibleError(
            "every record would have to be suppressed; ask for less diversity, use larger partitions, "
            "or allow wider generalizations",
            subject="diversify",
        )
    again = Totals(run_plan.run, totals.ready)
    again.follow(totals)
    beyond, having = 0, []

    for batch, (text, over) in each_batch(finish_batch):
        again.add(batch, text)
        session.used(text.memory)
        beyond += over
        if text.put:
            having.append(batch.number)
    nobody = Records(context.domains, np.empty((0, len(context.domains)), np.int32))
    refuse_beyond(beyond, [context.domains[a].column for a in limited(nobody)])
    weights = np.array([domain.weight for domain in context.domains])
    first, own = (
        float(each.measured.costs @ weights / weights.sum() / context.n) for each in (totals, again)
    )
    sentence = compared(first, own, totals.kind == "matches" and context.way != "blind")
    sentence += suppressed_in_words(totals.suppressed, suppressed, totals.partitions)
    promise = promise_in_words(request, totals.kind == "matches", moves, bound)
    return again, sorted(having), (sentence, promise)


def context_of(
    spec: DiversifySpec,
    target: tuple[str, np.ndarray, Targets],
    values: ValueCounts,
    domains: tuple[Domain, ...],
    n: int,
    k: int,
    *,
    others: OtherColumns,
    source: InFiles,
    results: InFiles,
) -> DiversityContext:
    """Return the data that the tasks of a run need.

    Raises
    ------
    ParameterError, InfeasibleError
        If the blind way is impossible.
    """
    column, places, targets = target
    rows = blind_rows(targets, k, n, float(spec.risk)) if spec.way == "blind" else k
    return DiversityContext(
        domains, column, values, places, targets, n, k, rows, float(spec.risk), spec.way,
        others, source, results,
    )  # fmt: skip
