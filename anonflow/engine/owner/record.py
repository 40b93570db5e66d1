"""The owner's run record: the flow, its files and the versions, enough to repeat the run."""

from __future__ import annotations

import os
import platform
from collections.abc import Callable, Mapping
from datetime import UTC, datetime
from functools import cache
from importlib.metadata import PackageNotFoundError, version
from pathlib import Path
from typing import Any

import numpy as np

from anonflow import __version__
from anonflow.algorithms.budget import Choice
from anonflow.engine.execution.budgets import choices_in, kept_choice
from anonflow.engine.execution.result import RunReport
from anonflow.engine.flows.fingerprint import FileFingerprint, Fingerprint
from anonflow.engine.flows.flow import Flow, Run
from anonflow.engine.owner import checkpoints
from anonflow.engine.owner.folder import OwnerFolder
from anonflow.errors import FlowError
from anonflow.release.randomness import seed_can_be_guessed
from anonflow.system import peak_memory

_PACKAGES = ("numpy", "scipy", "pandas", "pyarrow", "numba", "ortools", "dask", "distributed", "pydantic")


def versions() -> dict[str, str]:
    """Return the versions of all software that a result may depend on."""
    numbers = {"anonflow": __version__, "python": platform.python_version()}
    return numbers | _installed_packages()


@cache
def _installed_packages() -> dict[str, str]:
    """Versions of the packages that a result may depend on; each is read from a file, which does not change while we run."""
    numbers = {}
    for name in _PACKAGES:
        try:
            numbers[name] = version(name)
        except PackageNotFoundError:
            continue
    return numbers


def of_run(
    flow: Flow,
    owner: OwnerFolder,
    fingerprint: Fingerprint,
    report: RunReport,
    *,
    began: float,
    steps: dict[str, float],
    client_steps: Mapping[str, tuple[float, float]],
    scheduler: str,
    workers: int | None,
    choices: Mapping[int, Choice] | None = None,
    memory: int = 0,
) -> dict[str, Any]:
    """Return the record of a run, as plain data.

    Parameters
    ----------
    flow : Flow
    owner : OwnerFolder
        Its key makes the hashes.
    fingerprint : Fingerprint
        Of the files that were read.
    report : RunReport
        With what was published, and the seconds of the run.
    began : float
        Seconds since 1970.
    steps : dict
        Step -> seconds, those of tasks added up over workers.
    client_steps : mapping
        Step -> seconds of this process, and of its processors.
    scheduler : str
    workers : int, optional
    choices : mapping, optional
        Run -> the choice for its budget.
    memory : int
        The most bytes that a worker used; 0 if unknown.

    Returns
    -------
    dict

    Raises
    ------
    FlowError
        If the flow or its source cannot be read.
    """
    return {
        "record": 1,
        "flow": flow.name,
        "file": None if flow.path is None else os.path.relpath(flow.path, owner.path),
        "began": datetime.fromtimestamp(began, UTC).isoformat(timespec="seconds"),
        "seconds": round(report.seconds, 3),
        "steps": {name: round(value, 4) for name, value in steps.items()},
        "client-steps": {
            name: {"seconds": round(seconds, 4), "processor-seconds": round(busy, 4)}
            for name, (seconds, busy) in client_steps.items()
        },
        "peak-memory-bytes": peak_memory(),
        "peak-memory-of-a-worker-bytes": memory or None,
        "scheduler": scheduler,
        "workers": workers,
        "versions": versions(),
        "machine": {
            "system": platform.system(),
            "processor": platform.machine(),
            "processors": os.cpu_count(),
        },
        "seed-can-be-guessed": seed_can_be_guessed(owner.seed()),
        "kept": {
            "results": {"most": checkpoints.MOST, "most-bytes": checkpoints.MOST_BYTES},
            "earlier-releases": dict(zip(("releases", "bytes"), owner.earlier(), strict=True)),
        },
        "prepare": flow.schema.preparation.to_list(),
        "hashes": {"flow": owner.keyed(flow.digest), "source": owner.keyed(fingerprint.digest)},
        "files": [
            {
                "file": os.path.relpath(file.path, flow.folder),
                "inode": file.inode,
                "bytes": file.size,
                "modified": datetime.fromtimestamp(file.modified / 1e9, UTC).isoformat(),
                "hash": owner.keyed(file.digest),
            }
            for file in (*fingerprint.source, *fingerprint.others)
        ],
        "published-run": None if flow.published is None else flow.published.number,
        "published": [
            path if isinstance(path, str) else os.path.relpath(path, owner.path) for path in report.published
        ],
        # of the table alone: reports are filled in, and a description may be of several tables
        "published-hashes": {
            os.path.relpath(path, owner.path): keyed_file(owner, path)
            for path in report.published
            if path == flow.table_path
        },
        "runs": [
            {
                "run": result.number,
                "name": result.name,
                **{key: _json_figure(value) for key, value in result.row().items()},
                **_partitions(flow.runs[result.number], (choices or {}).get(result.number)),
                "findings": [finding.sentence() for finding in result.findings],
            }
            for result in report.results
        ],
        "attacks": [] if report.attacks is None else report.attacks.to_dict("records"),
        "warnings": list(report.warnings),
    }


