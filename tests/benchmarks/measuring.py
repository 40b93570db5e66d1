"""Finding the benchmark modules, running them, and what they share: medians, machine, table."""

from __future__ import annotations

import importlib
import os
import platform
import statistics
import time
from collections.abc import Callable, Iterable
from importlib.metadata import version
from pathlib import Path
from types import ModuleType
from typing import Any

FIELDS = ("name", "figure", "unit", "goal", "met")


def modules() -> dict[str, ModuleType]:
    """The benchmark modules by short name, in the order of their names."""
    names = sorted(path.stem for path in Path(__file__).parent.glob("bench_*.py"))
    return {name.removeprefix("bench_"): importlib.import_module(f"{__package__}.{name}") for name in names}


def row(
    name: str, figure: float, unit: str, *, most: float | None = None, least: float | None = None
) -> dict[str, Any]:
    """One figure, with the goal that it is at `most` or at `least` something."""
    goals = [f"{sign} {bound:.4g}" for sign, bound in (("<=", most), (">=", least)) if bound is not None]
    met = (most is None or figure <= most) and (least is None or figure >= least)
    return {
        "name": name,
        "figure": float(figure),
        "unit": unit,
        "goal": " and ".join(goals),
        "met": bool(met) if goals else None,
    }


def seconds(function: Callable[[], object], repeats: int = 3) -> float:
    """The median wall time of a call; call it once before to leave compiling out."""
    times = []
    for _ in range(repeats):
        start = time.perf_counter()
        function()
        times.append(time.perf_counter() - start)
    return statistics.median(times)


def data_folder() -> Path | None:
    """The folder with the real data sets, or None where there is none."""
    named = os.environ.get("ANONFLOW_DATA")
    return Path(named) if named and Path(named).is_dir() else None


def machine() -> dict[str, Any]:
    """What the figures were measured on."""
    cpu = platform.processor()
    information = Path("/proc/cpuinfo")
    if information.exists():
        lines = information.read_text(encoding="utf-8").splitlines()
        cpu = next((line.partition(":")[2].strip() for line in lines if line.startswith("model name")), cpu)
    packages = ("numpy", "scipy", "pandas", "numba", "dask")
    return {
        "cpu": cpu,
        "cores": len(os.sched_getaffinity(0)) if hasattr(os, "sched_getaffinity") else os.cpu_count(),
        "system": platform.platform(),
        "python": platform.python_version(),
        "load": round(os.getloadavg()[0], 2),
        **{name: version(name) for name in packages},
    }


def table(rows: Iterable[dict[str, Any]]) -> str:
    """The figures as text, one line each, in columns."""
    words = {True: "yes", False: "NO", None: ""}
    lines = [("what", "figure", "unit", "goal", "met")]
    lines += [
        (r["name"], f"{r['figure']:,.4g}", r["unit"], str(r["goal"] or ""), words[r["met"]]) for r in rows
    ]
    widths = [max(len(line[column]) for line in lines) for column in range(5)]
    return "\n".join(
        f"{a:<{widths[0]}}  {b:>{widths[1]}}  {c:<{widths[2]}}  {d:<{widths[3]}}  {e}".rstrip()
        for a, b, c, d, e in lines
    )
