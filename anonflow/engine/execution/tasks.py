"""The steps for one partition: functions of a module, so that any worker process can import them."""

from __future__ import annotations

import time
import traceback
from collections.abc import Callable, Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass, field, replace
from functools import lru_cache, partial
from typing import Any

import numpy as np

from anonflow import loss
from anonflow.algorithms.anonymize import within
from anonflow.algorithms.diversity.diversify import diverse_part
from anonflow.algorithms.diversity.within_partition import Diverse, Request
from anonflow.algorithms.method import Outcome, Progress
from anonflow.algorithms.registry import algorithm_named
from anonflow.algorithms.solve import partition_generator, solve, solve_together
from anonflow.algorithms.soundness import check_outcome
from anonflow.candidate_lists import Candidates
from anonflow.criteria.evidence import Subject
from anonflow.criteria.registry import CRITERIA
from anonflow.criteria.request import CriterionRequest, read_criteria
from anonflow.criteria.verification import Finding
from anonflow.criteria.verify import verify
from anonflow.errors import AnonflowError, unforeseen
from anonflow.partition import unbounded
from anonflow.table import Column, Domain, Records, Schema, Table

OF_THE_WHOLE = tuple(name for name, criterion in CRITERIA.items() if not criterion.adds_up)
"""Criteria that are checked on the whole release, not partition by partition."""


def without_draw(
    criteria: Any, guarantee: str, matches: bool
) -> tuple[list[CriterionRequest], tuple[str, ...]]:
    """Return the criteria that can be checked without a draw, and the names of the others."""
    requests = read_criteria(criteria, guarantee)
    checked = [request for request in requests if not request.declared.needs_draw(matches)]
    return checked, tuple(dict.fromkeys(request.name for request in requests if request not in checked))


@dataclass(frozen=True)
class TaskSettings:
    """The settings of a run for each of its partitions.

    Attributes
    ----------
    run : int
    algorithm : str
    k : int
    loss : str
    options : mapping
    criteria : tuple
    entropy : int
        The run's seed; a secret.
    boundaries : bool
        Whether the method works inside the schema's boundaries.
    watch : callable, optional
        Called between the rounds of a method with the run, the partition, how many records it has, and how far it is. Only
        where tasks are threads of this process. If it raises, the partition ends.
    diversity : Request or None
        What the partitions must have besides; None where nothing is asked for, or the whole table is made diverse at once.
    """

    run: int
    algorithm: str
    k: int
    loss: str
    options: Mapping[str, Any]
    criteria: tuple[Any, ...]
    entropy: int = field(repr=False)
    boundaries: bool = True
    watch: Callable[[int, int, int, Progress], None] | None = field(default=None, repr=False, compare=False)
    diversity: Request | None = None


@dataclass(frozen=True)
class Failed:
    """A partition without a result, with the reason; its message has no cell's value.

    Attributes
    ----------
    error : AnonflowError or None
        The anonflow error; None for a bug.
    message : str
    trace : str
        The place of a bug, without its message: it is sent to the client, and a notebook shows it under the error.
    """

    error: AnonflowError | None
    message: str
    trace: str = ""


@dataclass(frozen=True, eq=False)
class Matched:
    """A method's outcome, and its diverse outcome where that is asked for.

    Attributes
    ----------
    outcome : Outcome
        Of the method.
    seconds : float
        Of the method.
    diverse : Diverse or None
    diversify_seconds : float
        What the step diversify took.
    """

    outcome: Outcome
    seconds: float
    diverse: Diverse | None = None
    diversify_seconds: float = 0.0

    @property
    def last(self) -> Outcome:
        """The outcome after all steps; its facts are also those of the method."""
        if self.diverse is None:
            return self.outcome
        outcome = self.diverse.outcome
        return replace(outcome, facts={**self.outcome.facts, **outcome.facts})


