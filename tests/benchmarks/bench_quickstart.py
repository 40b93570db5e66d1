"""The quickstart, end to end in a fresh process: the first run ever, which compiles, and later ones."""

from __future__ import annotations

import os
import shutil
import statistics
import subprocess
import sys
import tempfile
import time
from pathlib import Path
from typing import Any

from tests import ROOT
from tests.benchmarks.measuring import row

CODE = "import sys; from anonflow.cli import main; sys.exit(main())"


def _run(folder: Path, **variables: str) -> float:
    """Seconds from start to exit of `anonflow run flows/quickstart.yaml --again` in `folder`."""
    environment = {**os.environ, "PYTHONPATH": str(ROOT), **variables}
    start = time.perf_counter()
    done = subprocess.run(
        [sys.executable, "-c", CODE, "run", "flows/quickstart.yaml", "--again"],
        cwd=folder,
        env=environment,
        stdin=subprocess.DEVNULL,
        capture_output=True,
        text=True,
        check=False,
    )
    elapsed = time.perf_counter() - start
    if done.returncode:
        raise RuntimeError(f"the quickstart ended with {done.returncode}: {done.stderr}")
    return elapsed


def run(small: bool) -> list[dict[str, Any]]:
    """Run it in copies of `flows`; the small version runs it once, with whatever is compiled already."""
    with tempfile.TemporaryDirectory() as temporary:
        folder, cache = Path(temporary), str(Path(temporary) / "compiled")
        shutil.copytree(ROOT / "flows", folder / "flows", ignore=shutil.ignore_patterns("owner", "out"))
        if small:
            return [row("quickstart, one run", _run(folder), "s")]
        first = _run(folder, NUMBA_CACHE_DIR=cache)
        later = statistics.median(_run(folder, NUMBA_CACHE_DIR=cache) for _ in range(3))
        return [
            row("quickstart, first run ever (compiles)", first, "s", most=15),
            row("quickstart, later run", later, "s", most=5),
        ]
