"""Drawing an assignment: a million records in blocks of 250 and in one component; memory of the draw alone."""

from __future__ import annotations

import tracemalloc
from typing import Any

import numpy as np

from anonflow.release import RandomWords, draw_assignment
from tests.benchmarks.measuring import row, seconds
from tests.naive.draw import shifts

K = 10


def run(small: bool) -> list[dict[str, Any]]:
    """Draw from graphs whose records lie anywhere in the table, with a seed."""
    n = 5_000 if small else 1_000_000
    rng = np.random.default_rng(1)
    where = rng.permutation(n)
    blocks = np.empty((n, K), np.int32)
    for at in range(0, n, 250):
        part = where[at : at + 250]
        blocks[part] = part[shifts(len(part), K, at)]
    draw_assignment(blocks[:0], RandomWords(1))
    draw_assignment(shifts(1000, K, 0), RandomWords(1))  # compiles
    rows = []
    for name, matches in (("blocks of 250", blocks), ("one random component", shifts(n, K, 0))):
        time = seconds(lambda matches=matches: draw_assignment(matches, RandomWords(1)), 1 if small else 3)
        goal = None if small or matches is not blocks else 4.0
        rows.append(row(f"draw, {n:,} records, k = {K}, {name}", time, "s", most=goal))
    tracemalloc.start()
    draw_assignment(blocks, RandomWords(1))
    peak = tracemalloc.get_traced_memory()[1]
    tracemalloc.stop()
    rows.append(row(f"draw, {n:,} records, blocks of 250: peak of its arrays", peak / 2**20, "MiB"))
    return rows
