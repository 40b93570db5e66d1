"""Costs of cells, records and releases under an information loss, and the same costs for the kernels."""

from __future__ import annotations

import math
from collections.abc import Sequence
from fractions import Fraction
from functools import lru_cache

import numpy as np

from anonflow.errors import ParameterError
from anonflow.generalization import Generalization, Layout
from anonflow.kernels.state import ENTROPY, LINEAR, NODES, OPTIONAL, SLOPE, STEP, WHOLE, Plan, on_grid
from anonflow.loss.measure import Loss, Pools
from anonflow.loss.registry import LOSSES, measure_named
from anonflow.table.domain import Domain

MOST_PARTS = 2**16
"""The largest common denominator of costs that a plan keeps exact."""

ROUNDED = 2.0**-33
"""Share by which the cost of a record in a plan may differ from its loss."""

_FORMS = {"run": (LINEAR, WHOLE, ENTROPY), "set": (SLOPE, STEP, ENTROPY)}
"""The forms by which the kernels price a run without a hierarchy, and a set."""


def information_loss(generalization: Generalization, measure: str = "ncp") -> float:
    """Return the loss of a release: the mean of its records' losses; 0 for no records. GCP for ``ncp``.

    Raises
    ------
    ParameterError
        If the measure is unknown.
    """
    costs = record_costs(generalization, measure)
    return float(costs.mean()) if len(costs) else 0.0


def rounded_down(bound: float | None) -> float | None:
    """Return a lower bound of a loss as it is shown, with four decimals: rounded up it would be wrong."""
    return None if bound is None else math.floor(bound * 1e4) / 1e4


def excess_of(loss: float, bound: float) -> float | None:
    """Return by which share of a lower bound a loss is above it, so at most above the least loss; None where the bound is 0."""
    return max(loss / bound - 1.0, 0.0) if bound > 0 else None


def at_most_above(excess: float | None) -> str:
    """Return such as ``at most 43%``, rounded up; nothing without a number."""
    return "" if excess is None else f"at most {math.ceil(100 * excess)}%"


def record_costs(generalization: Generalization, measure: str = "ncp") -> np.ndarray:
    """Return the loss of each record: the mean of its cells' costs, weighted by the QIs' weights.

    Returns
    -------
    numpy.ndarray, shape (n,), float64
        In [0, 1], for entropy in bits.

    Raises
    ------
    ParameterError
        If the measure is unknown.
    """
    # added up QI by QI: a product of matrices rounds as BLAS, its threads and its version like
    total = np.zeros(generalization.n)
    for share, costs in zip(
        _column_shares(generalization.domains), cell_costs(generalization, measure), strict=True
    ):
        total += share * costs
    return total


def cell_costs(generalization: Generalization, measure: str = "ncp") -> np.ndarray:
    """Return the cost of each cell, without weights.

    Parameters
    ----------
    generalization : Generalization
        n generalized records over q coded QIs.
    measure : str
        ``ncp``, ``lm``, ``entropy``, ``height``, ``suppressions`` or an alias.

    Returns
    -------
    numpy.ndarray, shape (q, n), float64
        In [0, 1], for entropy in bits.

    Raises
    ------
    ParameterError
        If the measure is unknown.

    Notes
    -----
    O(n q), plus O(u D) for the entropy of u distinct sets over D values. Computed from the definitions
    alone, in float64; the kernels' costs are these, rounded.
    """
    loss = LOSSES[measure_named(measure)]
    cells = np.zeros((len(generalization.domains), generalization.n))
    layout = generalization.layout
    for t, a in enumerate(layout.ranges):
        cells[a] = run_costs(loss, generalization.domains[a], generalization.lo[t], generalization.hi[t])
    for (a, words), counts in zip(layout.words.items(), generalization.counts(), strict=True):
        domain = generalization.domains[a]
        if domain.size > 1:
            cells[a] = loss.set_costs(domain, generalization.bits[words], counts)
    return cells


def run_costs(loss: Loss, domain: Domain, lo: np.ndarray, hi: np.ndarray) -> np.ndarray:
    """Return the costs of runs of a domain's codes, shape (n,), float64.

    An empty run (read from a file, or a code beside the numbers) costs as much as the run of one value: nothing.
    """
    if domain.size <= 1:
        return np.zeros(lo.shape)
    first = np.minimum(lo, domain.size - 1)
    return np.where(lo > hi, 0.0, loss.run_costs(domain, first, np.maximum(hi, first)))


def suppressed_cells(generalization: Generalization) -> int:
    """Return how many cells are published as ``*``, hidden positions of a code one by one."""
    return int(cell_costs(generalization, "suppressions").sum())


def height_total(generalization: Generalization) -> float:
    """Return Miller 2008's total information loss (Definitions 10, 11): the sum of all cells' height costs.

    QIs are not weighted; a suppressed record costs q, which is the maximum.
    """
    return float(cell_costs(generalization, "height").sum())


def _column_shares(domains: Sequence[Domain]) -> np.ndarray:
    """Return weights that add up to 1, shape (q,)."""
    weights = np.array([domain.weight for domain in domains], np.float64)
    return weights / weights.sum() if len(weights) else weights


