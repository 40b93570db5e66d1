"""An attacker who undoes generalization: cells are as fine as possible, and so tell why they are no finer."""

from __future__ import annotations

import math
from dataclasses import dataclass

import numpy as np
import scipy

from anonflow.errors import ParameterError
from anonflow.generalization import Generalization
from anonflow.risk.attack_context import AttackContext
from anonflow.risk.attacker import AttackerKind, Success, percent
from anonflow.risk.attackers.row_types import RowTypes, Targets
from anonflow.table import Domain, Records

_POINTS = 1_000
"""Records that the cells of a row cover: all of them where they are so few, else so many are drawn."""

_CELLS = 1 << 21
"""The most pairs of such a record and a row inside the cells; of more rows, some are drawn."""


def minimal_shares(prior: np.ndarray, size: int, k: int) -> np.ndarray:
    """Return the expected share of a class's records below each child of the node that it is published as.

    Parameters
    ----------
    prior : numpy.ndarray, shape (p,), float64
        The probability that a record is below each child; together 1.
    size : int
        m, the records of the class.
    k : int

    Returns
    -------
    numpy.ndarray, shape (p,), float64
        Given that the node is minimal: no child has all m, and none has k or more while k or more are below the others, as these
        two parts could have been published apart. Fewer than 2k records never part. More have either a child with more than m - k, or
        only children with fewer than k, which needs many children: there the second condition is left out.
    """
    prior = np.asarray(prior, np.float64)
    whole = prior**size
    if (prior > 0).sum() < 2 or whole.sum() >= 1:
        return prior
    if size < 2 * k or size <= (prior > 0).sum() * (k - 1):
        return (prior - whole) / (1 - whole.sum())
    chance = scipy.special.bdtr(size - 1, size, prior) - scipy.special.bdtr(size - k, size, prior)
    if chance.sum() <= 0:
        return prior
    # E[n; m - k < n < m] = m p P(m - k - 1 < n' < m - 1) of m - 1 records
    between = scipy.special.bdtr(size - 2, size - 1, prior) - scipy.special.bdtr(
        size - k - 1, size - 1, prior
    )
    records = size * prior * between
    rest = (chance * size - records) / np.maximum(1 - prior, 1e-300)
    shares = (records + prior * (rest.sum() - rest)) / (chance.sum() * size)
    return shares


