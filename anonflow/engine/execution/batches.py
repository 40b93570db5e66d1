"""Units of partitions: matched, verified, measured and kept by one task, told to the client as sums."""

from __future__ import annotations

import hashlib
import os
from collections.abc import Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import numpy as np

from anonflow import utility
from anonflow.algorithms.assembly import gathered_facts
from anonflow.algorithms.method import Outcome
from anonflow.engine.execution import tasks
from anonflow.engine.execution.combine import spread_of
from anonflow.engine.execution.tasks import Failed, Matched, Measured, PartitionResult, Settings
from anonflow.engine.large.classes import deal_classes
from anonflow.engine.large.sorting import POSITION, Ordered, codes_of
from anonflow.engine.owner.checkpoints import Checkpoints, domains_digest
from anonflow.errors import AnonflowError
from anonflow.generalization import Generalization
from anonflow.table import Domain, Records
from anonflow.utility.measures import Asked

__all__ = [
    "Joined",
    "Keep",
    "PartitionTold",
    "Shared",
    "Unit",
    "UnitDone",
    "added",
    "join",
    "results_of",
    "save",
    "solve_unit",
    "units_of",
]

ROWS = 1 << 16
"""Rows of a unit, at least, where there are as many."""


@dataclass(frozen=True)
class Unit:
    """Consecutive partitions of a run.

    Attributes
    ----------
    number : int
    first : int
        Number of its first partition.
    bounds : tuple of (int, int)
        Places in the order where each partition starts and ends.
    """

    number: int
    first: int
    bounds: tuple[tuple[int, int], ...]


def units_of(cuts: Sequence[slice], rows: int | None = None) -> list[Unit]:
    """Partitions as units of about as many rows; a partition is never divided."""
    units: list[Unit] = []
    rows = ROWS if rows is None else rows
    waiting: list[tuple[int, int]] = []
    for number, cut in enumerate(cuts):
        waiting.append((cut.start, cut.stop))
        if cut.stop - waiting[0][0] >= rows or number == len(cuts) - 1:
            units.append(Unit(len(units), number + 1 - len(waiting), tuple(waiting)))
            waiting = []
    return units


@dataclass(frozen=True, eq=False)
class Shared:
    """What all tasks of a table need.

    Attributes
    ----------
    domains : tuple of Domain
    ready : dict
        Run -> its measures.
    shelves : int
        That classes are dealt to, where they are measured.
    """

    domains: tuple[Domain, ...]
    ready: dict[int, Asked]
    shelves: int


@dataclass(frozen=True)
class Keep:
    """Where results are kept and by which secret they are named.

    Attributes
    ----------
    folder : str
    key : bytes
    fresh : bool
        Whether what is there is not used.
    """

    folder: str
    key: bytes = field(repr=False)
    fresh: bool = False


@dataclass(frozen=True)
class PartitionTold:
    """What the event of a partition says."""

    records: int
    seconds: float
    loss: float


@dataclass(frozen=True, eq=False)
class UnitDone:
    """What the client is told of a unit: sums, never a record.

    Attributes
    ----------
    file : str
        Where the results are kept.
    partitions : tuple of PartitionTold
    findings : list of tuple
        Of each partition.
    measured : Measured
        Added up.
    measures : dict
        What the unit adds to each measure, but for those of classes.
    sizes, spread : numpy.ndarray, int64
        Records by number of matches, or by size of their class; and by percent lost. Suppressed records have no size
        where there are classes.
    suppressed : int
    hidden : str or None
        The file with the positions of suppressed records.
    facts : dict
    kind : {"matches", "classes", "none"}
    found : bool
        Whether an earlier run had left it.
    memory : int
        The most bytes that the worker has used so far.
    """

    file: str
    partitions: tuple[PartitionTold, ...]
    findings: list[tuple[Any, ...]]
    measured: Measured
    measures: dict[str, list[Any]]
    sizes: np.ndarray
    spread: np.ndarray
    suppressed: int
    hidden: str | None
    facts: dict[str, Any]
    kind: str
    found: bool
    memory: int


@dataclass(frozen=True, eq=False)
class Joined:
    """The outcomes of a unit's partitions, one after the other: positions are those in the unit.

    Attributes
    ----------
    generalization : Generalization
        m generalized records; suppressed ones cover everything.
    matches : numpy.ndarray, shape (m, w), int32, or None
    classes : numpy.ndarray, shape (m,), int64, or None
        Labels in the order of the partitions.
    suppressed : numpy.ndarray, shape (m,), bool
    """

    generalization: Generalization
    matches: np.ndarray | None
    classes: np.ndarray | None
    suppressed: np.ndarray


def join(outcomes: Sequence[Outcome]) -> Joined:
    """The outcomes of consecutive partitions as one."""
    made = [outcome.generalization for outcome in outcomes]
    suppressed = np.concatenate([outcome.suppressed for outcome in outcomes])
    starts = np.cumsum([0, *(one.n for one in made)])
    matches = classes = None
    parts = [outcome.matches for outcome in outcomes if outcome.matches is not None]
    if len(parts) == len(outcomes):
        matches = np.full((starts[-1], max(part.shape[1] for part in parts)), -1, np.int32)
        for start, part in zip(starts, parts, strict=False):
            matches[start : start + len(part), : part.shape[1]] = np.where(part < 0, -1, part + start)
    labels = [outcome.classes for outcome in outcomes if outcome.classes is not None]
    if len(labels) == len(outcomes):
        used, numbered = 0, []
        for label in labels:
            values, at = np.unique(label, return_inverse=True)
            numbered.append(at + used)
            used += len(values)
        classes = np.concatenate(numbered).astype(np.int64)
    generalization = Generalization(
        made[0].domains,
        np.concatenate([one.lo for one in made], axis=1),
        np.concatenate([one.hi for one in made], axis=1),
        np.concatenate([one.bits for one in made], axis=1),
    ).with_suppressed(suppressed)
    return Joined(generalization, matches, classes, suppressed)


