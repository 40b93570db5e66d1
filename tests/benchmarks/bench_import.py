"""How long `import anonflow` takes, in a fresh interpreter."""

from __future__ import annotations

import statistics
import subprocess
import sys
from typing import Any

from tests import ROOT
from tests.benchmarks.measuring import row

CODE = "import time; start = time.perf_counter(); import anonflow; print(time.perf_counter() - start)"


def run(small: bool) -> list[dict[str, Any]]:
    """Import in fresh interpreters and take the median."""
    times = [
        float(subprocess.run([sys.executable, "-c", CODE], cwd=ROOT, capture_output=True, check=True).stdout)
        for _ in range(1 if small else 7)
    ]
    return [row("import anonflow", statistics.median(times), "s", most=0.3)]
