"""Diversity of one partition's outcome: classes united, graphs closed into complete components, or more rows for all."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, replace

import numpy as np
from scipy.sparse import csr_array
from scipy.sparse.csgraph import connected_components

from anonflow.algorithms.classes.k_member import k_member_labels
from anonflow.algorithms.concealment.expansion import unloaded
from anonflow.algorithms.diversity.exchange import exchanged
from anonflow.algorithms.diversity.merge_classes import united
from anonflow.algorithms.diversity.refusal import draws_for, throwaway_draws
from anonflow.algorithms.diversity.target import SensitiveValues, Targets
from anonflow.algorithms.method import Outcome, Partition
from anonflow.errors import InfeasibleError
from anonflow.generalization import Generalization
from anonflow.kernels.costs import join_row_jit, load
from anonflow.kernels.state import take
from anonflow.loss import record_costs
from anonflow.table.records import Records

__all__ = ["WAYS", "Diverse", "Request", "components", "diverse_partition", "next_round", "redrawn"]

WAYS = ("classes", "blind")
"""How a graph whose draw may fail is made diverse: parts of it become classes, or everybody gets more rows."""

RUNGS = 3
"""How often records for which a draw may fail leave the graph; after that the remaining records become classes, too."""

MOST_DRAWS = 1000
"""The most throwaway draws that test a partition's graph."""

_FIRST = 50
"""Throwaway draws after which the algorithm first checks whether most of a partition fails."""

Rematch = Callable[[Partition, int], Outcome]


@dataclass(frozen=True, eq=False)
class Request:
    """The request for every partition of a table.

    Attributes
    ----------
    targets : Targets
        With the shares of the whole table.
    n : int
        Records of the whole table.
    k : int
    w : float
        Of classes: weight of the information loss against diversity.
    risk : float
        That a draw from the whole table is refused; 0 closes every graph.
    way : {"classes", "blind"}
    rows : int
        Of the blind way: how many rows list each person.
    rematch : callable
        The method: ``rematch(partition, k)`` is its outcome.
    keep_apart : bool
        Whether classes may not be united (pattern-guided: a union might follow no pattern).
    again : bool
        Whether the method keeps diversity itself: it runs again, with the sensitive values. What still lacks it is united.
    """

    targets: Targets
    n: int
    k: int
    w: float
    risk: float
    way: str
    rows: int
    rematch: Rematch
    keep_apart: bool = False
    again: bool = False

    @property
    def draws(self) -> int:
        """Throwaway draws that bound the refusal rate: if none fails, it is below the risk."""
        return draws_for(self.risk) if self.risk else 1


@dataclass(frozen=True, eq=False)
class Diverse:
    """The diverse outcome of a partition.

    Attributes
    ----------
    outcome : Outcome
    refused : numpy.ndarray, shape (draws,), bool
        For each throwaway draw, whether it fails for some record; the same number of draws for every partition.
    open : int
        Records whose rows' values a draw changes.
    steps : int
        Classes united, or records that became classes.
    k_member : float
        What diverse ``k-member`` loses here: the sum of its records' NCP. Of freeform outcomes.
    lost : int
        Records suppressed because the partition as a whole has less diversity.
    """

    outcome: Outcome
    refused: np.ndarray
    open: int = 0
    steps: int = 0
    k_member: float = 0.0
    lost: int = 0


