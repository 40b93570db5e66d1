"""The plain kernels in the place of the compiled ones: what a method says is the same with both."""

from __future__ import annotations

import sys
from collections.abc import Callable, Iterator
from contextlib import contextmanager, nullcontext
from functools import lru_cache
from types import ModuleType
from typing import Any, ParamSpec, TypeVar

from anonflow.kernels import jit

P = ParamSpec("P")
T = TypeVar("T")


@contextmanager
def plain_kernels() -> Iterator[None]:
    """While it is open, every module of the package that has the name of a compiled kernel calls its plain twin."""
    modules = tuple(name for name in sys.modules if name.startswith("anonflow."))
    names = [
        (module, name, twin, plain)
        for module, name, twin, plain in _names(modules, len(jit._twins))
        if getattr(module, name) is twin
    ]
    assert names
    try:
        for module, name, _, plain in names:
            setattr(module, name, plain)
        yield
    finally:
        for module, name, twin, _ in names:
            setattr(module, name, twin)


@lru_cache(1)
def _names(modules: tuple[str, ...], twins: int) -> list[tuple[ModuleType, str, Any, Any]]:
    """Return where a module has a compiled kernel: it, its name there, the kernel, the plain one. It takes as long as a small method, and is the same until one more is imported."""
    plain = {id(twin): function for function, twin in jit._twins.items()}
    assert len(plain) == twins
    return [
        (sys.modules[module], name, value, plain[id(value)])
        for module in modules
        for name, value in vars(sys.modules[module]).items()
        if id(value) in plain
    ]


KERNELS = (nullcontext, plain_kernels)
"""The compiled ones and the plain ones, as contexts."""


def plainly(work: Callable[P, T], *arguments: P.args, **options: P.kwargs) -> T:
    """What a function returns with the plain kernels."""
    with plain_kernels():
        return work(*arguments, **options)
