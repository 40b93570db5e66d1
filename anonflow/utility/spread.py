"""How publishing changes the variance of numbers: squared distances, and the remaining variance."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

from anonflow.table.records import Records
from anonflow.utility.subject import Part

# Of a column in a partition: numbers, their sum and their sum of squares; the same of published numbers; squared distances.
_SUMS = 7


class SpreadOf:
    """The numeric quasi-identifiers (QIs) of a table, and the units in which their numbers are added up.

    Attributes
    ----------
    qis : tuple of int
        Those of more than one value.
    centre, scale : tuple of float
        Of each, the middle of its domain and half its width: sums of squares are floats then, whatever the numbers.
    """

    def __init__(self, records: Records) -> None:
        domains = records.domains
        self.qis = tuple(
            a for a, domain in enumerate(domains) if domain.kind == "numeric" and domain.size > 1
        )
        ends = [domains[a].points[[0, -1]] / 2 for a in self.qis]
        self.centre = tuple(float(low + high) for low, high in ends)
        self.scale = tuple(float(high - low) for low, high in ends)


def chunk(numbers: SpreadOf, part: Part) -> np.ndarray:
    """Return the part of a partition, for each numeric QI: shape (QIs, 7), float64.

    Parameters
    ----------
    numbers : SpreadOf
    part : Part
        n originals, n generalized records. A cell is published as the mean or median of its class, or read as the middle of
        its range; ``*`` is left out.

    Notes
    -----
    O(n) for each QI. For a shuffled release, rows and originals are summed separately, and distances are NaN.
    """
    sums = np.zeros((len(numbers.qis), _SUMS))
    published = part.generalization
    aggregates = dict(published.by_aggregate())
    hidden = published.whole()
    row_of = published.layout.row_of_range
    for row, a, centre, scale in zip(sums, numbers.qis, numbers.centre, numbers.scale, strict=True):
        points = part.records.domains[a].points
        codes = part.records.codes[:, a]
        lo, hi = published.lo[row_of[a]], published.hi[row_of[a]]
        shows_number = ~hidden[a] & (lo <= hi)
        low, high = points[np.minimum(lo, len(points) - 1)], points[np.maximum(hi, 0)]
        middle = low / 2 + high / 2
        if a in aggregates:
            middle = np.where(np.isnan(aggregates[a]), middle, aggregates[a])
        has_number = codes >= 0
        if part.own:
            has_number = shows_number = has_number & shows_number
        x, v = (points[codes[has_number]] - centre) / scale, (middle[shows_number] - centre) / scale
        row[:] = len(x), x.sum(), x @ x, len(v), v.sum(), v @ v, ((x - v) @ (x - v)) if part.own else np.nan
    return sums


def squared_distance(numbers: SpreadOf, chunks: Sequence[np.ndarray]) -> float:
    """Squared distances of numbers from published ones over squared distances from their mean: the mean over the QIs.

    Of means of classes this is SSE / SST, by which microaggregation is compared (Domingo-Ferrer and Mateo-Sanz, IEEE TKDE
    14(1), 2002).
    """
    total = np.sum(chunks, axis=0)
    squares = _squares(total[:, :3])
    return float(np.mean(_share(total[:, 6], squares))) if len(total) else 0.0


def variance_kept(numbers: SpreadOf, chunks: Sequence[np.ndarray]) -> float:
    """Variance of the published numbers over that of the originals: the mean over the QIs; 1 where there is none."""
    total = np.sum(chunks, axis=0)
    if not len(total):
        return 1.0
    after, before = (_squares(sums) / np.maximum(sums[:, 0], 1) for sums in (total[:, 3:6], total[:, :3]))
    return float(np.mean(_share(after, before)))


def _squares(sums: np.ndarray) -> np.ndarray:
    """Squared distances from the mean, of count, sum and sum of squares."""
    return np.asarray(np.maximum(0.0, sums[:, 2] - sums[:, 1] ** 2 / np.maximum(sums[:, 0], 1)))


def _share(part: np.ndarray, whole: np.ndarray) -> np.ndarray:
    return np.divide(part, whole, out=np.zeros(len(part)), where=whole > 0)