def diverse_partition(
    part: Partition, outcome: Outcome, values: np.ndarray, request: Request, close: bool = False
) -> Diverse:
    """Make a method's outcome of one partition diverse, before any draw.

    A function of the partition's outcome, its values, its generator and what `request` says of the whole table: in
    memory, in pieces and on a cluster the same bits.

    Parameters
    ----------
    part : Partition
        P records; its generator makes throwaway draws and starts clusters.
    outcome : Outcome
        With classes, or with matches.
    values : numpy.ndarray, shape (P, c), int64
        Each record's value in every column, numbered as in the targets.
    request : Request
    close : bool
        Whether to close the whole graph, so that no draw changes anything.

    Raises
    ------
    InfeasibleError
        If the blind way needs more rows than the partition has records.

    Notes
    -----
    **Classes** are united (:func:`anonflow.algorithms.diversity.merge_classes.united`). Those of levels are not, which
    would break the levels: the method runs again, and takes diverse classes only.

    **Graphs, looking at values** (``way="classes"``): throwaway draws show for which records a draw may fail. Those
    records, the ones they match and the nearest ones with values that they lack leave the graph, the method matches the
    others anew, and so on, for `RUNGS` rounds; then all become classes, and likewise where that loses less. The records
    that left become classes of `k-member`, which are made diverse by exchanging members
    (:func:`anonflow.algorithms.diversity.exchange.exchanged`) or by uniting, what loses less: complete components of
    the graph, in which every row covers everybody, and whose values no draw changes. What stays is a graph none of
    whose throwaway draws failed.

    **Graphs, blind** (``way="blind"``): the method runs with so many matches for everybody that values drawn
    independently with the whole table's shares would be diverse. It uses no record's value.

    Records of a partition that has less diversity than is asked for are suppressed.
    """
    return _PartitionDiversification(part, outcome, values, request).run(close)


def redrawn(part: Partition, diverse: Diverse, values: np.ndarray, request: Request) -> Diverse:
    """Return the same, with fresh throwaway draws: draws that influenced a choice give no valid bound.

    Parameters
    ----------
    part : Partition
    diverse : Diverse
    values : numpy.ndarray, shape (P, c), int64
    request : Request
    """
    if not diverse.open or diverse.outcome.matches is None:
        return diverse
    return replace(diverse, refused=_PartitionDiversification(part, diverse.outcome, values, request).fresh())


def next_round(
    part: Partition, outcome: Outcome, diverse: Diverse, values: np.ndarray, request: Request, last: bool
) -> Diverse:
    """Return the outcome of a partition after too many throwaway draws of the whole table were refused.

    Parameters
    ----------
    part : Partition
    outcome : Outcome
        As the method made it.
    diverse : Diverse
    values : numpy.ndarray, shape (P, c), int64
    request : Request
    last : bool
        Whether all records that a draw changes are closed into classes; otherwise only those for which a draw failed.
    """
    if diverse.open and (last or diverse.refused.any()):
        return diverse_partition(part, outcome, values, request, close=True)
    return redrawn(part, diverse, values, request)


