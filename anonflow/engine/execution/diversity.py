"""The figures of diverse partitions, which decide about the whole table when they are added up."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace

import numpy as np

from anonflow.algorithms.diversity.diversify import (
    check_blind,
    compared,
    promise_in_words,
    refuse_all_suppressed,
    refuse_beyond,
    refuse_suppressed,
    suppressed_in_words,
)
from anonflow.algorithms.diversity.refusal import refusal_at_most
from anonflow.algorithms.diversity.within_partition import Diverse, Request
from anonflow.algorithms.method import Outcome
from anonflow.loss import cell_costs
from anonflow.partition import limited
from anonflow.table import Domain, Records
from anonflow.utility.violations import beyond_cells


@dataclass(frozen=True, eq=False)
class DiverseSums:
    """The figures of some diverse partitions that decide about the whole table, added up.

    Attributes
    ----------
    refused : numpy.ndarray, shape (draws,), bool
        Throwaway draws in which somebody's values are not diverse.
    moves : bool
        Whether a draw changes what somebody's rows show.
    hidden : numpy.ndarray, shape (V,), int64
        How often the suppressed records have each value.
    costs : numpy.ndarray, shape (q,), float64
        Sum of the records' NCP on each QI before the step.
    suppressed : int
        Records that the method suppressed.
    beyond : int
        Records that the step generalizes beyond ``max-width`` or ``max-set``.
    """

    refused: np.ndarray
    moves: bool
    hidden: np.ndarray
    costs: np.ndarray
    suppressed: int
    beyond: int

    @classmethod
    def of(
        cls,
        request: Request,
        boundaries: bool,
        records: Records,
        values: np.ndarray,
        parts: Sequence[Diverse],
        before: Outcome,
        after: Outcome,
    ) -> DiverseSums:
        """Return the figures of a batch.

        Parameters
        ----------
        request : Request
        boundaries : bool
            Whether the method keeps the columns' limits.
        records : Records
            m records.
        values : numpy.ndarray, shape (m, c), int64
            As the targets number them.
        parts : sequence of Diverse
            Of each partition.
        before, after : Outcome
            Of all records, without and with diversity.
        """
        names = list(limited(records)) if boundaries else []
        over = beyond_cells(records, after.generalization, after.suppressed)[names] if names else None
        return cls(
            np.logical_or.reduce([part.refused for part in parts]),
            any(part.open for part in parts),
            np.bincount(values[after.suppressed].ravel(), minlength=request.targets.size),
            cell_costs(before.generalization, "ncp").sum(axis=1),
            int(before.suppressed.sum()),
            0 if over is None else int(over.any(axis=0).sum()),
        )

    def then(self, other: DiverseSums) -> DiverseSums:
        """Return these figures and those of a later batch, added up."""
        return DiverseSums(
            self.refused | other.refused,
            self.moves or other.moves,
            self.hidden + other.hidden,
            self.costs + other.costs,
            self.suppressed + other.suppressed,
            self.beyond + other.beyond,
        )

    def sentences(
        self,
        request: Request,
        domains: Sequence[Domain],
        costs: np.ndarray,
        kind: str,
        partitions: int,
    ) -> tuple[str, str]:
        """Return what the diversity of the whole table costs, and what it promises, a sentence each.

        Parameters
        ----------
        request : Request
        domains : sequence of Domain
        costs : numpy.ndarray, shape (q,), float64
            Sum of the records' NCP on each QI after the step.
        kind : {"matches", "classes"}
        partitions : int
            Of the run.

        Raises
        ------
        InfeasibleError
            If suppressed records are not diverse, limits would be broken, or the blind way refuses too many draws.
        """
        if request.way == "blind":
            check_blind(self.refused, request)
        refuse_suppressed(self.hidden, request.k, request.targets)
        suppressed = int(self.hidden.sum()) // len(request.targets.each)
        refuse_all_suppressed(suppressed, request.n)
        nobody = Records(tuple(domains), np.empty((0, len(domains)), np.int32))
        refuse_beyond(self.beyond, [domains[a].column for a in limited(nobody)])
        weights = np.array([domain.weight for domain in domains])
        weights = weights / weights.sum() / request.n
        cost = compared(
            float(self.costs @ weights),
            float(costs @ weights),
            kind == "matches" and request.way != "blind",
        )
        cost += suppressed_in_words(self.suppressed, suppressed, partitions)
        is_open = self.moves or bool(self.refused.any())
        bound = refusal_at_most(int(self.refused.sum()), len(self.refused)) if is_open else 0.0
        return cost, promise_in_words(request, kind == "matches", self.moves, bound)


_FACT = "diverse"


def storable(diverse: Diverse) -> Outcome:
    """Return a diverse outcome with its figures as a fact, in a form that can be stored."""
    figures = {
        "draws": len(diverse.refused),
        "refused": np.flatnonzero(diverse.refused).tolist(),
        "open": int(diverse.open),
        "steps": int(diverse.steps),
        "lost": int(diverse.lost),
    }
    return replace(diverse.outcome, facts={**diverse.outcome.facts, _FACT: figures})


def restored(outcome: Outcome) -> Diverse:
    """Return what :func:`storable` was given."""
    facts = dict(outcome.facts)
    figures = facts.pop(_FACT)
    refused = np.zeros(figures["draws"], bool)
    refused[figures["refused"]] = True
    return Diverse(replace(outcome, facts=facts), refused, figures["open"], figures["steps"], figures["lost"])
