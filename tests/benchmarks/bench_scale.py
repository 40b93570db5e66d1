"""Ten thousand to ten million records on two worker processes of 4 GiB each: time, memory, loss, growth.

``ANONFLOW_SCALE`` names the largest number of records, 1,000,000 without it; ten million take some minutes.
"""

from __future__ import annotations

import itertools
import math
import os
import tempfile
from pathlib import Path
from typing import Any

from anonflow import datasets
from tests.benchmarks.measuring import row
from tests.cases.scale import COLUMNS, GIB, WORKERS, measured

SIZES = (10_000, 100_000, 1_000_000, 10_000_000)
LIMIT = 4 * 1024**3
CORES = 16

METHODS = {
    "greedy(250)": ("numeric", "{size: 250}", "{algorithm: greedy, k: 10}"),
    "nh(250)": ("numeric", "{size: 250}", "{algorithm: nh, k: 10}"),
    "two-phase(100,000), suppression": (
        "suppression",
        "{size: 100000}",
        "{algorithm: two-phase, k: 10, kicks: 0}",
    ),
}


def run(small: bool) -> list[dict[str, Any]]:
    """Seconds, memory and loss for each size, and how the time of a record grows."""
    most = int(os.environ.get("ANONFLOW_SCALE", "1000000"))
    sizes = (2_000,) if small else tuple(n for n in SIZES if n <= most)
    methods = ("greedy(250)",) if small else tuple(METHODS)
    rows = []
    with tempfile.TemporaryDirectory() as home:
        times: dict[str, list[tuple[int, float]]] = {name: [] for name in methods}
        for n in sizes:
            source = Path(home) / f"{n}.parquet"
            datasets.write_random_normal(source, n, COLUMNS, rows=1_000 if small else 1 << 17)
            for number, name in enumerate(methods):
                if "two-phase" in name and n not in (1_000_000, 10_000_000):
                    continue
                kind, partition, anonymize = METHODS[name]
                folder = Path(home) / f"{number}-{n}"
                pieces, where = ("1000", "{scheduler: processes, workers: 1}") if small else ("true", WORKERS)
                result = measured(folder, source, kind, partition, anonymize, pieces, where)
                rows += figures(f"{name}, {n:,} x {COLUMNS}", name, n, result, small)
                times[name].append((n, result["wall"]))
            source.unlink()
        for name, points in times.items():
            if len(points) > 1 and not small:
                rows += growth(name, points)
    return rows


def figures(title: str, name: str, n: int, settings: dict[str, Any], small: bool) -> list[dict[str, Any]]:
    """The figures of one run."""
    goal = None
    if not small and n == SIZES[-1]:
        goal = 90 * 60 if "two-phase" in name else 20 * 60 if "greedy" in name else None
    (result,) = settings["runs"]
    return [
        row(f"{title}: whole run", settings["wall"], "s", most=goal),
        *steps_of(title, settings),
        row(f"{title}: time for a record", 1e6 * settings["wall"] / n, "us"),
        row(f"{title}: GCP", result["gcp"], ""),
        row(f"{title}: client's peak memory", settings["peak-memory-bytes"] / GIB, "GiB"),
        row(
            f"{title}: a worker's peak memory",
            settings["peak-memory-of-a-worker-bytes"] / GIB,
            "GiB",
            most=None if small else LIMIT / GIB,
        ),
    ]


def steps_of(title: str, settings: dict[str, Any]) -> list[dict[str, Any]]:
    """The seconds of each step of the client, what no step accounts for, and what outside the methods does not shrink with workers."""
    wall, processors = settings["wall"], settings["machine"]["processors"]
    steps = {name: step["seconds"] for name, step in settings["client-steps"].items()}
    busy = {name: step["processor-seconds"] for name, step in settings["client-steps"].items()}
    alone = {name: not_divided(seconds, busy[name], processors) for name, seconds in steps.items()}
    outside = [name for name in steps if name != "anonymize"]
    left = wall - sum(steps.values())  # the interpreter begins and ends: nothing of it is divided
    alone_in_all = left + sum(alone[name] for name in outside)
    divided = sum(max(0.0, busy[name] - alone[name]) for name in outside)
    return [
        *(row(f"{title}: step {name}", seconds, "s") for name, seconds in steps.items()),
        *(row(f"{title}: step {name}, processor", busy[name], "s") for name in steps),
        row(f"{title}: in no step", left, "s"),
        row(f"{title}: share outside anonymize", 1 - steps["anonymize"] / wall, ""),
        row(f"{title}: outside anonymize, does not shrink with cores", alone_in_all, "s"),
        row(f"{title}: outside anonymize, expected on {CORES} cores", alone_in_all + divided / CORES, "s"),
    ]


def not_divided(wall: float, busy: float, processors: int) -> float:
    """The seconds of a step that one processor alone worked: from ``wall = alone + divided / c`` and ``busy = alone + divided``."""
    return wall if processors == 1 else min(wall, max(0.0, (processors * wall - busy) / (processors - 1)))


def growth(name: str, points: list[tuple[int, float]]) -> list[dict[str, Any]]:
    """The exponent of n between neighbouring sizes; what starts the processes weighs on the small ones."""
    rows = []
    pairs = (
        [*itertools.pairwise(points), (points[0], points[-1])]
        if len(points) > 2
        else [(points[0], points[-1])]
    )
    for (n, first), (m, second) in pairs:
        exponent = math.log(second / first) / math.log(m / n)
        rows.append(row(f"{name}: time grows from {n:,} to {m:,} as n to the", exponent, "", most=1.05))
    return rows
