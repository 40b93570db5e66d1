"""Compilation: every numba flag of the package is set here.

A kernel is a plain Python function over arrays and keeps its own name; the compiled kernel has a second name::

    def assign(plan, state, out): ...
    assign_jit = jit(assign)

The plain function calls plain functions, the compiled one calls their compiled twins: :func:`jit` replaces the names.
So both can be tested, and a callee is compiled once, not once for each caller.
"""

from __future__ import annotations

import gc
import os
import threading
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from functools import partial
from types import FunctionType
from typing import Any

import numba
from numba.core import types
from numba.core.compiler_lock import global_compiler_lock
from numba.extending import intrinsic, overload

from anonflow.kernels.cache import KernelCache, is_empty

NO_NANS = frozenset({"nnan", "nsz"})
"""The only subset of fast math in use: no NaN occurs and the sign of zero does not matter.

It allows minima to be reduced lane by lane and changes no result. Sums are never reassociated and products never fused
into them, so that all machines agree.
"""

_twins: dict[Callable[..., Any], Callable[..., Any]] = {}
_dispatchers: list[Any] = []


class _MethodClock:
    """The clock of time limits: it stands still while any thread makes a kernel ready.

    Notes
    -----
    Invariant: while `_compiling` is not empty, the clock shows `_stopped` less `_seconds`, the sum of all earlier such times.
    """

    def __init__(self) -> None:
        self.reset()

    def reset(self) -> None:
        """Begin anew: in a child process the threads that made kernels ready are not there."""
        self._guard = threading.Lock()
        self._compiling: set[object] = set()
        self._stopped = self._seconds = 0.0

    def now(self) -> float:
        """Return seconds since an arbitrary moment, without those of :meth:`stopped`."""
        with self._guard:
            return (self._stopped if self._compiling else time.monotonic()) - self._seconds

    def stopped(self, work: Callable[[], Any]) -> Any:
        """Return what `work` returns; the clock stands still meanwhile."""
        token = object()
        try:
            with self._guard:
                if not self._compiling:
                    self._stopped = time.monotonic()
                self._compiling.add(token)
            return work()
        finally:
            try:
                with self._guard:
                    if self._compiling == {token}:
                        self._seconds += time.monotonic() - self._stopped
                    self._compiling.discard(token)
            finally:
                self._compiling.discard(token)  # Ctrl-C came while the lock was awaited


_clock = _MethodClock()
if hasattr(os, "register_at_fork"):
    os.register_at_fork(after_in_child=_clock.reset)


def jit(
    function: Callable[..., Any], fastmath: frozenset[str] = frozenset(), *, borrows: bool = False
) -> Callable[..., Any]:
    """Return the compiled twin of a plain kernel.

    Parameters
    ----------
    function : callable
        A module-level function of numbers, arrays and named tuples of them. Functions that it calls and
        that have a twin are defined and compiled above it.
    fastmath : frozenset of str, optional
        Empty, or :data:`NO_NANS`.
    borrows : bool, optional
        Whether the kernel makes no array, and calls only kernels that make none. Then numba counts no references to the arrays
        of its arguments: for a plan and two states that takes a microsecond a call, many times what a short kernel does.

    Returns
    -------
    callable
        Compiled at its first call for the argument types it is called with, kept on disk, serial, and
        without the GIL while it runs. Division follows IEEE 754 and indexes are not checked.

    Raises
    ------
    ValueError
        If `fastmath` is another subset.
    """
    if fastmath not in (frozenset(), NO_NANS):
        raise ValueError("fastmath must be empty or NO_NANS")
    if not isinstance(function, FunctionType):
        raise ValueError("only plain functions are compiled")
    names = {
        name: _twins[value]
        for name in function.__code__.co_names
        if isinstance(value := function.__globals__.get(name), FunctionType) and value in _twins
    }
    rebound = FunctionType(
        function.__code__,
        {**function.__globals__, **names},
        function.__name__,
        function.__defaults__,
        function.__closure__,
    )
    rebound.__doc__ = function.__doc__
    twin, callee = (_dispatcher(rebound, fastmath, borrows, is_callee) for is_callee in (False, True))
    twin.get_call_template = partial(_call_template, callee.get_call_template)
    twin.get_overload = callee.get_overload
    _twins[function] = twin
    return twin


