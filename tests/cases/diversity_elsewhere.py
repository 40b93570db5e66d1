"""A diversity criterion of somebody else: the most frequent value leads the others by little. Importing it is its line in the registry."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Annotated, Any

import numpy as np

from anonflow.criteria.diversity.diversity import Column, DiversityCriterion, Per, Spread, diversity
from anonflow.criteria.diversity.diversity_target import Target
from anonflow.criteria.evidence import Evidence
from anonflow.criteria.registry import CRITERIA
from anonflow.criteria.verification import Finding
from anonflow.option import Option


def _rare(shown: Spread, parameters: Mapping[str, Any]) -> tuple[np.ndarray, str]:
    top = np.maximum.reduceat(shown.counts.data, shown.counts.indptr[:-1])
    rest = shown.sizes - top
    return top <= rest + parameters[
        "lead"
    ], f"the most frequent leads the others by {int((top - rest).max())}"


class _Lead(Target):
    def lacking(self, counts: np.ndarray, size: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
        lead = 2 * counts.max(axis=1) - size
        return lead - self.parameters["lead"], lead <= self.parameters["lead"]

    def best(self, counts: np.ndarray) -> str:
        return f"lead is {2 * counts.max() - counts.sum():g}: no smaller one will do"


def small_lead(
    evidence: Evidence,
    *,
    lead: Annotated[
        float, Option("Largest lead", least=0, whole=True, start=3, sentence="Of small-lead: records.")
    ],
    column: Column = None,
    per: Per = None,
) -> list[Finding]:
    """Whether the most frequent value leads all others together by a few records at most."""
    return diversity(evidence, SMALL_LEAD, lead=lead, column=column, per=per)


SMALL_LEAD = DiversityCriterion(
    name="small-lead",
    check=small_lead,
    judge=_rare,
    target=_Lead,
    sentence="The most frequent value leads the others by a few records at most.",
)

CRITERIA[SMALL_LEAD.name] = SMALL_LEAD
