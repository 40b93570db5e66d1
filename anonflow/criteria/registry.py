"""Every criterion by name. A new criterion needs its file, or a function in a file, and a line here."""

from __future__ import annotations

import re

from anonflow.criteria.aggregates import AGGREGATES
from anonflow.criteria.boundaries import BOUNDARY, PATTERN
from anonflow.criteria.classes import AVERAGE_RISK, K_ANONYMITY, SHARE_AT_RISK, UNIQUENESS
from anonflow.criteria.criterion import Criterion
from anonflow.criteria.diversity.l_diversity import (
    ALPHA_K_ANONYMITY,
    ENTROPY_L_DIVERSITY,
    L_DIVERSITY,
    P_SENSITIVITY,
    RECURSIVE_L_DIVERSITY,
)
from anonflow.criteria.diversity.likeness import BETA_LIKENESS, DELTA_DISCLOSURE, ENHANCED_BETA_LIKENESS
from anonflow.criteria.diversity.t_closeness import T_CLOSENESS
from anonflow.criteria.linkable import LINKABLE_COLUMNS
from anonflow.criteria.matching.concealment import COVERED_BY_K, COVERS_K, K_CONCEALMENT, TWO_SIDED
from anonflow.criteria.matching.covers import COVERS
from anonflow.criteria.matching.regular import K_REGULAR
from anonflow.criteria.repeated import REPEATED
from anonflow.criteria.set_counts import KEY_SETS
from anonflow.criteria.units import UNITS

CRITERIA: dict[str, Criterion] = {
    criterion.name: criterion
    for criterion in (
        COVERS,
        K_ANONYMITY,
        KEY_SETS,
        AVERAGE_RISK,
        SHARE_AT_RISK,
        UNIQUENESS,
        COVERED_BY_K,
        COVERS_K,
        TWO_SIDED,
        K_CONCEALMENT,
        K_REGULAR,
        UNITS,
        AGGREGATES,
        BOUNDARY,
        PATTERN,
        P_SENSITIVITY,
        L_DIVERSITY,
        ENTROPY_L_DIVERSITY,
        RECURSIVE_L_DIVERSITY,
        T_CLOSENESS,
        BETA_LIKENESS,
        ENHANCED_BETA_LIKENESS,
        DELTA_DISCLOSURE,
        ALPHA_K_ANONYMITY,
        LINKABLE_COLUMNS,
        REPEATED,
    )
}  # fmt: skip


def criterion_of(guarantee: str) -> Criterion | None:
    """Return the criterion of a guarantee, with parameters or without; None if it is none alone."""
    name = guarantee if guarantee in CRITERIA else guarantee.partition("(")[0]
    return CRITERIA.get(name) if " and " not in guarantee else None


def promise_of(guarantee: str, k: int | None = None) -> str:
    """Return the promise of a guarantee in plain words, with the number k where it is given; empty if it has none."""
    criterion = criterion_of(guarantee)
    promise = "" if criterion is None else criterion.promise
    return promise if k is None else re.sub(r"\bk\b(?!-)", str(k), promise)
