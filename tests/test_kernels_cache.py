"""Compiled kernels on disk: filled by any processes in any order, a cache gives each kernel its own code."""

from __future__ import annotations

import json
import os
import subprocess
import sys
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import pytest

from anonflow.kernels import cache

PAIRS = """
import numba, numpy as np
from anonflow.kernels.jit import jit

def sorted_least(x): return np.sort(x)[0]
def place_of_least(x): return np.argsort(x)[0]
def from_left(x): return np.searchsorted(x, 3, side="left")
def from_right(x): return np.searchsorted(x, 3, side="right")

PLAIN = (sorted_least, place_of_least, from_left, from_right)
KERNELS = {function.__name__: jit(function) for function in PLAIN}
OTHERS = {function.__name__: numba.njit(cache=True)(function) for function in PLAIN}
VALUES = np.array([3, 3, *range(40, 4, -1)])
"""
"""Functions that call closures of the same name and type, as kernels and as a third party's."""

FILL = """
import itertools, json, re, sys
from numba.core.bytecode import FunctionIdentity
start, kind, *names = sys.argv[1:]
FunctionIdentity._unique_ids = itertools.count(int(start))
import pairs
functions = getattr(pairs, kind)
found = {}
for name in names:
    functions[name](pairs.VALUES)
    (result,) = functions[name].overloads.values()
    symbols = " ".join(part.name for part in result.library._final_module.functions) if result.metadata else ""
    found[name] = re.findall(r"(run_quicksort1|searchsorted_inner)B\\d+v(\\d+)", symbols)
print(json.dumps(found))
"""
"""A process whose numbers of functions begin at its first argument."""

LOAD = """
import json, sys
import pairs
kind, *names = sys.argv[1:]
functions = getattr(pairs, kind)
plain = {function.__name__: function for function in pairs.PLAIN}
got = {name: int(functions[name](pairs.VALUES)) for name in names}
want = {name: int(plain[name](pairs.VALUES)) for name in names}
loaded = [sum(functions[name].stats.cache_hits.values()) for name in names]
print(json.dumps([got, want, loaded]))
"""


def run(folder: Path, code: str, *arguments: object, store: Path | None = None, **environment: str) -> Any:
    """What a process prints, as JSON."""
    place = {"NUMBA_CACHE_DIR": str(store or folder / "store")}
    done = subprocess.run(
        [sys.executable, "-c", code, *map(str, arguments)],
        env={**os.environ, "PYTHONPATH": os.pathsep.join([str(folder), *sys.path]), **place, **environment},
        cwd=folder,
        capture_output=True,
        text=True,
        check=False,
    )
    assert done.returncode == 0, done.stderr
    return json.loads(done.stdout.splitlines()[-1])


@pytest.mark.parametrize("names", [("sorted_least", "place_of_least")])
@pytest.mark.parametrize("kind", ["KERNELS", "OTHERS"])
def test_closures_of_two_processes_stay_two(tmp_path: Path, kind: str, names: Sequence[str]) -> None:
    """numba's fault: two processes number two closures alike, and a third calls the first for both."""
    (tmp_path / "pairs.py").write_text(PAIRS)
    first, second = names
    numbers = [int(run(tmp_path, FILL, 100, kind, name, store=tmp_path / name)[name][0][1]) for name in names]
    run(tmp_path, FILL, 100, kind, first)
    run(tmp_path, FILL, 100 + numbers[0] - numbers[1], kind, second)
    for order in (names, names[::-1]):
        got, want, loaded = run(tmp_path, LOAD, kind, *order)
        assert loaded == [1, 1]
        assert got == want
