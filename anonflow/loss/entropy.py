"""Entropy (EM): the bits that are lost, H(value given the release), from the counts of the whole table."""

from __future__ import annotations

import numpy as np

from anonflow.kernels.state import ENTROPY as FORM
from anonflow.loss.measure import Loss, Pools, RangeForm, SetForm
from anonflow.table.domain import Domain

_CHUNK = 1 << 24  # cells of unpacked sets at a time


def _runs(domain: Domain, lo: np.ndarray, hi: np.ndarray) -> np.ndarray:
    mass, mlog = _prefix(domain)
    return _entropy(mass[hi + 1] - mass[lo], mlog[hi + 1] - mlog[lo])


def _set_entropy(domain: Domain, bits: np.ndarray, count: np.ndarray) -> np.ndarray:
    distinct, at = np.unique(bits, axis=1, return_inverse=True)
    mass, mlog = np.empty((2, distinct.shape[1]))
    step = max(1, _CHUNK // (64 * len(bits)))
    counts = domain.counts.astype(np.float64)
    logs = _mlog(counts)
    for start in range(0, distinct.shape[1], step):
        words = np.ascontiguousarray(distinct[:, start : start + step].T).astype("<u8", copy=False)
        members = np.unpackbits(words.view(np.uint8), axis=1, bitorder="little", count=domain.size)
        mass[start : start + step] = members @ counts
        mlog[start : start + step] = members @ logs
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


def _exact_logs(domain: Domain) -> tuple[np.ndarray, np.ndarray]:
    """Return occurrences of the values and their logarithms, rounded so that sums of them are exact."""
    counts = domain.counts.astype(np.float64)
    logs = _mlog(counts)
    total = max(float(logs.sum()), 1.0)
    unit = 2.0 ** (np.ceil(np.log2(total)) - 51)
    return counts, np.rint(logs / unit) * unit


def _range_form(domain: Domain, share: float, pools: Pools) -> RangeForm:
    masses, logs = (np.concatenate([[0.0], np.cumsum(numbers)]) for numbers in _exact_logs(domain))
    return FORM, pools.add_masses(masses, logs), share, np.arange(domain.size, dtype=np.float64)


def _set_form(domain: Domain, share: float, pools: Pools) -> SetForm:
    return FORM, pools.add_masses(*_exact_logs(domain)), share, 0


ENTROPY = Loss(
    name="entropy",
    label="entropy (EM): bits that are lost",
    run_costs=_runs,
    set_costs=_set_entropy,
    range_form=_range_form,
    set_form=_set_form,
    monotone=False,
    also=("em",),
)
