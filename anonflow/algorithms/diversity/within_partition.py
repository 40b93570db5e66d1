"""Diversity of one partition's outcome: classes united, graphs closed into complete components, or more rows for all."""

from __future__ import annotations

from collections.abc import Mapping
from contextlib import suppress
from dataclasses import dataclass, replace
from functools import cached_property
from typing import Any

import numpy as np

from anonflow.algorithms.classes.k_member import k_member_labels
from anonflow.algorithms.concealment.expansion import unloaded
from anonflow.algorithms.diversity.merge_classes import united
from anonflow.algorithms.diversity.refusal import draws_for, throwaway_draws
from anonflow.algorithms.diversity.target import SensitiveValues, Targets
from anonflow.algorithms.method import Algorithm, Outcome, Partition
from anonflow.algorithms.registry import algorithm_named
from anonflow.algorithms.solve import solve
from anonflow.errors import InfeasibleError, ParameterError
from anonflow.generalization import Generalization
from anonflow.kernels.costs import load
from anonflow.kernels.state import State, take
from anonflow.table.identification.linkage import complete_components
from anonflow.table.records import Records, matches_among

WAYS = ("classes", "blind")
"""How a graph is made diverse: everybody becomes part of a class, or gets more rows."""


@dataclass(frozen=True, eq=False)
class Request:
    """The request for every partition of a method's result.

    Attributes
    ----------
    targets : Targets
        With the shares of the whole table.
    n : int
        Records of the whole table.
    k : int
    algorithm, loss : str
        The method, which may run again, and its measure.
    options : mapping
        Of the method; others are ignored.
    way : {"classes", "blind"}
    risk : float
        Of the way blind: that a draw from the whole table is refused.
    rows : int
        Of the way blind: how many rows list each person; else k.
    """

    targets: Targets
    n: int
    k: int
    algorithm: str
    loss: str
    options: Mapping[str, Any]
    way: str
    risk: float
    rows: int

    @classmethod
    def of(
        cls,
        targets: Targets,
        n: int,
        k: int,
        method: tuple[str, str, Mapping[str, Any]],
        way: str,
        risk: float,
    ) -> Request:
        """Return the request with the number of rows that the way blind needs; `method` is a name, its loss and options.

        Raises
        ------
        ParameterError, InfeasibleError
            If the way blind is impossible.
        """
        return cls(
            targets, n, k, *method, way, risk, _blind_rows(targets, k, n, risk) if way == "blind" else k
        )

    @cached_property
    def method(self) -> Algorithm:
        """The method."""
        return algorithm_named(self.algorithm)

    @cached_property
    def own_options(self) -> dict[str, Any]:
        """The options that the method has."""
        return {name: self.options[name] for name in self.method.options if name in self.options}

    @property
    def keep_apart(self) -> bool:
        """Whether classes may not be united (pattern-guided: a union might follow no pattern): those that lack diversity are suppressed."""
        return self.method.hides

    @property
    def again(self) -> bool:
        """Whether the method keeps diversity itself: it runs again, with the sensitive values. What still lacks it is united."""
        return self.method.is_diverse(self.own_options)

    def rematch(self, part: Partition, k: int) -> Outcome:
        """Return the method's outcome of a partition with another k, or with sensitive values.

        Raises
        ------
        InfeasibleError
            If there is none.
        """
        return solve(
            self.method,
            part.records,
            k,
            self.loss,
            part.generator,
            self.own_options,
            sensitive=part.sensitive,
        )

    @property
    def draws(self) -> int:
        """Throwaway draws that bound the refusal rate: if none fails, it is below the risk."""
        return draws_for(self.risk) if self.way == "blind" else 1


