"""Where freeform methods could stumble: k at and above n, duplicates, short partitions, dead ends, memory."""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
import pytest

import anonflow as af
from anonflow.algorithms import REGISTRY
from anonflow.algorithms.freeform.greedy import greedy_matches
from anonflow.algorithms.freeform.sort_greedy import sort_greedy_matches
from anonflow.algorithms.method import Partition
from anonflow.errors import InfeasibleError, ParameterError
from anonflow.table import Table
from tests import ROOT
from tests.cases import costs as cost_cases
from tests.cases.freeform import assert_regular
from tests.checks import check_result
from tests.strategies import loop

FREEFORM = sorted(name for name, method in REGISTRY.items() if method.family == "freeform")
EVERY = [(name, {}) for name in FREEFORM] + [
    (name, {"reciprocal": True}) for name in FREEFORM if "reciprocal" in REGISTRY[name].options
]
QI = {"role": "quasi-identifier"}
SCHEMA: dict[str, Any] = {"a": QI | {"kind": "numeric"}, "b": QI | {"kind": "categorical"}}


def people(n: int, values: int = 9) -> Table:
    rng = np.random.default_rng(n)
    return Table(
        pd.DataFrame({"a": rng.integers(0, values, n), "b": rng.choice(list("xyz"[:values]), n)}), SCHEMA
    )


@pytest.mark.parametrize(("name", "options"), EVERY)
def test_k_at_and_above_n(name: str, options: dict[str, Any]) -> None:
    for n in (2, 3, 5, 8):
        anon = af.anonymize(people(n), name, k=n, **options)
        check_result(anon, n)
        assert len(set(anon.frame().itertuples(index=False))) == 1  # everybody covers everybody
        with pytest.raises(InfeasibleError, match=rf"{n} records cannot hide among k = {n + 1}"):
            af.anonymize(people(n), name, k=n + 1, **options)


@pytest.mark.parametrize(("name", "options"), EVERY)
def test_duplicates_lose_nothing(name: str, options: dict[str, Any]) -> None:
    alike = Table(pd.DataFrame({"a": [1, 2, 3] * 4, "b": ["x", "y", "z"] * 4}), SCHEMA)
    for k in (2, 3, 4):
        anon = af.anonymize(alike, name, k=k, **options)
        check_result(anon, k)
        if name in ("optimal", "two-phase", "hungarian") and not options:
            assert anon.loss() == 0
    same = Table(pd.DataFrame({"a": [1] * 9, "b": ["x"] * 9}), SCHEMA)
    for k in (2, 5, 9):
        assert af.anonymize(same, name, k=k, **options).loss() == 0


@pytest.mark.parametrize(("name", "options"), EVERY)
def test_a_short_last_partition_joins_its_neighbour(name: str, options: dict[str, Any]) -> None:
    # the exact method takes minutes for 14 records and k = 7
    k, size = (3, 4) if name == "optimal" else (7, 8)
    for n, sizes in (
        (3 * size - 2, [size, 2 * size - 2]),
        (3 * size, [size, size, size]),
        (4 * size - 2, [size, size, 2 * size - 2]),
        (2 * size + k // 2, [size, size + k // 2]),
    ):
        table = people(n)
        anon = af.anonymize(table, name, k=k, partition_size=size, **options)
        check_result(anon, k)
        at = {record: part for part, block in enumerate(blocks(table, sizes)) for record in block.tolist()}
        rows = [row[row >= 0].tolist() for row in anon.matches]
        assert all(at[i] == at[j] for j, row in enumerate(rows) for i in row)
    with pytest.raises(ParameterError, match=f"partition size {k - 1} is smaller than k = {k}"):
        af.anonymize(people(3 * k), name, k=k, partition_size=k - 1, **options)


def blocks(table: Table, sizes: list[int]) -> list[np.ndarray]:
    from anonflow.partition import lexicographic_order

    return np.split(lexicographic_order(table.records), np.cumsum(sizes)[:-1])


@pytest.mark.parametrize(("name", "options"), EVERY)
def test_ties_are_broken_alike_every_time(name: str, options: dict[str, Any]) -> None:
    table = people(60, 3)  # many equal records, many equal costs
    size = 12 if name == "optimal" else 20
    runs = [
        af.anonymize(table, name, k=3, partition_size=size, seed=5, workers=workers, **options)
        for workers in (1, 2, 3)
    ]
    for run in runs[1:]:
        assert (run.matches == runs[0].matches).all()
        assert run.frame().equals(runs[0].frame())


@loop("matches_of", [greedy_matches, sort_greedy_matches])
def test_dead_ends_of_both_kinds(matches_of: Any) -> None:
    """Handing a record over is enough for k < (n + 3) / 2 (Theorem 5.2); beyond, augmenting paths are."""
    handed = augmented = 0
    for seed in range(40):
        rng = np.random.default_rng(seed)
        n = int(rng.integers(5, 10))
        records = cost_cases.table(rng, n, ["numeric", "numeric"], [n, n])
        for k in range(2, n + 1):
            matches, facts = matches_of(Partition(records, "ncp", rng), k)
            assert_regular(matches)
            handed += int(facts[0])
            if 2 * k < n + 3:
                assert facts[1] == 0
            augmented += int(facts[1])
    assert handed > 0
    assert augmented > 0


MEASURE = """
import ctypes
import gc
import sys
import numpy as np
from anonflow.algorithms.method import Partition
from anonflow.algorithms.registry import REGISTRY
from tests.cases.freeform import census

def status(key):
    with open("/proc/self/status") as lines:
        return next(int(line.split()[1]) for line in lines if line.startswith(key + ":")) * 1024

def grown(name, options, n):
    part = Partition(census(n), "ncp", np.random.default_rng(0))
    gc.collect()
    getattr(ctypes.CDLL(None), "malloc_trim", int)(0)  # what the run before freed is no memory of this one
    before = status("VmRSS")
    with open("/proc/self/clear_refs", "w") as stream:
        stream.write("5")
    REGISTRY[name].run(part, 3, **options)
    return status("VmHWM") - before

for name, options in eval(sys.argv[1]):
    grown(name, options, 100)
    print(*(grown(name, options, n) for n in (200, 400, 800)))
"""


@pytest.mark.slow
@pytest.mark.skipif(not Path("/proc/self/clear_refs").exists(), reason="reads Linux's own account of memory")
def test_memory_stays_within_the_square_of_a_partition() -> None:
    brief = {"rounds": 2, "kicks": 2}  # rounds take the same memory one after the other
    methods = [
        (name, options | brief if name == "two-phase" else options)
        for name, options in EVERY
        if name != "optimal"
    ]
    done = subprocess.run(
        [sys.executable, "-c", MEASURE, repr(methods)],
        cwd=ROOT,
        env={**os.environ},
        capture_output=True,
        text=True,
        check=False,
    )
    assert done.returncode == 0, done.stderr
    slack = 8 << 20
    for (name, options), line in zip(methods, done.stdout.splitlines(), strict=True):
        grown = [int(word) for word in line.split()]
        # twice the records, at most four times the memory; and no more than some 64-bit numbers for each pair
        assert grown[2] <= 4 * max(grown[1], grown[0]) + slack, (name, options)
        assert grown[2] <= (200 if name == "min-cost-flow" else 64) * 800**2 + slack, (name, options)
