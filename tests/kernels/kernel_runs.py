"""Runs of methods on a small table: a process that compiles their kernels, and one that compares kernels with twins.

``python -m tests.kernels.kernel_runs fill SEED NUMBER`` calls some of them in an order of its own; ``compare`` calls each kernel beside its
plain twin, and prints as JSON how often, and how many kernels the process had to compile.
"""

from __future__ import annotations

import copy
import functools
import json
import random
import sys
from collections import Counter
from collections.abc import Callable
from typing import Any

import numpy as np
import pandas as pd

import anonflow as af
from anonflow.algorithms.anonymize import anonymize
from anonflow.kernels import jit

RUNS: tuple[tuple[str, dict[str, Any]], ...] = (
    ("forest", {}),
    ("two-phase", {}),
    ("k-concealment", {}),
    ("mondrian", {}),
    ("k-member", {}),
    ("agglomerative", {"modified": True}),
    ("pattern-guided", {}),
    ("greedy", {}),
)
"""Methods that sort, select or search in their kernels, and those whose kernels numba's fault has been seen in."""


def table() -> af.Table:
    rng = np.random.default_rng(8)
    frame = pd.DataFrame(
        {
            "number": rng.integers(0, 10**6, 40),
            "small": rng.integers(0, 5, 40),
            "letter": rng.choice(list("abcde"), 40),
        }
    )
    kinds = {"number": "numeric", "small": "numeric", "letter": "categorical"}
    return af.Table(frame, {name: {"role": "quasi-identifier", "kind": kind} for name, kind in kinds.items()})


def fill(seed: str, number: str) -> Any:
    """Compile, or load what another process has compiled meanwhile."""
    runs = list(RUNS)
    random.Random(seed).shuffle(runs)
    people = table()
    for name, options in runs[: int(number)]:
        anonymize(people, name, k=3, seed=1, workers=1, **options)
    return jit.compiled_here()


def compare() -> Any:
    """Call every kernel beside its plain twin."""
    people, calls = table(), Counter[str]()
    for name, options in RUNS:
        anonymize(people, name, k=3, seed=1, workers=1, **options)  # imports all modules
    kernels = {id(twin): (twin, plain) for plain, twin in jit._twins.items()}
    for module in [module for name, module in sys.modules.items() if name.startswith("anonflow.")]:
        for name, value in list(vars(module).items()):
            if id(value) in kernels:
                setattr(module, name, beside(*kernels[id(value)], calls))
    for name, options in RUNS:
        anonymize(people, name, k=3, seed=1, workers=1, **options)
    return {"compiled": jit.compiled_here(), "calls": calls}


def beside(
    compiled: Callable[..., Any], plain: Callable[..., Any], calls: Counter[str]
) -> Callable[..., Any]:
    """A kernel whose every call is repeated by its plain twin, on copies."""

    @functools.wraps(plain)
    def both(*arguments: Any) -> Any:
        copies = copy.deepcopy(arguments)
        got = compiled(*arguments)
        with np.errstate(all="ignore"):
            want = plain(*copies)
        assert_equal((got, arguments), (want, copies), plain.__name__)
        calls[plain.__name__] += 1
        return got

    return both


def assert_equal(got: Any, want: Any, name: str) -> None:
    if isinstance(got, tuple):
        for mine, theirs in zip(got, want, strict=True):
            assert_equal(mine, theirs, name)
    elif isinstance(got, np.ndarray) or np.isscalar(got):
        floats = np.asarray(got).dtype.kind == "f"
        assert np.array_equal(got, want, equal_nan=floats), f"{name} compiled is not {name}"


if __name__ == "__main__":
    order, *rest = sys.argv[1:]
    print(json.dumps({"fill": fill, "compare": compare}[order](*rest)))
