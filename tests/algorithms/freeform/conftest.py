"""A clock for the methods of this room that have a time limit."""

from __future__ import annotations

import pytest

from anonflow.algorithms.freeform import column_generation, optimal
from tests.checks import Ticks


@pytest.fixture
def ticks(monkeypatch: pytest.MonkeyPatch) -> Ticks:
    """The clock of `optimal`: a look at it takes 20 ms."""
    clock = Ticks(0.02)
    for module in (column_generation, optimal):
        monkeypatch.setattr(module, "method_clock", clock.perf_counter)
    return clock
