"""500,000 census-like records, k = 10, on two worker processes: greedy, sort-greedy and hungarian beside NH.

The seconds that have a goal are those of the methods on two worker processes: what each process took for its
partitions, the longer of the two, by the clock; on a machine that others use, the processor time beside it. The flow's whole step `anonymize` (starting the processes, sending and receiving,
the verifier and the measures on every partition), loading and coding the table, and the draw are rows of their own.
"""

from __future__ import annotations

import tempfile
from concurrent.futures import ProcessPoolExecutor
from multiprocessing import get_context
from pathlib import Path
from time import perf_counter, process_time
from typing import Any

import numpy as np

import anonflow as af
from anonflow.algorithms.registry import algorithm_named
from anonflow.algorithms.solve import partition_rng, solve
from anonflow.partition import divided
from anonflow.release import RandomWords, draw_assignment
from anonflow.table import Records
from tests.benchmarks.measuring import row

K = 10
WORKERS = 2
SIZES = {"nh": 250, "greedy": 250, "sort-greedy": 150, "hungarian": 100}
GOALS = {"greedy": 6.0, "hungarian": 40.0}
REPEATS = 2

FLOW = """
flow: census
version: 1
table:
  source: {{dataset: census_like, n: {n}, seed: 1}}
  columns:
    Age:          {{role: quasi-identifier, kind: numeric}}
    Gender:       {{role: quasi-identifier, kind: categorical}}
    Education:    {{role: quasi-identifier, kind: numeric}}
    Marital:      {{role: quasi-identifier, kind: categorical}}
    Race:         {{role: quasi-identifier, kind: categorical}}
    Workclass:    {{role: quasi-identifier, kind: categorical}}
    Country:      {{role: quasi-identifier, kind: categorical}}
    Occupation:   {{role: quasi-identifier, kind: categorical}}
    Salary-class: {{role: sensitive}}
partition: {{size: 250}}
steps:
  - anonymize: {{algorithm: greedy, k: {k}}}
  - draw: {{}}
  - verify: [covers, guarantee]
run: {{scheduler: {scheduler}, workers: {workers}}}
"""


def work(name: str, parts: list[Records]) -> tuple[float, float, list[np.ndarray]]:
    """What a worker process does: its partitions, one after the other; seconds by the clock and of the processor, matches."""
    method = algorithm_named(name)
    solve(method, parts[0].take(np.arange(min(30, parts[0].n))), K, "ncp", partition_rng(1, 0), {})
    begin, processor = perf_counter(), process_time()
    matches = []
    for at, records in enumerate(parts):
        outcome = solve(method, records, K, "ncp", partition_rng(1, at), {})
        assert outcome.matches is not None
        matches.append(outcome.matches)
    return perf_counter() - begin, process_time() - processor, matches


def run(small: bool) -> list[dict[str, Any]]:
    """The figures of the census-like table."""
    n = 3_000 if small else 500_000
    begin = perf_counter()
    frame = af.datasets.census_like(n, seed=1)
    generated = perf_counter()
    table = af.Table(frame, af.datasets.schema("census_like"))
    rows = [
        row(f"census of {n}: generating", generated - begin, "s", most=None if small else 2.0),
        row(f"census of {n}: coding", perf_counter() - generated, "s"),
    ]
    losses: dict[str, float] = {}
    with ProcessPoolExecutor(WORKERS, mp_context=get_context("spawn")) as pool:
        for name, size in SIZES.items():
            for _ in range(1 if small else REPEATS):
                taken, processor, joined = processed(pool, table, name, size)
                title = f"census of {n}: {name}, partitions of {size}"
                rows.append(row(f"{title}, processor time of each", processor, "s"))
                rows.append(
                    row(f"{title}, two processes", taken, "s", most=None if small else GOALS.get(name))
                )
            losses[name] = af.loss.information_loss(
                af.generalization.Generalization.join_of(table.records, joined), "gcp"
            )
            rows.append(row(f"{title}: GCP", losses[name], ""))
            if name != "nh":
                under = 1 - losses[name] / losses["nh"]
                least = 0.4 if name in GOALS and not small else None
                rows.append(row(f"{title}: under NH's GCP", under, "", least=least))
            begin = perf_counter()
            draw_assignment(joined, RandomWords(1))
            rows.append(row(f"{title}: drawing", perf_counter() - begin, "s"))
    mutual = af.anonymize(table, "greedy", k=K, partition_size=250, reciprocal=True)
    rows.append(
        row(f"census of {n}: greedy, reciprocal: under NH's GCP", 1 - mutual.loss() / losses["nh"], "")
    )
    return rows + flow(n, "threads" if small else "processes")


def processed(
    pool: ProcessPoolExecutor, table: af.Table, name: str, size: int
) -> tuple[float, float, np.ndarray]:
    """The longer of the workers' times, by the clock and of the processor, and all matches."""
    index, _ = divided(table.records, size, K)
    shares = [index[at::WORKERS] for at in range(WORKERS)]
    futures = [pool.submit(work, name, [table.records.take(part) for part in share]) for share in shares]
    done = [future.result() for future in futures]
    joined = np.empty((table.n, K), np.int32)
    for share, (_, _, result) in zip(shares, done, strict=True):
        for part, matches in zip(share, result, strict=True):
            joined[part] = part[matches]
    return max(item[0] for item in done), max(entry[1] for entry in done), joined


def flow(n: int, scheduler: str) -> list[dict[str, Any]]:
    """A whole flow with greedy: its steps, on the wall clock."""
    steps: dict[str, float] = {}

    def listen(event: Any) -> None:
        if type(event).__name__ == "StepDone":
            steps[event.step] = steps.get(event.step, 0.0) + event.seconds

    with tempfile.TemporaryDirectory() as folder:
        path = Path(folder) / "census.yaml"
        path.write_text(FLOW.format(n=n, k=K, workers=WORKERS, scheduler=scheduler))
        report = af.run(path, on_event=listen)
    assert report.ok
    method = report.results[0].seconds / WORKERS
    rows = [row(f"flow of {n}: greedy's own seconds on {WORKERS} workers", method, "s")]
    return rows + [row(f"flow of {n}: step {name}", seconds, "s") for name, seconds in steps.items()]
