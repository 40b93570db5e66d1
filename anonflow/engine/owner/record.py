"""The owner's run record: the flow, its files and the versions, enough to repeat the run; and the release that the last run left."""

from __future__ import annotations

import os
import platform
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from datetime import UTC, datetime
from functools import cache, cached_property
from importlib.metadata import PackageNotFoundError, version
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd

from anonflow import __version__
from anonflow.algorithms.budget import Choice
from anonflow.engine.execution.budgets import choices_in, kept_choice
from anonflow.engine.execution.result import RunReport
from anonflow.engine.flows.addresses import is_address
from anonflow.engine.flows.fingerprint import FileFingerprint, Fingerprint
from anonflow.engine.flows.flow import Flow, Run
from anonflow.engine.owner import checkpoints
from anonflow.engine.owner.checkpoints import Checkpoints
from anonflow.engine.owner.folder import CHECKPOINTS, OwnerFolder
from anonflow.errors import FlowError
from anonflow.release.randomness import checked_seed, seed_can_be_guessed
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
    return None if isinstance(value, float) and value != value else value


AGAIN = "another draw of the same table needs --again in the shell, again=True in Python"

_OF_RUNS = ("run", "name", "findings", "partition-size")
"""What a record says of a run besides its row in the table of runs."""


@dataclass(frozen=True)
class LastRelease:
    """A release of the same flow, source and files as now.

    Attributes
    ----------
    owner : OwnerFolder
    folder : pathlib.Path
        Of its seed: the owner's folder, or one of an earlier release in it.
    record : mapping
        Of its run.
    is_published : bool
        Whether the release is a file, and not only returned.
    """

    owner: OwnerFolder
    folder: Path
    record: Mapping[str, Any]
    is_published: bool

    @classmethod
    def of(cls, flow: Flow) -> LastRelease | None:
        """Return the release that is still what a flow gives; None if there is none.

        The flow and its files are those of its last run, or those of an earlier one whose table is still there. A publication
        that was interrupted comes first.

        Raises
        ------
        DataError
            If a file of the flow cannot be read.
        """
        if flow.path is None or flow.published is None or not flow.draws(flow.published):
            return None
        owner = OwnerFolder(flow.owner_folder)
        left = owner.unfinished() or {}
        if left.get("publishing") and left.get("flow") == owner.keyed(flow.digest):
            return None
        files = cache(lambda: Fingerprint.of(flow))
        for folder, run_record in owner.records():
            if changes(flow, owner, run_record, files):
                continue
            release = cls(owner, folder, run_record, flow.spec.publish.table is not None)
            if folder == owner.path or (run_record.get("published-hashes") and release.is_whole):
                return release
        return None

    def check_seed(self, seed: int | bytes | str | None) -> None:
        """See that a seed is not another one: that would be another draw.

        Raises
        ------
        FlowError
            If it is.
        ParameterError
            If it cannot be used.
        """
        if seed is not None and checked_seed(seed) != OwnerFolder(self.folder).seed():
            raise FlowError(f"{self._words}, with another seed; {AGAIN}")

    @property
    def is_whole(self) -> bool:
        """Whether the published files are as they were released."""
        return self.is_published and not self.lost

    @cached_property
    def lost(self) -> tuple[str, ...]:
        """The published files that are not there, and tables that are not as they were; files at addresses are not looked at.

        Reports are filled in and signed, so their content may change.
        """
        entry = self.record.get("published-hashes")
        hashes = entry if isinstance(entry, dict) else {}
        return tuple(
            str(path)
            for name, path in self._published.items()
            if isinstance(path, Path)
            and (not path.exists() or (name in hashes and hashes[name] != keyed_file(self.owner, path)))
        )

    def tidy(self, keep: float) -> None:
        """Delete results of partitions that are older than so many seconds."""
        Checkpoints(self.owner.path / CHECKPOINTS).tidy(keep)

    def check_version(self) -> None:
        """See that this version can make the same release again.

        Raises
        ------
        FlowError
            If another version made it.
        """
        if self._version != __version__:
            raise FlowError(
                f"{self.owner.path}: this release was made by anonflow {self._version}; install that version to make the same one "
                f"again; {AGAIN}"
            )

    def report(self, seconds: float) -> RunReport:
        """Return the answer to a run that does nothing.

        Parameters
        ----------
        seconds : float
            What it took to find out.
        """
        attacks = self.record.get("attacks") or []
        return RunReport(
            str(self.record["flow"]),
            (),
            published=tuple(self._published.values()),
            owner=self.owner.path,
            seconds=seconds,
            attacks=pd.DataFrame(attacks) if attacks else None,
            unchanged=f"{self._words}, nothing changed; {AGAIN}{self._from_here}",
            recorded=tuple(
                {key: value for key, value in run.items() if key not in _OF_RUNS}
                for run in self.record.get("runs") or ()
            ),
        )

    @property
    def _version(self) -> str:
        return str((self.record.get("versions") or {}).get("anonflow"))

    @property
    def _words(self) -> str:
        by = "" if self._version == __version__ else f" by anonflow {self._version}"
        when = str(self.record.get("began"))[:16].replace("T", " ")
        return f"released on {when} UTC{by}"

    @property
    def _from_here(self) -> str:
        """What to do where a file is no longer at its address, which is not looked at: another draw would be a second release."""
        if not any(isinstance(place, str) for place in self._published.values()):
            return ""
        return f"; a file that is not at its address any more: --replay {self.folder} writes the same release there again"

    @property
    def _published(self) -> dict[str, Path | str]:
        """The name of each published file in the record, with its place."""
        names = [str(name) for name in self.record.get("published") or ()]
        return {
            name: name if is_address(name) else Path(os.path.normpath(self.owner.path / name))
            for name in names
        }