def components(matches: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
    """Return the component of each generalized record, and which components are complete.

    Parameters
    ----------
    matches : numpy.ndarray, shape (P, w), int32
        Padded with -1; regular.

    Returns
    -------
    label : numpy.ndarray, shape (P,), int64
    complete : numpy.ndarray, shape (components,), bool
        Every row lists every original: no draw changes which values the rows show.
    """
    many = len(matches)
    listed = matches >= 0
    degree = listed.sum(axis=1)
    rows = np.repeat(np.arange(many), degree)
    graph = csr_array((np.ones(len(rows), np.int8), (rows, matches[listed])), shape=(many, many))
    label = connected_components(graph, directed=False)[1].astype(np.int64)
    size = np.bincount(label, minlength=1)
    least = np.full(len(size), many, np.int64)
    np.minimum.at(least, label, degree)
    return label, least == size


class _PartitionDiversification:
    def __init__(self, part: Partition, outcome: Outcome, values: np.ndarray, request: Request) -> None:
        self.part, self.outcome, self.values, self.request = part, outcome, values, request
        self.targets = request.targets
        self.draws = request.draws

    def run(self, close: bool) -> Diverse:
        if self.request.again and self.request.way == "classes":
            return self._again()
        kept = np.flatnonzero(~self.outcome.suppressed)
        if not len(kept):
            return replace(self._sure(self.outcome), k_member=float(self.part.n))
        if self._gap(self.values[kept]) > 0:
            hidden = self._sure(_all_suppressed(self.part.records, self.outcome))
            return replace(hidden, lost=len(kept), k_member=float(self.part.n))
        if self.request.way == "blind":
            return self._blind()
        matches = self.outcome.matches
        if matches is None:
            return self._united()
        return self._closed(kept, matches, close or not self.request.risk)

    def fresh(self) -> np.ndarray:
        """Return which of fresh throwaway draws are refused."""
        kept = np.flatnonzero(~self.outcome.suppressed)
        assert self.outcome.matches is not None
        return self._bits(_local(self.outcome.matches, kept), self.values[kept])[0]

    def _sure(self, outcome: Outcome, steps: int = 0) -> Diverse:
        return Diverse(outcome, np.zeros(self.draws, bool), 0, steps)

    def _again(self) -> Diverse:
        if self._gap(self.values) > 0:
            hidden = self._sure(_all_suppressed(self.part.records, self.outcome))
            return replace(hidden, lost=self.part.n)
        sensitive = SensitiveValues(self.targets, self.values)
        outcome = self.request.rematch(replace(self.part, sensitive=sensitive), self.request.k)
        assert outcome.classes is not None
        classes = np.unique(outcome.classes[~outcome.suppressed], return_inverse=True)[1].astype(np.int64)
        if (
            sensitive.take(np.flatnonzero(~outcome.suppressed))
            .lacking(classes, int(classes.max(initial=-1)) + 1)
            .any()
        ):
            # enough different values, but not in the shares that are asked for
            self.outcome = outcome
            return self._united()
        return self._sure(outcome)

    def _gap(self, values: np.ndarray) -> float:
        return float(self.targets.gaps(self.targets.counts(values, np.zeros(len(values), np.int64), 1))[0])

    # -------------------------------------------------------------------------------------- classes

    def _united(self) -> Diverse:
        outcome, part = self.outcome, self.part
        assert outcome.classes is not None
        hidden = outcome.suppressed
        kept = np.flatnonzero(~hidden)
        _, first, label = np.unique(outcome.classes[kept], return_index=True, return_inverse=True)
        b = len(first)
        first = np.append(kept[first], 0)
        joined = outcome.generalization.take(first)
        boxes = load(part.plan, joined.lo, joined.hi, joined.bits)
        counts = self.targets.counts(self.values[kept], label, b + 1)
        zones = np.arange(b + 1) if self.request.keep_apart else np.zeros(b + 1, np.int64)
        into, unions = united(part.plan, boxes, counts, zones, b, self.targets, self.request.w)
        classes = np.full(part.n, b, np.int64)
        classes[kept] = into[label]
        suppressed = classes == b
        generalization = outcome.generalization
        if unions:
            wide = unloaded(part.records, part.plan, take(boxes, classes), np.zeros(part.n, np.int64))
            generalization = wide.join(generalization)
        classes = np.unique(classes, return_inverse=True)[1].astype(np.int64)
        return self._sure(
            replace(
                outcome,
                generalization=generalization.with_suppressed(suppressed),
                classes=classes,
                suppressed=suppressed,
            ),
            unions,
        )

    # ---------------------------------------------------------------------------------------- blind

    def _blind(self) -> Diverse:
        rows, part = self.request.rows, self.part
        if rows > part.n:
            raise InfeasibleError(
                f"the way blind needs {rows:,} rows for each person, and a partition has {part.n:,} records; "
                "use larger partitions, ask for less diversity, allow more risk, or use the way classes",
                subject="diversify",
            )
        outcome = self.outcome
        if rows > self.request.k:
            outcome = self.request.rematch(part, rows)
        kept = np.flatnonzero(~outcome.suppressed)
        if outcome.matches is None:
            assert outcome.classes is not None
            label = np.unique(outcome.classes[kept], return_inverse=True)[1]
            gaps = self.targets.gaps(
                self.targets.counts(self.values[kept], label, int(label.max(initial=-1)) + 1)
            )
            refused = np.full(self.draws, bool((gaps > 0).any()))
            return Diverse(outcome, refused, 0, len(kept), 0.0)
        refused, movable = self._bits(_local(outcome.matches, kept), self.values[kept])
        return Diverse(outcome, refused, movable, len(kept), self._k_member(kept)[1] + part.n - len(kept))

    # --------------------------------------------------------------------------------------- graphs

    def _closed(self, kept: np.ndarray, matches: np.ndarray, close: bool) -> Diverse:
        outcome, k = self.outcome, self.request.k
        rest, current = kept, outcome  # `current` is about all records at first, then about `rest`
        graph = _local(matches, kept)
        leaving = kept[:0]
        for rung in range(RUNGS + 1):
            failing = np.arange(len(rest)) if close else self._failing(graph, rest)
            if not len(failing):
                break
            if rung < RUNGS and 2 * len(failing) < len(rest):
                failing = self._with_company(failing, graph, rest)
            left = np.delete(rest, failing)
            gone = np.concatenate([leaving, rest[failing]])
            again = None
            if (
                rung < RUNGS
                and 2 * len(left) > len(kept)
                and len(gone) >= k
                and not self._gap(self.values[gone]) > 0
            ):
                again = self._rematched(left)
            if again is None:
                leaving, rest = kept, kept[:0]
                graph = graph[:0]
                break
            leaving, current, rest = gone, again, left
            assert again.matches is not None
            graph = _local(again.matches, np.arange(len(rest)))
        labels, loss = self._k_member(kept)
        loss += self.part.n - len(kept)
        if not len(leaving):
            refused, movable = self._bits(graph, self.values[rest])
            return Diverse(outcome, refused, movable, 0, loss)
        closed = self._assembled(kept, labels, kept[:0], current, loss)
        if not len(rest):
            return closed
        leaving = np.sort(leaving)
        partly = self._assembled(leaving, self._k_member(leaving)[0], rest, current, loss)
        # if all records lose less as classes, all become classes, and no draw changes anything
        return partly if _lost(partly.outcome) < _lost(closed.outcome) else closed

    def _failing(self, graph: np.ndarray, rest: np.ndarray) -> np.ndarray:
        """Return the records for which a draw may fail, as positions in `rest`."""
        values = self.values[rest]
        label, complete = components(graph)
        fixed = complete[label]
        fails = self.targets.gaps(self.targets.counts(values, label, len(complete)))[label] > 0
        fails &= fixed
        at = np.flatnonzero(~fixed)
        if len(at):
            open_graph, open_values = _local(graph, at), values[at]
            share = self.request.risk * len(at) / self.request.n
            wanted = min(draws_for(min(share, 0.5)), MOST_DRAWS)
            often = np.zeros(len(at), np.int64)
            done = 0
            while done < wanted and 2 * np.count_nonzero(often) < len(at):
                draws = min(max(_FIRST, done), wanted - done)
                often += throwaway_draws(open_graph, open_values, self.targets, draws, self._secret())[1]
                done += draws
            fails[at] = often > 0
        return np.flatnonzero(fails)

    def _secret(self) -> bytes:
        return self.part.rng.bytes(16)

    def _with_company(self, failing: np.ndarray, graph: np.ndarray, rest: np.ndarray) -> np.ndarray:
        """Return failing records, those that they match, and for each the nearest one with a value that it lacks."""
        records = self.part.records.take(rest)
        own = Generalization.of(records)
        state = load(self.part.plan, own.lo, own.hi, own.bits)
        values = self.values[rest]
        cost = np.empty(len(rest))
        taken = np.zeros(len(rest), bool)
        taken[failing] = True
        for x in failing.tolist():
            near = graph[x][graph[x] >= 0]
            taken[near] = True
            wanted = self.targets.wanted(
                self.targets.counts(values[near], np.zeros(len(near), np.int64), 1)[0]
            )
            helps = wanted[values].any(axis=1)
            if helps.any():
                join_row_jit(self.part.plan, state, x, state, np.int64(0), np.int64(len(rest)), cost)
                taken[int(np.argmin(np.where(helps, cost, np.inf)))] = True
        return np.flatnonzero(taken)

    def _rematched(self, left: np.ndarray) -> Outcome | None:
        try:
            rematched = self.request.rematch(self.part.take(left), self.request.k)
        except InfeasibleError:
            return None
        return None if rematched.suppressed.any() else rematched

    def _bits(self, graph: np.ndarray, values: np.ndarray) -> tuple[np.ndarray, int]:
        """Return which of fresh throwaway draws are refused, and how many records a draw changes anything for."""
        label, complete = components(graph)
        fixed = complete[label]
        gaps = self.targets.gaps(self.targets.counts(values, label, len(complete)))
        at = np.flatnonzero(~fixed)
        if (gaps[complete] > 0).any():
            return np.ones(self.draws, bool), len(at)
        refused, _ = throwaway_draws(_local(graph, at), values[at], self.targets, self.draws, self._secret())
        return refused, len(at)

    def _k_member(self, at: np.ndarray) -> tuple[np.ndarray, float]:
        """Return diverse classes of some records, and what diverse k-member loses on them: the sum of NCP.

        k-member's classes are made diverse by exchanging members and by uniting classes; what loses less is taken.
        """
        part, values = self.part.take(at), self.values[at]
        labels, _ = k_member_labels(part, min(self.request.k, len(at)))
        generalization = Generalization.join_by_class(part.records, labels)
        first = np.unique(labels, return_index=True)[1]
        generalization = generalization.take(np.append(first, 0))
        boxes = load(part.plan, generalization.lo, generalization.hi, generalization.bits)
        counts = self.targets.counts(values, labels, len(first) + 1)
        zones = np.zeros(len(first) + 1, np.int64)
        into, _ = united(part.plan, boxes, counts, zones, len(first), self.targets, self.request.w)
        as_united = np.unique(into[labels], return_inverse=True)[1].astype(np.int64)
        as_exchanged = exchanged(part, labels, values, self.targets)
        united_loss, exchanged_loss = (
            float(record_costs(Generalization.join_by_class(part.records, each), "ncp").sum())
            for each in (as_united, as_exchanged)
        )
        return (as_exchanged if exchanged_loss <= united_loss else as_united), united_loss

    def _assembled(
        self, leaving: np.ndarray, labels: np.ndarray, rest: np.ndarray, rematched: Outcome, loss: float
    ) -> Diverse:
        """Return the classes of the records that left and the graph of the others, as one regular graph."""
        part, n = self.part, self.part.n
        size = np.bincount(labels)
        width = max(
            int(size.max()), 0 if rematched.matches is None or not len(rest) else rematched.matches.shape[1]
        )
        matches = np.full((n, width), -1, np.int32)
        suppressed = self.outcome.suppressed
        matches[:, 0] = np.arange(n)
        by_class = np.argsort(labels, kind="stable")
        for members in np.split(leaving[by_class], np.cumsum(size)[:-1]):
            block = np.repeat(members[None, :], len(members), axis=0)
            # the record itself first
            first = np.arange(len(members))
            block[first, first], block[:, 0] = members[0], members
            matches[members, : len(members)] = block
        parts = [Generalization.join_by_class(part.records.take(leaving), labels)]
        index = [leaving]
        refused, movable = np.zeros(self.draws, bool), 0
        if len(rest):
            assert rematched.matches is not None
            listed = rematched.matches >= 0
            matches[rest] = -1
            matches[rest, : listed.shape[1]] = np.where(listed, rest[rematched.matches], -1)
            parts.append(rematched.generalization)
            index.append(rest)
            refused, movable = self._bits(rematched.matches, self.values[rest])
        hidden = np.flatnonzero(self.outcome.suppressed)
        if len(hidden):
            parts.append(self.outcome.generalization.take(hidden))
            index.append(hidden)
        generalization = Generalization.gathered(parts, index, n)
        outcome = Outcome(
            generalization.with_suppressed(suppressed),
            matches=matches,
            suppressed=suppressed,
            facts=dict(self.outcome.facts),
        )
        return Diverse(outcome, refused, movable, len(leaving), loss)


def _lost(outcome: Outcome) -> float:
    return float(record_costs(outcome.generalization, "ncp").sum())


def _local(matches: np.ndarray, at: np.ndarray) -> np.ndarray:
    """Return the graph of some records, which match nobody else, renumbered; shape (len(at), w), int32."""
    place = np.full(len(matches), -1, np.int32)
    place[at] = np.arange(len(at), dtype=np.int32)
    mine = matches[at]
    places: np.ndarray = np.where(mine >= 0, place[mine], -1).astype(np.int32)
    return places


def _all_suppressed(records: Records, outcome: Outcome) -> Outcome:
    everyone = np.ones(records.n, bool)
    matches = None if outcome.matches is None else np.arange(records.n, dtype=np.int32)[:, None]
    classes = None if outcome.classes is None else np.zeros(records.n, np.int64)
    return Outcome(
        outcome.generalization.with_suppressed(everyone),
        matches=matches,
        classes=classes,
        suppressed=everyone,
        facts=dict(outcome.facts),
    )
