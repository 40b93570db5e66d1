"""Suppressions: 1 for a cell that is published as the whole domain, else 0."""

from __future__ import annotations

import numpy as np

from anonflow.kernels.state import STEP, WHOLE, on_grid
from anonflow.loss.measure import Loss, Pools, RangeForm, SetForm
from anonflow.table.domain import Domain


def _whole_runs(domain: Domain, lo: np.ndarray, hi: np.ndarray) -> np.ndarray:
    return ((lo == 0) & (hi == domain.size - 1)).astype(np.float64)


def _whole_sets(domain: Domain, bits: np.ndarray, count: np.ndarray) -> np.ndarray:
    return (count == domain.size).astype(np.float64)


def _range_form(domain: Domain, share: float, pools: Pools) -> RangeForm:
    return WHOLE, 0, float(on_grid(share)), np.arange(domain.size, dtype=np.float64)


def _set_form(domain: Domain, share: float, pools: Pools) -> SetForm:
    return STEP, 0, float(on_grid(share)), domain.size


SUPPRESSIONS = Loss(
    name="suppressions",
    label="suppressions: hidden cells",
    run_costs=_whole_runs,
    set_costs=_whole_sets,
    range_form=_range_form,
    set_form=_set_form,
    steps=lambda domain: 1,
)
