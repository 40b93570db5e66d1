"""Certified lower bounds of the information loss of all releases with a given k."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from anonflow.candidate_lists import Candidates
from anonflow.criteria.matching.graph import consistency_graph
from anonflow.errors import InfeasibleError, ParameterError
from anonflow.generalization import Generalization, Layout
from anonflow.hierarchy.wording import plural
from anonflow.kernels.bounds import (
    cover_bounds_jit,
    group_bounds_jit,
    kth_costs_jit,
)
from anonflow.kernels.costs import load
from anonflow.kernels.state import GRID, LINEAR, NODES, SLOPE, State
from anonflow.kernels.state import Plan as CostPlan
from anonflow.loss import LOSSES, measure_named, plan
from anonflow.loss.costs import ROUNDED
from anonflow.table import Records
from anonflow.threads import in_blocks
from anonflow.utility.record_prices import CoveredSets, PricedRecords, priced_total
from anonflow.utility.subject import Part, mixed

PAIRS = 2e10
"""The most cells of pairs of records that are priced: about ten seconds on two cores."""

SEARCH = 2e7
"""The most joins that branch and bound prices: some seconds."""

COMBINATIONS = 4e8
"""The most combinations of levels, times records, that are counted: about five seconds."""

LIMIT = 50_000
"""The fewest candidates that the search for prices may look at for an original; with fewer it hardly ever helps."""

BLOCK = 256  # originals that a thread works on before it takes the next ones


def lower_bound(
    records: Records,
    k: int,
    measure: str = "ncp",
    effort: float = 1.0,
    regular: bool = False,
    covered: Candidates | None = None,
) -> float | None:
    """Return a lower bound of the loss of all releases with this k.

    Parameters
    ----------
    records : Records
        n originals.
    k : int
    measure : str
        A loss, or an alias.
    effort : float, optional
        As :func:`record_bounds` takes it. With `regular`, as many candidates are looked at as joins there; prices are
        sought only where that is at least 50,000 for each different record: 400 of them with the usual effort.
    regular : bool, optional
        Whether it is about k-regular releases and equivalence classes only (:func:`is_regular`). The bound is then higher:
        nobody can be covered in place of others.
    covered : Candidates, optional
        Originals that generalized records of some release cover, such as its matches. With them a high bound of a table of more
        than 400 different records is found sooner. It holds whatever they are.

    Returns
    -------
    float or None
        The mean of :func:`record_bounds` over the records, or more if `regular`; None for entropy, which has no such
        bound.

    Raises
    ------
    ParameterError
        If the measure is unknown.
    InfeasibleError
        If there are fewer than k records.

    Notes
    -----
    Without `regular`, it holds for every release whose generalized records each cover at least k originals, their own among
    them: k-anonymity, (k,1)- and (k,k)-anonymity and k-regularity have it, however the table is cut.
    A suppressed record is published as the whole domain of each QI. That is the highest possible cost, no less than
    covering its k nearest, so suppression does not get below the bound either.

    With `regular`, :mod:`anonflow.utility.record_prices` has the theorem and its proof.
    """
    loss_name = measure_named(measure)
    if not LOSSES[loss_name].monotone:
        return None
    weighted = _WeightedRecords.of(records, k, loss_name)
    return _bound(weighted, _record_bounds(weighted, effort), effort, regular, covered)


def lower_bounds(
    records: Records, k: int, measure: str = "ncp", effort: float = 1.0
) -> tuple[float, float] | None:
    """Return :func:`lower_bound` without `regular` and with it; records are searched once for both.

    Parameters
    ----------
    records, k, measure, effort
        As there.

    Raises
    ------
    ParameterError, InfeasibleError
        As there.
    """
    loss_name = measure_named(measure)
    if not LOSSES[loss_name].monotone:
        return None
    weighted = _WeightedRecords.of(records, k, loss_name)
    bounds = _record_bounds(weighted, effort)
    return _bound(weighted, bounds, effort, False), _bound(weighted, bounds, effort, True)


def _bound(
    weighted: _WeightedRecords,
    bounds: np.ndarray,
    effort: float,
    regular: bool,
    covered: Candidates | None = None,
) -> float:
    """Return the bound of the mean loss, from that of each different record, shape (u,)."""
    mean = float(bounds[weighted.label].mean())
    limit = int(effort * SEARCH / len(bounds))
    if regular and weighted.k > 1 and limit >= LIMIT:
        everything = Generalization.of(weighted.records.take(np.zeros(1, np.int64)))
        hidden = everything.with_suppressed(np.ones(1, bool))
        whole = float(weighted.costs(hidden)[0])
        priced = PricedRecords(
            weighted.plan, weighted.origin(), weighted.weight, weighted.k, whole / weighted.k
        )
        sets = None
        # with fewer different records the usual effort finds good sets by itself
        if covered is not None and LIMIT * len(bounds) > SEARCH:
            members = weighted.label[covered.sets_of_size(weighted.k)].astype(np.int32)
            members = np.unique(np.sort(members, axis=1), axis=0)
            sets = CoveredSets(members, weighted.costs(Generalization.join_of(weighted.records, members)))
        mean = max(mean, priced_total(priced, bounds, limit, sets) / len(weighted.label))
    return _below(mean, weighted.records.q)


def is_regular(part: Part, k: int) -> bool:
    """Return whether generalized records, but for suppressed ones, have k matches each or are in classes of at least k."""
    if part.candidates is None:
        return False
    sizes = part.sizes[part.labels] if part.homogeneous else part.candidates.sizes
    return bool((sizes[~part.suppressed] >= k).all())


def least_total(records: Records, k: int, measure: str, effort: float) -> float:
    """Return a lower bound of the total loss of one partition's records: the sum of :func:`record_bounds`.

    Parameters
    ----------
    records : Records
    k : int
    measure : str
        A loss that never falls when more is covered.
    effort : float
        As :func:`record_bounds` takes it; with 0, :func:`pair_costs` alone where that is affordable: O(n^2 q).

    Raises
    ------
    ParameterError, InfeasibleError
        As there.
    """
    if effort or float(records.n) ** 2 * max(records.q, 1) > PAIRS:
        bounds = record_bounds(records, k, measure, effort)
    else:
        bounds = pair_costs(records, k, measure)
    return _below(float(bounds.sum()), records.n * records.q)


def _below(bound: float, cells: int) -> float:
    """Return the bound less what the kernels' costs may be above the loss: a share, and half a grid step for each cell."""
    return max(0.0, bound * (1.0 - ROUNDED) - cells * GRID)