def _dispatcher(function: FunctionType, fastmath: frozenset[str], borrows: bool, is_callee: bool) -> Any:
    """Return what compiles a kernel at its first call: from Python, or as a callee of kernels.

    A kernel that only kernels call needs no code that takes Python's objects apart: for plans and states, that is a sixth of the
    compiler's time.
    """
    options = {"_nrt": False} if borrows else {}
    named = [*sorted(fastmath), *(["borrows"] if borrows else [])]
    if is_callee:
        options["no_cpython_wrapper"] = True
        named.append("callee")
    njit: Any = numba.njit  # its types do not know every option
    dispatcher = njit(
        nogil=True,
        error_model="numpy",
        boundscheck=False,
        no_cfunc_wrapper=True,  # nothing calls the C function, and it is a tenth of the compiler's time
        fastmath=set(fastmath) or False,
        **options,
    )(function)
    dispatcher._cache = KernelCache(function, tuple(named))
    dispatcher.compile = partial(_make_ready, dispatcher._cache, dispatcher.compile)
    _dispatchers.append(dispatcher)
    return dispatcher


def _call_template(resolve: Callable[..., Any], args: Any, kws: Any) -> Any:
    """Return the template that numba needs where one kernel calls another."""
    return resolve(tuple(map(_argument, args)), {name: _argument(argument) for name, argument in kws.items()})


def _argument(argument: Any) -> Any:
    """Return the type of an argument: integers are int64, so a callee is not compiled again for a constant or for an int32 element."""
    plain: Any = types.unliteral(argument)
    return types.int64 if getattr(plain, "signed", False) else plain


def _make_ready(cache: KernelCache, compile_or_read: Callable[[Any], Any], signature: Any) -> Any:
    """Compile a kernel, or read it from disk, while the clock of time limits stands still."""

    def work() -> Any:
        # first numba's lock: a thread that has it must not wait for one that waits for it
        with global_compiler_lock, cache.by_one_process(signature), _without_collector():
            return compile_or_read(signature)

    return _clock.stopped(work)


@contextmanager
def _without_collector() -> Iterator[None]:
    """Let Python's cyclic collector rest: it would look through all that numba makes, again and again."""
    enabled = gc.isenabled()
    gc.disable()
    try:
        yield
    finally:
        if enabled:
            gc.enable()


def method_clock() -> float:
    """Return the seconds that time limits count: as ``time.monotonic``, less those in which kernels were compiled or read from disk.

    A first run compiles for half a minute, which is no time of its method.
    """
    return _clock.now()


def compiled_here() -> int:
    """Return how many kernels this process has compiled because they were not on disk."""
    return sum(sum(dispatcher.stats.cache_misses.values()) for dispatcher in _dispatchers)


def ready_here() -> int:
    """Return how many kernels this process can call by now, each type of arguments apart: compiled here, or read from disk."""
    return sum(len(dispatcher.overloads) for dispatcher in _dispatchers)


class CompileTimer:
    """How long this process has compiled since the timer began."""

    def __init__(self) -> None:
        self._kernels, self._began, self._began_method = compiled_here(), time.monotonic(), method_clock()

    @property
    def seconds(self) -> float:
        """Seconds in which any thread made kernels ready; 0 if all of them were on disk."""
        if compiled_here() == self._kernels:
            return 0.0
        return time.monotonic() - self._began - (method_clock() - self._began_method)


def announce(is_missing: Callable[[], None]) -> None:
    """Call `is_missing` once, now, if no kernel imported so far has been compiled on this machine.

    Parameters
    ----------
    is_missing : callable without arguments
        Reports to the user that the first run compiles.
    """
    if is_empty():
        is_missing()


def popcount(word: Any) -> int:
    """Return number of one bits of a 64-bit word."""
    return int(word).bit_count()


@intrinsic
def _ctpop(typingctx: Any, word: Any) -> Any:
    def codegen(context: Any, builder: Any, signature: Any, args: Any) -> Any:
        return builder.ctpop(args[0])

    return types.int64(types.uint64), codegen


@overload(popcount)
def _popcount(word: Any) -> Any:
    def count(word: Any) -> Any:
        return _ctpop(word)  # type: ignore[call-arg]

    return count
