"""Compiled kernels on disk: filled by any processes in any order, a cache gives each kernel its own code."""

from __future__ import annotations

import itertools
import json
import os
import pickle
import re
import shutil
import stat
import subprocess
import sys
import tempfile
from collections.abc import Iterable, Iterator
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from types import ModuleType, SimpleNamespace
from typing import Any

import numpy as np
import pytest
from llvmlite import binding
from numba.core.bytecode import FunctionIdentity
from numba.core.errors import TypingError

from anonflow.algorithms import REGISTRY
from anonflow.kernels import cache
from anonflow.kernels.jit import NO_NANS, jit
from tests import ROOT
from tests.cases.nobody import needs_root, python_as_nobody
from tests.kernels import kernel_runs

NUMBER = re.compile(r"B(\d+)v(\d+)")
SORTING = re.compile("quicksort|mergesort|searchsorted|partition_w_|np_sort|argsort")
"""Functions of numba in which closures differ only in their cells."""

PAIRS = """
import numba, numpy as np
from anonflow.kernels.jit import jit

def sorted_least(x): return np.sort(x)[0]
def place_of_least(x): return np.argsort(x)[0]

PLAIN = (sorted_least, place_of_least)
KERNELS = {function.__name__: jit(function) for function in PLAIN}
OTHERS = {function.__name__: numba.njit(cache=True)(function) for function in PLAIN}
VALUES = np.arange(40, 4, -1)
"""
"""Functions that call closures of the same name and type, as kernels and as a third party's."""

FILL = """
import itertools, json, os, re, sys
from numba.core.bytecode import FunctionIdentity
start, name, *kinds = sys.argv[1:]
FunctionIdentity._unique_ids = itertools.count(int(start))
import pairs
if "PLAIN" in os.environ:
    FunctionIdentity._unique_ids = itertools.count(int(start))
for kind in kinds:
    function = getattr(pairs, kind)[name]
    function(pairs.VALUES)
(result,) = function.overloads.values()
symbols = " ".join(part.name for part in result.library._final_module.functions)
(number,) = set(re.findall(r"run_quicksort1B\\d+v(\\d+)", symbols)) or {"0"}
print(number)
"""
"""A process whose numbers of functions begin at its first argument, with PLAIN those of anonflow, too."""

LOAD = """
import json, sys
import pairs
names = sys.argv[1].split(",")
plain = {function.__name__: function for function in pairs.PLAIN}
want = [int(plain[name](pairs.VALUES)) for name in names]
found = {}
for kind in sys.argv[2:]:
    functions = getattr(pairs, kind)
    got = [int(functions[name](pairs.VALUES)) for name in names]
    found[kind] = [got == want, [sum(functions[name].stats.cache_hits.values()) for name in names]]
print(json.dumps(found))
"""


TOTAL = """
from anonflow.kernels.jit import jit

def total(x):
    y = x[0] - x[0]
    for value in x:
        y += value
    return y

total_jit = jit(total)
"""

TOTALS = """
import json, sys
import numpy as np
from total import total_jit
found = []
for kind in sys.argv[1:]:
    before = sum(total_jit.stats.cache_misses.values())
    sum_ = int(np.real(total_jit(np.array([20, 4], kind))))
    found.append([sum_, sum(total_jit.stats.cache_misses.values()) - before])
print(json.dumps(found))
"""

INNER = """
from anonflow.kernels.jit import jit
def number(): return {number}
number_jit = jit(number)
"""

OUTER = """
from anonflow.kernels.freeform.inner import number
from anonflow.kernels.jit import jit
def answer(): return number()
answer_jit = jit(answer)
"""

STEPS = """
import numpy as np
from anonflow.kernels.jit import jit

def least(x): return np.sort(x)[0]
least_jit = jit(least)
def span(x): return x.max() - least(x)
span_jit = jit(span)
def spans(x): return span(x) + least(x[1:])
spans_jit = jit(spans)
"""

