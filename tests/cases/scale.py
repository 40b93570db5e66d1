"""Runs of large files from the shell, for benchmarks and for what a process may hold."""

from __future__ import annotations

import json
import subprocess
import sys
import tempfile
import time
from pathlib import Path
from typing import Any

from anonflow import datasets

COLUMNS = 10
WORKERS = "{scheduler: processes, workers: 2, memory: 4GiB}"
GIB = 1024**3
HOURS = 2 * 3600
SCHEDULERS = ("threads", "processes")


def measured(
    folder: Path, source: Path, kind: str, partition: str, anonymize: str, pieces: str, where: str = WORKERS
) -> dict[str, Any]:
    """Run a flow over a Parquet file from the shell, and read its record."""
    columns = "".join(
        f"    q{column}: {{role: quasi-identifier, kind: {kind}}}\n" for column in range(1, COLUMNS + 1)
    )
    folder.mkdir()
    flow = folder / "flow.yaml"
    flow.write_text(
        f"flow: scale\nversion: 1\ntable:\n  source: {{parquet: {source}, pieces: {pieces}}}\n"
        f"  columns:\n{columns}partition: {partition}\nsteps:\n  - anonymize: {anonymize}\n"
        "  - draw: {}\n  - verify: [covers, guarantee]\n  - measure: [gcp]\n"
        "publish: {table: out/release.parquet, report: out/report.html}\n"
        f"run: {where}\n",
        encoding="utf-8",
    )
    start = time.perf_counter()
    done = subprocess.run(
        [sys.executable, "-m", "anonflow", "run", str(flow), "--json"],
        capture_output=True, text=True, check=False, timeout=HOURS,
    )  # fmt: skip
    taken = time.perf_counter() - start
    if done.returncode:
        raise RuntimeError(done.stderr[-2000:])
    record = json.loads((folder / "owner" / "scale" / "record.json").read_text(encoding="utf-8"))
    return {**record, "wall": taken}


def peaks(n: int) -> dict[str, float]:
    """GiB that the client holds at the most, for each scheduler."""
    with tempfile.TemporaryDirectory() as home:
        source = Path(home) / "people.parquet"
        datasets.write_random_normal(source, n, COLUMNS, rows=1 << 17)
        return {
            scheduler: measured(
                Path(home) / scheduler,
                source,
                "numeric",
                "{size: 250}",
                "{algorithm: greedy, k: 10}",
                "false",
                f"{{scheduler: {scheduler}, workers: 2}}",
            )["peak-memory-bytes"]
            / GIB
            for scheduler in SCHEDULERS
        }
