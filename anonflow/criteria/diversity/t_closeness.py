"""t-closeness: how far the values are distributed from those of the whole table."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Annotated, Any, Literal

import numpy as np

from anonflow.criteria.diversity.diversity import (
    Column,
    DiversityCriterion,
    Per,
    Spread,
    along_tree,
    diversity,
    earth_mover,
)
from anonflow.criteria.diversity.diversity_target import SHORT, SLACK, Target, deviation
from anonflow.criteria.evidence import Evidence
from anonflow.criteria.verification import Finding
from anonflow.option import Option


def _close_enough(groups: Spread, parameters: Mapping[str, Any]) -> tuple[np.ndarray, str]:
    distance = earth_mover(groups, parameters.get("distance"), parameters.get("hierarchy"))
    detail = f"distance from the whole table of at most {float(distance.max()):.4g}"
    return distance <= parameters["t"] + SLACK, detail


class _Closeness(Target):
    """A distance of at most t."""

    of_shares = True

    def lacking(self, counts: np.ndarray, size: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
        moved = counts / size[:, None] - self.overall
        if self.tree is not None:
            far = along_tree(moved, *self.tree)
        elif self.numeric:
            far = np.abs(np.cumsum(moved, axis=1)[:, :-1]).sum(axis=1) / max(moved.shape[1] - 1, 1)
        else:
            far = np.abs(moved).sum(axis=1) / 2
        return far - self.parameters["t"], far <= self.parameters["t"] + SLACK

    def best(self, counts: np.ndarray) -> str:
        return "t is any: the whole table is at distance 0 of itself"

    def surplus(self, counts: np.ndarray, size: np.ndarray) -> np.ndarray:
        # each record that leaves changes the distribution by at most its share of the group
        return np.ceil(size * self.gaps(counts) * (1 - SHORT) - SHORT).astype(np.int64)

    def by_chance(self, share: np.ndarray, rows: int, risk: float) -> float:
        moved = min(1.0, max(len(share), 2) * deviation(share, rows, risk) / 2)
        far = self.lacking(self.overall[None, :], np.ones(1))[0]
        return max(0.0, float(far[0]) + moved)


def t_closeness(
    evidence: Evidence,
    *,
    t: Annotated[
        float,
        Option(
            "t: distance",
            least=0,
            step=0.05,
            start=0.2,
            end=1,
            sentence="Of t-closeness: the largest distance from the whole table.",
        ),
    ],
    column: Column = None,
    per: Per = None,
    distance: Annotated[Literal["numeric", "equal", "hierarchy"] | None, Option("Distance of values")] = None,
    hierarchy: Any = None,
) -> list[Finding]:
    """:func:`diversity` by the distance from the whole table."""
    return diversity(
        evidence, T_CLOSENESS, t=t, column=column, per=per, distance=distance, hierarchy=hierarchy
    )


T_CLOSENESS = DiversityCriterion(
    name="t-closeness",
    check=t_closeness,
    judge=_close_enough,
    target=_Closeness,
    sentence="The values on these rows are distributed as in the whole table, within a distance of t.",
)