def even_shares(domains: Sequence[Domain], loss: Loss) -> np.ndarray:
    """Return the shares of :func:`_column_shares`, each changed by at most a share of `ROUNDED`, so that costs are multiples of one unit.

    Parameters
    ----------
    domains : sequence of Domain, length q
    loss : Loss

    Returns
    -------
    numpy.ndarray, shape (q,), float64

    Notes
    -----
    The parts that a loss names (:attr:`Loss.steps`) have a common denominator in the cost of a record. Where it is at most
    `MOST_PARTS`, one part of it becomes a multiple of the kernels' grid, and all costs multiples of it. Columns with which it
    would be larger are taken together in the same way, and those that have too many steps alone stay as they are.
    """
    shares = _column_shares(domains)
    weights = [Fraction(str(domain.weight)) for domain in domains]
    whole = sum(weights, Fraction())
    parts = {}
    for a, domain in enumerate(domains):
        steps = loss.steps(domain) if domain.size > 1 else 0
        if steps:
            parts[a] = (weights[a] / whole / steps).denominator
    groups: list[tuple[int, list[int]]] = []
    for a in sorted(parts, key=parts.__getitem__):
        for at, (common, columns) in enumerate(groups):
            together = math.lcm(common, parts[a])
            if together <= MOST_PARTS:
                groups[at] = together, [*columns, a]
                break
        else:
            if parts[a] <= MOST_PARTS:
                groups.append((parts[a], [a]))
    for common, columns in groups:
        unit = float(on_grid(1 / common))
        for a in columns:
            shares[a] = float(weights[a] / whole * common) * unit
    return shares


def plan(domains: Sequence[Domain], measure: str = "ncp") -> Plan:
    """Return a measure over some domains in the kernels' form: numbers only, with the weights multiplied in.

    Parameters
    ----------
    domains : sequence of Domain, length q
    measure : str

    Returns
    -------
    Plan
        Its costs of records are those of :func:`record_costs` up to 1e-11 (entropy: 1e-7) and a share of `ROUNDED`, for they are
        rounded to a grid on which sums are exact. O(sum of D) memory.

    Raises
    ------
    ParameterError
        If the measure is unknown, or the kernels lack a form by which it prices.

    Notes
    -----
    The weights are rounded first, so that records whose costs are equal in exact arithmetic have equal costs here
    (:func:`even_shares`): 4/7 - 3/7 and 5/7 - 4/7 differ in floating point. The last plans are remembered: all partitions of a table
    have the same domains.
    """
    return _plan(tuple(domains), measure_named(measure))


@lru_cache(maxsize=4)
def _plan(domains: tuple[Domain, ...], measure: str) -> Plan:
    loss = LOSSES[measure]
    layout = Layout.of(domains)
    shares = even_shares(domains, loss)
    pools = Pools()
    ranges: list[tuple[int, int, float]] = []
    for a in layout.ranges:
        domain, share = domains[a], float(shares[a])
        points = np.arange(domain.size, dtype=np.float64)
        form = (LINEAR, 0, 0.0)
        if domain.hierarchy is not None:
            tree = domain.hierarchy
            several = domain.size > 1
            costs = loss.run_costs(domain, tree.first, tree.last) if several else np.zeros(tree.n_nodes)
            form = (NODES, pools.add_nodes(tree, on_grid(share * costs)), 0.0)
        elif domain.size <= 1:
            points = np.zeros(domain.size)
            form = (OPTIONAL if domain.has_codes else LINEAR, 0, 0.0)
        else:
            kind, at, unit, points = loss.range_form(domain, share, pools)
            _check_form(loss, "run", kind)
            form = (OPTIONAL if domain.has_codes and kind == LINEAR else kind, at, unit)
        ranges.append(form)
        pools.points.append(points)
    sets: list[tuple[int, int, float, int]] = []
    for a in layout.sets:
        domain, share = domains[a], float(shares[a])
        price = loss.set_form(domain, share, pools) if domain.size > 1 else (SLOPE, 0, 0.0, 0)
        _check_form(loss, "set", price[0])
        sets.append(price)
    return Plan(
        range_form=np.array([entry[0] for entry in ranges], np.int64),
        range_at=np.array([entry[1] for entry in ranges], np.int64),
        range_unit=np.array([entry[2] for entry in ranges], np.float64),
        range_last=np.array([domains[a].size - 1 for a in layout.ranges], np.float64),
        point_at=np.cumsum([0, *(domains[a].size for a in layout.ranges)], dtype=np.int64),
        set_form=np.array([entry[0] for entry in sets], np.int64),
        set_at=np.array([entry[1] for entry in sets], np.int64),
        set_unit=np.array([entry[2] for entry in sets], np.float64),
        set_least=np.array([entry[3] for entry in sets], np.int64),
        word_at=layout.offset.astype(np.int64),
        **pools.named(),
    )


def _check_form(loss: Loss, cell: str, form: int) -> None:
    if form not in _FORMS[cell]:
        raise ParameterError(
            f"{loss.name}: the kernels have no form {form} of a {cell}'s price; "
            "anonflow/kernels/state.py lists those they have, and anonflow/kernels/prices.py computes them"
        )
