"""Resume a run where an earlier one stopped: with the results of its partitions, and with its seed."""

from __future__ import annotations

import os
from collections.abc import Callable, Mapping, Sequence
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np

from anonflow import __version__
from anonflow.algorithms.budget import Choice
from anonflow.algorithms.diversity.within_partition import Diverse
from anonflow.algorithms.method import Outcome
from anonflow.engine.execution.batches import Batch
from anonflow.engine.execution.budgets import choices_in, kept_choice
from anonflow.engine.execution.tasks import Matched
from anonflow.engine.flows.addresses import is_address
from anonflow.engine.flows.fingerprint import Fingerprint
from anonflow.engine.flows.flow import Flow
from anonflow.engine.owner.checkpoints import Checkpoints, ResultNames, domains_digest
from anonflow.engine.owner.folder import CHECKPOINTS, START_OVER, UNFINISHED, OwnerFolder
from anonflow.errors import AnonflowError, DataError
from anonflow.table import Domain

DAYS = 7
"""Default number of days for which checkpoints are kept."""

_FACT = "diverse"
"""The fact of a stored outcome that has the figures of its diversity."""


class StoredResults:
    """The results of a run's partitions in a folder: those that it stores, and those that it finds there.

    Parameters
    ----------
    folder : pathlib.Path
        Made when the first result is stored.
    key : callable
        Gives a secret, without which a result's name confirms no guess of what it was computed from.
    warn : callable
        Called once when nothing more can be stored: the run continues.
    """

    def __init__(self, folder: Path, key: Callable[[], bytes], warn: Callable[[str], None]) -> None:
        self._store = Checkpoints(folder)
        self._key = key
        self._warn: Callable[[str], None] | None = warn
        self.choices: dict[int, Choice] = {}
        """The choices for budgets, by run; they are resumed with the seed."""
        self.resumes_publication = False
        """Whether the run makes the release again whose publication was interrupted."""
        self.keeps_draw = False
        """Whether the same flow makes the release again that was drawn, until a publication of it ends."""
        self.targets: Sequence[str | Path] = ()
        """The files that the run publishes."""

    def find(self) -> None:
        """Find the results of an earlier run."""
        self._store.find()

    def names(self, domains: Sequence[Domain]) -> ResultNames:
        """Return what gives results their names, for a table with these domains."""
        return ResultNames(self._key(), domains_digest(domains))

    @property
    def is_empty(self) -> bool:
        """Whether no results of an earlier run were found."""
        return self._store.is_empty

    def of_batch(
        self, batch: Batch, names: Sequence[Sequence[str]], domains: Sequence[Domain]
    ) -> dict[int, Matched]:
        """Return the results that are there of a batch's partitions.

        Parameters
        ----------
        batch : Batch
        names : sequence of sequence of str
            As :class:`ResultNames` gives them.
        domains : sequence of Domain
            Of the table.
        """
        stored = self._store.read([name for both in names for name in both], domains)
        results = {}
        for p, (plain, *diverse) in enumerate(names, batch.first):
            if plain not in stored:
                continue
            results[p] = stored[plain]
            for name in diverse:
                if name in stored:
                    step = stored[name]
                    results[p] = replace(
                        results[p], diverse=_restored(step.outcome), diversify_seconds=step.seconds
                    )
        return results

    def add(
        self, batch: Batch, names: Sequence[Sequence[str]], new: Mapping[int, Matched], seed: int
    ) -> None:
        """Store results of a batch's partitions. A failure is reported once, and the run continues."""
        for p, matched in sorted(new.items()):
            plain, *diverse = names[p - batch.first]
            self._store.add(plain, replace(matched, diverse=None))
            if matched.diverse is not None and diverse:
                self._store.add(diverse[0], Matched(_storable(matched.diverse), matched.diversify_seconds))
        if self._store.due:
            self._write(seed)

    def ended(self, seed: int, early: bool) -> None:
        """Write the waiting results: the run is over, or ends early."""
        self._write(seed)

    def drawing(self, seed: int) -> None:
        """Prepare for the draw of a release."""

    def publishing(self, seed: int) -> None:
        """Publication begins."""

    def finished(self) -> None:
        """Publication is done."""

    def _write(self, seed: int) -> None:
        if self._warn is None:
            return
        try:
            self._begin(seed)
            self._store.flush()
        except AnonflowError as error:
            self._warn(f"results cannot be kept, a run that stops starts over: {error.message}")
            self._warn = None

    def _begin(self, seed: int) -> None:
        """Do what must be done before anything is stored."""


