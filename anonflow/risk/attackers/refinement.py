"""An attacker who retraces the rounds of a method: what an earlier round would have published, no later row can be."""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from functools import cached_property
from itertools import pairwise
from typing import Any

import numpy as np
import scipy
from scipy.sparse import csr_array

from anonflow.errors import ParameterError
from anonflow.generalization import Generalization
from anonflow.loss import LOSSES, measure_named
from anonflow.risk.attack_context import AttackContext
from anonflow.risk.attacker import AttackerKind, Success, percent
from anonflow.risk.attackers.row_types import RowTypes, Targets
from anonflow.table.domain import Domain
from anonflow.table.level_cells import MOST_WIDTHS, Runs, interval_runs, node_runs, position_runs

MOST_PARTS = 1 << 16
"""The most parts into which the cells of a row are cut; wider rows are not looked at."""

_SOLVED = 1 << 6
"""The most parts of a linear program."""

_ROUNDS = 32
"""The most rounds that are used, those of the greatest gain: fewer rule out less."""

_ROOM = 2.0
"""The linear program is solved where some round leaves room for fewer records than so many times those of the class."""

_EPS = 1e-6
"""Greater than the errors of sums of losses and of the linear program, less than one record."""


@dataclass(frozen=True, eq=False)
class Rounds:
    """The rounds of local recoding, or of patterns, as far as a release shows them.

    Parameters
    ----------
    rows : Generalization
        A row of each of the g types.
    size : numpy.ndarray, shape (g,), int64
        Rows of each.
    loss : str
        The information loss by which each round chose its levels.
    widths : mapping, optional
        Of the intervals of numeric columns, as :func:`anonflow.algorithms.recoding.local_recoding.local_recoding` takes them.
    by_gain : bool
        Whether gains show the order, too, and not levels alone.

    Notes
    -----
    A round publishes all records that share their cells at its levels with k - 1 others, and its levels gain the most: what
    records lose with all cells hidden less what they lose as published. Three facts follow for every release.

    A later round gains no more than an earlier one: fewer records are left for the same levels. So gains show the order.

    Cells are published once: none of their records is left afterwards. And they are published in the first round that has
    them, because groups only shrink. So cells that several rounds have are those of the first.

    Levels that are nowhere higher than others were before them: after the others, every group there has fewer than k. This needs
    no gains, and holds for rounds in any order.

    A type of row may fit several levels (a value whose parent is high in the hierarchy). Rounds are taken only from types that fit
    one; the gains of the others count as if they belonged to any round that has such cells. So all that follows is certain.
    """

    rows: Generalization
    size: np.ndarray
    loss: str = "ncp"
    widths: dict[str, Sequence[float]] | None = None
    by_gain: bool = True

    @cached_property
    def levels(self) -> list[tuple[tuple[int, ...], Runs]]:
        """For each column its QIs, and the run of each code at each level."""
        columns: dict[str, list[int]] = {}
        for a, domain in enumerate(self.rows.domains):
            columns.setdefault(domain.column, []).append(a)
        levels = []
        for column, qis in columns.items():
            domains = [self.rows.domains[a] for a in qis]
            if domains[0].kind == "positions":
                runs = position_runs(domains)[1]
            elif domains[0].hierarchy is not None:
                runs = node_runs(domains[0].hierarchy)[1]
            else:
                runs = interval_runs(domains[0], (self.widths or {}).get(column))[1]
            levels.append((tuple(qis), _different(runs)))
        return levels

    @cached_property
    def fits(self) -> tuple[np.ndarray, np.ndarray]:
        """The lowest and the highest level that each type may have, shape (columns, g), int64; -1 and -2 if it has none."""
        low, high = [], []
        for qis, runs in self.levels:
            fit = np.ones((len(runs[0][0]), self.rows.n), bool)
            for a, (lo, hi) in zip(qis, runs, strict=True):
                first, last = self.rows.lo[a], self.rows.hi[a]
                if self.rows.domains[a].kind == "numeric":
                    lo, hi = _narrowed(lo, hi, first, last)
                fit &= (lo[:, first] == first) & (hi[:, first] == last)
            has_fit = fit.any(axis=0)
            low.append(np.where(has_fit, fit.argmax(axis=0), -1))
            high.append(np.where(has_fit, len(fit) - 1 - fit[::-1].argmax(axis=0), -2))
        return np.array(low), np.array(high)

    @cached_property
    def gain(self) -> np.ndarray:
        """How much less the rows of each type lose than hidden ones, shape (g,), float64."""
        measure, domains = LOSSES[measure_named(self.loss)], self.rows.domains
        weights = np.array([domain.weight for domain in domains], np.float64)
        gain = np.zeros(self.rows.n)
        for a, (domain, share) in enumerate(zip(domains, weights / weights.sum(), strict=True)):
            if domain.size > 1:
                whole = measure.run_costs(
                    domain, np.zeros(1, np.int32), np.full(1, domain.size - 1, np.int32)
                )
                gain += share * (whole[0] - measure.run_costs(domain, self.rows.lo[a], self.rows.hi[a]))
        return gain * self.size

    @cached_property
    def nodes(self) -> np.ndarray:
        """The levels of rounds that are certain, the greatest gain first, shape (rounds, columns), int64."""
        low, high = self.fits
        nodes = np.unique(low[:, (low == high).all(axis=0)].T, axis=0)
        gains = [-self._gains(node, node)[0] for node in nodes]
        return nodes[np.argsort(gains, kind="stable")[:_ROUNDS]]

    @property
    def visible(self) -> bool:
        """Whether every row has the cells of some levels."""
        return bool((self.fits[0] >= 0).all())

    def _gains(self, least: np.ndarray, most: np.ndarray) -> tuple[float, float]:
        """Return what certainly was gained at levels, and what may have been gained at any levels between two."""
        low, high = self.fits
        certain = (low == least[:, None]).all(axis=0) & (high == most[:, None]).all(axis=0)
        possible = (low <= most[:, None]).all(axis=0) & (high >= least[:, None]).all(axis=0)
        return float(self.gain[certain].sum()), float(self.gain[possible].sum())

    def before(self, at: int) -> np.ndarray:
        """Return which rounds were certainly before that of a type, shape (rounds,), bool."""
        low, high = self.fits
        differs = ((self.nodes < low[:, at]) | (self.nodes > high[:, at])).any(axis=1)
        earlier: np.ndarray = np.asarray(differs & (self.nodes <= low[:, at]).all(axis=1))
        if self.by_gain and len(self.nodes):
            certain, possible = np.array([self._gains(node, node) for node in self.nodes]).T
            last = possible[earlier].min(initial=np.inf)
            earlier |= (certain > last + _EPS) | (
                differs & (certain > self._gains(low[:, at], high[:, at])[1] + _EPS)
            )
        return earlier

    def published_before(self, nodes: np.ndarray) -> np.ndarray:
        """Return which types were certainly published in some rounds or before, shape (g,), bool."""
        low, high = self.fits
        published = np.zeros(self.rows.n, bool)
        for node in nodes:
            published |= ((low <= node[:, None]) & (high >= node[:, None])).all(axis=0)
        return published


