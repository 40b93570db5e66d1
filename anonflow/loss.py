"""Information loss: what a generalized record hides, from 0 (itself) to 1 (everything), or in bits.

Each measure is a cost of a run or of a set of values of one quasi-identifier (QI). A record's loss is the
weighted mean over its QIs, a release's the mean over its records.

=============  ======================  ===================================  ============================
measure        numeric run             hierarchy node                       set
=============  ======================  ===================================  ============================
ncp (gcp)      width / domain width    (leaves - 1) / (all leaves - 1)      (count - 1) / (domain - 1)
lm             (values - 1) /          as ncp                               as ncp
               (domain - 1)
height (il)    width / domain width    height(node) / height(tree)          0 if one value, else 1
suppressions   1 if published ``*``    1 if published ``*``                 1 if the whole domain
entropy (em)   H(values in it), bits   same                                 same
=============  ======================  ===================================  ============================

A domain of one value costs 0. A missing number is covered by the whole domain only, and costs what that does.
"""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

from anonflow.errors import ParameterError
from anonflow.generalization import Generalization, Layout
from anonflow.kernels.state import ENTROPY, LINEAR, NODES, SLOPE, STEP, WHOLE, Plan, on_grid
from anonflow.table.domain import Domain
from anonflow.table.schema import did_you_mean

__all__ = [
    "MEASURES",
    "MONOTONE",
    "cell_costs",
    "height_total",
    "information_loss",
    "measure_named",
    "plan",
    "record_costs",
    "suppressed_cells",
]

MEASURES = ("ncp", "lm", "entropy", "height", "suppressions")
"""The measures by their own names."""

MONOTONE = ("ncp", "lm", "height", "suppressions")
"""Those that never fall when a record covers more. Entropy may: pairwise bounds do not hold for it."""

_ALIASES = {"gcp": "ncp", "em": "entropy", "il": "height"}

_CHUNK = 1 << 24  # cells of unpacked sets at a time


def measure_named(name: str) -> str:
    """A measure's own name, from that or an alias (gcp, em, il).

    Raises
    ------
    ParameterError
        If there is no such measure, with the nearest one.
    """
    own = _ALIASES.get(name, name) if isinstance(name, str) else name
    if own not in MEASURES:
        raise ParameterError(f"unknown information loss {name!r}{did_you_mean(name, (*MEASURES, *_ALIASES))}")
    return own


def information_loss(generalization: Generalization, measure: str = "ncp") -> float:
    """The loss of a release: the mean of its records' losses; 0 for no records. GCP for ``ncp``.

    Raises
    ------
    ParameterError
        If the measure is unknown.
    """
    costs = record_costs(generalization, measure)
    return float(costs.mean()) if len(costs) else 0.0


def record_costs(generalization: Generalization, measure: str = "ncp") -> np.ndarray:
    """The loss of each record: the mean of its cells' costs, weighted by the QIs' weights.

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
        _shares(generalization.domains), cell_costs(generalization, measure), strict=True
    ):
        total += share * costs
    return total


def cell_costs(generalization: Generalization, measure: str = "ncp") -> np.ndarray:
    """The cost of each cell, without weights.

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
    measure = measure_named(measure)
    cells = np.zeros((len(generalization.domains), generalization.n))
    layout = generalization.layout
    for t, a in enumerate(layout.ranges):
        domain = generalization.domains[a]
        if domain.size > 1:
            # what covers nothing (read from a file) is priced as the run of one value
            lo = np.minimum(generalization.lo[t], domain.size - 1)
            cells[a] = _run_costs(domain, lo, np.maximum(generalization.hi[t], lo), measure)
    counts = generalization.counts()
    for t, a in enumerate(layout.sets):
        domain = generalization.domains[a]
        if domain.size > 1:
            bits = generalization.bits[layout.offset[t] : layout.offset[t + 1]]
            cells[a] = _set_costs(domain, bits, counts[t], measure)
    return cells


def suppressed_cells(generalization: Generalization) -> int:
    """How many cells are published as ``*``, hidden positions of a code one by one."""
    return int(cell_costs(generalization, "suppressions").sum())


def height_total(generalization: Generalization) -> float:
    """Paper 3's total information loss (Definitions 10, 11): the sum of all cells' height costs.

    QIs are not weighted; a suppressed record counts q, the most there is.
    """
    return float(cell_costs(generalization, "height").sum())


