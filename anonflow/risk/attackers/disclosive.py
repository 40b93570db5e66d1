"""Replicated uniques and disclosive rows: measures that are usual for synthetic data."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from anonflow.hierarchy.wording import plural, verb_of
from anonflow.risk.attack_context import AttackContext
from anonflow.risk.attacker import AttackerKind, Success, percent
from anonflow.risk.attackers.people import PeopleAtRisk
from anonflow.table.row_marks import coded_texts


@dataclass(frozen=True)
class Disclosive(
    AttackerKind,
    name="disco",
    does="reads the value where all rows agree",
    needs_originals=True,
    knows="everybody's quasi-identifiers; wants the sensitive value",
):
    """Knows everybody's quasi-identifiers; wins if all rows that cover a person show one value, and it is right.

    Parameters
    ----------
    column : str, optional
        The sensitive column; the only one of the table without it.

    Notes
    -----
    DiSCO of Raab, Nowok and Dibben (Practical privacy metrics for synthetic data, 2024): the share of originals whose key is
    disclosive in the released data and correct in the original; and repU, the share of originals that are unique on the key
    and whose key is unique in the released data. In the paper two keys must be equal; here a row has a person's key if it
    covers the person. The attacker looks at every row that covers a person, and ``homogeneity`` only at rows that may be
    the person's, so this attacker wins less often.
    """

    column: str | None = None

    def attack(self, context: AttackContext) -> Success:
        """Attack the release. O(edges of the consistency graph + n log n).

        Raises
        ------
        ParameterError
            If there is no such column, or several to choose from.
        DataError
            If the consistency graph is too large.
        """
        column = context.sensitive_column(self.column)
        published, original = context.frame[column], context.table.frame[column]
        texts: dict[str, int] = {}
        numeric = published.dtype.kind in "iuf" or original.dtype.kind in "iuf"
        codes, truth = coded_texts(published, texts, numeric), coded_texts(original, texts, numeric)
        graph = context.graph
        low, high = np.full(graph.published.size, len(texts)), np.full(graph.published.size, -1)
        np.minimum.at(low, graph.published.label, codes)
        np.maximum.at(high, graph.published.label, codes)
        least, most = np.full(graph.originals.size, len(texts)), np.full(graph.originals.size, -1)
        np.minimum.at(least, graph.end, low[graph.box])
        np.maximum.at(most, graph.end, high[graph.box])
        person = graph.originals.label
        disclosive = least[person] == most[person]
        correct = disclosive & (least[person] == truth)
        alone = (graph.originals.count[person] == 1) & (context.covering() == 1)
        risk, unique = (PeopleAtRisk.of(context.table, flags.astype(float)) for flags in (correct, alone))
        certain, n = risk.above(0.0), len(risk.chance)
        return risk.success(
            0.0,
            f"For {certain:,} of {plural(n, 'person')} all rows that cover them show one {column}, and it is theirs (DiSCO "
            f"{percent(certain / n)}); {unique.above(0.0):,} {verb_of(unique.above(0.0), 'are')} unique and covered by one row alone (repU "
            f"{percent(unique.mean)}).",
        )  # fmt: skip
