"""How large the package is: statements, the largest folder, and the files that a call, a flow and a click on Run enter."""

from __future__ import annotations

import ast
import json
import sys
import tempfile
import threading
from collections import Counter
from collections.abc import Callable
from pathlib import Path
from types import CodeType
from typing import Any

import anonflow
from tests.benchmarks.measuring import row

PACKAGE = Path(anonflow.__file__).parent


def run(small: bool) -> list[dict[str, Any]]:
    """Everything is counted, nothing timed; goals are those of a package that one person can know."""
    files = sorted(PACKAGE.rglob("*.py"))
    statements = sum(
        isinstance(node, ast.stmt)
        for path in files
        for node in ast.walk(ast.parse(path.read_text(encoding="utf-8")))
    )
    folders = Counter(path.parent for path in files if path.name != "__init__.py")
    return [
        row("structure: statements", statements, "statements", most=40_000),
        row("structure: the largest folder", max(folders.values()), "files", most=18),
        row("structure: af.anonymize enters", _anonymize(), "files", most=22),
        row("structure: a flow enters", _flow(), "files", most=75),
        row("structure: a click on Run enters", _click(), "files", most=60),
    ]


def entered(work: Callable[[], object]) -> int:
    """Return how many files of the package have a function that the work calls, in any thread of this process.

    It is done once before, so that neither imports nor compiled kernels count.
    """
    work()
    codes: set[CodeType] = set()

    def see(frame: Any, event: str, argument: Any) -> None:
        if event == "call":
            codes.add(frame.f_code)

    threading.setprofile(see)
    sys.setprofile(see)
    try:
        work()
    finally:
        sys.setprofile(None)
        threading.setprofile(None)  # type: ignore[arg-type]
    places = {Path(code.co_filename) for code in codes if code.co_name != "<module>"}
    return sum(path.is_relative_to(PACKAGE) for path in places)


def _people() -> tuple[Any, dict[str, Any]]:
    frame = anonflow.datasets.census_like(200, seed=1)
    return frame, {
        name: {"role": "quasi-identifier", "kind": "categorical"} for name in frame.columns[:3]
    } | {name: {"role": "insensitive"} for name in frame.columns[3:]}


def _anonymize() -> int:
    frame, columns = _people()
    return entered(lambda: anonflow.anonymize(anonflow.Table(frame, columns), "k-member", k=5, seed=1 << 100))


def _flow() -> int:
    frame, columns = _people()
    with tempfile.TemporaryDirectory() as folder:
        # a folder for each run: one that was published before would be compared with
        paths = iter([_written(Path(folder) / name, frame, columns) for name in ("first", "second")])
        return entered(lambda: anonflow.run(next(paths), seed=1 << 100))


def _written(folder: Path, frame: Any, columns: dict[str, Any]) -> Path:
    folder.mkdir()
    frame.to_csv(folder / "people.csv", index=False)
    path = folder / "people.yaml"
    path.write_text(
        "flow: people\nversion: 1\ntable:\n  source: {csv: people.csv}\n"
        f"  columns: {json.dumps(columns)}\n"
        "steps:\n  - anonymize: {algorithm: k-member, k: 5}\n  - draw: {}\n"
        "publish: {table: out/people.csv}\n",
        encoding="utf-8",
    )
    return path


def _click() -> int:
    from anonflow.dashboards import Workspace
    from anonflow.dashboards.work.user_limits import local_limits

    workspace = Workspace(limits=local_limits())
    workspace.opener.open_dataset("census_like", n=200, seed=1)
    workspace.wait()
    workspace.draft.set_algorithms(["k-member"])
    workspace.draft.set_ks([5])

    def click() -> None:
        workspace.starts.start()
        workspace.starts.wait()

    count = entered(click)
    workspace.close()
    return count
