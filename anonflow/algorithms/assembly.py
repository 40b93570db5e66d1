"""Combine the outcomes of several partitions: generalized records, matches, classes, facts."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np

from anonflow.algorithms.method import Outcome
from anonflow.generalization import Generalization
from anonflow.table.domain import Domain
from anonflow.table.records import Records

__all__ = ["gathered", "gathered_classes", "gathered_facts", "gathered_matches", "left_out"]


def gathered(
    domains: Sequence[Domain], outcomes: Sequence[Outcome], index: Sequence[np.ndarray], n: int
) -> Outcome:
    """Return the outcomes of partitions as one.

    Parameters
    ----------
    domains : sequence of Domain
        The table's boundaries: a method that ran without boundaries is still measured against them.
    outcomes : sequence of Outcome
        At least one.
    index : sequence of numpy.ndarray, integer
        Where each partition's records are among the n; together each place once.
    n : int

    Returns
    -------
    Outcome
        O(n (q + k)) time and memory. Suppressed records cover everything, and share one class.
    """
    suppressed = np.zeros(n, bool)
    for at, outcome in zip(index, outcomes, strict=True):
        suppressed[at] = outcome.suppressed
    generalization = Generalization.gathered([outcome.generalization for outcome in outcomes], index, n)
    return Outcome(
        Generalization(
            tuple(domains), generalization.lo, generalization.hi, generalization.bits
        ).with_suppressed(suppressed),
        matches=gathered_matches(index, outcomes, n),
        classes=gathered_classes(index, outcomes, suppressed),
        suppressed=suppressed,
        facts=gathered_facts([outcome.facts for outcome in outcomes]),
    )


def left_out(records: Records, outcomes: Sequence[Outcome]) -> Outcome:
    """Return suppressed records, with the same parts as the other outcomes: matches, classes."""
    n = records.n
    everyone = np.ones(n, bool)
    matches = classes = None
    if all(outcome.matches is not None for outcome in outcomes):
        matches = np.arange(n, dtype=np.int32)[:, None]
    if all(outcome.classes is not None for outcome in outcomes):
        classes = np.zeros(n, np.int64)
    generalization = Generalization.of(records).with_suppressed(everyone)
    return Outcome(generalization, matches=matches, classes=classes, suppressed=everyone)


def gathered_matches(index: Sequence[np.ndarray], outcomes: Sequence[Outcome], n: int) -> np.ndarray | None:
    """Return the matches of n records, padded with -1, shape (n, k), int32; None where an outcome has none."""
    parts = [outcome.matches for outcome in outcomes if outcome.matches is not None]
    if len(parts) < len(outcomes):
        return None
    width = max((part.shape[1] for part in parts), default=0)
    matches = np.full((n, width), -1, np.int32)
    for at, part in zip(index, parts, strict=True):
        # a partition of an odd size may need one match more (reciprocal graphs): rows are padded with -1
        matches[at, : part.shape[1]] = np.where(part < 0, -1, at[part])
    return matches


def gathered_classes(
    index: Sequence[np.ndarray], outcomes: Sequence[Outcome], suppressed: np.ndarray
) -> np.ndarray | None:
    """Return class labels of n records, suppressed ones in one class, shape (n,), int64; None likewise."""
    parts = [outcome.classes for outcome in outcomes if outcome.classes is not None]
    if len(parts) < len(outcomes):
        return None
    classes = np.empty(len(suppressed), np.int64)
    used = 0
    for at, part in zip(index, parts, strict=True):
        _, labels = np.unique(part, return_inverse=True)
        classes[at] = labels + used
        used += int(labels.max(initial=-1)) + 1
    classes[suppressed] = used
    labels = np.unique(classes, return_inverse=True)[1]
    return labels.astype(np.int64)


def gathered_facts(parts: Sequence[Mapping[str, Any]]) -> dict[str, Any]:
    """Return the facts of several partitions: numbers are added up, others kept where all partitions agree."""
    facts: dict[str, Any] = {}
    for name in dict.fromkeys(name for part in parts for name in part):
        values = [part[name] for part in parts if name in part]
        if all(isinstance(value, int | float) and not isinstance(value, bool) for value in values):
            facts[name] = sum(values)
        elif all(value == values[0] for value in values):
            facts[name] = values[0]
    if "lower_bound" in facts and "cost" in facts:
        # ratios cannot be added: compute the ratio of the sums
        facts["gap"] = 1 - facts["lower_bound"] / facts["cost"] if facts["cost"] else 0.0
        facts["proven"] = facts["lower_bound"] >= facts["cost"]
    return facts
