"""The release that the last run of a flow left: whether something has changed since, and what is answered if nothing has."""

from __future__ import annotations

import os
from collections.abc import Mapping
from dataclasses import dataclass
from functools import cache, cached_property
from pathlib import Path
from typing import Any

import pandas as pd

from anonflow import __version__
from anonflow.engine.execution.result import RunReport
from anonflow.engine.flows.addresses import is_address
from anonflow.engine.flows.fingerprint import Fingerprint
from anonflow.engine.flows.flow import Flow
from anonflow.engine.owner import record
from anonflow.engine.owner.checkpoints import Checkpoints
from anonflow.engine.owner.folder import CHECKPOINTS, OwnerFolder
from anonflow.errors import FlowError
from anonflow.release.randomness import checked_seed

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
        unfinished = owner.unfinished() or {}
        if unfinished.get("publishing") and unfinished.get("flow") == owner.keyed(flow.digest):
            return None
        files = cache(lambda: Fingerprint.of(flow))
        for folder, run_record in owner.records():
            if record.changes(flow, owner, run_record, files):
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
            and (
                not path.exists() or (name in hashes and hashes[name] != record.keyed_file(self.owner, path))
            )
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
