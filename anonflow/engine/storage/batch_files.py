"""The results of a run of a table in pieces: a file for each batch."""

from __future__ import annotations

import hashlib
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import Any

import numpy as np

from anonflow.algorithms.method import Outcome
from anonflow.engine.execution.batches import Batch
from anonflow.engine.execution.diversity import restored, storable
from anonflow.engine.execution.tasks import Matched, TaskSettings
from anonflow.engine.owner.checkpoints import Checkpoints, domains_digest
from anonflow.engine.storage.class_buckets import deal_classes
from anonflow.engine.storage.spill import save
from anonflow.table import Domain, Records

__all__ = ["BatchFiles", "InFiles"]


@dataclass(frozen=True)
class InFiles:
    """The folder of a run's results, and the secret for their names.

    Attributes
    ----------
    folder : str
        A file for each batch.
    key : bytes
    fresh : bool
        Whether stored results are ignored.
    spill : str
        Prefix of the names of files that are deleted with the run.
    buckets : int
        Number of buckets for classes, if these are measured.
    """

    folder: str
    key: bytes = field(repr=False)
    fresh: bool
    spill: str
    buckets: int

    def open(
        self,
        settings: TaskSettings,
        batch: Batch,
        domains: tuple[Domain, ...],
        parts: Sequence[Records],
        values: Sequence[np.ndarray] | None,
    ) -> BatchFiles:
        """Return the results of a batch, whose partitions have these records, and these values if they must be diverse."""
        store, digest = Checkpoints(Path(self.folder), self.key), domains_digest(domains)
        names = store.names(settings, digest, parts, batch.first)
        file = Path(self.folder) / f"{hashlib.sha256(''.join(names).encode()).hexdigest()}.npz"
        diverse_names = [] if values is None else store.names(settings, digest, parts, batch.first, values)
        there = {} if self.fresh else store.read(file, dict.fromkeys([*names, *diverse_names], domains))
        resumed = {p: there[name] for p, name in enumerate(names, batch.first) if name in there}
        for p, name in enumerate(diverse_names, batch.first):
            if name in there and p in resumed:
                step = there[name]
                resumed[p] = replace(
                    resumed[p], diverse=restored(step.outcome), diversify_seconds=step.seconds
                )
        return BatchFiles(self, store, batch, names, diverse_names, file, resumed)


@dataclass(frozen=True, eq=False)
class BatchFiles:
    """The results of a batch in their file.

    Attributes
    ----------
    place : InFiles
    store : Checkpoints
    batch : Batch
    names, diverse_names : sequence of str
        Of each partition's result, and of its diverse one where that is asked for.
    file : pathlib.Path
    resumed : mapping
        Partition -> what an earlier run left of it.
    """

    place: InFiles
    store: Checkpoints
    batch: Batch
    names: Sequence[str]
    diverse_names: Sequence[str]
    file: Path
    resumed: Mapping[int, Matched]

    def keep(self, results: Mapping[int, Matched]) -> None:
        """Write the results if there are new ones."""
        if all(self.resumed.get(p) is matched for p, matched in results.items()):
            return
        content = {}
        for p, matched in results.items():
            at = p - self.batch.first
            content[self.names[at]] = matched
            if matched.diverse is not None:
                content[self.diverse_names[at]] = Matched(
                    storable(matched.diverse), matched.diversify_seconds
                )
        self.store.write(self.file, content)

    def put(self, positions: np.ndarray, whole: Outcome, classes: Mapping[str, list[Any]]) -> bool:
        """Write the positions of suppressed records, and the classes; whether there are such records."""
        hidden = bool(whole.suppressed.any())
        if hidden:
            file = f"{self.place.spill}hidden-{self.batch.number}.npz"
            save(file, positions=np.sort(positions[whole.suppressed]))
        if classes:
            deal_classes(classes, f"{self.place.spill}classes-{self.batch.number}.arrow", self.place.buckets)
        return hidden
