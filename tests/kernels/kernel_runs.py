"""Runs that reach every kernel: a process that compiles them, and one that compares each with its plain twin.

``python -m tests.kernels.kernel_runs fill HAND HANDS`` shuffles them, deals them out, and calls those of one hand; ``compare`` loads all
that is in the cache, calls each kernel beside its plain twin, and prints as JSON what it saw.
"""

from __future__ import annotations

import functools
import importlib
import inspect
import json
import pickle
import pkgutil
import random
import sys
from collections import Counter
from collections.abc import Callable, Mapping
from pathlib import Path
from types import ModuleType
from typing import Any

import numba
import numpy as np
import pandas as pd

import anonflow as af
from anonflow import kernels
from anonflow.algorithms.anonymize import anonymize
from anonflow.algorithms.registry import REGISTRY
from anonflow.kernels import cache, jit
from anonflow.loss import MEASURES
from anonflow.release.draw import assignments
from anonflow.utility.bounds import lower_bound
from tests.strategies import city_tree

CHAINS = {"improve": "chains", "rounds": 2, "kicks": 2, "threads": 1}
QUICK = {"rounds": 1, "kicks": 1, "threads": 1}
SEED = 2**127 + 1

Run = Callable[[], object]


@functools.cache
def table(n: int = 40, limits: bool = False, letter: str = "categorical") -> af.Table:
    """All kinds of columns, with missing values."""
    rng = np.random.default_rng(8)
    number = rng.integers(0, 10**6, n).astype(float)
    number[:2] = np.nan
    frame = pd.DataFrame(
        {
            "number": number,
            "small": rng.integers(0, 5, n),
            "letter": rng.choice(list("abcde"), n),
            "city": rng.choice(["San Diego", "Wichita", "Topeka", "Lincoln"], n),
            "ill": rng.choice(["flu", "cold", "none"], n),
        }
    )
    qi = {"role": "quasi-identifier"}
    limit = {"max-width": 2} if limits else {}
    return af.Table(
        frame,
        {
            "number": {**qi, "kind": "numeric", "missing": "suppress"},
            "small": {**qi, "kind": "numeric", **limit},
            "letter": {**qi, "kind": letter},
            "city": {**qi, "kind": "hierarchy", "hierarchy": city_tree()},
            "ill": {"role": "sensitive"},
        },
    )


def solved(name: str, n: int = 40, limits: bool = False, k: int = 3, **options: Any) -> Any:
    """A method's result."""
    letter = "suppression" if REGISTRY[name].needs_hierarchies else "categorical"
    return anonymize(table(n, limits, letter), name, k=k, seed=SEED, workers=1, **options)


def of(name: str, **options: Any) -> Run:
    return functools.partial(solved, name, **options)


def of_sorted_pairs() -> object:
    """Where all pairs of values of a QI cost the same; few records would all be compared."""
    letters = table(200, letter="suppression")
    columns = ["letter", "ill"]
    alike = af.Table(
        letters.frame[columns],
        {"letter": {"role": "quasi-identifier", "kind": "suppression"}, "ill": {"role": "sensitive"}},
    )
    return anonymize(
        alike, "two-phase", k=3, seed=SEED, workers=1, start="sparse", candidates=8, pairs="sorted", **QUICK
    )


def diversified(name: str, criterion: str, *, distinct_first: bool = False, **parameters: Any) -> Run:
    options = {"distinct_first": True} if distinct_first else {}
    return lambda: af.diversify(solved(name, **options), criterion, seed=1, **parameters)


def drawn(name: str, **options: Any) -> Run:
    return lambda: solved(name, **options).release(seed=SEED)


def taken_apart() -> object:
    """Matches of an odd and of an even number, as disjoint assignments."""
    return [assignments(solved("greedy", k=k).matches) for k in (3, 6)]