def _narrowed(
    lo: np.ndarray, hi: np.ndarray, first: np.ndarray, last: np.ndarray
) -> tuple[np.ndarray, np.ndarray]:
    """Return the intervals of each level as they are published: those that types are in end where the outermost of these types do.

    :meth:`anonflow.generalization.Generalization.narrowed` publishes intervals so; the whole domain stays.
    """
    lo, hi = lo.copy(), hi.copy()
    for low, high in zip(lo[:-1], hi[:-1], strict=True):  # the last level is the whole domain
        inside = (last <= high[first]) & (high[first] - low[first] < high.max())
        start, first_of, last_of = low[first[inside]], low.copy(), high.copy()
        first_of[start], last_of[start] = len(low), -1
        np.minimum.at(first_of, start, first[inside])
        np.maximum.at(last_of, start, last[inside])
        low[:], high[:] = first_of[low], last_of[low]
    return lo, hi


def _different(runs: Runs) -> Runs:
    """Return the levels that differ from the one before."""
    levels = [0]
    for level in range(1, len(runs[0][0])):
        if any((ends[level] != ends[levels[-1]]).any() for pair in runs for ends in pair):
            levels.append(level)
    return [(lo[levels], hi[levels]) for lo, hi in runs]


def possible_values(
    rounds: Rounds, at: int, inside: np.ndarray, k: int
) -> tuple[list[np.ndarray], float] | None:
    """Return for each QI which codes the records of a type may have, and the share of combinations of values that none has.

    Parameters
    ----------
    rounds : Rounds
    at : int
        The type.
    inside : numpy.ndarray, integer
        The types inside its cells.
    k : int

    Returns
    -------
    (list of numpy.ndarray, each shape (D,), bool; float), or None
        None if its cells are too wide to be looked at. All False if no records agree with the rounds: another method made the rows.

    Notes
    -----
    The cells of the type are cut into parts at the lowest levels of the earlier rounds. A part that was published before has no record. Of the
    parts that share a cell at the levels of an earlier round, which did not publish it, fewer than k records are left: a
    linear program over the number of records in each part says how many may have a value (the greatest sum), and a value that
    fewer than one may have is impossible.
    """
    domains, rows, size = rounds.rows.domains, rounds.rows, int(rounds.size[at])
    earlier = rounds.nodes[rounds.before(at)]
    published = rounds.published_before(earlier)
    published[inside] = True
    published[at] = False
    first, last = rows.lo[:, at], rows.hi[:, at]
    parts: list[np.ndarray] = []
    of_round: list[list[np.ndarray]] = [[] for _ in earlier]
    for c, (qis, runs) in enumerate(rounds.levels):
        lowest = int(earlier[:, c].min()) if len(earlier) else len(runs[0][0]) - 1
        for a, (lo, _) in zip(qis, runs, strict=True):
            codes = np.arange(first[a], last[a] + 1)
            cut = np.unique(np.maximum(lo[lowest][codes], first[a]))
            filled = domains[a].values_in(cut, np.append(cut[1:], last[a] + 1) - 1) > 0
            parts.append(np.stack([cut, np.append(cut[1:], last[a] + 1) - 1])[:, filled])
            for labels, node in zip(of_round, earlier, strict=True):
                labels.append(lo[node[c]][cut[filled]])
    order = [a for qis, _ in rounds.levels for a in qis]
    shape = tuple(part.shape[1] for part in parts)
    if float(np.prod(np.array(shape, float))) > MOST_PARTS:
        return None
    place = np.indices(shape).reshape(len(shape), -1)
    allowed = np.ones(place.shape[1], bool)
    for other in np.flatnonzero(
        published & (rows.lo <= last[:, None]).all(axis=0) & (rows.hi >= first[:, None]).all(axis=0)
    ):
        covered = np.ones(place.shape[1], bool)
        for t, (a, part) in enumerate(zip(order, parts, strict=True)):
            covered &= ((part[0] >= rows.lo[a, other]) & (part[1] <= rows.hi[a, other]))[place[t]]
        allowed &= ~covered
    combinations = np.ones(place.shape[1])
    for a, part, of in zip(order, parts, place, strict=True):
        combinations *= domains[a].values_in(*part)[of]
    ruled_out = float(combinations[~allowed].sum() / combinations.sum())
    place = place[:, allowed]
    cells = []
    if place.shape[1] <= _SOLVED:
        for labels in of_round:
            of_part = np.stack([label[of] for label, of in zip(labels, place, strict=True)])
            cells.append(np.unique(of_part, axis=1, return_inverse=True)[1].ravel())
    most = _most(place, shape, cells, size, k - 1) if place.shape[1] else None
    if most is None:
        return [np.zeros(domain.size, bool) for domain in domains], 1.0
    possible = []
    for a in range(len(domains)):
        t = order.index(a)
        codes = np.zeros(domains[a].size, bool)
        for (start, end), records in zip(parts[t].T.tolist(), most[t].tolist(), strict=True):
            codes[start : end + 1] = records > 1 - _EPS
        possible.append(codes)
    return possible, ruled_out