def covers_at_least(records: Records, generalization: Generalization, k: int) -> bool:
    """Return whether each generalized record covers at least k originals."""
    degrees = consistency_graph(records, generalization).degrees()[1]
    return bool((degrees >= k).all())


def record_bounds(records: Records, k: int, measure: str = "ncp", effort: float = 1.0) -> np.ndarray:
    """Return for each record a lower bound of the cost of covering it and at least k - 1 others.

    Parameters
    ----------
    records : Records
        n originals.
    k : int
    measure : str
        A loss that never falls when more is covered: not entropy.
    effort : float, optional
        How much more than usual is searched in step 3, where 0 leaves it out, and counted in step 1, where less
        than 1 is as 1.

    Returns
    -------
    numpy.ndarray, shape (n,), float64
        The greatest of these, each of them a bound:

        1. :func:`relaxed_costs`, which is the least cost itself where no QI is a number or a set (Murakami 2018,
           section 4, relaxation 7 to 9);
        2. :func:`pair_costs`, where n^2 q is at most 2e10 (30,162 records of 8 QIs: 7e9);
        3. :func:`cover_costs`, as far as about 2e7 joins go: all the way on tables of some hundred records.

    Raises
    ------
    ParameterError
        If the measure is unknown or is entropy, or the effort is negative.
    InfeasibleError
        If there are fewer than k records.

    Notes
    -----
    Equal records are merged first and counted. The result does not depend on the machine: counts decide which bounds
    are computed. Costs are the kernels', within 1e-11 of the loss.
    """
    weighted = _WeightedRecords.of(records, k, measure)
    return _record_bounds(weighted, effort)[weighted.label]


