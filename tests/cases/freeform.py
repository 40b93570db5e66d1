"""What tests of k-regular methods share: partitions, their cost, and records whose costs have no rounding."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np

from anonflow import loss as losses
from anonflow.algorithms.method import Partition
from anonflow.generalization import Generalization
from anonflow.table import Table
from anonflow.table.domain import Domain
from anonflow.table.records import Records
from tests.cases import costs as cost_cases

MEASURES = ("ncp", "lm", "entropy", "height", "suppressions")


def part_of(table: Table, measure: str = "ncp") -> Partition:
    return Partition(table.records, measure, np.random.default_rng(0))


def total(table: Table, matches: np.ndarray, measure: str) -> float:
    return float(losses.record_costs(Generalization.join_of(table.records, matches), measure).sum())


def assert_regular(matches: np.ndarray) -> None:
    n, k = matches.shape
    assert (matches[:, 0] == np.arange(n)).all()
    assert all(len(set(row)) == k for row in matches.tolist())
    assert (np.bincount(matches.ravel(), minlength=n) == k).all()


# Domains whose NCP is a multiple of a power of two, and one, two or four of them: no rounding, exact ties.
DYADIC = [("numeric", 9), ("categorical", 5), ("categorical", 3), ("suppression", 6), ("categorical", 129)]


UNEVEN = [("numeric", 8), ("categorical", 4), ("categorical", 6), ("suppression", 5), ("numeric", 11)]
"""Their costs are sevenths, thirds, fifths, ones and tenths: floats have none of them."""


def dyadic(
    rng: np.random.Generator, n: int, which: Sequence[int], kinds: Sequence[tuple[str, int]] = DYADIC
) -> Records:
    domains, columns = [], []
    for a, w in enumerate(which):
        kind, size = kinds[w]
        codes = rng.integers(0, size, n)
        domains.append(cost_cases.domain_of(f"c{a}", kind, size, codes, rng, points=np.arange(size)))
        columns.append(codes)
    return Records(tuple(domains), np.ascontiguousarray(np.array(columns).T.astype(np.int32)))


CENSUS = (79, 2, 17, 6, 9, 10, 83, 51)


def census(n: int, seed: int = 0) -> Records:
    """n records over 8 QIs with the CENSUS cardinalities, the first numeric, skewed, independent."""
    rng = np.random.default_rng(seed)
    domains, columns = [], []
    for a, size in enumerate(CENSUS):
        codes = np.minimum(rng.geometric(min(3.0 / size, 0.6), n) - 1, size - 1)
        counts = np.bincount(codes, minlength=size)
        kind: Any = "categorical" if a else "numeric"
        domains.append(Domain(f"c{a}", kind, tuple(map(str, range(size))), np.arange(float(size)), counts))
        columns.append(codes)
    return Records(tuple(domains), np.ascontiguousarray(np.array(columns).T.astype(np.int32)))
