"""What records without a value lose, beside the others; and how much of a loss blanks cause."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np

from anonflow.hierarchy.wording import plural, verb_of
from anonflow.loss import cell_costs
from anonflow.utility.distributions import missing_of


@dataclass(frozen=True)
class MissingLoss:
    """The loss of records without a value, separately from the others.

    Attributes
    ----------
    column : str
    cells : int
        Records without a value.
    loss, others : float
        Mean loss (NCP) of those records in this column, and of the others, between 0 and 1.
    """

    column: str
    cells: int
    loss: float
    others: float

    def sentence(self) -> str:
        """Return such as ``age: 12 records without a value lose 100.0%, the others 8.1%.``"""
        lose = f"{plural(self.cells, 'record')} without a value {verb_of(self.cells, 'lose')}"
        return f"{self.column}: {lose} {self.loss:.1%}, the others {self.others:.1%}."


def missing_losses(anonymization: Any) -> tuple[MissingLoss, ...]:
    """Return the loss of each column in which originals have no value.

    Parameters
    ----------
    anonymization : Anonymization
    """
    without_value = missing_of(anonymization.table.records)
    if not without_value:
        return ()
    domains, costs = anonymization.table.domains, cell_costs(anonymization.generalization)
    losses = []
    for name, without in without_value.items():
        # numbers and their codes are two
        parts = [at for at, domain in enumerate(domains) if domain.column == name]
        cost = costs[parts].mean(axis=0)
        others = float(cost[~without].mean()) if not without.all() else 0.0
        losses.append(MissingLoss(name, int(without.sum()), float(cost[without].mean()), others))
    return tuple(losses)


def loss_of_blanks(anonymization: Any) -> tuple[float, list[str]]:
    """Return the share of the loss (NCP) that blanks cause which only ``*`` covers, and their columns, the largest part first.

    Of the cells of records that are not suppressed, and may stand for a record with such a blank.

    Parameters
    ----------
    anonymization : Anonymization
    """
    table, matches, classes = anonymization.table, anonymization.matches, anonymization.classes
    only_star = [
        at for at, domain in enumerate(table.domains) if domain.kind == "numeric" and domain.has_missing
    ]
    if not only_star:
        return 0.0, []
    weights = np.array([domain.weight for domain in table.domains])
    costs = weights[:, None] * cell_costs(anonymization.generalization)
    parts: dict[str, float] = {}
    for at in only_star:
        forced = blank = table.codes[:, at] < 0
        if matches is not None:
            forced = (blank[matches] & (matches >= 0)).any(axis=1)
        elif classes is not None:
            forced = np.isin(classes, classes[blank])
        parts[table.domains[at].column] = float(costs[at][forced & ~anonymization.suppressed].sum())
    total = float(costs.sum())
    return (sum(parts.values()) / total if total else 0.0), sorted(parts, key=lambda name: -parts[name])
