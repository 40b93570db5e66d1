"""k-anonymity: equal published rows."""

from __future__ import annotations

from typing import Annotated, Any

import numpy as np

from anonflow.criteria.criterion import Criterion
from anonflow.criteria.evidence import Evidence
from anonflow.criteria.verification import Finding
from anonflow.errors import ParameterError
from anonflow.option import Option
from anonflow.table import equal_columns
from anonflow.table.row_marks import coded_texts

__all__ = ["KEY_SETS", "K_ANONYMITY", "class_sizes", "k_anonymity", "key_sets"]


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


def key_sets(
    evidence: Evidence,
    *,
    sets: Annotated[Any, Option("Sets of columns that others may know, each by itself")],
) -> list[Finding]:
    """k-anonymity on each of several sets of columns, whoever knows which: a finding for each set.

    Parameters
    ----------
    evidence : Evidence
    sets : list of lists of str
        Published columns, quasi-identifiers or not.

    Raises
    ------
    ParameterError
        If k is not known, or sets are no lists of published columns.
    """
    k = evidence.need_k("key-sets")
    frame = evidence.frame if evidence.frame is not None else evidence.published.decode()
    if (
        not isinstance(sets, list | tuple)
        or not sets
        or not all(isinstance(one, list | tuple) and one for one in sets)
    ):
        raise ParameterError(
            "criterion 'key-sets': sets is a list of lists of columns, such as [[age, sex], [zip]]"
        )
    findings = []
    for one in sets:
        lacking = [name for name in one if name not in frame.columns]
        if lacking:
            raise ParameterError(f"criterion 'key-sets': {str(lacking[0])[:40]!r} is no published column")
        labels = equal_columns([coded_texts(frame[name], {}, False) for name in one], len(frame))
        sizes = np.bincount(labels)[labels]
        failing = (sizes < k) & ~evidence.exempt
        words = f"{', '.join(one)}: the smallest class has {int(sizes.min(initial=len(frame)))} rows"
        findings.append(Finding.of("key-sets", failing, "published", words, {"k": k, "sets": ", ".join(one)}))
    return findings


KEY_SETS = Criterion(
    name="key-sets",
    check=key_sets,
    sentence="On each of several sets of columns, every published row reads the same as at least k - 1 others.",
    adds_up=False,
    needs="rows",
)