@dataclass(frozen=True)
class Downcoding(
    AttackerKind,
    name="downcoding",
    does="guesses finer cells",
    needs_truth=True,
):
    """Guesses for each row a finer cell than is published, from the rows alone.

    The attacker takes the release for minimal: a node is published only where no child of it could be. For each row it
    chooses, among the columns with a hierarchy, the child that is most probably right, and wins if the row with that cell still
    covers the record whose other columns it carries.

    Parameters
    ----------
    targets : int
        How many rows are attacked, drawn at random; all if there are fewer.
    distribution : bool
        Whether the attacker knows how frequent each value of a column is; else all are equally frequent to it. The columns are
        independent to it.

    Notes
    -----
    After Cohen 2022, who calls a release minimal if no finer one is k-anonymous, and proves that minimal hierarchical releases of
    some distributions are undone. It is used in two ways. A record of
    a class of more than k that fits a class inside it could have been published there: it fits none. And a class does not
    part in two of at least k (:func:`minimal_shares`).

    Departing from the paper's adversary, which outputs a finer table for the distributions of its theorems, this one guesses one
    level of one cell in each row, so that it applies to every release; and its guess may be wrong, because no method here promises
    minimality: ``full-domain`` has the same level everywhere, and rows of k-regular or k-concealed releases are no classes.
    Of such rows only this is used: each is the lowest node over k records.

    The baseline is the same guess without minimality. Classes that overlap may show a rise above it (measured:
    ``pattern-guided``, ``agglomerative``); a partition of the records' space (``mondrian``) leaves nothing to exclude.
    """

    targets: Targets = 1_000
    distribution: bool = True

    @property
    def knows(self) -> str:
        return f"nobody; hierarchies, k{', how frequent values are,' if self.distribution else ''} and that cells are as fine as possible"

    def attack(self, context: AttackContext) -> Success:
        """Attack the release. O(targets (g q + points)) for g different rows, each with at most a constant number of points.

        Raises
        ------
        ParameterError
            If the truth is not known, or no column has a hierarchy.
        """
        if not any(domain.hierarchy is not None for domain in context.table.domains):
            raise ParameterError("downcoding: no quasi-identifier has a hierarchy; leave the attacker out")
        types = RowTypes.of(context, self.name, self.targets)
        guesses = _FinerCells(types, context.k, self.distribution, context.rng)
        codes = context.table.records.codes[types.original]
        right, before = np.zeros(len(codes)), np.zeros(len(codes))
        cells = np.zeros(3, np.int64)
        sure = np.zeros(len(codes))
        for at in types.attacked():
            rows = np.flatnonzero(types.type == at)
            usual, minimal = guesses.of(at)
            if not minimal:
                continue
            hits = [[guess.holds(codes[rows]) for guess in candidates] for candidates in (usual, minimal)]
            cells += [len(rows) * len(minimal), *(int(np.sum(hit)) for hit in hits)]
            of_best = [
                int(np.argmax([guess.share for guess in candidates])) for candidates in (usual, minimal)
            ]
            before[rows] = hits[0][of_best[0]]
            right[rows] = hits[1][of_best[1]]
            sure[rows] = right[rows] * minimal[of_best[1]].sure
        risk, baseline, certain = (types.people(context, chances) for chances in (right, before, sure))
        rates = cells[1:] / max(int(cells[0]), 1)
        return risk.success(
            baseline.mean,
            f"An attacker who knows nobody, and that cells are as fine as possible, guesses a finer cell correctly for {percent(risk.mean)} of "
            f"the people, and for {percent(baseline.mean)} without knowing that; for {percent(certain.mean)} other rows leave it no "
            f"other value. Of all generalized cells of these rows it guesses {percent(float(rates[1]))} correctly, and {percent(float(rates[0]))} without.",
            worst=1.0 if certain.above(0.0) else risk.mean, at_risk=certain.above(0.0), counted=len(codes) < context.n,
        )  # fmt: skip


@dataclass(frozen=True)
class _FinerCell:
    """A child of a published node: the run of its codes, its expected share of the row's records, whether there is no other."""

    qi: int
    first: int
    last: int
    share: float
    sure: bool = False

    def holds(self, codes: np.ndarray) -> np.ndarray:
        """Return which records are below it."""
        column = codes[:, self.qi]
        return (column >= self.first) & (column <= self.last)