AT_ONCE = """
from anonflow.kernels import cache, jit
cache.LONGEST = float("inf")  # on a busy machine a kernel can take longer
import steps
assert steps.spans_jit(steps.np.arange(5)) == 5
print(jit.compiled_here())
"""


def run(
    folder: Path, code: str, *arguments: object, store: Path | str | None = None, **environment: str
) -> Any:
    """What a process prints, as JSON."""
    place = {"NUMBA_CACHE_DIR": str(folder / "store" if store is None else store)}
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


@pytest.mark.slow
def test_closures_of_two_processes_stay_two(tmp_path: Path) -> None:
    """numba's fault: two processes number two closures alike, and a third calls the first for both."""
    (tmp_path / "pairs.py").write_text(PAIRS)
    names = ("sorted_least", "place_of_least")
    # numba without us gives `run_quicksort1` the numbers 106 and 103: the second process begins 3 later
    numbers = [
        run(tmp_path, FILL, 100, name, "OTHERS", store=tmp_path / store, PLAIN="1")
        for name, store in zip(names, ("numba", "numbers"), strict=True)
    ]
    later = 100 + numbers[0] - numbers[1]
    assert numbers[0] == run(tmp_path, FILL, later, names[1], "OTHERS", store=tmp_path / "numba", PLAIN="1")
    for begin, name in zip((100, later), names, strict=True):
        run(tmp_path, FILL, begin, name, "KERNELS", "OTHERS")
    right = [True, [1, 1]]
    for order in (names, names[::-1]):
        assert run(tmp_path, LOAD, ",".join(order), "KERNELS", "OTHERS") == {
            "KERNELS": right,
            "OTHERS": right,
        }
    # the numbers meet: without us, the second is the first
    assert run(tmp_path, LOAD, ",".join(names), "OTHERS", store=tmp_path / "numba") == {
        "OTHERS": [False, [1, 1]]
    }, "numba has mended issue 10486; numbers need not be random any more"


@pytest.mark.slow
def test_a_cache_filled_by_many_processes_holds_what_the_plain_kernels_do(tmp_path: Path) -> None:
    """That of all tests: two processes add what is missing by runs of their own; a last one loads a copy of it and compares."""
    waiting = [start({}, "fill", str(hand), "2") for hand in range(2)]
    for process in waiting:
        ended(process)
    filled = Path(str(cache.folder()))
    copy = tmp_path / filled.name
    copy.mkdir()
    for path in filled.glob("*.kernel"):
        shutil.copy(path, copy)
    copied = len(list(copy.iterdir()))
    # all that is compiled there are calls of kernels that Python cannot call: what these do has been optimized already
    result = ended(start({"NUMBA_CACHE_DIR": str(tmp_path), "NUMBA_OPT": "0"}, "compare"))
    assert len(result["files"] + result["others"]) == copied
    files = [copy / name for name in result["files"]]
    assert len(files) > len(result["kernels"])
    assert (result["compiled"], result["strange"]) == (0, [])
    # none is left out: what is added to the room gets a run here, too
    assert sorted(result["calls"]) == result["kernels"]
    assert len(result["kernels"]) > 100
    functions: dict[str, set[str]] = {}
    for name, bodies in symbols(files).items():
        (number,) = {digits[: int(length) - 1] for length, digits in NUMBER.findall(name)} or {""}
        if number:
            # one function of one compilation: no two closures have one number, however their bodies were optimized
            assert int(number).bit_length() == 128
            functions.setdefault(number, set()).add(re.sub(r"^(cfunc\.)?_ZN(7cpython)?", "", name))
        else:  # code that numba makes for a type or of a text, whose names say which
            assert re.match(r"NRT_|\.dtor\.|__excinfo_unwrap_args[0-9a-f]{40}", name), name
            assert len(bodies) == 1, f"{name} is two functions"
        assert not SORTING.search(name), name
    assert [number for number, each in functions.items() if len(each) > 1] == []
    assert len(functions) > len(result["kernels"])
    assert any("5numba" in name for each in functions.values() for name in each), (
        "closures of numba are among them"
    )