def _partitions(run: Run, choice: Choice | None) -> dict[str, Any]:
    """Return the size of a run's partitions, and the choice for its budget."""
    if choice is None:
        return {"partition-size": run.partition.cut}
    timed = {name.replace("_", "-"): value for name, value in choice.facts().items()} if choice.pilots else {}
    return {**kept_choice(choice), **timed}


def replayed_choices(owner: OwnerFolder) -> dict[int, Choice]:
    """Return the choices of an earlier run for its budgets, by run: a replay repeats them.

    Raises
    ------
    FlowError
        If the folder has no record.
    """
    runs = owner.record().get("runs")
    chosen = [run for run in (runs if isinstance(runs, list) else ()) if isinstance(run, dict)]
    return choices_in({run.get("run"): run for run in chosen if "budget" in run})


def replayed_seed(flow: Flow, owner: OwnerFolder, fingerprint: Fingerprint) -> int:
    """Return the seed of an earlier run, after checking that a replay repeats it.

    Parameters
    ----------
    flow : Flow
    owner : OwnerFolder
        Of the earlier run.
    fingerprint : Fingerprint
        Of the files that the replay reads.

    Raises
    ------
    FlowError
        If the folder has no record or seed, is of another flow, or the flow or a file that it names has changed.
    """
    earlier = owner.record()
    if earlier.get("flow") != flow.name:
        raise FlowError(f"{owner.path}: is the folder of another flow; name the folder of {flow.name!r}")
    for name in changes(flow, owner, earlier, lambda: fingerprint):
        raise FlowError(f"{owner.path}: the {name} has changed since; restore it, or run without --replay")
    if earlier.get("versions", {}).get("anonflow") != __version__:
        raise FlowError(
            f"{owner.path}: was made by another version of anonflow; install that one to repeat it"
        )
    return owner.seed()


def changes(
    flow: Flow, owner: OwnerFolder, earlier: Mapping[str, Any], fingerprint: Callable[[], Fingerprint]
) -> list[str]:
    """Return what is not as it was at an earlier run, in words: the flow, or else the source and other files.

    Parameters
    ----------
    flow : Flow
    owner : OwnerFolder
        Of the earlier run.
    earlier : mapping
        Its record.
    fingerprint : callable
        Gives the flow's files; they are read only if the flow is the same.

    Raises
    ------
    DataError
        If a file of the flow cannot be read.
    """
    recorded = earlier.get("hashes")
    hashes = recorded if isinstance(recorded, dict) else {}
    if owner.keyed(flow.digest) != hashes.get("flow"):
        return ["flow"]
    now, then = fingerprint(), _hashes_of_files(earlier)
    others = {os.path.relpath(file.path, flow.folder): owner.keyed(file.digest) for file in now.others}
    changed = [f"file {name}" for name, digest in others.items() if then.get(name, digest) != digest]
    return changed if owner.keyed(now.digest) == hashes.get("source") else ["source", *changed]


def keyed_file(owner: OwnerFolder, path: Path) -> str | None:
    """Return the keyed hash of the content of a file, or of all files of a folder.

    Raises
    ------
    DataError
        If it cannot be read.
    """
    if path.is_dir():
        return owner.keyed(b"".join(FileFingerprint.of(file).digest for file in sorted(path.iterdir())))
    return owner.keyed(FileFingerprint.of(path).digest)


def _hashes_of_files(record: Mapping[str, Any]) -> dict[str, Any]:
    files = record.get("files")
    entries = [entry for entry in (files if isinstance(files, list) else ()) if isinstance(entry, dict)]
    return {str(entry.get("file")): entry.get("hash") for entry in entries}


def _json_figure(value: Any) -> Any:
    if isinstance(value, np.generic):
        value = value.item()
    # JSON has no NaN
    return None if isinstance(value, float) and value != value else value