RUNS: dict[str, Run] = {
    **{f"greedy {loss}": of("greedy", loss=loss) for loss in MEASURES},
    "greedy lexicographic": of("greedy", visit="lexicographic"),
    "greedy, nearly everybody": of("greedy", n=9, k=8),
    "hungarian": of("hungarian"),
    "sort-greedy": of("sort-greedy"),
    "sort-greedy by weight": of("sort-greedy", edges="weight"),
    "sort-greedy reciprocal": of("sort-greedy", reciprocal=True),
    "greedy reciprocal": of("greedy", reciprocal=True),
    "greedy reciprocal, nearly everybody": of("greedy", n=11, k=9, reciprocal=True),
    "hungarian reciprocal": of("hungarian", reciprocal=True),
    "hungarian reciprocal, even": of("hungarian", k=4, reciprocal=True),
    "min-cost-flow": of("min-cost-flow", n=12),
    "optimal": of("optimal", n=8, k=2, time_limit=600.0),
    "min-cost-flow reciprocal": of("min-cost-flow", n=13, reciprocal=True),
    "nh": of("nh"),
    "nh reciprocal": of("nh", k=4, reciprocal=True),
    "two-phase": of("two-phase", **QUICK),
    "two-phase chains": of("two-phase", n=70, rounds=1, kicks=1, threads=1),
    "two-phase chains entropy": of("two-phase", n=70, loss="entropy", rounds=1, kicks=1, threads=1),
    "two-phase sparse": of("two-phase", start="sparse", candidates=8, **QUICK),
    "two-phase sparse, sorted pairs": of_sorted_pairs,
    "two-phase reciprocal": of("two-phase", reciprocal=True, **QUICK),
    "two-phase cycles": of("two-phase", n=70, improve="cycles", p=2_000, threads=1),
    "k-concealment": of("k-concealment"),
    "k-concealment not randomized": of("k-concealment", randomized=False),
    "k-concealment of pairs": of("k-concealment", near="pairs", q=4),
    "k-concealment exact": of("k-concealment", n=10, exact=True),
    "(k,k)": of("k-concealment", target="(k,k)"),
    "mondrian": of("mondrian"),
    "mondrian relaxed": of("mondrian", mode="relaxed"),
    "mondrian for pairs": of("mondrian", of=2),
    "local-recoding for pairs": of("local-recoding", of=2),
    "mondrian chains": of("mondrian", **CHAINS),
    "agglomerative": of("agglomerative", modified=True),
    "agglomerative chains": of("agglomerative", **CHAINS),
    "forest": of("forest"),
    "k-member": of("k-member"),
    "k-member chains": of("k-member", **CHAINS),
    "greedy-cka": of("greedy-cka"),
    "greedy-cka chains": of("greedy-cka", **CHAINS),
    "mdav": of("mdav"),
    "full-domain": of("full-domain", limit=0.2),
    "local-recoding": of("local-recoding"),
    "local-suppression": of("local-suppression"),
    "pattern-guided": of("pattern-guided", patterns={"together": [["number", "small"]]}),
    "pattern-guided local search": of("pattern-guided", local_search=True, orders=2),
    "pattern-guided-optimal": of("pattern-guided-optimal", n=10, k=2, time_limit=600.0),
    **{f"limits {name}": of(name, limits=True) for name in ("greedy", "greedy-cka", "k-member", "mondrian")},
    "draw": drawn("greedy"),
    "draw of an even number": drawn("greedy", k=6),
    "draw of classes": drawn("k-member"),
    "assignments": taken_apart,
    "lower bound": lambda: lower_bound(table().records, 3),
    # few enough for a single block: threads that write beside would differ from the plain kernel's copy
    "lower bound of regular ones": lambda: lower_bound(table(14).records, 3, regular=True),
    "diversify classes": diversified("k-member", "l-diversity", l=2),
    "diversify classes of different values": diversified("greedy-cka", "p-sensitivity", p=2, distinct_first=True),
    "diversify matches": diversified("greedy", "l-diversity", l=2),
    "diversify covers": diversified("k-concealment", "p-sensitivity", p=2),
}  # fmt: skip
"""Runs by name."""

NESTED = 20
"""Calls of a kernel by another one that are compared in each run."""


EMPTY = ("chains.chain_scratch", "cycles.cycle_scratch")
"""Kernels that make arrays whose content is nothing yet."""


def every_kernel() -> dict[str, tuple[Any, Callable[..., Any]]]:
    """Name -> the compiled kernel and its plain twin, of every module of the room."""
    modules = [
        importlib.import_module(module.name)
        for module in pkgutil.walk_packages(kernels.__path__, f"{kernels.__name__}.")
    ]
    # of the package: test modules that ran before have twins of their own
    known = {
        id(twin): plain
        for plain, twin in jit._twins.items()
        if plain.__module__.startswith(f"{af.__name__}.")
    }
    attributes = [
        value for module in modules for name, value in vars(module).items() if name.endswith("_jit")
    ]
    assert {id(value) for value in attributes} == known.keys(), "every kernel is an attribute x_jit"
    return {
        f"{known[id(twin)].__module__.rpartition('.')[2]}.{known[id(twin)].__name__}": (twin, known[id(twin)])
        for twin in attributes
    }


def fill(hand: str, hands: str) -> Any:
    """Compile, or load what another process has compiled meanwhile."""
    runs = list(RUNS.values())
    random.Random(1).shuffle(runs)
    for run in runs[int(hand) :: int(hands)]:
        run()
    return jit.compiled_here()


def compare() -> Any:
    """Load all files of the cache, then call every kernel beside its plain twin."""
    names = every_kernel()
    files, others = loaded(names)
    # kernels that only kernels call have no file for Python
    seen = Seen(
        {id(twin): called_from_python(twin, plain) for twin, plain in names.values() if not twin.signatures}
    )
    for module in [module for name, module in sys.modules.items() if name.startswith("anonflow.")]:
        put_beside(module, names, seen)
    for name, run in RUNS.items():
        seen.run = name
        run()
    return {
        "files": files,
        "others": others,
        "compiled": jit.compiled_here(),
        "kernels": sorted(names),
        "calls": seen.calls,
        "strange": sorted(seen.strange),
    }