@dataclass(frozen=True, eq=False)
class Measured:
    """Information loss of some records, added up.

    Attributes
    ----------
    records : int
    costs : numpy.ndarray, shape (q,), float64
        Sum of the records' NCP on each QI.
    hidden : numpy.ndarray, shape (q,), int64
        How many cells are published as ``*``.
    blank, single : numpy.ndarray, shape (q,), int64
        How many cells of the QI's column are published as ``*``, and how many as one value: all positions of a code, or a
        number and its codes, are one cell.
    visible : numpy.ndarray, shape (q,), float64
        Sum of the NCP of the cells that are not published as ``*``.
    lowest, highest : numpy.ndarray, shape (r,), int64
        First and last code that they cover, of each QI of shape range; the domain's size and -1 where there is none.
    members : numpy.ndarray, shape (w,), uint64
        Codes that they have, of each QI of shape set: words as in a generalization.
    """

    records: int
    costs: np.ndarray
    hidden: np.ndarray
    blank: np.ndarray
    single: np.ndarray
    visible: np.ndarray
    lowest: np.ndarray
    highest: np.ndarray
    members: np.ndarray


def ready() -> bool:
    """Return whether a worker can run tasks: that this returns."""
    return True


def match(settings: TaskSettings, records: Records, partition: int) -> Matched | Failed:
    """Run the method on a partition.

    Notes
    -----
    What goes wrong is the result.
    """
    start = time.perf_counter()
    try:
        method = algorithm_named(settings.algorithm).under(settings.options)
        part = within(records, method, settings.boundaries)
        outcome = solve(
            method,
            part,
            settings.k,
            loss.measure_named(settings.loss),
            partition_generator(settings.entropy, partition, part),
            settings.options,
            None if settings.watch is None else partial(settings.watch, settings.run, partition, records.n),
            # without diversity, `check` looks at it, with its whole batch
            check=settings.diversity is not None,
        )
    except AnonflowError as error:
        return Failed(error, error.message)
    except Exception as error:  # any bug: its message may contain a cell
        return bug(error)
    return Matched(outcome, time.perf_counter() - start)


def match_together(
    settings: TaskSettings, parts: Sequence[Records], partitions: Sequence[int]
) -> list[Matched | Failed]:
    """Run the method on several partitions: at once where it has a quick way, else one after the other.

    Parameters
    ----------
    settings : TaskSettings
    parts : sequence of Records
        Those of each partition.
    partitions : sequence of int
        Their numbers.

    Returns
    -------
    list of Matched or Failed
        Of partitions that are solved at once, each has a share of the seconds.
    """
    if len(parts) > 1 and settings.diversity is None:
        start = time.perf_counter()
        with suppress(Exception):  # one after the other, it shows whose error it is
            method = algorithm_named(settings.algorithm).under(settings.options)
            together = within(Records.joined(parts), method, settings.boundaries)
            sizes = [part.n for part in parts]
            measure = loss.measure_named(settings.loss)
            outcomes = solve_together(method, together, sizes, settings.k, measure, settings.options)
            if outcomes is not None:
                of_record = (time.perf_counter() - start) / together.n
                return [
                    Matched(outcome, of_record * size) for outcome, size in zip(outcomes, sizes, strict=True)
                ]
    return [match(settings, part, number) for part, number in zip(parts, partitions, strict=True)]


def diversify(
    settings: TaskSettings, records: Records, values: np.ndarray, partition: int, matched: Matched
) -> Matched | Failed:
    """Make a method's outcome of a partition diverse.

    Notes
    -----
    What goes wrong is the result.
    """
    start = time.perf_counter()
    assert settings.diversity is not None
    seen = records if settings.boundaries else unbounded(records)
    try:
        diverse = diverse_part(seen, partition, matched.outcome, values, settings.diversity, settings.entropy)
    except AnonflowError as error:
        return Failed(error, error.message)
    except Exception as error:  # any bug: its message may contain a cell
        return bug(error)
    return replace(matched, diverse=diverse, diversify_seconds=time.perf_counter() - start)


