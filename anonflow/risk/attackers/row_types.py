"""The different rows of a release, for attackers who ask which records a row cannot have."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Annotated

import numpy as np

from anonflow.errors import ParameterError
from anonflow.generalization import Generalization
from anonflow.option import Option
from anonflow.risk.attack_context import AttackContext
from anonflow.risk.attackers.people import PeopleAtRisk

Targets = Annotated[int, Option("Targets", least=1)]


@dataclass(frozen=True, eq=False)
class RowTypes:
    """Published rows, equal ones together, and the rows that are attacked.

    Attributes
    ----------
    rows : Generalization
        A row of each of the g types.
    size : numpy.ndarray, shape (g,), int64
        Rows of each.
    type : numpy.ndarray, shape (t,), int64
        The type of each attacked row.
    original : numpy.ndarray, shape (t,), int64
        The original whose other columns the attacked row carries: it only decides whether the attacker is right.
    """

    rows: Generalization
    size: np.ndarray
    type: np.ndarray
    original: np.ndarray

    @classmethod
    def of(cls, context: AttackContext, attacker: str, targets: int) -> RowTypes:
        """Draw the rows that are attacked, and find the types.

        Parameters
        ----------
        context : AttackContext
        attacker : str
            Its name, for messages.
        targets : int
            How many rows, drawn at random; all if there are fewer.

        Raises
        ------
        ParameterError
            If the truth is not known, records were deleted, or cells hide their ranges.
        """
        if context.schema is not None or context.deleted:
            raise ParameterError(f"{attacker}: needs the original table, and a row for each of its records")
        published = context.evidence.published
        if published.aggregates is not None:
            raise ParameterError(f"{attacker}: needs ranges, and this release shows means or medians")
        truth = context.judged()
        _, first, label, size = np.unique(
            published.classes(), return_index=True, return_inverse=True, return_counts=True
        )
        chosen = np.sort(context.rng.permutation(context.n)[:targets])
        return cls(published.take(first), size, label[chosen], truth[chosen])

    def attacked(self) -> list[int]:
        """Return the types of the attacked rows, each once."""
        return np.unique(self.type).tolist()

    def within(self, at: int) -> np.ndarray:
        """Return the other types whose every record a type's cells cover, too, ascending."""
        inside: np.ndarray = self.rows.take(np.array([at])).covers(self.rows)
        inside[at] = False
        return np.flatnonzero(inside)

    def people(self, context: AttackContext, chance: np.ndarray) -> PeopleAtRisk:
        """Return the people at risk from a probability for each attacked row."""
        return PeopleAtRisk.of(context.table, chance, self.original)