def _most(
    place: np.ndarray, shape: Sequence[int], cells: Sequence[np.ndarray], size: int, room: int
) -> list[np.ndarray] | None:
    """Return for each QI and part the most records that may be there, or None if the records have no place.

    Parameters
    ----------
    place : numpy.ndarray, shape (q, v), int64
        The parts of each of v variables.
    shape : sequence of int, length q
    cells : sequence of numpy.ndarray, each shape (v,), int64
        The cell of each variable at the levels of each earlier round; none for a bound without the linear program.
    size : int
        Records in all.
    room : int
        The most records in a cell.
    """
    v = place.shape[1]
    most = [
        np.where(np.bincount(of, minlength=parts) > 0, float(size), 0.0)
        for of, parts in zip(place, shape, strict=True)
    ]
    if not cells or min((int(of.max()) + 1) * room for of in cells) > _ROOM * size:
        return most
    start = np.cumsum([0, *(int(of.max()) + 1 for of in cells)])
    row = np.concatenate([of + begin for of, begin in zip(cells, start, strict=False)])
    limits = csr_array(
        (np.ones(len(row)), (row, np.tile(np.arange(v), len(cells)))), shape=(int(start[-1]), v)
    )
    everybody = csr_array(np.ones((1, v)))
    for t, of in enumerate(place):
        for part in np.unique(of).tolist():
            answer = scipy.optimize.linprog(
                -(of == part).astype(float), A_ub=limits, b_ub=np.full(limits.shape[0], float(room)),
                A_eq=everybody, b_eq=[float(size)], method="highs",
            )  # fmt: skip
            if answer.status == 2:
                return None
            if answer.status == 0:
                most[t][part] = -answer.fun
    return most