def solve_unit(
    shared: Shared, settings: Settings, ordered: Ordered, unit: Unit, keep: Keep, hidden: str, classes: str
) -> UnitDone | Failed:  # fmt: skip
    """Run the method on a unit's partitions, verify and measure them, and keep the results.

    Parameters
    ----------
    shared : Shared
    settings : Settings
    ordered : Ordered
    unit : Unit
    keep : Keep
    hidden : str
        The file for the positions of suppressed records, if there are any.
    classes : str
        The file for the classes, if measures of classes are asked for.

    Returns
    -------
    UnitDone or Failed
        The failure names the partition.

    Raises
    ------
    AnonflowError, OSError
        If rows cannot be read, or results cannot be kept.
    """
    domains = shared.domains
    rows = ordered.rows(unit.bounds[0][0], unit.bounds[-1][1])
    records = Records(domains, codes_of(rows))
    begin = unit.bounds[0][0]
    parts = [records.take(np.arange(start - begin, stop - begin)) for start, stop in unit.bounds]
    store = Checkpoints(Path(keep.folder), keep.key)
    names = store.names(settings, domains_digest(domains), parts, unit.first)
    file = Path(keep.folder) / f"{_name_of(names)}.npz"
    there = {} if keep.fresh else store.read(file, dict.fromkeys(names, domains))
    results = []
    for at, part in enumerate(parts):
        result = there.get(names[at]) or _solve(settings, part, unit.first + at)
        if isinstance(result.matched, Failed):
            failed = result.matched
            return Failed(failed.error, f"partition {unit.first + at}: {failed.message}", failed.trace)
        results.append(result)
    if len(there) < len(names):
        store.write(file, dict(zip(names, results, strict=True)))
    return _told(
        str(file),
        rows[POSITION].to_numpy(),
        records,
        results,
        shared.ready[settings.run],
        hidden,
        classes,
        shared.shelves,
        bool(there),
    )


def _name_of(names: Sequence[str]) -> str:
    return hashlib.sha256("".join(names).encode()).hexdigest()


def _solve(settings: Settings, part: Records, number: int) -> PartitionResult:
    matched = tasks.match(settings, part, number)
    return tasks.finish(matched, tasks.check(settings, part, matched), tasks.measure(part, matched))


def results_of(file: str, settings: Settings, domains: tuple[Domain, ...], unit: Unit, parts: Sequence[Records],
               keep: Keep) -> list[PartitionResult]:  # fmt: skip
    """The results that were kept of a unit.

    Raises
    ------
    AnonflowError
        If they are gone.
    """
    store = Checkpoints(Path(keep.folder), keep.key)
    names = store.names(settings, domains_digest(domains), parts, unit.first)
    there = store.read(Path(file), dict.fromkeys(names, domains))
    if len(there) < len(set(names)):
        raise AnonflowError(f"{file}: is gone or damaged; run the flow again")
    return [there[name] for name in names]


def _told(
    file: str, positions: np.ndarray, records: Records, results: Sequence[PartitionResult], ready: Asked,
    hidden: str, classes: str, shelves: int, found: bool,
) -> UnitDone:  # fmt: skip
    outcomes = [result.matched.outcome for result in results if isinstance(result.matched, Matched)]
    measured = [result.measured for result in results if result.measured is not None]
    joined = join(outcomes)
    weights = np.array([domain.weight for domain in records.domains])
    told = tuple(
        PartitionTold(
            one.records,
            result.matched.seconds if isinstance(result.matched, Matched) else 0.0,
            float(one.costs @ weights / (one.records * weights.sum())),
        )
        for result, one in zip(results, measured, strict=True)
    )
    count = int(joined.suppressed.sum())
    if count:
        save(hidden, positions=np.sort(positions[joined.suppressed]))
    measures = utility.partial(ready, records, joined)
    own = {name: measures.pop(name) for name in utility.measures_by_class() if name in measures}
    if own:
        deal_classes(own, classes, shelves)
    return UnitDone(
        file,
        told,
        [result.findings for result in results],
        added(measured),
        measures,
        _sizes(joined),
        spread_of(joined.generalization),
        count,
        hidden if count else None,
        gathered_facts([outcome.facts for outcome in outcomes]),
        "matches" if joined.matches is not None else "classes" if joined.classes is not None else "none",
        found,
        tasks.peak_memory(),
    )


def added(measured: Sequence[Measured]) -> Measured:
    """Information loss of several partitions, or units, as one."""
    return Measured(
        sum(one.records for one in measured),
        np.sum([one.costs for one in measured], axis=0),
        np.sum([one.exact for one in measured], axis=0),
        np.sum([one.whole for one in measured], axis=0),
    )


def _sizes(joined: Joined) -> np.ndarray:
    if joined.matches is not None:
        return np.bincount((joined.matches >= 0).sum(axis=1))
    if joined.classes is not None:
        kept = joined.classes[~joined.suppressed]
        return np.bincount(np.bincount(kept)[kept]) if len(kept) else np.zeros(1, np.int64)
    return np.zeros(0, np.int64)


def save(path: str, **arrays: np.ndarray) -> None:
    """Put arrays aside, readable by the owner only.

    Raises
    ------
    OSError
        If they cannot be written.
    """
    with os.fdopen(os.open(path, os.O_WRONLY | os.O_CREAT | os.O_TRUNC, 0o600), "wb") as stream:
        np.savez(stream, **arrays)  # type: ignore[arg-type]