def loaded(names: dict[str, tuple[Any, Callable[..., Any]]]) -> tuple[list[str], list[str]]:
    """Load every file of the package's kernels, and let no kernel be compiled any more; the names of these files, and of others."""
    lines = {(twin._cache._source[0], plain.__code__.co_firstlineno): twin for twin, plain in names.values()}
    files: dict[bool, list[str]] = {True: [], False: []}
    for path in Path(str(cache.folder())).glob(f"*{cache.SUFFIX}"):
        (signature, (written, *_), line, options, *_), _ = pickle.loads(path.read_bytes()[32:])
        twin = lines.get((written, line))
        files[twin is not None].append(path.name)
        if twin is not None:
            (twin.get_overload.__self__ if "callee" in options else twin).compile(signature)
    for twin, _ in names.values():
        for dispatcher in (twin, twin.get_overload.__self__):
            if dispatcher.signatures:
                dispatcher.disable_compile()
    return files[True], files[False]


def called_from_python(twin: Any, plain: Callable[..., Any]) -> Any:
    """A kernel of a single call, which Python can call where it cannot call the kernel: the code that was loaded runs."""
    arguments = ", ".join(inspect.signature(plain).parameters)
    place = {"twin": twin}
    exec(f"def call({arguments}): return twin({arguments})", place)
    return numba.njit(no_cfunc_wrapper=True)(place["call"])


class Seen:
    """What was called."""

    def __init__(self, entries: Mapping[int, Any] | None = None) -> None:
        self.entries = entries or {}
        self.run = ""
        self.calls = Counter[str]()
        self.nested = Counter[tuple[str, str]]()
        self.strange: set[str] = set()


def put_beside(module: ModuleType, names: dict[str, tuple[Any, Callable[..., Any]]], seen: Seen) -> None:
    """Replace the kernels of a module, compiled and plain ones, by those that call both."""
    by_id = {id(each): (name, each is pair[0]) for name, pair in names.items() for each in pair}
    for attribute, value in list(vars(module).items()):
        if id(value) in by_id:
            name, direct = by_id[id(value)]
            setattr(module, attribute, beside(name, *names[name], direct, seen))


def beside(
    name: str, compiled: Any, plain: Callable[..., Any], direct: bool, seen: Seen
) -> Callable[..., Any]:
    """A kernel whose every call is repeated by its plain twin, on copies.

    A plain one, which another plain one calls, is compared a few times in each run: its numbers may be narrower than
    the compiled one's.
    """

    @functools.wraps(plain)
    def both(*arguments: Any) -> Any:
        entry = seen.entries.get(id(compiled))
        if direct and entry is None and tuple(map(numba.typeof, arguments)) not in compiled.overloads:
            seen.strange.add(f"{name} in {seen.run}")
        if not direct:
            seen.nested[seen.run, name] += 1
            if seen.nested[seen.run, name] > NESTED:
                return plain(*arguments)
        copies = copied(arguments, {})
        got = (entry or compiled)(*arguments)
        with np.errstate(all="ignore"):
            want = plain(*copies)
        assert_equal(arguments, copies, f"{name} in {seen.run}")
        assert_equal(got, want, f"{name} in {seen.run}", filled=name not in EMPTY)
        seen.calls[name] += 1
        return got

    return both


def copied(value: Any, roots: dict[int, np.ndarray]) -> Any:
    """A copy in which arrays share memory, and are strided, as they were."""
    if isinstance(value, tuple):
        parts = [copied(part, roots) for part in value]
        return type(value)(*parts) if hasattr(value, "_fields") else tuple(parts)
    if not isinstance(value, np.ndarray):
        return value
    root = value
    while isinstance(root.base, np.ndarray):
        root = root.base
    whole = root.reshape(-1, order="A").view(np.uint8)
    assert np.shares_memory(whole, root) or not root.size
    memory = roots.setdefault(id(root), whole.copy())
    offset = value.ctypes.data - root.ctypes.data if value.size else 0
    values = np.ndarray(value.shape, value.dtype, memory, offset, value.strides)
    values.flags.writeable = value.flags.writeable
    return values


def assert_equal(got: Any, want: Any, name: str, filled: bool = True) -> None:
    if isinstance(got, tuple):
        for mine, theirs in zip(got, want, strict=True):
            assert_equal(mine, theirs, name, filled)
    elif isinstance(got, np.ndarray):
        assert (got.shape, got.dtype) == (want.shape, want.dtype), name
        if filled:
            assert np.array_equal(got, want, equal_nan=got.dtype.kind == "f"), (
                f"compiled is not plain: {name}"
            )
    else:
        assert got == want or (got != got and want != want), f"compiled is not plain: {name}"


if __name__ == "__main__":
    order, *rest = sys.argv[1:]
    print(json.dumps(fill(*rest) if order == "fill" else compare()))