class _FinerCells:
    """The guesses about each type of row."""

    def __init__(self, types: RowTypes, k: int, distribution: bool, rng: np.random.Generator) -> None:
        self.types, self.k, self.rng = types, k, rng
        domains = types.rows.domains
        self.weights = [
            domain.counts * domain.has_value if distribution else domain.has_value * 1 for domain in domains
        ]
        self.hidden: np.ndarray = np.all(types.rows.whole(), axis=0)
        self.of_classes = not ((types.size < k) & ~self.hidden).any()
        self.coded = any(domain.has_codes for domain in domains)

    def of(self, at: int) -> tuple[list[_FinerCell], list[_FinerCell]]:
        """Return the most probable child of each generalized cell of a type: without minimality, and with it."""
        types, rows = self.types, self.types.rows
        size = int(types.size[at]) if self.of_classes else self.k
        points, weight, exact = np.zeros((0, len(rows.domains)), np.int32), np.zeros(0), True
        if self.of_classes and not self.coded and (size > self.k or self.hidden[at]):
            points, weight, exact = self._left(at, types.within(at))
        usual, minimal = [], []
        for t, a in enumerate(rows.layout.ranges.tolist()):
            first, last = _children(rows.domains[a], int(rows.lo[t, at]), int(rows.hi[t, at]))
            if len(first) < 2:
                continue
            before = np.concatenate([[0], np.cumsum(self.weights[a])])
            prior = (before[last + 1] - before[first]).astype(float)
            if prior.sum() <= 0:
                continue
            prior /= prior.sum()
            likely = int(prior.argmax())
            usual.append(_FinerCell(a, int(first[likely]), int(last[likely]), float(prior[likely])))
            weights = prior
            if len(points):
                below = (points[:, a] >= first[:, None]) & (points[:, a] <= last[:, None])
                weights = below @ weight
                weights = weights / weights.sum() if weights.sum() > 0 else prior
            alone = exact and bool((weights > 0).sum() == 1 < (prior > 0).sum())
            shares = minimal_shares(weights, size, self.k)
            best = int(shares.argmax())
            minimal.append(_FinerCell(a, int(first[best]), int(last[best]), float(shares[best]), alone))
        return usual, minimal

    def _left(self, at: int, inside: np.ndarray) -> tuple[np.ndarray, np.ndarray, bool]:
        """Return records that a type's cells cover and no cells inside them do, their weights, and whether these are all.

        No records if nothing is known of them.
        """
        rows = self.types.rows
        nothing = np.zeros((0, len(rows.domains)), np.int32), np.zeros(0), True
        inside = inside[self.types.size[inside] >= self.k]
        if not len(inside):
            return nothing
        most = _CELLS // _POINTS
        if len(inside) > most:
            inside = np.sort(self.rng.choice(inside, most, replace=False))
        values = [codes[self.weights[a][codes] > 0] for a, codes in enumerate(_covered_codes(rows, at))]
        if not all(map(len, values)):
            return nothing
        exact = math.prod(map(len, values)) <= _POINTS
        if exact:
            grid = np.meshgrid(*values, indexing="ij")
            points = np.stack([coordinates.ravel() for coordinates in grid], axis=1).astype(np.int32)
            weight = np.prod(
                [self.weights[a][points[:, a]] / self.weights[a].sum() for a in range(len(values))], axis=0
            )
        else:
            share = [self.weights[a][codes] / self.weights[a][codes].sum() for a, codes in enumerate(values)]
            drawn = [self.rng.choice(codes, _POINTS, p=p) for codes, p in zip(values, share, strict=True)]
            points = np.stack(drawn, axis=1).astype(np.int32)
            weight = np.ones(_POINTS)
        point_cells = Generalization.of(Records(rows.domains, points))
        possible = np.ones(len(points), bool)
        for other in inside.tolist():
            possible &= ~np.asarray(rows.take(np.array([other])).covers(point_cells))
        return points[possible], weight[possible], exact


def _children(domain: Domain, lo: int, hi: int) -> tuple[np.ndarray, np.ndarray]:
    """Return the first and last code of each child of the node that a run is; none for a value or without a hierarchy."""
    tree = domain.hierarchy
    if tree is None or lo >= hi:
        return np.zeros(0, np.int64), np.zeros(0, np.int64)
    nodes = tree.children(int(tree.lca(lo, hi)))
    first, last = tree.first[nodes].astype(np.int64), tree.last[nodes].astype(np.int64)
    filled = domain.values_in(first, last) > 0
    return first[filled], last[filled]


def _covered_codes(rows: Generalization, at: int) -> list[np.ndarray]:
    """Return for each QI the codes that a row covers."""
    layout = rows.layout
    codes = []
    for a, domain in enumerate(rows.domains):
        if domain.shape == "range":
            t = layout.row_of_range[a]
            codes.append(np.arange(max(int(rows.lo[t, at]), 0), int(rows.hi[t, at]) + 1))
        else:
            words = rows.bits[layout.words[a], at]
            every = np.arange(domain.size)
            codes.append(every[(words[every >> 6] >> (every & 63).astype(np.uint64)) & np.uint64(1) == 1])
    return codes
