"""An information loss of somebody else: half of LM. Importing it is its line in the registry."""

from __future__ import annotations

import numpy as np

from anonflow.kernels.state import LINEAR, SLOPE, on_grid
from anonflow.loss.measure import Loss, Pools, RangeForm, SetForm
from anonflow.loss.registry import LOSSES
from anonflow.table.domain import Domain


def _runs(domain: Domain, lo: np.ndarray, hi: np.ndarray) -> np.ndarray:
    return (hi - lo) / (2.0 * (domain.size - 1))


def _sets(domain: Domain, bits: np.ndarray, count: np.ndarray) -> np.ndarray:
    return np.maximum(count - 1, 0) / (2.0 * (domain.size - 1))


def _range_form(domain: Domain, share: float, pools: Pools) -> RangeForm:
    return LINEAR, 0, 0.0, on_grid(share * np.arange(domain.size) / (2.0 * (domain.size - 1)))


def _set_form(domain: Domain, share: float, pools: Pools) -> SetForm:
    return SLOPE, 0, float(on_grid(share / (2.0 * (domain.size - 1)))), 0


HALF = Loss("half-lm", "half of LM", _runs, _sets, _range_form, _set_form, also=("hlm",))

LOSSES[HALF.name] = HALF
