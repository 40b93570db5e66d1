"""Check published means and medians: each one that replaces a class's range must be that of the class."""

from __future__ import annotations

import numpy as np

from anonflow.candidate_lists import Candidates
from anonflow.criteria.criterion import Criterion
from anonflow.criteria.evidence import Evidence
from anonflow.criteria.verification import Finding

_NEAR = 1e-9
"""The largest difference between a published number and the computed one, as a share of the column's largest value."""


def aggregates(evidence: Evidence) -> Finding:
    """Return whether every published mean or median is that of its class.

    With a certificate, or of a release in memory, each number is computed again from the originals that its row lists,
    O(n log n). Without one, only necessary conditions can be checked: a mean lies between those of the smallest and of
    the largest numbers of so many records, and where all cells are means they add up to the originals' sum. A release
    that fails them is wrong; for one that passes, the finding is "not checked".
    """
    records = evidence.records
    columns = [domain.column for domain in records.domains if domain.aggregate is not None]
    if not columns:
        return Finding("aggregates", True, detail="no column is published as a mean or median")
    published = evidence.published.by_aggregate()
    if not published:
        return Finding(
            "aggregates", True, detail="these are still ranges; release() computes the means and medians"
        )
    listed = evidence.lists
    failing = np.zeros(evidence.rows, bool)
    for a, values in published:
        if listed is not None:
            failing |= _is_another(evidence, listed, a, values)
        else:
            failing |= _is_impossible(evidence, a, values)
    names = ", ".join(map(repr, columns))
    if listed is not None:
        detail = f"{names}: each number against those of the originals that its certificate lists"
        return Finding.of("aggregates", failing, "published", detail)
    if failing.any():
        detail = f"{names}: no classes of these sizes have such numbers"
        return Finding.of("aggregates", failing, "published", detail)
    return Finding(
        "aggregates",
        None,
        detail=f"{names}: classes of these sizes can have such numbers; only the owner's certificate shows "
        "whether each number is that of its class",
    )


def _is_another(evidence: Evidence, listed: Candidates, a: int, values: np.ndarray) -> np.ndarray:
    """Return rows whose number is not that of the originals they list, (rows,), bool."""
    domain = evidence.records.domains[a]
    wrong = listed.strangers(evidence.n) | (listed.sizes == 0)
    if wrong.any():
        return wrong
    row, original = listed.pairs()
    codes = evidence.records.codes[original, a]
    sizes = listed.sizes
    starts = np.cumsum(sizes) - sizes
    missing = np.minimum.reduceat(codes, starts) < 0
    numbers = np.where(codes < 0, 0.0, domain.points[codes])
    scale = max(float(np.abs(domain.points[[0, -1]]).max()), 1e-300)
    # by the largest number, so that no sum overflows
    numbers = (numbers / scale).astype(np.longdouble)
    if domain.aggregate == "mean":
        class_numbers = np.add.reduceat(numbers, starts) / sizes
    else:
        order = np.lexsort((numbers, row))
        low, high = (starts + (sizes - 1) // 2), (starts + sizes // 2)
        class_numbers = (numbers[order][low] + numbers[order][high]) / 2
    hidden = np.isnan(values)
    with np.errstate(invalid="ignore"):
        off = np.abs(class_numbers - values / scale) > _NEAR
    # a row that lists a missing number, or is suppressed, shows no number
    return np.where(missing | evidence.suppressed, ~hidden, hidden | off)


def _is_impossible(evidence: Evidence, a: int, values: np.ndarray) -> np.ndarray:
    """Return rows whose number no class of their size can have; all of them where the numbers do not add up, (rows,), bool."""
    domain = evidence.records.domains[a]
    if domain.aggregate == "median":
        return np.zeros(evidence.rows, bool)  # any number of the domain is a median of some class
    codes = evidence.records.codes[:, a]
    scale = max(float(np.abs(domain.points[[0, -1]]).max()), 1e-300)
    numbers = np.sort(domain.points[codes[codes >= 0]] / scale)
    size = np.bincount(evidence.classes)[evidence.classes]
    size = np.minimum(size, len(numbers))
    sums = np.concatenate([[0.0], np.cumsum(numbers)])
    least, most = (
        sums[size] / np.maximum(size, 1),
        (sums[-1] - sums[len(numbers) - size]) / np.maximum(size, 1),
    )
    published_numbers = values / scale
    with np.errstate(invalid="ignore"):
        wrong = (published_numbers < least - _NEAR) | (published_numbers > most + _NEAR)
    all_shown = not np.isnan(values).any() and evidence.rows == evidence.n == len(numbers)
    if all_shown and abs(float(published_numbers.sum()) - float(sums[-1])) > _NEAR * evidence.n:
        return np.ones(evidence.rows, bool)
    return np.asarray(wrong)


AGGREGATES = Criterion(
    name="aggregates",
    check=aggregates,
    sentence="Every mean or median that is published instead of a range is that of its class.",
    needs="originals",
)