@dataclass(frozen=True, eq=False)
class _Findings:
    """What the attacker says about each attacked row, all of shape (t,).

    Attributes
    ----------
    narrowed : numpy.ndarray, bool
        Whether a value that the row's cells cover is ruled out.
    right : numpy.ndarray, bool
        Whether also the values that are left cover the row's record.
    certain : numpy.ndarray, bool
        Whether also one value is left.
    combinations : numpy.ndarray, float64
        The share of combinations of values that are ruled out.
    unknown : numpy.ndarray, bool
        Whether the row was not looked at.
    """

    narrowed: np.ndarray
    right: np.ndarray
    certain: np.ndarray
    combinations: np.ndarray
    unknown: np.ndarray

    @classmethod
    def none(cls, rows: int) -> _Findings:
        """Return that nothing is ruled out."""
        narrowed, right, certain, unknown = np.zeros((4, rows), bool)
        return cls(narrowed, right, certain, np.zeros(rows), unknown)

    @classmethod
    def of(cls, rounds: Rounds, types: RowTypes, codes: np.ndarray, k: int) -> _Findings | None:
        """Return what rounds rule out for the attacked rows, None if they contradict each other."""
        rows, domains = types.rows, types.rows.domains
        findings = cls.none(len(codes))
        for at in types.attacked():
            of_type = np.flatnonzero(types.type == at)
            answer = possible_values(rounds, at, types.within(at), k)
            if answer is None:
                findings.unknown[of_type] = True
                continue
            possible, findings.combinations[of_type] = answer
            if not possible[0].any():
                return None
            values = [
                codes_left & domain.has_value for codes_left, domain in zip(possible, domains, strict=True)
            ]
            less = [
                domain.values_in(lo, hi) > left.sum()
                for domain, left, lo, hi in zip(domains, values, rows.lo[:, at], rows.hi[:, at], strict=True)
            ]
            good = np.all([left[codes[of_type, a]] for a, left in enumerate(possible)], axis=0)
            alone = any(fewer and left.sum() == 1 for fewer, left in zip(less, values, strict=True))
            findings.narrowed[of_type] = any(less)
            findings.right[of_type] = good & any(less)
            findings.certain[of_type] = good & alone
        return findings


