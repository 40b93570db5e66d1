"""The definition of an information loss: a cost of a run or of a set of values of one quasi-identifier (QI)."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass

import numpy as np

from anonflow.hierarchy import Hierarchy
from anonflow.kernels.state import LINEAR
from anonflow.table.domain import Domain


class Pools:
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

    def add_nodes(self, tree: Hierarchy, costs: np.ndarray) -> int:
        """Add a hierarchy with the costs of its nodes, on the grid; return where its leaves begin."""
        start, before = _length(self.leaf), _length(self.first)
        self.leaf.append(tree.leaf_node.astype(np.int64) + before)
        self.first.append(tree.first.astype(np.float64))
        self.last.append(tree.last.astype(np.float64))
        self.parent.append(np.where(tree.parent < 0, -1, tree.parent.astype(np.int64) + before))
        self.node_cost.append(costs)
        return start

    def add_masses(self, counts: np.ndarray, logs: np.ndarray) -> int:
        """Add numbers of the values whose sums are prices; return where they begin."""
        start = _length(self.mass)
        self.mass.append(counts)
        self.mlog.append(logs)
        return start

    def named(self) -> dict[str, np.ndarray]:
        """Return the arrays by their names in a plan."""
        return {name: np.concatenate(parts) for name, parts in vars(self).items()}


def _length(parts: list[np.ndarray]) -> int:
    return sum(len(part) for part in parts)


RangeForm = tuple[int, int, float, np.ndarray]
"""How the kernels price a run without a hierarchy: the form, where its numbers begin, its unit, and the codes' points."""

SetForm = tuple[int, int, float, int]
"""How they price a set: the form, where its numbers begin, its unit, and from how many values on it costs."""


def without_steps(domain: Domain) -> int:
    """Return 0: costs are no multiples of one part."""
    return 0


@dataclass(frozen=True)
class Loss:
    """An information loss.

    Attributes
    ----------
    name : str
    label : str
        What it is, in a line.
    run_costs : callable
        ``run_costs(domain, lo, hi)``: costs of runs of codes, shape (n,); the domain has at least two values.
    set_costs : callable
        ``set_costs(domain, bits, count)``: costs of sets, shape (n,), of words of bits (words, n) with so many members
        each; the domain has at least two values.
    range_form, set_form : callable
        ``(domain, share, pools)``: the same for the kernels (`RangeForm`, `SetForm`), `share` the QI's weight; rounded
        to a grid on which sums are exact. The domain has at least two values, and no hierarchy.
    steps : callable, optional
        ``steps(domain)``: the costs of all cells are multiples of one part of the whole domain's cost, and so many parts make
        it up; 0 without such a part. The domain has at least two values. By default 0.
    monotone : bool
        Whether it never falls when a record covers more; else pairwise bounds do not hold for it.
    also : tuple of str
        Its other names.
    """

    name: str
    label: str
    run_costs: Callable[[Domain, np.ndarray, np.ndarray], np.ndarray]
    set_costs: Callable[[Domain, np.ndarray, np.ndarray], np.ndarray]
    range_form: Callable[[Domain, float, Pools], RangeForm]
    set_form: Callable[[Domain, float, Pools], SetForm]
    steps: Callable[[Domain], int] = without_steps
    monotone: bool = True
    also: tuple[str, ...] = ()


def linear(points: np.ndarray) -> RangeForm:
    """Return the form in which a run costs the difference of its ends' points."""
    return LINEAR, 0, 0.0, points


def relative(domain: Domain) -> np.ndarray:
    """Return the points scaled to [0, 1]; halved first, because the width of the largest floats overflows."""
    half = domain.points * 0.5
    width = half[-1] - half[0]
    if not width:  # integers, times or tiny fractions that float64 cannot tell apart: by their ranks
        return np.linspace(0.0, 1.0, domain.size)
    return (half - half[0]) / width