def _run_costs(domain: Domain, lo: np.ndarray, hi: np.ndarray, measure: str) -> np.ndarray:
    """Costs of runs of codes, shape (n,); the domain has at least two values."""
    last = domain.size - 1
    tree = domain.hierarchy
    if measure == "suppressions":
        return ((lo == 0) & (hi == last)).astype(np.float64)
    if measure == "entropy":
        mass, mlog = _prefix(domain)
        return _entropy(mass[hi + 1] - mass[lo], mlog[hi + 1] - mlog[lo])
    if tree is None and measure in ("ncp", "height"):
        points = _relative(domain)
        return points[hi] - points[lo]
    if measure == "height" and tree is not None:
        # the root may have a single child: then a whole run's lowest node is not the root
        height = tree.height[tree.lca(lo, hi)] / float(tree.height[0])
        return np.where((lo == 0) & (hi == last), 1.0, height)
    return (hi - lo) / float(last)


def _set_costs(domain: Domain, bits: np.ndarray, count: np.ndarray, measure: str) -> np.ndarray:
    """Costs of sets, shape (n,); the domain has at least two values."""
    if measure == "suppressions":
        return (count == domain.size).astype(np.float64)
    if measure == "height":
        return (count > 1).astype(np.float64)
    if measure != "entropy":
        return np.maximum(count - 1, 0) / float(domain.size - 1)
    distinct, at = np.unique(bits, axis=1, return_inverse=True)
    mass, mlog = np.empty((2, distinct.shape[1]))
    step = max(1, _CHUNK // (64 * len(bits)))
    each = domain.counts.astype(np.float64)
    each_log = _mlog(each)
    for start in range(0, distinct.shape[1], step):
        words = np.ascontiguousarray(distinct[:, start : start + step].T).astype("<u8", copy=False)
        members = np.unpackbits(words.view(np.uint8), axis=1, bitorder="little", count=domain.size)
        mass[start : start + step] = members @ each
        mlog[start : start + step] = members @ each_log
    return _entropy(mass, mlog)[np.ravel(at)]


def _entropy(mass: np.ndarray, mlog: np.ndarray) -> np.ndarray:
    """H = log2 N - (1/N) sum c log2 c for N = sum c occurrences; 0 where there are none."""
    mass = np.maximum(mass, 1.0)
    return np.maximum(np.log2(mass) - mlog / mass, 0.0)


def _mlog(counts: np.ndarray) -> np.ndarray:
    return counts * np.log2(np.maximum(counts, 1.0))


def _prefix(domain: Domain) -> tuple[np.ndarray, np.ndarray]:
    counts = domain.counts.astype(np.float64)
    mass, mlog = np.zeros((2, domain.size + 1))
    np.cumsum(counts, out=mass[1:])
    np.cumsum(_mlog(counts), out=mlog[1:])
    return mass, mlog


def _relative(domain: Domain) -> np.ndarray:
    """The points scaled to [0, 1]; halved first, for the width of the largest floats is no float."""
    half = domain.points * 0.5
    width = half[-1] - half[0]
    if not width:  # integers, times or tiny fractions that float64 cannot tell apart: by their ranks
        return np.linspace(0.0, 1.0, domain.size)
    return (half - half[0]) / width


def _shares(domains: Sequence[Domain]) -> np.ndarray:
    """Weights that add up to 1, shape (q,)."""
    weights = np.array([domain.weight for domain in domains], np.float64)
    return weights / weights.sum() if len(weights) else weights


class _Pools:
    """The plan's arrays that all QIs share, as they grow."""

    def __init__(self) -> None:
        self.points: list[np.ndarray] = [np.zeros(0)]
        self.leaf: list[np.ndarray] = [np.zeros(0, np.int64)]
        self.first: list[np.ndarray] = [np.zeros(0)]
        self.last: list[np.ndarray] = [np.zeros(0)]
        self.parent: list[np.ndarray] = [np.zeros(0, np.int64)]
        self.node_cost: list[np.ndarray] = [np.zeros(0)]
        self.mass: list[np.ndarray] = [np.zeros(0)]
        self.mlog: list[np.ndarray] = [np.zeros(0)]

    def add_nodes(self, domain: Domain, share: float, measure: str) -> int:
        """Add a hierarchy; where its leaves begin."""
        tree = domain.hierarchy
        assert tree is not None
        start, before = _length(self.leaf), _length(self.first)
        self.leaf.append(tree.leaf_node.astype(np.int64) + before)
        self.first.append(tree.first.astype(np.float64))
        self.last.append(tree.last.astype(np.float64))
        self.parent.append(np.where(tree.parent < 0, -1, tree.parent.astype(np.int64) + before))
        if domain.size > 1:
            costs = _run_costs(domain, tree.first, tree.last, measure)
        else:
            costs = np.zeros(tree.n_nodes)
        self.node_cost.append(on_grid(share * costs))
        return start

    def add_masses(self, domain: Domain, prefix: bool) -> int:
        """Add the occurrences of the values, rounded so that sums of them are exact; where they begin."""
        start = _length(self.mass)
        each = domain.counts.astype(np.float64)
        logs = _mlog(each)
        total = max(float(logs.sum()), 1.0)
        unit = 2.0 ** (np.ceil(np.log2(total)) - 51)
        logs = np.rint(logs / unit) * unit
        if prefix:
            each, logs = np.concatenate([[0.0], np.cumsum(each)]), np.concatenate([[0.0], np.cumsum(logs)])
        self.mass.append(each)
        self.mlog.append(logs)
        return start

    def named(self) -> dict[str, np.ndarray]:
        return {name: np.concatenate(parts) for name, parts in vars(self).items()}


def _length(parts: list[np.ndarray]) -> int:
    return sum(len(part) for part in parts)


def plan(domains: Sequence[Domain], measure: str = "ncp") -> Plan:
    """A measure over some domains as the kernels take it: numbers only, weights folded in.

    Parameters
    ----------
    domains : sequence of Domain, length q
    measure : str

    Returns
    -------
    Plan
        Its costs of records are those of :func:`record_costs` up to 1e-11 (entropy: 1e-7), for they are
        rounded to a grid on which sums are exact. O(sum of D) memory.

    Raises
    ------
    ParameterError
        If the measure is unknown.
    """
    measure = measure_named(measure)
    layout = Layout.of(domains)
    shares = _shares(domains)
    pools = _Pools()
    ranges: list[tuple[int, int, float]] = []
    for a in layout.ranges:
        domain, share = domains[a], float(shares[a])
        codes = np.arange(domain.size, dtype=np.float64)
        if domain.hierarchy is not None:
            ranges.append((NODES, pools.add_nodes(domain, share, measure), 0.0))
        elif domain.size <= 1:
            ranges.append((LINEAR, 0, 0.0))
            codes = np.zeros(domain.size)
        elif measure == "entropy":
            ranges.append((ENTROPY, pools.add_masses(domain, prefix=True), share))
        elif measure == "suppressions":
            ranges.append((WHOLE, 0, float(on_grid(share))))
        else:
            ranges.append((LINEAR, 0, 0.0))
            relative = codes / (domain.size - 1) if measure == "lm" else _relative(domain)
            codes = on_grid(share * relative)
        pools.points.append(codes)
    sets: list[tuple[int, int, float, int]] = []
    for a in layout.sets:
        domain, share = domains[a], float(shares[a])
        if domain.size <= 1:
            sets.append((SLOPE, 0, 0.0, 0))
        elif measure == "entropy":
            sets.append((ENTROPY, pools.add_masses(domain, prefix=False), share, 0))
        elif measure in ("height", "suppressions"):
            least = 2 if measure == "height" else domain.size
            sets.append((STEP, 0, float(on_grid(share)), least))
        else:
            sets.append((SLOPE, 0, float(on_grid(share / (domain.size - 1))), 0))
    return Plan(
        range_form=np.array([one[0] for one in ranges], np.int64),
        range_at=np.array([one[1] for one in ranges], np.int64),
        range_unit=np.array([one[2] for one in ranges], np.float64),
        range_last=np.array([domains[a].size - 1 for a in layout.ranges], np.float64),
        point_at=np.cumsum([0, *(domains[a].size for a in layout.ranges)], dtype=np.int64),
        set_form=np.array([one[0] for one in sets], np.int64),
        set_at=np.array([one[1] for one in sets], np.int64),
        set_unit=np.array([one[2] for one in sets], np.float64),
        set_least=np.array([one[3] for one in sets], np.int64),
        word_at=layout.offset.astype(np.int64),
        **pools.named(),
    )