def test_every_kernel_has_a_name_and_every_method_a_run() -> None:
    names = kernel_runs.every_kernel()
    assert len(names) == len({id(twin) for twin, _ in names.values()}) > 100
    assert [name for name in REGISTRY if not any(run.startswith(name) for run in kernel_runs.RUNS)] == []


@pytest.mark.parametrize("other", [lambda x, y: y + 1, lambda x, y: x.fill(0)])
def test_a_kernel_that_is_another_one_is_noticed(home: Path, other: Any) -> None:
    """By what it hands back, or by what it writes."""

    def filled(x: Any, y: Any) -> Any:
        x[0] = y

    room: Any = ModuleType("room")
    seen = kernel_runs.Seen()
    room.filled_jit, room.filled = jit(filled), filled
    kernel_runs.put_beside(room, {"filled": (room.filled_jit, filled)}, seen)
    room.filled_jit(np.zeros(2), 7)
    assert (seen.calls, seen.strange) == (
        {"filled": 1},
        {"filled in "},
    )  # it was not loaded, but compiled here
    for value in (room.filled_jit, room.filled):
        value(np.zeros(2), 7)
    assert (seen.calls["filled"], len(seen.strange)) == (3, 1)
    twin = jit(other)
    for entries in ({}, {id(twin): kernel_runs.called_from_python(twin, filled)}):
        wrong = kernel_runs.beside("filled", twin, filled, True, kernel_runs.Seen(entries))
        with pytest.raises(AssertionError, match="compiled is not plain: filled"):
            wrong(np.zeros(2), 7)


def start(place: dict[str, str], *arguments: str) -> subprocess.Popen[str]:
    """Begin a process of :mod:`tests.kernels.kernel_runs`."""
    return subprocess.Popen(
        [sys.executable, "-m", "tests.kernels.kernel_runs", *arguments],
        env={**os.environ, **place},
        cwd=ROOT,
        stdout=subprocess.PIPE,
        text=True,
    )


def ended(process: subprocess.Popen[str]) -> Any:
    printed, _ = process.communicate()
    assert process.returncode == 0
    return json.loads(printed)


def symbols(files: Iterable[Path]) -> dict[str, set[str]]:
    """The names of all functions that cached kernels bring along, and their bodies without names of values."""
    bodies: dict[str, set[str]] = {}
    for path in files:
        _, payload = pickle.loads(path.read_bytes()[32:])
        _, _, (_, bitcode) = pickle.loads(payload)[0]
        for function in binding.parse_bitcode(bitcode).functions:
            if not function.is_declaration:
                bodies.setdefault(function.name, set()).add(plain_body(str(function)))
    return bodies


def plain_body(text: str) -> str:
    """A function as LLVM prints it, without comments, attributes, names of values and blocks, and numbers of environments."""
    text = re.sub(r"\s*;.*| #\d+|,? ![\w.]+ !\d+", "", text)
    # an environment is where a raised error finds its module; each compilation has its own, by a number of its own
    text = re.sub(r"(NumbaEnv[\w.$]*?B\d+v)\d+", r"\1", text)
    text = re.sub(r"(?m)^([\w.$-]+|\"[^\"]*\"):", r"%\1:", text)
    numbers: dict[str, int] = {}
    return re.sub(
        r'%([\w.$-]+|"[^"]*")', lambda match: f"%{numbers.setdefault(match[1], len(numbers))}", text
    )


def test_bodies_are_compared_by_what_they_do() -> None:
    """The comparison of symbols sees another instruction, and no other name."""
    body = "define i8 @f(i8 %.1) #3 {\n.2:\n  br label %.3, !dbg !7\n\n.3:  ; preds = %.2\n  %x = {} i8 %.1, 1\n  ret i8 %x\n}"
    first = plain_body(body.replace("{} i8", "add i8"))
    assert plain_body(body.replace("{} i8", "sub i8")) != first
    assert plain_body(body.replace("{} i8", "add i8").replace("%x", "%y").replace(".3", "next")) == first