def check(settings: TaskSettings, records: Records, outcome: Outcome) -> tuple[Finding, ...] | Failed:
    """Verify a partition, or several as one: what holds in every partition holds in the table.

    A method's own outcome is checked for bugs as well; one that was made diverse was checked before.

    Notes
    -----
    What goes wrong is the result.
    """
    # a method may report that its options change its promise
    promised = algorithm_named(settings.algorithm).guarantee
    guarantee = str(outcome.facts.get("guarantee") or promised)
    criteria = read_criteria(settings.criteria, guarantee)
    local = [criterion for criterion in criteria if criterion.name not in OF_THE_WHOLE]
    try:
        if settings.diversity is None:
            method = algorithm_named(settings.algorithm).under(settings.options)
            part = within(records, method, settings.boundaries).at_floor()
            measure = loss.measure_named(settings.loss)
            check_outcome(method, part, settings.k, measure, settings.options, outcome)
        if not local:
            return ()
        subject = Subject(
            records.n,
            outcome.generalization.with_suppressed(outcome.suppressed),
            None,
            outcome.suppressed,
            None if outcome.matches is None else Candidates.of_claim(outcome.matches),
            settings.k,
            guarantee,
        )
        return verify(_bare_table(records), subject, local, settings.k).findings
    except AnonflowError as error:
        return Failed(error, error.message)
    except Exception as error:  # any bug: its message may contain a cell
        return bug(error)


def measure(records: Records, outcome: Outcome) -> Measured:
    """Add up the information loss of some records; their outcome is a partition's, or that of several."""
    generalization = outcome.generalization.with_suppressed(outcome.suppressed)
    costs = loss.cell_costs(generalization, "ncp")
    aggregated = generalization.aggregated(records, outcome.classes, outcome.suppressed)
    hidden = aggregated.hidden() | outcome.suppressed
    single = np.zeros(hidden.shape, bool)
    layout = generalization.layout
    for t, a in enumerate(layout.ranges):
        single[a] = generalization.lo[t] >= generalization.hi[t]  # beside a code alone, the run is empty
    counts = generalization.counts()
    for t, a in enumerate(layout.sets):
        single[a] = counts[t] == 1
    lowest, highest = np.empty((2, len(layout.ranges)), np.int64)
    members = np.zeros(len(generalization.bits), np.uint64)
    for t, a in enumerate(layout.ranges):
        seen = ~hidden[a] & (generalization.lo[t] <= generalization.hi[t])
        lowest[t] = generalization.lo[t][seen].min(initial=records.domains[a].size)
        highest[t] = generalization.hi[t][seen].max(initial=-1)
    for a, words in layout.words.items():
        members[words] = np.bitwise_or.reduce(generalization.bits[words][:, ~hidden[a]], axis=1)
    return Measured(
        records.n,
        costs.sum(axis=1),
        hidden.sum(axis=1),
        _whole_cells(records.domains, hidden).sum(axis=1),
        _whole_cells(records.domains, single & ~hidden).sum(axis=1),
        np.where(hidden, 0.0, costs).sum(axis=1),
        lowest,
        highest,
        members,
    )


def _whole_cells(domains: Sequence[Domain], masks: np.ndarray) -> np.ndarray:
    """Return which cells of each QI's column have a property, shape (q, n): those that have it on all QIs of the column."""
    cells = masks.copy()
    for column in {domain.column for domain in domains}:
        at = [a for a, domain in enumerate(domains) if domain.column == column]
        cells[at] = masks[at].all(axis=0)
    return cells


def _bare_table(records: Records) -> Table:
    """Return a table of quasi-identifiers only: all that a partition's task has."""
    return Table.coded(records, _bare_schema(tuple(domain.column for domain in records.domains)), (), {})


@lru_cache(maxsize=1)
def _bare_schema(columns: tuple[str, ...]) -> Schema:
    return Schema({name: Column(name, "quasi-identifier") for name in columns})


def given_up(alone: bool) -> Failed:
    """Return what is known of a task whose workers ended one after another.

    Parameters
    ----------
    alone : bool
        Whether they ended also while nothing else was worked on; if not, that was not tried: others had ended them.
    """
    if alone:
        why = "ended every worker that worked on it, probably for lack of memory"
    else:
        why = "was on workers that ended, and is not tried again, because other partitions ended workers even alone"
    return Failed(AnonflowError(f"{why}; {_SMALLER}"), why)


_SMALLER = "use smaller partitions or pieces, fewer workers, or workers with more memory"


def bug(error: Exception) -> Failed:
    """Return type and place of an unexpected error; its own message may contain a value, so it is not sent."""
    if isinstance(error, MemoryError):
        why = "there is not enough memory"
        return Failed(AnonflowError(f"{why}; {_SMALLER}"), why)
    places = "".join(traceback.format_tb(error.__traceback__))
    return Failed(
        None, unforeseen(error), f"{places}{type(error).__name__} (its message may contain a value)"
    )