@dataclass(frozen=True)
class Refinement(
    AttackerKind,
    name="refinement",
    does="retraces the rounds of the method",
    needs_truth=True,
    knows="nobody; that the method publishes in rounds, its levels, k, and the values that a column may have",
):
    """Retraces the rounds of a method from the release alone, and rules out values that a round would have published before.

    Parameters
    ----------
    targets : int
        How many rows are attacked, drawn at random; all if there are fewer.
    loss : str
        The information loss of the method.
    widths : mapping, optional
        The widths of intervals that the method had.

    Notes
    -----
    After Chhillar 2025: the paper's linear program uses the greedy choices of ARX's local recoding. Two things differ. The order of
    rounds is read off the gains, as no later round gains more here (:class:`Rounds`); and only what is certain counts,
    without the inequalities that say why other levels were not chosen, which need a binary variable for each group at each
    node. The program is solved for each class by itself, with the room that other classes left over, and so rules out less than
    one for all classes would.

    ``pattern-guided`` tries its patterns one after the other, and each takes all groups of k: these are rounds, too, but gains
    need not show their order, so that the attacker may be wrong where they do not contradict it. ``full-domain`` is
    one round, and rules out what it published for suppressed rows. Rows of other methods do not have the
    cells of common levels, or no records agree with the rounds: the attacker stops. Rounds that suppress classes which are not
    diverse leave more than the attacker thinks, so that it may be wrong. Only narrowed rows that cover their record
    count.
    """

    targets: Targets = 200
    loss: str = "ncp"
    widths: dict[str, Sequence[float]] | None = None

    def __post_init__(self) -> None:
        super().__post_init__()
        measure_named(self.loss)
        named = {} if self.widths is None else self.widths
        if not isinstance(named, Mapping) or not all(map(_nest, named.values())):
            raise ParameterError(
                "refinement: widths are those of the method, a mapping such as {age: [5, 10, 20]}, each width a multiple of the one before"
            )

    def attack(self, context: AttackContext) -> Success:
        """Attack the release. O(targets (g q + rounds parts)) for g different rows, and the linear programs.

        Raises
        ------
        ParameterError
            If the truth is not known, or the table has units, boundaries, missing numbers, or columns without levels.
        """
        for domain in context.table.domains:
            _check_retraceable(domain)
        if context.table.unit is not None:
            raise ParameterError(
                "refinement: rounds count rows, and this table's units have several; leave it out"
            )
        types = RowTypes.of(context, self.name, self.targets)
        codes = context.table.records.codes[types.original]
        findings = None
        for by_gain in (True, False):
            rounds = Rounds(types.rows, types.size, self.loss, self.widths, by_gain)
            if findings is None and rounds.visible and len(rounds.nodes):
                findings = _Findings.of(rounds, types, codes, context.k)
        seen = findings is not None
        if findings is None:
            findings = _Findings.none(len(codes))
        right, certain, combinations = findings.right, findings.certain, findings.combinations
        narrowed, unknown = findings.narrowed, findings.unknown
        risk, sure = (types.people(context, flags.astype(float)) for flags in (right, certain))
        wrong = int(narrowed.sum() - right.sum())
        sentence = (
            f"An attacker who retraces the rounds of the method, and knows nobody, rules out a value that a cell covers for "
            f"{percent(risk.mean)} of the people, and knows the value of {percent(sure.mean)} for certain. Of the combinations of values that "
            f"a row covers it rules out {percent(float(combinations.mean()))} on average, {percent(float(combinations.max()))} at most."
            if seen else
            "An attacker who retraces the rounds of the method finds none: the rows are not those of rounds."
        )  # fmt: skip
        if wrong:
            sentence += f" It is wrong about {percent(wrong / len(codes))} of the rows: they were made in another way."
        if unknown.any():
            sentence += (
                f" {percent(float(unknown.mean()))} of the rows were not looked at: their cells are too wide."
            )
        return risk.success(
            0.0, sentence,
            counted=len(codes) < context.n,
        )  # fmt: skip


def _nest(widths: Any) -> bool:
    """Return whether widths are positive numbers, each at least twice the one before."""
    if not isinstance(widths, list | tuple) or not 0 < len(widths) <= MOST_WIDTHS:
        return False
    numbers = all(type(width) in (int, float) and 0 < width < math.inf for width in widths)
    return numbers and all(wide / narrow >= 2 - 1e-9 for narrow, wide in pairwise(widths))


def _check_retraceable(domain: Domain) -> None:
    name = repr(domain.column)
    if domain.shape == "set" or domain.has_missing:
        raise ParameterError(
            f"refinement: column {name} has no levels, or values that every level hides; leave the attacker out"
        )
    if domain.bound is not None or domain.floor is not None or domain.limit is not None:
        raise ParameterError(
            f"refinement: column {name} has a boundary or a limit, so that rounds differ by records; leave the attacker out"
        )