@pytest.mark.slow
def test_signatures_compiled_at_once_stay_apart(tmp_path: Path) -> None:
    """numba's index named one signature's file for another, if two processes wrote it at once."""
    (tmp_path / "total.py").write_text(TOTAL)
    kinds = ["int8", "int64", "float32", "float64", "complex128", "uint16"]
    with ThreadPoolExecutor(len(kinds)) as pool:
        compiled = list(pool.map(lambda kind: run(tmp_path, TOTALS, kind), kinds))
    assert compiled == [[[24, 1]]] * len(kinds)
    assert run(tmp_path, TOTALS, *kinds) == [[24, 0]] * len(kinds)


@pytest.mark.slow
def test_a_caller_does_not_survive_a_change_in_what_it_inlines(tmp_path: Path) -> None:
    """Wherever the files are: here in two rooms of a copy of the package, which keeps its kernels beside them where nothing else is said."""
    package = tmp_path / "anonflow"
    shutil.copytree(
        ROOT / "anonflow" / "kernels", package / "kernels", ignore=shutil.ignore_patterns("__pycache__")
    )
    for name in ("__init__.py", "errors.py", "system.py"):
        shutil.copy(ROOT / "anonflow" / name, package / name)
    inner, outer = (package / "kernels" / name for name in ("freeform/inner.py", "outer.py"))
    outer.write_text(OUTER)
    init = package / "__init__.py"
    version = init.read_text()
    newer = version.replace('__version__ = "', '__version__ = "9')
    assert newer != version
    results = []
    for age, (number, head) in enumerate(
        ((1, version), (1, version), (2, version), (1, newer), (1, version))
    ):
        inner.write_text(INNER.format(number=number))
        os.utime(inner, (age, age))  # Python tells files of a size by the second in which they changed
        init.write_text(head)
        results.append(
            run(tmp_path, "import json; from anonflow.kernels import outer, cache, jit; "
                "print(json.dumps([outer.answer_jit(), jit.compiled_here() > 0, cache.folder()]))", store="")
        )  # fmt: skip
        assert Path(results[-1][2]).parent == package / "kernels" / "__pycache__"
    answers, compiled, homes = zip(*results, strict=True)
    assert answers == (1, 1, 2, 1, 1)
    assert compiled == (True, False, True, True, False)
    assert [homes.index(home) for home in homes] == [0, 0, 2, 3, 0]


# ------------------------------------------------------------------------------------ one process


