"""The share of the domain that a value covers: NCP by widths, LM by numbers of values, height by levels of the hierarchy."""

from __future__ import annotations

import numpy as np

from anonflow.kernels.state import SLOPE, STEP, on_grid
from anonflow.loss.measure import Loss, Pools, RangeForm, SetForm, linear, relative
from anonflow.table.domain import Domain


def _by_width(domain: Domain, lo: np.ndarray, hi: np.ndarray) -> np.ndarray:
    if domain.hierarchy is not None:
        return _by_values(domain, lo, hi)
    points = relative(domain)
    return points[hi] - points[lo]


def _by_values(domain: Domain, lo: np.ndarray, hi: np.ndarray) -> np.ndarray:
    if domain.hierarchy is not None:  # its points count the leaves that values can have
        return (domain.points[hi] - domain.points[lo]) / (domain.width or 1.0)
    return (hi - lo) / float(domain.size - 1)


def _by_height(domain: Domain, lo: np.ndarray, hi: np.ndarray) -> np.ndarray:
    tree = domain.hierarchy
    if tree is None:
        return _by_width(domain, lo, hi)
    # the root may have a single child: then a whole run's lowest node is not the root
    height = tree.height[tree.lca(lo, hi)] / float(tree.height[0])
    return np.where((lo == 0) & (hi == domain.size - 1), 1.0, height)


def _set_widths(domain: Domain, bits: np.ndarray, count: np.ndarray) -> np.ndarray:
    return np.maximum(count - 1, 0) / float(domain.size - 1)


def _several(domain: Domain, bits: np.ndarray, count: np.ndarray) -> np.ndarray:
    return (count > 1).astype(np.float64)


def _width_steps(domain: Domain) -> int:
    return _value_steps(domain) if domain.hierarchy is not None or domain.shape == "set" else domain.steps


def _value_steps(domain: Domain) -> int:
    # the points of a hierarchy count the leaves that values can have
    return domain.size - 1 if domain.hierarchy is None else int(domain.width)


def _height_steps(domain: Domain) -> int:
    if domain.hierarchy is not None:
        return int(domain.hierarchy.height[0])
    return 1 if domain.shape == "set" else domain.steps


def _width_form(domain: Domain, share: float, pools: Pools) -> RangeForm:
    return linear(on_grid(share * relative(domain)))


def _values_form(domain: Domain, share: float, pools: Pools) -> RangeForm:
    codes = np.arange(domain.size, dtype=np.float64)
    return linear(on_grid(share * (codes / (domain.size - 1))))


def _members_form(domain: Domain, share: float, pools: Pools) -> SetForm:
    return SLOPE, 0, float(on_grid(share / (domain.size - 1))), 0


def _several_form(domain: Domain, share: float, pools: Pools) -> SetForm:
    return STEP, 0, float(on_grid(share)), 2


NCP = Loss(
    name="ncp",
    label="NCP (GCP): width of ranges, number of values",
    run_costs=_by_width,
    set_costs=_set_widths,
    range_form=_width_form,
    set_form=_members_form,
    steps=_width_steps,
    also=("gcp",),
)

LM = Loss(
    name="lm",
    label="LM: number of values that are covered",
    run_costs=_by_values,
    set_costs=_set_widths,
    range_form=_values_form,
    set_form=_members_form,
    steps=_value_steps,
)

HEIGHT = Loss(
    name="height",
    label="height (IL): levels of the hierarchy",
    run_costs=_by_height,
    set_costs=_several,
    range_form=_width_form,
    set_form=_several_form,
    steps=_height_steps,
    also=("il",),
)