def _record_bounds(weighted: _WeightedRecords, effort: float) -> np.ndarray:
    """Return the bound of each different record, shape (u,)."""
    if not 0 <= effort < float("inf"):
        raise ParameterError("effort is a number of at least 0, 1 being the usual")
    bounds, exact = _relaxed(weighted, effort=effort)
    if not exact and float(len(weighted.weight)) ** 2 * max(weighted.records.q, 1) <= PAIRS:
        bounds = np.maximum(bounds, _nearest_pair_costs(weighted))
        if effort:
            bounds = np.maximum(bounds, _covers(weighted, int(effort * SEARCH / len(weighted.weight)))[0])
    return bounds


def relaxed_costs(records: Records, k: int, measure: str = "ncp") -> np.ndarray:
    """Return the least cost of levels of the QIs at which k records are equal: exact for suppression and hierarchies.

    Parameters
    ----------
    records : Records
    k : int
    measure : str

    Returns
    -------
    numpy.ndarray, shape (n,), float64

    Raises
    ------
    ParameterError
        If the measure is unknown, or is entropy.
    InfeasibleError
        If there are fewer than k records.

    Notes
    -----
    Murakami 2018, section 4: the degrees of the originals are left out, so each record chooses by itself which of
    its cells to hide, as few as k records allow. Generalized: a hierarchy has a level for each node above the
    value. A number or a set has two, the value and "more than this", priced as the cheapest generalization with a
    second value; so for these it is only a bound. Where there are too many combinations, hierarchies are treated
    likewise, then QIs are left out, those of fewest values first. O(c n) for c combinations of levels.
    """
    weighted = _WeightedRecords.of(records, k, measure)
    return _relaxed(weighted)[0][weighted.label]


def pair_costs(records: Records, k: int, measure: str = "ncp") -> np.ndarray:
    """Return the k-th smallest cost of covering a record and one original, the record itself counted first.

    Among k covered originals, one is at least as far as the k-th nearest, and costs never fall. A record
    that occurs k times costs nothing.

    Parameters
    ----------
    records, k, measure
        As in :func:`relaxed_costs`.

    Returns
    -------
    numpy.ndarray, shape (n,), float64

    Raises
    ------
    ParameterError
        If the measure is unknown, or is entropy.
    InfeasibleError
        If there are fewer than k records.

    Notes
    -----
    O(n^2 q) time in blocks on all processors, O(n) memory for each.
    """
    weighted = _WeightedRecords.of(records, k, measure)
    return _nearest_pair_costs(weighted)[weighted.label]


def cover_costs(
    records: Records, k: int, measure: str = "ncp", joins: int = 10_000_000
) -> tuple[np.ndarray, np.ndarray]:
    """Return the least cost of covering each record and k - 1 others, or a bound of it, by branch and bound.

    Parameters
    ----------
    records, k, measure
        As in :func:`relaxed_costs`.
    joins : int, optional
        Joins of records that the search for each record prices, about, before it stops.

    Returns
    -------
    bounds : numpy.ndarray, shape (n,), float64
        At least those of :func:`pair_costs`.
    exact : numpy.ndarray, shape (n,), bool
        Whether the search was completed: then it is the (k,1)-optimum.

    Raises
    ------
    ParameterError
        If the measure is unknown, or is entropy.
    InfeasibleError
        If there are fewer than k records.
    """
    weighted = _WeightedRecords.of(records, k, measure)
    bounds, exact = _covers(weighted, joins)
    return bounds[weighted.label], exact[weighted.label]


