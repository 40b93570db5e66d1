"""The switchboard of compilation: what a kernel is compiled for."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest
from numba.core import types

from anonflow.kernels.jit import NO_NANS, jit


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