@pytest.fixture
def home(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[Path]:
    """An empty folder for kernels, and nobody warned yet."""
    monkeypatch.setattr(cache, "folder", lambda: str(tmp_path))
    cache._warn.cache_clear()
    yield tmp_path
    cache._warn.cache_clear()


def double(x: Any) -> Any:
    return x + x


def fresh(fastmath: frozenset[str] = frozenset()) -> Any:
    """The kernel as another process has it."""
    return jit(double, fastmath)


def doubled(kernel: Any) -> tuple[int, float]:
    return kernel(3), kernel(0.5)


def files(home: Path) -> list[Path]:
    return sorted(home.iterdir())


def misses(kernel: Any) -> int:
    return sum(kernel.stats.cache_misses.values())


def test_a_kernel_is_compiled_once(home: Path) -> None:
    kernel = fresh()
    assert (kernel(3), kernel(0.5), misses(kernel)) == (6, 1.0, 2)
    assert [path.suffix for path in files(home)] == [".kernel"] * 2
    again = fresh()
    assert (again(3), again(0.5), misses(again)) == (6, 1.0, 0)
    other = fresh(NO_NANS)
    assert (other(0.5), misses(other)) == (1.0, 1)
    kernel.recompile()
    assert (kernel(3), misses(kernel)) == (6, 4)
    assert len(files(home)) == 2
    again = fresh()
    again._cache.disable()
    assert (again(3), misses(again)) == (6, 1)
    again._cache.enable()
    assert (again(0.5), misses(again)) == (1.0, 1)


@pytest.mark.machine
@pytest.mark.slow
def test_processes_at_once_compile_a_kernel_once(tmp_path: Path) -> None:
    """Four processes need the same kernels, which call each other, at the same moment: one compiles each, the others read its file."""
    (tmp_path / "steps.py").write_text(STEPS)
    with ThreadPoolExecutor(4) as pool:
        compiled = list(pool.map(lambda _: run(tmp_path, AT_ONCE), range(4)))
    assert sum(compiled) == len(list(tmp_path.rglob("*.kernel"))) == 3
    assert not list(tmp_path.rglob("*.lock"))


def test_a_process_that_holds_a_kernel_for_long_stops_nobody(
    home: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    kernel = fresh()
    held = []

    def never(descriptor: int) -> None:
        held.append(descriptor)
        raise BlockingIOError

    moments = iter(range(0, 1000, 7))
    monkeypatch.setattr(cache, "take_lock", never)
    monkeypatch.setattr(
        cache, "time", SimpleNamespace(monotonic=lambda: next(moments), sleep=lambda seconds: None)
    )
    assert (kernel(3), misses(kernel)) == (6, 1)
    assert len(held) > 3
    assert [path.suffix for path in files(home)] == [".kernel"]


def test_copies_of_the_package_share_kernels(
    home: Path, tmp_path_factory: pytest.TempPathFactory, monkeypatch: pytest.MonkeyPatch
) -> None:
    """A kernel is known by its place in the package, however the package's path is written."""
    source = "def triple(x):\n    return 3 * x\n"
    copies, compiled = tmp_path_factory.mktemp("copies"), []
    for path in ("first/kernels", "first/other/../kernels", "second/kernels"):
        room = copies / path
        room.mkdir(parents=True, exist_ok=True)
        monkeypatch.setattr(cache, "__file__", str(room / "cache.py"))
        (room / "triples.py").write_text(source)
        namespace: dict[str, Any] = {"__name__": __name__}
        exec(compile(source, str(room / "triples.py"), "exec"), namespace)
        kernel = jit(namespace["triple"])
        assert kernel(5) == 15
        compiled.append(misses(kernel))
    assert compiled == [1, 0, 0]
    assert len(files(home)) == 1


def test_flags_in_any_order_are_one_kernel(home: Path) -> None:
    """A set of texts has another order in another process."""

    class Backwards(frozenset[str]):
        def __iter__(self) -> Iterator[str]:
            return reversed(list(super().__iter__()))

    kernels = fresh(NO_NANS), fresh(Backwards(NO_NANS))
    assert [(kernel(3), misses(kernel)) for kernel in kernels] == [(6, 1), (6, 0)]


def test_every_function_has_a_number_of_its_own(home: Path) -> None:
    numbers = {FunctionIdentity.from_function(double).unique_id for _ in range(1000)}
    assert len(numbers) == 1000
    assert {number.bit_length() for number in numbers} == {128}
    kernel = fresh()
    kernel(3)
    (result,) = kernel.overloads.values()
    assert f"v{result.fndesc.uid}" in result.fndesc.mangled_name
    assert result.fndesc.uid.bit_length() == 128


@pytest.mark.parametrize(
    "damage", [lambda raw: raw[:-5], lambda raw: b"", lambda raw: raw[:99] + b"?" + raw[100:]]
)
def test_a_damaged_file_is_written_anew(home: Path, damage: Any) -> None:
    fresh()(3)
    (path,) = files(home)
    path.write_bytes(damage(path.read_bytes()))
    kernel = fresh()
    assert (kernel(3), misses(kernel)) == (6, 1)
    assert files(home) == [path]
    kernel = fresh()
    assert (kernel(3), misses(kernel)) == (6, 0)


def test_a_file_of_another_signature_is_not_loaded(home: Path) -> None:
    kernel = fresh()
    kernel(3)
    (first,) = files(home)
    kernel(0.5)
    (second,) = {*files(home)} - {first}
    second.write_bytes(first.read_bytes())
    kernel = fresh()
    assert (kernel(0.5), misses(kernel)) == (1.0, 1)


def test_what_numba_counted_is_not_kept(home: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Functions that a process compiled before it had anonflow may be inside a kernel."""
    monkeypatch.setattr(FunctionIdentity, "_unique_ids", itertools.count(1))
    with pytest.warns(RuntimeWarning, match="import anonflow.kernels.jit first") as warnings:
        results = doubled(fresh())
    assert results == (6, 1.0)
    assert len(warnings) == 1
    assert files(home) == []


def test_a_full_or_missing_folder_ends_nothing(home: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(cache, "folder", lambda: str(home / "gone"))
    with pytest.warns(RuntimeWarning, match="cannot be kept in .*gone") as warnings:
        results = doubled(fresh())
    assert results == (6, 1.0)
    assert len(warnings) == 1


def test_a_folder_that_nobody_may_look_into_ends_nothing(home: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Every call of the system fails there, not only those for files that are not there."""
    monkeypatch.setattr(cache, "folder", lambda: str(home / ("x" * 300)))
    with pytest.warns(RuntimeWarning, match="cannot be kept in"):
        assert doubled(fresh()) == (6, 1.0)


def test_an_error_of_the_compiler_says_nothing_of_a_lock(home: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(cache, "folder", lambda: str(home / "gone"))
    with pytest.raises(TypingError) as caught:
        fresh()(None)
    assert not isinstance(caught.value.__context__, OSError)


# ------------------------------------------------------------------------------------ the folder


@pytest.fixture
def places(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[Path]:
    """Nowhere to write but a temporary folder of the test's own."""
    (tmp_path / "file").write_text("")
    (tmp_path / "temporary").mkdir()
    monkeypatch.setattr(cache, "_places", lambda: iter([tmp_path / "file", tmp_path / "file" / "below"]))
    monkeypatch.setattr(tempfile, "tempdir", str(tmp_path / "temporary"))
    cache._warn.cache_clear()
    cache.folder.cache_clear()
    yield tmp_path / "temporary"
    cache._warn.cache_clear()
    cache.folder.cache_clear()


def test_the_first_folder_that_can_be_written_to(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(cache._config, "CACHE_DIR", str(tmp_path / "named"))
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path / "home"))
    named, package, user = cache._places()
    assert (named, user) == (tmp_path / "named", tmp_path / "home" / "anonflow")
    assert package == Path(cache.__file__).parent / "__pycache__"
    monkeypatch.setattr(cache._config, "CACHE_DIR", "")
    monkeypatch.setenv("XDG_CACHE_HOME", "not/a/home")
    assert list(cache._places()) == [package]
    (tmp_path / "file").write_text("")
    monkeypatch.setattr(cache, "_places", lambda: iter([tmp_path / "file", tmp_path / "a", tmp_path / "b"]))
    cache.folder.cache_clear()
    try:
        assert cache.folder() == str(tmp_path / "a" / cache._stamp())
    finally:
        cache.folder.cache_clear()
    assert not (tmp_path / "b").exists()


def test_nowhere_to_write_is_a_temporary_folder_and_one_warning(places: Path) -> None:
    with pytest.warns(
        RuntimeWarning, match="no other folder can be written to; set NUMBA_CACHE_DIR"
    ) as warnings:
        results = doubled(fresh())
    assert results == (6, 1.0)
    assert len(warnings) == 1
    (own,) = places.iterdir()
    assert stat.S_IMODE(own.stat().st_mode) == 0o700
    assert Path(str(cache.folder())).parent == own
    kernel = fresh()
    assert (kernel(3), misses(kernel)) == (6, 0)


def test_a_folder_that_others_can_write_to_is_not_used(places: Path) -> None:
    (places / f"anonflow-{os.getuid()}").mkdir()
    (places / f"anonflow-{os.getuid()}").chmod(0o777)
    with pytest.warns(RuntimeWarning, match="temporary"):
        assert cache.folder() is not None
    assert Path(str(cache.folder())).parent != places / f"anonflow-{os.getuid()}"
    assert stat.S_IMODE(Path(str(cache.folder())).parent.stat().st_mode) == 0o700


def test_no_folder_at_all_compiles_in_every_process(places: Path) -> None:
    places.rmdir()
    kernel = fresh()
    with pytest.warns(RuntimeWarning, match="not kept on disk: no folder") as warnings:
        results = doubled(kernel)
    assert results == (6, 1.0)
    assert misses(kernel) == 2
    assert len(warnings) == 1
    assert cache.is_empty()
    kernel._cache.flush()


def test_a_numba_that_numbers_otherwise_keeps_nothing(places: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    for other in (
        SimpleNamespace(),
        SimpleNamespace(from_function=lambda function: SimpleNamespace(unique_id=7)),
    ):
        monkeypatch.setattr(cache, "FunctionIdentity", other)
        assert not cache.numbered_at_random()
    monkeypatch.setattr(cache, "_AT_RANDOM", False)
    with pytest.warns(RuntimeWarning, match="does not know this version of numba") as warnings:
        results = doubled(fresh())
    assert results == (6, 1.0)
    assert len(warnings) == 1
    assert list(places.iterdir()) == []


def test_the_folder_is_named_by_all_that_kernels_depend_on(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    copied = tmp_path / "kernels"
    shutil.copytree(Path(cache.__file__).parent, copied, ignore=shutil.ignore_patterns("__pycache__"))
    monkeypatch.setattr(cache, "__file__", str(copied / "cache.py"))
    target = SimpleNamespace(
        target_context=SimpleNamespace(codegen=lambda: SimpleNamespace(magic_tuple=lambda: "cpu"))
    )
    stamps, listed = [cache._stamp()], Path.rglob
    with monkeypatch.context() as patch:  # another disk lists files in another order
        patch.setattr(Path, "rglob", lambda *arguments: reversed(list(listed(*arguments))))
        assert [cache._stamp()] == stamps
    for name, value in (
        ("__version__", "0"),
        ("numba", SimpleNamespace(__version__="0")),
        ("llvmlite", SimpleNamespace(__version__="0")),
        ("cpu_target", target),
    ):
        monkeypatch.setattr(cache, name, value)
        stamps.append(cache._stamp())
    for path in sorted(copied.glob("*.py")):
        path.write_text(path.read_text() + "\n")
        stamps.append(cache._stamp())
    (copied / "new.py").write_text("")
    stamps.append(cache._stamp())
    assert len(set(stamps)) == len(stamps)


@pytest.mark.slow
@needs_root
def test_a_user_who_owns_nothing() -> None:
    """As in a container: no home, and a package that cannot be written to."""
    code = "import json, numpy as np; from anonflow.kernels import ordering, cache; " \
        "print(json.dumps([ordering.stable_order_jit(np.arange(3)).tolist(), cache.folder()]))"  # fmt: skip
    with tempfile.TemporaryDirectory() as folder:
        Path(folder).chmod(0o1777)
        done = python_as_nobody("-c", code, cwd=Path(folder), TMPDIR=folder, HOME="/nonexistent")
        assert done.returncode == 0, done.stderr
        order, home = json.loads(done.stdout)
        assert order == [0, 1, 2]
        assert Path(home).is_relative_to(folder)
        assert done.stderr.count("KernelCacheWarning") == 1
