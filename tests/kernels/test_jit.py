"""The switchboard of compilation: what a kernel is compiled for."""

from __future__ import annotations

import os
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
from anonflow.kernels.jit import NO_NANS, jit, method_clock


def doubled(number: int) -> int:
    return 2 * number


doubled_jit: Any = jit(doubled)


def of_all_sorts(codes: np.ndarray, number: int) -> int:
    return doubled(-1) + doubled(3) + doubled(codes[0]) + doubled(number)


of_all_sorts_jit: Any = jit(of_all_sorts)

for kernel in (doubled_jit, of_all_sorts_jit):  # a caller from the disk compiles no callee
    kernel._cache.disable()


def test_a_callee_is_compiled_once_for_all_whole_numbers() -> None:
    codes = np.array([5], np.int32)
    assert of_all_sorts_jit(codes, 7) == of_all_sorts(codes, 7) == 28
    assert doubled_jit.signatures == [(types.int64,)]


def test_only_named_flags_and_plain_functions() -> None:
    with pytest.raises(ValueError, match="NO_NANS"):
        jit(doubled, frozenset({"fast"}))
    with pytest.raises(ValueError, match="plain functions"):
        jit(len)
    assert frozenset({"nnan", "nsz"}) == NO_NANS


def tripled(number: int) -> int:
    return 3 * number


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
    begin = method_clock()
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


@pytest.mark.skipif(not hasattr(os, "fork"), reason="there is no fork here")
def test_a_child_process_has_a_clock_that_goes() -> None:
    """Though a thread of its parent, which it does not have, compiles."""
    code = """
import os
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
