"""A model of the people behind a release: a mixture of latent classes, fitted to its cells by EM.

Inside a latent class columns are independent; relations between columns come from the classes. It has every column of
the release. Vermunt, van Ginkel, van der Ark and Sijtsma (2008) and Si and Reiter (2013) impute with it.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from scipy import sparse

from anonflow.analysis.candidates import CandidateColumn, CandidateTable

PRIOR = 1.0
"""People that each latent class has besides those of the release, distributed as the whole column is."""

ALIKE = 8.0
"""How alike the originals of a row are in a category: balls in the urn that their values come from; fewer are more alike."""

NEAR = 0.5
"""How near the originals of a row are in a number: the part of it that is spread evenly over the range, not by latent class."""

_ENTRIES = 1 << 22

LEAST = 1e-200  # in place of a chance of 0, whose logarithm and reciprocal are no numbers

FLOOR = 1e-6
"""The least factor by which one column may reduce a latent class, relative to the best class for its cell."""


@dataclass(frozen=True, eq=False)
class Mixture:
    """The parameters.

    Attributes
    ----------
    shares : numpy.ndarray, shape (H,), float64
        Of the latent classes; they add up to 1.
    chances : tuple of numpy.ndarray, each shape (D, H), float64
        For each column how likely each candidate value is in each latent class; columns add up to 1.
    """

    shares: np.ndarray
    chances: tuple[np.ndarray, ...]


class Model:
    """Fits mixtures to one release.

    Parameters
    ----------
    candidates : CandidateTable
        n rows.
    classes : int
        Latent classes, H.

    Notes
    -----
    What a cell says of a value depends on how it came about. Where each row stands for k `matches` with equal chances,
    its cells are their hulls. So each end of a range is the value of one of them, and each member of a set, or of a label
    with at most k, that of one or more, since those of one row resemble each other: of :func:`occurrences`. The row's own
    value is one of these with that chance over k, whatever its latent class; else it is drawn by its latent class from
    all that the cell covers, and half of the numbers of a range without codes evenly. These rules, and the constants
    `ALIKE` and `NEAR`, were chosen by experiments with releases of five tables. A cell that names no such values, and all
    cells where `matches` is not known, are taken to be coarsened at random.
    """

    def __init__(self, candidates: CandidateTable, classes: int) -> None:
        self.candidates = candidates
        self.classes = classes
        n = candidates.n
        self._gather = [
            sparse.csr_matrix((np.ones(n), (column.at, np.arange(n))), shape=(len(column.member), n))
            for column in candidates.columns
        ]
        # where rows are suppressed, a hidden cell is no hull
        stars = not candidates.suppressed.any()
        self._hulls = [_Hull.of(column, candidates.matches, stars) for column in candidates.columns]

    def fit(
        self,
        rng: np.random.Generator,
        *,
        rounds: int = 60,
        weights: np.ndarray | None = None,
        start: Mixture | None = None,
    ) -> Mixture:
        """Fit by expectation and maximization.

        Parameters
        ----------
        rng : numpy.random.Generator
            Where to start, without `start`.
        rounds : int
            At most; fewer where the likelihood changes by less than 1e-7 of itself.
        weights : numpy.ndarray, shape (n,), float64, optional
            Of the rows.
        start : Mixture, optional

        Returns
        -------
        Mixture
            O(rounds n c H) for c columns.
        """
        mixture = self._first(rng) if start is None else start
        before = -np.inf
        for _ in range(rounds):
            mixture, likelihood = self._round(mixture, weights)
            if abs(likelihood - before) < 1e-7 * abs(likelihood):
                break
            before = likelihood
        return mixture

    def _first(self, rng: np.random.Generator) -> Mixture:
        """Around rows that are drawn at random."""
        rows = rng.integers(self.candidates.n, size=self.classes)
        chances = []
        for column in self.candidates.columns:
            even = column.member / column.width[:, None]
            counts = np.bincount(column.at, minlength=len(even))
            marginal = counts @ even / counts.sum()
            row_chances = even[column.at[rows]].T
            chances.append(0.7 * marginal[:, None] + 0.3 * row_chances)
        return Mixture(np.full(self.classes, 1 / self.classes), tuple(chances))

    def _round(self, mixture: Mixture, weights: np.ndarray | None) -> tuple[Mixture, float]:
        masses, likely = self._likely(mixture)
        row_weights = np.ones(self.candidates.n) if weights is None else weights
        total = likely.sum(axis=1)
        likelihood = float((row_weights * np.log(total)).sum())
        for gather, mass in zip(self._gather, masses, strict=True):
            likelihood += float(((gather @ row_weights) * np.log(mass.max(axis=1))).sum())
        likely *= (row_weights / total)[:, None]
        likely[likely < 1e-9] = 0.0  # denormal numbers are slow and negligible
        # a latent class that lost all its rows could never get one again
        shares = likely.sum(axis=0) + 1e-3
        chances = []
        for gather, hull, mass, theta in zip(self._gather, self._hulls, masses, mixture.chances, strict=True):
            counts = hull.counts(gather @ likely, mass, theta)
            marginal = counts.sum(axis=1)
            marginal = marginal / marginal.sum() + 1e-9
            counts += PRIOR * marginal[:, None]
            chances.append(counts / counts.sum(axis=0))
        return Mixture(shares / shares.sum(), tuple(chances)), likelihood

    def _likely(self, mixture: Mixture) -> tuple[list[np.ndarray], np.ndarray]:
        """Return how likely each cell is in each latent class, (u, H) each; and rows and classes together, (n, H)."""
        likely = np.repeat(mixture.shares[None], self.candidates.n, axis=0)
        masses = []
        for column, theta in zip(self.candidates.columns, mixture.chances, strict=True):
            mass = np.maximum(column.entries @ theta, LEAST)
            masses.append(mass)
            # scaled by its largest class, and never so small that products of many columns vanish
            likely *= np.maximum(mass / mass.max(axis=1, keepdims=True), FLOOR)[column.at]
        return masses, likely

    def classes_of(self, mixture: Mixture) -> np.ndarray:
        """Return how likely each row is in each latent class, shape (n, H); rows add up to 1."""
        _, likely = self._likely(mixture)
        return likely / likely.sum(axis=1, keepdims=True)

    def expected(self, mixture: Mixture, place: int, share: np.ndarray) -> np.ndarray:
        """Return the part of each cell of a column that meets a condition, in each latent class, shape (u, H).

        Parameters
        ----------
        mixture : Mixture
        place : int
            Of the column in the release.
        share : numpy.ndarray, shape (D,), float64
            Which part of each candidate value meets it.
        """
        hull, theta = self._hulls[place], mixture.chances[place]
        entries = self.candidates.columns[place].entries
        mass = np.maximum(entries @ theta, LEAST)
        return (
            hull.rest[:, None] * (entries @ (theta * share[:, None])) / mass + (hull.common @ share)[:, None]
        )

    def draw(self, mixture: Mixture, rng: np.random.Generator) -> dict[str, np.ndarray]:
        """Return a candidate value for every cell of the columns that are generalized.

        Parameters
        ----------
        mixture : Mixture
        rng : numpy.random.Generator

        Returns
        -------
        dict of str -> numpy.ndarray, shape (n,), int64
            Column -> which candidate each row has.
        """
        _, likely = self._likely(mixture)
        rows = np.cumsum(likely, axis=1)
        class_of_row = (rows < rng.random(len(rows))[:, None] * rows[:, -1:]).sum(axis=1)
        class_of_row = np.minimum(class_of_row, self.classes - 1)
        drawn = {}
        for column, hull, theta in zip(self.candidates.columns, self._hulls, mixture.chances, strict=True):
            if not column.exact:
                drawn[column.name] = _drawn(column, hull, theta, class_of_row, rng)
        return drawn


def occurrences(k: int) -> float:
    """Return how many of k values are a rare one that is among them, on average, if they come from a Pólya urn of `ALIKE` balls."""
    return k / float((ALIKE / (ALIKE + np.arange(k))).sum())


@dataclass(frozen=True, eq=False)
class _Hull:
    """What the cells of a column say of the values that they cover.

    Attributes
    ----------
    entries : scipy.sparse.csr_matrix, shape (u, D), float64
        What each cell covers, as ones.
    common : scipy.sparse.csr_matrix, shape (u, D), float64
        The chances of values that do not depend on the latent class.
    rest : numpy.ndarray, shape (u,), float64
        What is left of 1: the chance that the value is drawn by the latent class.
    """

    entries: sparse.csr_matrix
    common: sparse.csr_matrix
    rest: np.ndarray

    @classmethod
    def of(cls, column: CandidateColumn, matches: int | None, stars: bool) -> _Hull:
        entries = column.entries
        if matches is None or matches < 2:
            nothing = sparse.csr_matrix(entries.shape, dtype=np.float64)
            return cls(entries, nothing, np.ones(entries.shape[0]))
        cell, value = np.repeat(np.arange(entries.shape[0]), column.width), entries.indices
        number = column.is_number[value]
        present = column.present[cell, value]
        # more values than originals cannot all be there
        open_cells = np.bincount(cell, present) <= matches
        present &= (open_cells & (stars | ~column.whole))[cell]
        chance = present * np.where(number, 1.0, occurrences(matches)) / matches
        chance /= np.maximum(np.bincount(cell, chance), 1.0)[cell]
        # beside a code the class says whether there is a number
        near = (np.bincount(cell, present) > 0) & (np.bincount(cell, ~number) == 0)
        rest = 1 - np.bincount(cell, chance)
        chance += NEAR * (near * rest / column.width)[cell]
        common = sparse.csr_matrix((chance, value, entries.indptr), shape=entries.shape, copy=True)
        common.eliminate_zeros()
        return cls(entries, common, 1 - np.bincount(cell, chance))

    def counts(self, rows: np.ndarray, mass: np.ndarray, theta: np.ndarray) -> np.ndarray:
        """Return how many people have each value in each latent class, shape (D, H), of `rows` (u, H) that have each cell."""
        return np.asarray(
            theta * (self.entries.T @ (self.rest[:, None] * rows / mass)) + self.common.T @ rows
        )


def _drawn(
    column: CandidateColumn,
    hull: _Hull,
    theta: np.ndarray,
    class_of_row: np.ndarray,
    rng: np.random.Generator,
) -> np.ndarray:
    """Return a candidate for each row, by what its cell says and the chances in the row's latent class, shape (n,), int64."""
    code = column.first[column.at]
    rows = np.flatnonzero(column.width[column.at] > 1)
    chance = rng.random((2, len(rows)))
    inner = np.ascontiguousarray(theta.T)
    by_class = chance[0] < hull.rest[column.at[rows]]
    step = max(1, _ENTRIES // column.size)
    for weights, drawn in ((hull.entries, by_class), (hull.common, ~by_class)):
        for batch in np.array_split(np.flatnonzero(drawn), drawn.sum() // step + 1):
            at = column.at[rows[batch]]
            width = np.diff(weights.indptr)[at]
            ends = np.cumsum(width)
            places = np.arange(width.sum()) + np.repeat(weights.indptr[at] - (ends - width), width)
            value, weight = weights.indices[places], weights.data[places]
            if weights is hull.entries:
                weight = np.maximum(inner[np.repeat(class_of_row[rows[batch]], width), value], LEAST)
            sums = np.concatenate([[0.0], np.cumsum(weight)])
            before, after = sums[ends - width], sums[ends]
            target = before + chance[1][batch] * (after - before)
            place = np.clip(np.searchsorted(sums[1:], target, side="right"), ends - width, ends - 1)
            code[rows[batch]] = value[place]
    return code