def _blind_rows(targets: Targets, k: int, n: int, risk: float) -> int:
    """Return how many rows list each person in the way blind."""
    if not risk:
        raise ParameterError("the way blind always leaves a risk; set `risk` above 0", subject="diversify")
    rows = targets.rows_needed(k, n, risk)
    if rows is None:
        raise InfeasibleError(
            "no number of rows is enough with the way blind; do without blind, or ask for less diversity",
            subject="diversify",
        )
    return rows


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
    lost : int
        Records suppressed because the partition as a whole has less diversity.
    """

    outcome: Outcome
    refused: np.ndarray
    open: int = 0
    steps: int = 0
    lost: int = 0


def diverse_partition(part: Partition, outcome: Outcome, values: np.ndarray, request: Request) -> Diverse:
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

    Raises
    ------
    InfeasibleError
        If the partition has less diversity, or the blind way needs more rows than it has records: the whole table is
        refused, for a partition that is suppressed alone tells that it had one value.

    Notes
    -----
    **Classes** are united (:func:`anonflow.algorithms.diversity.merge_classes.united`). Those of levels are not, which
    would break the levels: the method runs again, and takes diverse classes only. Those of patterns are suppressed.

    **Graphs** (``way="classes"``) become the classes of `k-member`, complete components in which every row covers
    everybody and whose values no draw changes, and these are united likewise.

    **Graphs, blind** (``way="blind"``): the method runs with so many matches for everybody that values drawn
    independently with the whole table's shares would be diverse. It uses no record's value.
    """
    return _PartitionDiversification(part, outcome, values, request).run()