class ResumeStore(StoredResults):
    """The results that a run stores in its owner's folder, with its seed, and those that it finds of an earlier run.

    Parameters
    ----------
    flow : Flow
    owner : OwnerFolder
    fresh : bool
        Whether to ignore earlier results.
    keep : float
        Seconds that results are kept for.
    warn : callable
        Called once when nothing more can be stored: the run continues.
    fingerprint : callable
        Gives the flow's files as the run reads them.

    Notes
    -----
    Invariant: there is a note of an unfinished run, with its seed, exactly while results of one may be in the
    folder, some of its files may be published, or its release was drawn, which a check may refuse.
    Its seed is used again only for the same source and version, where no file has changed under its name. It is used for the same flow
    alone once its release is drawn, since two releases must not share a seed.
    """

    def __init__(
        self,
        flow: Flow,
        owner: OwnerFolder,
        fresh: bool,
        keep: float,
        warn: Callable[[str], None],
        fingerprint: Callable[[], Fingerprint],
    ) -> None:
        super().__init__(owner.path / CHECKPOINTS, owner.key, warn)
        self._flow = flow
        self._owner = owner
        self._fresh = fresh
        self._keep = keep
        self._fingerprint = fingerprint
        self._noted = False

    def seed(self, named: int | None) -> int | None:
        """Return the seed of the unfinished run that this one resumes; otherwise the one that was named.

        Raises
        ------
        DataError
            If a file that the flow names cannot be read, or has changed since that run; or if it is of another version.
        """
        unfinished = None if self._fresh else self._owner.unfinished()
        if unfinished is None:
            return named
        try:
            seed = int(unfinished["seed"], 16)
        except (KeyError, TypeError, ValueError):
            if self._warn is not None and named is None:
                self._warn(
                    f"{self._owner.path / UNFINISHED}: cannot be read: the run starts over, with another seed and other results"
                )
            return named
        if named is not None and named != seed:
            return named
        is_refused = bool(unfinished.get("refused"))
        if unfinished.get("version") != __version__:
            if is_refused:
                return named
            raise DataError(
                f"{self._owner.path}: the run that stopped was begun with another version of anonflow; finish it with that one, "
                f"or {START_OVER}"
            )
        then = unfinished.get("files")
        for path, digest in self._files().items():
            if isinstance(then, dict) and then.get(path, digest) != digest:
                if is_refused:
                    return named
                raise DataError(
                    f"{self._flow.folder / path}: has changed since the run that stopped; restore it, "
                    f"or {START_OVER}"
                )
        if self._owner.keyed(self._fingerprint().digest) != unfinished.get("source"):
            return named
        same = self._owner.keyed(self._flow.digest) == unfinished.get("flow")
        if (unfinished.get("publishing") or is_refused) and not same:
            return named
        self.resumes_publication = bool(unfinished.get("publishing"))
        if same:
            self.choices = choices_in(unfinished.get("choices"))
        return seed

    def find(self) -> None:
        """Find the results of an earlier run; delete them if they are to be ignored."""
        if self._fresh:
            self._store.tidy(0.0)
        else:
            super().find()

    def ended(self, seed: int, early: bool) -> None:
        """Write the waiting results of a run that ends early; one that was published deletes them."""
        if early and self._noted:
            self._write(seed)

    def drawing(self, seed: int) -> None:
        """Write down the seed before anything is drawn: to draw until a release passes would bias the draw, also where runs are stopped before a check.

        Raises
        ------
        AnonflowError
            If that cannot be written down.
        """
        unfinished = self._owner.unfinished() or {}
        if not unfinished.get("publishing"):  # another draw, some of which may be published
            self._owner.write_unfinished(self._note(seed, publishing=False, refused=True))
            self.keeps_draw = True

    def publishing(self, seed: int) -> None:
        """From here on, the seed is this flow's alone.

        Raises
        ------
        AnonflowError
            If that cannot be written down.
        """
        self._owner.write_unfinished(self._note(seed, publishing=True))

    def finished(self) -> None:
        """Delete the stored results of a published run, and those that are too old.

        Raises
        ------
        AnonflowError
            If the note cannot be deleted.
        """
        self._owner.forget_unfinished()
        self._store.tidy(self._keep)

    def _begin(self, seed: int) -> None:
        if not self._noted:
            self._owner.make()
            self._owner.write_unfinished(self._note(seed, publishing=False))
            self._noted = True

    def _note(self, seed: int, publishing: bool, refused: bool = False) -> dict[str, Any]:
        return {
            "seed": f"{seed:032x}",
            "version": __version__,
            "flow": self._owner.keyed(self._flow.digest),
            "source": self._owner.keyed(self._fingerprint().digest),
            "files": self._files(),
            "publishing": publishing,
            "refused": refused,
            "targets": [os.path.relpath(target, self._owner.path) for target in self.targets],
            "addresses": [target for target in self._flow.targets if is_address(target)],
            "choices": {str(run): kept_choice(choice) for run, choice in self.choices.items()},
        }

    def _files(self) -> dict[str, str | None]:
        """Return the keyed hash of each path that the flow names, as it names them."""
        named = self._fingerprint().named
        return {os.path.relpath(path, self._flow.folder): self._owner.keyed(named[path]) for path in named}


def _storable(diverse: Diverse) -> Outcome:
    """Return a diverse outcome with its figures as a fact, in a form that can be stored."""
    figures = {
        "draws": len(diverse.refused),
        "refused": np.flatnonzero(diverse.refused).tolist(),
        "open": int(diverse.open),
        "steps": int(diverse.steps),
        "lost": int(diverse.lost),
    }
    return replace(diverse.outcome, facts={**diverse.outcome.facts, _FACT: figures})


def _restored(outcome: Outcome) -> Diverse:
    """Return what :func:`_storable` was given."""
    facts = dict(outcome.facts)
    figures = facts.pop(_FACT)
    refused = np.zeros(figures["draws"], bool)
    refused[figures["refused"]] = True
    return Diverse(replace(outcome, facts=facts), refused, figures["open"], figures["steps"], figures["lost"])
