"""How long it takes from a wheel to a release in a fresh environment, how long imports take, and how large the install is.

``python -m tests.benchmarks.install`` builds a wheel of this checkout (or takes ``--wheel FILE``) and prints the tables of
``docs/reference/installation.md``. Packages come from the index that pip is set up with, none from pip's cache.
"""

from __future__ import annotations

import argparse
import os
import platform
import resource
import subprocess
import sys
import tempfile
import time
from pathlib import Path

from tests import ROOT

IMPORTS = ("anonflow", "anonflow.cli", "anonflow.algorithms", "anonflow.engine")
MB = 1 << 20

Took = tuple[float, float]
"""Seconds on the clock, and seconds of processor time."""


def taken(command: list[str | Path], folder: Path) -> Took:
    """Run a command that succeeds; say what it took, its children's processor time included."""
    before = resource.getrusage(resource.RUSAGE_CHILDREN)
    begin = time.perf_counter()
    subprocess.run(command, cwd=folder, check=True, capture_output=True, env=environment())
    clock = time.perf_counter() - begin
    after = resource.getrusage(resource.RUSAGE_CHILDREN)
    return clock, after.ru_utime + after.ru_stime - before.ru_utime - before.ru_stime


def environment() -> dict[str, str]:
    """Without what would let the fresh environment import from elsewhere."""
    return {
        name: value
        for name, value in os.environ.items()
        if name not in ("PYTHONPATH", "PYTHONHOME", "NUMBA_CACHE_DIR")
    }


def sizes(packages: Path) -> dict[str, int]:
    """Return the bytes of every package of a folder; what a wheel puts beside (``NAME.libs``) counts for it. pip is left out."""
    weights: dict[str, int] = {}
    for file in packages.rglob("*"):
        if file.is_file() and not file.is_symlink():
            name = file.relative_to(packages).parts[0].removesuffix(".libs").split("-")[0]
            weights[name] = weights.get(name, 0) + file.stat().st_size
    return {name: size for name, size in weights.items() if name not in ("pip", "setuptools")}


def main() -> None:
    """Install, run, and print what it took."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--wheel", type=Path)
    wheel = parser.parse_args().wheel
    load = os.getloadavg()
    with tempfile.TemporaryDirectory() as name:
        folder = Path(name)
        if wheel is None:
            build = [sys.executable, "-m", "pip", "wheel", "--no-deps", "--wheel-dir", folder, ROOT]
            subprocess.run(build, cwd=folder, check=True, capture_output=True)
            (wheel,) = folder.glob("*.whl")
        python, program = folder / "env" / "bin" / "python", folder / "env" / "bin" / "anonflow"
        flow = Path("flows", "quickstart.yaml")
        (folder / flow.parent).mkdir()
        (folder / flow).write_bytes((ROOT / flow).read_bytes())
        rows = [
            ("`python -m venv`", taken([sys.executable, "-m", "venv", "env"], folder)),
            ("`pip install` of the wheel", taken([python, "-m", "pip", "install", "--no-cache-dir", wheel.resolve()], folder)),
            ("`anonflow run flows/quickstart.yaml`, the first time", taken([program, "run", flow], folder)),
        ]  # fmt: skip
        rows.append(
            ("together: from nothing to a release", tuple(map(sum, zip(*(took for _, took in rows)))))
        )
        rows.append(
            ("the run again, kernels compiled", taken([program, "run", flow, "--fresh", "--again"], folder))
        )
        for module in ("sys", *IMPORTS):
            took = min(taken([python, "-c", f"import {module}"], folder) for _ in range(3))
            rows.append((f"a process with `import {module}`", took))
        weights = sizes(next((folder / "env" / "lib").glob("python*")) / "site-packages")
    now = os.getloadavg()
    print(
        f"Python {platform.python_version()}, {platform.machine()}, {platform.system()}, {os.cpu_count()} processors; "
        f"load {load[0]:.1f} at the begin and {now[0]:.1f} at the end.\n"
    )
    print("| step | seconds | seconds of processor time |\n|---|---:|---:|")
    print("\n".join(f"| {step} | {took[0]:.1f} | {took[1]:.1f} |" for step, took in rows))
    print("\n| package | MB |\n|---|---:|")
    for package, size in sorted(weights.items(), key=lambda item: -item[1])[:5]:
        print(f"| {package} | {size / MB:.0f} |")
    print(f"| all {len(weights)} | {sum(weights.values()) / MB:.0f} |")


if __name__ == "__main__":
    main()
