"""How long it takes from a wheel to a release in a fresh environment, how long imports take, and how large the install is.

``python -m tests.benchmarks.install WHEEL`` prints a page's tables; packages come from the index that pip is set up with.
"""

from __future__ import annotations

import argparse
import platform
import subprocess
import sys
import tempfile
import time
from pathlib import Path

IMPORTS = ("anonflow", "anonflow.cli", "anonflow.algorithms", "anonflow.engine")
MB = 1 << 20


def seconds(command: list[str | Path], folder: Path) -> float:
    """How long a command takes that succeeds."""
    begun = time.perf_counter()
    subprocess.run(command, cwd=folder, check=True, capture_output=True)
    return time.perf_counter() - begun


def sizes(packages: Path) -> dict[str, int]:
    """Bytes of every top entry of a folder of packages; what a wheel puts beside (``NAME.libs``) counts for it."""
    found: dict[str, int] = {}
    for file in packages.rglob("*"):
        if file.is_file() and not file.is_symlink():
            name = file.relative_to(packages).parts[0]
            name = name.removesuffix(".libs").split("-")[0]
            found[name] = found.get(name, 0) + file.stat().st_size
    return found


def main() -> None:
    """Install, run, and print what it took."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("wheel", type=Path)
    wheel = parser.parse_args().wheel.resolve()
    flow = Path(__file__).parents[2] / "flows" / "quickstart.yaml"
    with tempfile.TemporaryDirectory() as name:
        folder = Path(name)
        python, program = folder / "env" / "bin" / "python", folder / "env" / "bin" / "anonflow"
        (folder / "flows").mkdir()
        (folder / "flows" / flow.name).write_bytes(flow.read_bytes())
        rows = [
            ("`python -m venv`", seconds([sys.executable, "-m", "venv", "env"], folder)),
            ("`pip install` of the wheel", seconds([python, "-m", "pip", "install", "--no-cache-dir", wheel], folder)),
            ("`anonflow run flows/quickstart.yaml`, the first time", seconds([program, "run", "flows/quickstart.yaml"], folder)),
            ("the same again, kernels compiled", seconds([program, "run", "flows/quickstart.yaml", "--fresh"], folder)),
        ]  # fmt: skip
        imports = []
        for module in ("sys", *IMPORTS):
            command = [python, "-c", f"import {module}"]
            imports.append((f"`import {module}`", min(seconds(command, folder) for _ in range(3))))
        packages = next((folder / "env" / "lib").glob("python*")) / "site-packages"
        weights = sizes(packages)
    print(f"Python {platform.python_version()}, {platform.machine()}, {platform.system()}.\n")
    print("| step | seconds |\n|---|---:|")
    print("\n".join(f"| {step} | {took:.1f} |" for step, took in rows))
    print(f"| together: from nothing to a release | {sum(took for _, took in rows[:3]):.1f} |\n")
    print("| process | seconds |\n|---|---:|")
    print("\n".join(f"| {step} | {took:.2f} |" for step, took in imports))
    print("\n| package | MB |\n|---|---:|")
    for package, size in sorted(weights.items(), key=lambda item: -item[1])[:5]:
        print(f"| {package} | {size / MB:.0f} |")
    print(f"| all {len(weights)} | {sum(weights.values()) / MB:.0f} |")


if __name__ == "__main__":
    main()
