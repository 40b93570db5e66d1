"""k-anonymity: equal published rows."""

from __future__ import annotations

import numpy as np

from anonflow.criteria.criterion import Criterion
from anonflow.criteria.evidence import Evidence
from anonflow.criteria.verification import Finding

__all__ = ["K_ANONYMITY", "class_sizes", "k_anonymity"]


def class_sizes(evidence: Evidence) -> np.ndarray:
    """For each published row the number of rows that read the same on the quasi-identifiers, shape (n,)."""
    sizes: np.ndarray = np.bincount(evidence.classes)[evidence.classes]
    return sizes


def k_anonymity(evidence: Evidence) -> Finding:
    """Whether every published row is equal, on the quasi-identifiers, to at least k - 1 others, O(nq log n).

    Only the release is looked at. Fewer than k rows that are ``*`` in every column may stand alone.

    Raises
    ------
    ParameterError
        If k is not known.
    """
    k = evidence.need_k("k-anonymity")
    sizes = class_sizes(evidence)
    kept = sizes[~evidence.exempt]
    failing = (sizes < k) & ~evidence.exempt
    detail = f"the smallest class has {int(kept.min())} rows" if len(kept) else "every row is * throughout"
    return Finding.of("k-anonymity", failing, "published", detail, {"k": k})


K_ANONYMITY = Criterion(
    name="k-anonymity",
    check=k_anonymity,
    sentence="Every published row reads the same on the quasi-identifiers as at least k - 1 others.",
    promise="Every published row has the same quasi-identifiers as at least k - 1 others.",
    covers_k=True,
    needs="rows",
    also={"k-anonymous": {}},
)