@dataclass(frozen=True, eq=False)
class _WeightedRecords:
    """Different records, how often each occurs (`weight`), and which one each record is (`label`)."""

    records: Records
    label: np.ndarray
    weight: np.ndarray
    k: int
    plan: CostPlan

    @classmethod
    def of(cls, records: Records, k: int, measure: str) -> _WeightedRecords:
        loss_name = measure_named(measure)
        if not LOSSES[loss_name].monotone:
            raise ParameterError(
                f"no lower bound holds for {loss_name}: it may fall when more is covered; use one of {', '.join(name for name, loss in LOSSES.items() if loss.monotone)}"
            )
        if records.n < k:
            raise InfeasibleError(f"k = {k} is more than the {plural(records.n, 'record')}; lower k")
        _, first, label, weight = np.unique(
            records.classes(), return_index=True, return_inverse=True, return_counts=True
        )
        return cls(
            records.take(first), label, weight.astype(np.int64), int(k), plan(records.domains, loss_name)
        )

    def origin(self) -> State:
        originals = Generalization.of(self.records)
        return load(self.plan, originals.lo, originals.hi, originals.bits)

    def costs(self, generalization: Generalization) -> np.ndarray:
        return load(self.plan, generalization.lo, generalization.hi, generalization.bits).cost


def _nearest_pair_costs(weighted: _WeightedRecords) -> np.ndarray:
    origin = weighted.origin()
    out = np.empty(len(weighted.weight))

    def work(start: int, stop: int) -> None:
        kth_costs_jit(weighted.plan, origin, weighted.weight, weighted.k, start, stop, out)

    in_blocks(work, len(out), BLOCK)
    return out


def _covers(weighted: _WeightedRecords, joins: int) -> tuple[np.ndarray, np.ndarray]:
    origin = weighted.origin()
    out, exact = np.empty(len(weighted.weight)), np.empty(len(weighted.weight), bool)

    def work(start: int, stop: int) -> None:
        cover_bounds_jit(weighted.plan, origin, weighted.weight, weighted.k, joins, start, stop, out, exact)

    in_blocks(work, len(out), BLOCK)
    return out, exact


# --- levels ---------------------------------------------------------------------------------------------


@dataclass(frozen=True, eq=False)
class _Levels:
    """A QI's levels: what each code looks like, (levels, D), and costs. The last row of D is a missing number."""

    look: np.ndarray
    cost: np.ndarray
    exact: bool


def _relaxed(weighted: _WeightedRecords, effort: float = 1.0) -> tuple[np.ndarray, bool]:
    most = COMBINATIONS * max(1.0, effort)
    n, q = weighted.records.n, weighted.records.q
    levels_of = [_levels(weighted, a) for a in range(q)]
    order = [a for a in range(q) if levels_of[a] is not None]
    levels = [level for level in levels_of if level is not None]
    exact = all(
        level.exact if level is not None else weighted.records.domains[a].size <= 1
        for a, level in enumerate(levels_of)
    )

    def combinations() -> float:
        return float(np.prod([float(len(level.look)) for level in levels])) * n

    for at in sorted(range(len(levels)), key=lambda at: -len(levels[at].look)):
        if combinations() > most and len(levels[at].look) > 2:
            levels[at], exact = _two(levels[at]), False
    while levels and combinations() > most:
        least = min(range(len(levels)), key=lambda at: levels[at].look.shape[1])
        del levels[least], order[least]
        exact = False
    level_at = np.cumsum([0, *(len(level.look) for level in levels)], dtype=np.int64)
    key = np.empty((int(level_at[-1]), n), np.uint64)
    cost = np.empty(key.shape)
    for a, level, start in zip(order, levels, level_at, strict=False):
        codes = weighted.records.codes[:, a]
        for row in range(len(level.look)):
            key[start + row] = _hashes_of_cells(level.look[row], int(start) + row)[codes]
            cost[start + row] = level.cost[row][codes]
    # every record can have everything hidden
    best = np.full(n, np.inf)
    group_bounds_jit(key, cost, level_at, weighted.weight, weighted.k, best)
    return best, exact


