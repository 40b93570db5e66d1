"""A model of the people behind a release: a mixture of latent classes, fitted to its cells by EM.

Inside a latent class columns are independent; relations between columns come from the classes. It has every column of
the release. Vermunt, van Ginkel, van der Ark and Sijtsma (2008) and Si and Reiter (2013) impute with it.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from scipy import sparse

from anonflow.analysis.candidates import CandidateColumn, CandidateTable

__all__ = ["Mixture", "Model"]

PRIOR = 1.0
"""People that each latent class has besides those of the release, distributed as the whole column is."""

_ENTRIES = 1 << 22

LEAST = 1e-200

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
    What a cell says of a value depends on how it came about. Where each row stands for `matches` originals with equal
    chances and a range is their hull, its two ends are values that some of them have, and so are all members of a set.
    If the others are independent draws from the cell, a range stands for its low end with a weight of
    ``1 - (1 - P(high)) ** (matches - 1)``, and alike for the other end and for values between. A member v of a set has
    the weight that goes with the expected number of matches that have it, a Poisson number of at least one. A cell that
    says nothing has equal weights, as have all cells where `matches` is not known (coarsened at random).
    """

    def __init__(self, candidates: CandidateTable, classes: int) -> None:
        self.candidates = candidates
        self.classes = classes
        n = candidates.n
        self._gather = [
            sparse.csr_matrix((np.ones(n), (column.at, np.arange(n))), shape=(len(column.member), n))
            for column in candidates.columns
        ]

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
            # the weights of a cell's candidates depend on the shares of values: compute them again in each round
            mixture, likelihood = self._round(mixture, self.weights(mixture), weights)
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
            own = even[column.at[rows]].T
            chances.append(0.7 * marginal[:, None] + 0.3 * own)
        return Mixture(np.full(self.classes, 1 / self.classes), tuple(chances))

    def weights(self, mixture: Mixture) -> list[sparse.csr_matrix]:
        """Return the weights of each cell's candidates in each column, shape (u, D) each."""
        return [
            self._weights(column, (chances * mixture.shares).sum(axis=1))
            for column, chances in zip(self.candidates.columns, mixture.chances, strict=True)
        ]

    def _weights(self, column: CandidateColumn, marginal: np.ndarray) -> sparse.csr_matrix:
        even = column.entries
        k = self.candidates.matches
        hulls = ~column.whole & (column.width > 1)
        if k is None or k < 2 or column.exact or not hulls.any():
            return even
        data = even.data.copy()
        rows = np.flatnonzero(hulls)
        # the candidates of these cells, one cell after the other
        entries = np.flatnonzero(np.repeat(hulls, column.width))
        starts = np.concatenate([[0], np.cumsum(column.width[rows])[:-1]])
        inside = np.maximum(marginal[even.indices[entries]], LEAST)
        share = inside / np.repeat(np.add.reduceat(inside, starts), column.width[rows])
        weigh = _range_weights if column.numeric else _set_weights
        data[entries] = weigh(share, starts, column.width[rows], k)
        return sparse.csr_matrix((data, even.indices, even.indptr), shape=even.shape)

    def _round(
        self, mixture: Mixture, weighed: list[sparse.csr_matrix], weights: np.ndarray | None
    ) -> tuple[Mixture, float]:
        masses, likely = self._likely(mixture, weighed)
        own = np.ones(self.candidates.n) if weights is None else weights
        total = likely.sum(axis=1)
        likelihood = float((own * np.log(total)).sum())
        for gather, mass in zip(self._gather, masses, strict=True):
            likelihood += float(((gather @ own) * np.log(mass.max(axis=1))).sum())
        likely *= (own / total)[:, None]
        likely[likely < 1e-9] = 0.0  # denormal numbers are slow and negligible
        shares = likely.sum(axis=0) + 1e-3
        chances = []
        for gather, weight, mass, theta in zip(self._gather, weighed, masses, mixture.chances, strict=True):
            counts = theta * (weight.T @ ((gather @ likely) / mass))
            marginal = counts.sum(axis=1)
            marginal = marginal / marginal.sum() + 1e-9
            counts += PRIOR * marginal[:, None]
            chances.append(counts / counts.sum(axis=0))
        return Mixture(shares / shares.sum(), tuple(chances)), likelihood

    def _likely(
        self, mixture: Mixture, weighed: list[sparse.csr_matrix]
    ) -> tuple[list[np.ndarray], np.ndarray]:
        """Return what each cell weighs in each latent class, (u, H) each; and rows and classes together, (n, H)."""
        likely = np.repeat(mixture.shares[None], self.candidates.n, axis=0)
        masses = []
        for column, weight, theta in zip(self.candidates.columns, weighed, mixture.chances, strict=True):
            mass = np.maximum(weight @ theta, LEAST)
            masses.append(mass)
            # scaled by its largest class, and never so small that products of many columns vanish
            likely *= np.maximum(mass / mass.max(axis=1, keepdims=True), FLOOR)[column.at]
        return masses, likely

    def classes_of(self, mixture: Mixture) -> np.ndarray:
        """Return how likely each row is in each latent class, shape (n, H); rows add up to 1."""
        _, likely = self._likely(mixture, self.weights(mixture))
        return likely / likely.sum(axis=1, keepdims=True)

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
        weighed = self.weights(mixture)
        _, likely = self._likely(mixture, weighed)
        rows = np.cumsum(likely, axis=1)
        own = (rows < rng.random(len(rows))[:, None] * rows[:, -1:]).sum(axis=1)
        own = np.minimum(own, self.classes - 1)
        drawn = {}
        for column, weight, theta in zip(self.candidates.columns, weighed, mixture.chances, strict=True):
            if not column.exact:
                drawn[column.name] = _drawn(column, weight, theta, own, rng)
        return drawn