class _PartitionDiversification:
    def __init__(self, part: Partition, outcome: Outcome, values: np.ndarray, request: Request) -> None:
        self.part, self.outcome, self.values, self.request = part, outcome, values, request
        self.targets = request.targets
        self.draws = request.draws

    def run(self) -> Diverse:
        if self.request.again and self.request.way == "classes":
            return self._again()
        positions = np.flatnonzero(~self.outcome.suppressed)
        if not len(positions):
            return self._sure(self.outcome)
        if self.request.way == "blind":
            return self._blind()
        if self.outcome.matches is None:
            return self._united()
        return self._assembled(positions, self._k_member(positions))

    def _sure(self, outcome: Outcome, steps: int = 0) -> Diverse:
        return Diverse(outcome, np.zeros(self.draws, bool), 0, steps)

    def _again(self) -> Diverse:
        counts = self.targets.counts(self.values, np.zeros(self.part.n, np.int64), 1)
        if not self.targets.gaps(counts)[0] > 0:
            return self._chosen_again()
        if self.targets.least_removed(counts)[0] < self.request.k:
            # the others may be diverse without a few records, which are no class
            with suppress(InfeasibleError):
                return self._chosen_again()
        hidden = self._sure(_all_suppressed(self.part.records, self.outcome))
        return replace(hidden, lost=self.part.n)

    def _chosen_again(self) -> Diverse:
        """Return the result of the method, which chooses again with the sensitive values."""
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

    # -------------------------------------------------------------------------------------- classes

    def _united(self) -> Diverse:
        outcome, part = self.outcome, self.part
        assert outcome.classes is not None
        positions = np.flatnonzero(~outcome.suppressed)
        if not len(positions):
            return self._sure(outcome)
        _, first, label = np.unique(outcome.classes[positions], return_index=True, return_inverse=True)
        b = len(first)
        suppressed = outcome.suppressed.copy()
        if self.request.keep_apart:
            counts = self.targets.counts(self.values[positions], label, b)
            suppressed[positions] = self.targets.gaps(counts)[label] > 0
            return self._sure(
                replace(
                    outcome,
                    generalization=outcome.generalization.with_suppressed(suppressed),
                    classes=np.unique(np.where(suppressed, -1, outcome.classes), return_inverse=True)[1],
                    suppressed=suppressed,
                ),
                int(suppressed.sum() - outcome.suppressed.sum() > 0),
            )
        into, boxes = self._along_tree(
            part, outcome.generalization.take(positions[first]), label, self.values[positions]
        )
        unions = b - len(np.unique(into))
        if not unions:
            return self._sure(outcome)
        places = np.zeros(part.n, np.int64)
        places[positions] = into[label]
        wide = unloaded(part.records, part.plan, take(boxes, places), np.zeros(part.n, np.int64))
        classes = np.where(suppressed, b, places)
        return self._sure(
            replace(
                outcome,
                generalization=wide.join(outcome.generalization).with_suppressed(suppressed),
                classes=np.unique(classes, return_inverse=True)[1].astype(np.int64),
                suppressed=suppressed,
            ),
            unions,
        )

    def _along_tree(
        self, part: Partition, generalization: Generalization, label: np.ndarray, values: np.ndarray
    ) -> tuple[np.ndarray, State]:
        """Return the union that each class is part of, and the generalized records of the unions."""
        boxes = load(part.plan, generalization.lo, generalization.hi, generalization.bits)
        counts = self.targets.counts(values, label, len(boxes.cost))
        into = united(part.plan, boxes, counts, self.targets)
        if into is None:
            raise InfeasibleError(
                "a partition or boundary has less diversity than is asked for; use larger partitions, wider "
                "boundaries, or ask for less diversity",
                subject="diversify",
            )
        return into, boxes

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
        positions = np.flatnonzero(~outcome.suppressed)
        if outcome.matches is None:
            assert outcome.classes is not None
            label = np.unique(outcome.classes[positions], return_inverse=True)[1]
            gaps = self.targets.gaps(
                self.targets.counts(self.values[positions], label, int(label.max(initial=-1)) + 1)
            )
            refused = np.full(self.draws, bool((gaps > 0).any()))
            return Diverse(outcome, refused, 0, len(positions))
        refused, movable = self._bits(matches_among(outcome.matches, positions), self.values[positions])
        return Diverse(outcome, refused, movable, len(positions))

    # --------------------------------------------------------------------------------------- graphs

    def _secret(self) -> bytes:
        return self.part.rng.bytes(16)

    def _bits(self, graph: np.ndarray, values: np.ndarray) -> tuple[np.ndarray, int]:
        """Return which of fresh throwaway draws are refused, and how many records a draw changes anything for."""
        label, complete = complete_components(graph)
        fixed = complete[label]
        gaps = self.targets.gaps(self.targets.counts(values, label, len(complete)))
        at = np.flatnonzero(~fixed)
        if (gaps[complete] > 0).any():
            return np.ones(self.draws, bool), len(at)
        refused, _ = throwaway_draws(
            matches_among(graph, at), values[at], self.targets, self.draws, self._secret()
        )
        return refused, len(at)

    def _k_member(self, at: np.ndarray) -> np.ndarray:
        """Return diverse classes of some records."""
        part = self.part.take(at)
        labels, _ = k_member_labels(part, min(self.request.k, len(at)))
        first = np.unique(labels, return_index=True)[1]
        generalization = Generalization.join_by_class(part.records, labels).take(first)
        into, _ = self._along_tree(part, generalization, labels, self.values[at])
        return np.unique(into[labels], return_inverse=True)[1].astype(np.int64)

    def _assembled(self, positions: np.ndarray, labels: np.ndarray) -> Diverse:
        """Return classes as complete components of a graph."""
        part, n = self.part, self.part.n
        size = np.bincount(labels)
        matches = np.full((n, int(size.max())), -1, np.int32)
        matches[:, 0] = np.arange(n)
        by_class = np.argsort(labels, kind="stable")
        for members in np.split(positions[by_class], np.cumsum(size)[:-1]):
            block = np.repeat(members[None, :], len(members), axis=0)
            # the record itself first
            first = np.arange(len(members))
            block[first, first], block[:, 0] = members[0], members
            matches[members, : len(members)] = block
        suppressed = self.outcome.suppressed
        parts = [Generalization.join_by_class(part.records.take(positions), labels)]
        index = [positions]
        hidden = np.flatnonzero(suppressed)
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
        return self._sure(outcome, len(positions))


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
