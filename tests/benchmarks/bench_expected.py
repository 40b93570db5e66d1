"""What runs are expected to take before they are run, beside what they took: each method on Adult and on 100,000 people.

Each method has a process of its own, so that no memory is left from another. A method that is expected to take more than two
minutes is not run; the table says so by leaving it out.
"""

from __future__ import annotations

from collections.abc import Iterator
from multiprocessing import get_context
from pathlib import Path
from typing import Any

import anonflow as af
from anonflow import engine
from anonflow.algorithms.registry import REGISTRY
from anonflow.engine.expected import expected_of
from anonflow.engine.flows.flow import Flow
from anonflow.errors import AnonflowError
from anonflow.system import with_peak
from tests.benchmarks.measuring import data_folder, row
from tests.cases.tables import adult

K = 10
SIZE = 250
LONGEST = 120.0
MIB = 1 << 20
FACTOR = 2.0
"""The goal: seconds and memory are within this factor of what was expected."""


def tables(small: bool) -> Iterator[tuple[str, Any]]:
    """Names of tables, and what each is made from: a folder with Adult, or a number of people."""
    folder = data_folder()
    if folder is not None:
        yield "Adult", folder
    many = 600 if small else 100_000
    yield f"{many:,} people", many


def table_of(source: Any, small: bool) -> af.Table:
    """The table of a name."""
    if isinstance(source, Path):
        table = adult(source)
        return af.Table(table.frame.iloc[:600], table.schema) if small else table
    return af.Table(af.datasets.census_like(source, seed=1), af.datasets.schema("census_like"))


def measured(source: Any, small: bool, name: str, answer: Any) -> None:
    """What was expected of a run, and what it took: two pairs of seconds and bytes; or why there are none."""
    table = table_of(source, small)
    few = af.Table(table.frame.iloc[: 20 * K], table.schema)
    try:
        engine.run(Flow.for_table(few, [name], [K], partition_size=SIZE), workers=2)  # kernels are ready
        flow = Flow.for_table(table, [name], [K], partition_size=SIZE)
        (expected,) = expected_of(flow, workers=2, seconds=1.0)
        if expected.seconds is None or expected.seconds > LONGEST:
            answer.put(f"{name}: {expected.problem or f'{expected.seconds:.0f} s expected'}")
            return
        report, memory = with_peak(lambda: engine.run(flow, workers=2))
        answer.put(((expected.seconds, expected.memory), (report.results[0].seconds, memory)))
    except AnonflowError as error:
        answer.put(f"{name}: {error.message}")


def run(small: bool) -> list[dict[str, Any]]:
    """Expected over measured, for seconds and memory of every method that goes with the table."""
    rows = []
    goal: dict[str, Any] = {} if small else {"most": FACTOR, "least": 1 / FACTOR}
    names = (
        ["mondrian", "greedy"] if small else [name for name, method in REGISTRY.items() if not method.small]
    )
    for number, (title, source) in enumerate(tables(small)):
        for name in names[number : number + 1] if small else names:
            context = get_context("spawn")
            queue = context.SimpleQueue()
            process = context.Process(target=measured, args=(source, small, name, queue))
            process.start()
            answer = queue.get()
            process.join()
            if isinstance(answer, str):
                continue
            (seconds, memory), (took, held) = answer
            label = f"{title}, {name}, k = {K}, partitions of {SIZE}"
            rows += [
                row(f"{label}: seconds expected / taken ({took:.2f} s)", seconds / took, "", **goal),
                row(
                    f"{label}: memory expected / taken ({held / MIB:.0f} MiB)",
                    memory / max(held, 1),
                    "",
                    **goal,
                ),
            ]
    return rows
