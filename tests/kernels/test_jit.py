"""The switchboard of compilation: what a kernel is compiled for."""

from __future__ import annotations

import ast
import gc
import os
import re
import subprocess
import sys
from concurrent.futures import ThreadPoolExecutor
from threading import Event
from types import SimpleNamespace
from typing import Any

import numpy as np
import pytest
from numba.core import types

from anonflow.kernels import jit as module
from anonflow.kernels.jit import NO_NANS, CompileTimer, jit, method_clock, ready_here
from tests import ROOT


def doubled(number: int) -> int:
    return 2 * number


doubled_jit: Any = jit(doubled)


def of_all_sorts(codes: np.ndarray, number: int) -> int:
    return doubled(-1) + doubled(3) + doubled(codes[0]) + doubled(number)


of_all_sorts_jit: Any = jit(of_all_sorts)

for kernel in (doubled_jit, of_all_sorts_jit):  # a caller from the disk compiles no callee
    kernel._cache.disable()


def test_a_callee_is_compiled_once_for_all_whole_numbers() -> None:
    codes, ready = np.array([5], np.int32), ready_here()
    assert of_all_sorts_jit(codes, 7) == of_all_sorts(codes, 7) == 28
    assert ready_here() == ready + 2
    assert doubled_jit.signatures == [], "Python did not call it"
    assert doubled_jit(7) == doubled(7) == 14
    assert doubled_jit.signatures == [(types.int64,)]
    assert of_all_sorts_jit(codes, 7) == 28


def test_only_named_flags_and_plain_functions() -> None:
    with pytest.raises(ValueError, match="NO_NANS"):
        jit(doubled, frozenset({"fast"}))
    with pytest.raises(ValueError, match="plain functions"):
        jit(len)
    assert frozenset({"nnan", "nsz"}) == NO_NANS


def tripled(number: int) -> int:
    return 3 * number


@pytest.mark.parametrize("enabled", [True, False])
def test_pythons_collector_rests_while_a_kernel_is_made_ready(enabled: bool) -> None:
    (gc.enable if enabled else gc.disable)()
    try:
        assert module._make_ready(doubled_jit._cache, lambda _: gc.isenabled(), (types.int64,)) is False
        assert gc.isenabled() == enabled
        with pytest.raises(ZeroDivisionError):
            module._make_ready(doubled_jit._cache, lambda _: 1 // 0, (types.int64,))
        assert gc.isenabled() == enabled
    finally:
        gc.enable()


def test_the_clock_of_time_limits_stands_while_a_kernel_is_made_ready(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    now = [100.0]
    clock = module._MethodClock()
    monkeypatch.setattr(module, "time", SimpleNamespace(monotonic=lambda: now[0]))

    def compiled() -> str:
        now[0] = 120.0
        assert clock.now() == 101
        with pytest.raises(ZeroDivisionError):  # of a kernel that this one calls
            clock.stopped(lambda: 1 // 0)
        now[0] = 125.0
        assert clock.now() == 101
        return "ready"

    assert clock.now() == 100
    now[0] = 101.0
    assert clock.stopped(compiled) == "ready"
    assert clock.now() == 101
    now[0] = 127.0
    assert clock.now() == 103


def test_compiling_is_no_time_of_a_method(monkeypatch: pytest.MonkeyPatch) -> None:
    """Another thread looks at the clock meanwhile."""
    tripled_jit: Any = jit(tripled)
    tripled_jit._cache.disable()
    compile_or_read, begun, go_on = tripled_jit._compiler.compile, Event(), Event()
    now = [100.0]
    monkeypatch.setattr(module, "time", SimpleNamespace(monotonic=lambda: now[0]))
    monkeypatch.setattr(module, "_clock", module._MethodClock())

    def slowly(*arguments: Any) -> Any:
        begun.set()
        go_on.wait()
        return compile_or_read(*arguments)

    tripled_jit._compiler.compile = slowly
    begin, timer = method_clock(), CompileTimer()
    assert timer.seconds == 0.0
    with ThreadPoolExecutor(1) as pool:
        result = pool.submit(tripled_jit, 5)
        try:
            begun.wait()
            now[0] = 120.0
            assert method_clock() == begin
        finally:
            go_on.set()
        assert result.result() == 15
    assert method_clock() == begin
    now[0] = 121.0
    assert method_clock() == begin + 1
    assert timer.seconds == 20.0
    assert CompileTimer().seconds == 0.0


@pytest.mark.skipif(not hasattr(os, "fork"), reason="there is no fork here")
def test_a_child_process_has_a_clock_that_goes() -> None:
    """Though a thread of its parent, which it does not have, compiles."""
    code = """
import ast
import os
import re
from types import SimpleNamespace
from anonflow.kernels import jit

now = [100.0]
jit.time = SimpleNamespace(monotonic=lambda: now[0])

def child():
    pid = os.fork()
    if pid:
        assert os.waitstatus_to_exitcode(os.waitpid(pid, 0)[1]) == 0
        return
    before = jit.method_clock()
    now[0] += 1
    os._exit(int(jit.method_clock() != before + 1))

jit._clock.stopped(child)
"""
    subprocess.run([sys.executable, "-c", code], check=True)


MAKES_ARRAYS = re.compile(
    r"np\.(empty|zeros|full|ones|arange|argsort|sort|concatenate|unique)|\.(copy|astype|any|sum)\(|heappu|heappo|-> (tuple\[)?np\.ndarray"
)


def test_kernels_that_make_no_array_borrow_those_of_their_arguments() -> None:
    """A kernel counts references only where it, or one that it calls, makes an array."""
    sources, marked, calls = {}, set(), {}
    for path in (ROOT / "anonflow" / "kernels").rglob("*.py"):
        if path.stem == "jit":
            continue
        text = path.read_text(encoding="utf-8")
        functions = {node.name: node for node in ast.parse(text).body if isinstance(node, ast.FunctionDef)}
        for name, borrows in re.findall(r"_jit = jit\((\w+)(?:, fastmath=NO_NANS)?(, borrows=True)?\)", text):
            kernel = (path.stem, name)
            sources[kernel] = ast.unparse(functions[name])
            calls[kernel] = {
                node.func.id
                for node in ast.walk(functions[name])
                if isinstance(node, ast.Call) and isinstance(node.func, ast.Name)
            }
            if borrows:
                marked.add(kernel)
    making = {kernel for kernel, source in sources.items() if MAKES_ARRAYS.search(source)}
    while more := {
        kernel for kernel in sources.keys() - making if any(name in calls[kernel] for _, name in making)
    }:
        making |= more
    assert len(marked) > 90
    assert sources.keys() - making == marked


def widened(number: int, values: np.ndarray) -> float:
    return values[number] + values[0]


def test_what_borrows_counts_no_references() -> None:
    counting, borrowing = jit(widened), jit(widened, borrows=True)
    for kernel in (counting, borrowing):
        kernel._cache.disable()
        assert kernel(1, np.array([1.0, 2.0])) == 3.0
    (signature,) = borrowing.signatures
    assert "NRT_incref" not in borrowing.inspect_llvm(signature)
