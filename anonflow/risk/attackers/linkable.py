"""An attacker who links by the other published columns: columns that depend on quasi-identifiers identify people."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Annotated

import numpy as np

from anonflow.criteria.linkable import linked_columns
from anonflow.errors import ParameterError
from anonflow.option import Option
from anonflow.risk.attack_context import AttackContext
from anonflow.risk.attacker import AttackerKind, Success, percent
from anonflow.table.identification.linkage import TOGETHER


@dataclass(frozen=True)
class LinkableColumns(
    AttackerKind,
    name="linkable-columns",
    of_other_columns=True,
    usual_where=lambda context: (
        context.reads_ranges and any(name in context.frame.columns for name in context.table.other_columns)
    ),
    does="uses other columns",
    points_at_row=True,
    beside_register=True,
    needs_originals=True,
):
    """Knows everybody's quasi-identifiers, the method, and how other columns depend on quasi-identifiers.

    It gives each row to its likeliest candidate.

    Parameters
    ----------
    column : str, optional
        One published column; without it all of them together.
    declared : sequence of str
        Columns that anyone can compute from the quasi-identifiers.
    threshold : float, optional
        A row with a candidate more probable than this is at risk; half-way between 1/k and 1 without it.
    """

    column: str | None = None
    declared: Sequence[str] = ()
    threshold: Annotated[float | None, Option("Threshold", above=0, most=1)] = None

    @property
    def knows(self) -> str:
        dependence = "other columns depend" if self.column is None else f"{self.column} depends"
        return f"everybody's quasi-identifiers, the method, and how {dependence} on them"

    def attack(self, context: AttackContext) -> Success:
        """Attack the release. O(pairs of a person and a row) for each column, besides fitting.

        Raises
        ------
        ParameterError
            If a column is not published; if means or medians are, and no certificate is there.
        DataError
            If the consistency graph is too large.

        Notes
        -----
        :func:`anonflow.table.identification.linkage.linkage` is its model; the criterion of the same name calls it, too. It is fitted to the
        originals: the figures are the owner's. From them, who knows all values but those of two people could assign these.
        """
        if context.evidence.hides_ranges:
            raise ParameterError(
                "linkable-columns: for means and medians it needs the certificate, which says whom they cover"
            )
        links = linked_columns(context.evidence, self.column, list(self.declared))
        threshold = (1 + 1 / context.k) / 2 if self.threshold is None else float(self.threshold)
        if not links:
            mean = float((1.0 / np.maximum(context.candidates()[context.people], 1)).mean())
            return Success(
                context.n, mean, mean, 0, 1 / context.k,
                "No other column is published: there is nothing to link with.",
            )  # fmt: skip
        link = links[-1]
        probability = link.highest[~np.isnan(link.highest)]
        at_risk = int((probability > threshold + 1e-9).sum())
        single = sorted(
            (answer for answer in links if answer.column != TOGETHER), key=lambda answer: -answer.mean
        )
        worst = single[0]
        source = "all other columns say" if link.column == TOGETHER else f"column {link.column} says"
        alone = f"; {worst.column} alone gives {percent(worst.mean)}" if len(single) > 1 else ""
        sure = percent(at_risk / max(len(probability), 1)) if at_risk else "none"
        return Success(
            len(probability), link.mean, link.largest, at_risk, 1 / context.k,
            f"An attacker who uses what {source} about the quasi-identifiers is right for {percent(link.mean)} of the rows, and "
            f"more than {percent(threshold)} sure about {sure} of them{alone}.",
            columns=tuple(answer.column for answer in single),
        )  # fmt: skip