def _drawn(
    column: CandidateColumn,
    weight: sparse.csr_matrix,
    theta: np.ndarray,
    own: np.ndarray,
    rng: np.random.Generator,
) -> np.ndarray:
    """Return a candidate for each row, by its weight and the chances in the row's latent class, shape (n,), int64."""
    code = column.first[column.at]
    rows = np.flatnonzero(column.width[column.at] > 1)
    chance = rng.random(len(rows))
    inner = np.ascontiguousarray(theta.T)
    step = max(1, _ENTRIES // column.size)
    for start in range(0, len(rows), step):
        some = rows[start : start + step]
        at = column.at[some]
        width = column.width[at]
        ends = np.cumsum(width)
        entries = np.arange(ends[-1]) + np.repeat(weight.indptr[at] - (ends - width), width)
        value = weight.indices[entries]
        sums = np.cumsum(weight.data[entries] * np.maximum(inner[np.repeat(own[some], width), value], LEAST))
        before = np.concatenate([[0.0], sums[ends[:-1] - 1]])
        wanted = before + chance[start : start + step] * (sums[ends - 1] - before)
        places = np.clip(np.searchsorted(sums, wanted, side="right"), ends - width, ends - 1)
        code[some] = value[places]
    return code


def _range_weights(share: np.ndarray, starts: np.ndarray, width: np.ndarray, k: int) -> np.ndarray:
    """Return the weights of ranges that are hulls of k values: both ends occur among the k."""
    stops = starts + width - 1
    low, high = share[starts], share[stops]
    between = 1 - (1 - low) ** (k - 1) - (1 - high) ** (k - 1) + np.maximum(1 - low - high, 0) ** (k - 1)
    ends = 1 - (1 - high) ** (k - 1), 1 - (1 - low) ** (k - 1)
    most = np.maximum(np.maximum(*ends), between)
    most = np.where(most > 0, most, 1.0)
    weight = np.repeat(np.maximum(between, 0) / most, width)
    weight[starts], weight[stops] = ends[0] / most, ends[1] / most
    return weight


def _set_weights(share: np.ndarray, starts: np.ndarray, width: np.ndarray, k: int) -> np.ndarray:
    """Return the weights of sets that are all values of k records: each member occurs at least once."""
    rate = np.full(len(width), float(k))
    for _ in range(6):  # until the expected numbers add up to k: the sum rises with slope 1/2 to 1
        expected = np.add.reduceat(_at_least_one(np.repeat(rate, width) * share), starts)
        rate = np.maximum(rate - (expected - k) * np.where(expected > k, 1.0, 1.5), 1e-6)
    weight = _at_least_one(np.repeat(rate, width) * share) / share
    # sets of more values than matches are no hulls
    weight = np.where(np.repeat(width <= k, width), weight, 1.0)
    return weight / np.repeat(np.maximum.reduceat(weight, starts), width)


def _at_least_one(rate: np.ndarray) -> np.ndarray:
    """Return the mean of a Poisson number, given that it is not 0."""
    rate = np.maximum(rate, 1e-12)
    return rate / -np.expm1(-rate)