def _levels(weighted: _WeightedRecords, a: int) -> _Levels | None:
    """Return the levels of QI a, None if they certainly cost nothing."""
    domain = weighted.records.domains[a]
    if domain.size <= 1 or domain.has_codes:  # beside a code, a number costs nothing
        return None
    codes = np.arange(domain.size + 1)
    codes[-1] = -1
    layout = Layout.of(weighted.records.domains)
    if domain.shape == "set":
        t = int(np.flatnonzero(layout.sets == a)[0])
        due = weighted.plan.set_form[t] == SLOPE or weighted.plan.set_least[t] == 2
        unit = float(weighted.plan.set_unit[t])
        exact = domain.size == 2 or (due and weighted.plan.set_form[t] != SLOPE)
        return _second(codes, np.full(len(codes), unit), 0.0, exact) if due else None
    t = int(np.flatnonzero(layout.ranges == a)[0])
    if weighted.plan.range_form[t] == NODES:
        return _nodes(weighted.plan, t, domain.size)
    if weighted.plan.range_form[t] == LINEAR:
        points = weighted.plan.points[weighted.plan.point_at[t] : weighted.plan.point_at[t + 1]]
        gap = np.diff(points, prepend=-np.inf, append=np.inf)
        nearest = np.minimum(gap[:-1], gap[1:])
        return _second(codes, np.append(nearest, points[-1]), float(points[-1]), domain.size == 2)
    whole = float(weighted.plan.range_unit[t])
    if domain.size == 2:
        return _second(codes, np.full(len(codes), whole), whole, True)
    return None


def _second(codes: np.ndarray, step_cost: np.ndarray, missing: float, exact: bool) -> _Levels:
    """Return two levels: the value, and more than this. A missing number costs what the whole domain does."""
    cost = np.zeros((2, len(codes)))
    cost[1] = step_cost
    cost[:, -1] = missing
    return _Levels(np.stack([codes, np.zeros_like(codes)]), cost, exact)


def _two(levels: _Levels) -> _Levels:
    """Return a hierarchy's value, and the least that a node above it costs."""
    above = np.where(levels.look == levels.look[0], np.inf, levels.cost).min(axis=0)
    look = np.stack([levels.look[0], np.zeros_like(levels.look[0])])
    return _Levels(look, np.stack([levels.cost[0], np.where(np.isinf(above), 0.0, above)]), False)


def _nodes(plan: CostPlan, t: int, size: int) -> _Levels:
    """Return a hierarchy's levels: the node above each value at each depth, the value where it is no deeper."""
    chains = []
    for leaf in range(size):
        node = int(plan.leaf[plan.range_at[t] + leaf])
        chain = [node]
        while plan.parent[node] >= 0:
            node = int(plan.parent[node])
            chain.append(node)
        chains.append(chain[::-1])
    rows, costs = [], []
    for depth in range(max(map(len, chains)) - 1, -1, -1):
        at = np.array([chain[min(depth, len(chain) - 1)] for chain in chains])
        rows.append(np.append(at, -1))
        costs.append(np.append(plan.node_cost[at], 0.0))
    return _Levels(np.array(rows), np.array(costs), True)


def _hashes_of_cells(look: np.ndarray, salt: int) -> np.ndarray:
    """Return a fixed random 64-bit number for each cell at a level (Steele, Lea and Flood's splitmix64)."""
    with np.errstate(over="ignore"):
        z = (look.astype(np.int64) + 2).astype(np.uint64) + np.uint64(salt + 1) * np.uint64(
            0x9E3779B97F4A7C15
        )
    # a multiplier for 64 bits of Steele and Vigna (Computationally easy, spectrally good multipliers)
    return mixed(z * np.uint64(0xD1342543DE82EF95))
