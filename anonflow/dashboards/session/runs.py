"""The finished runs of one user, what screens noted about them, and which one is chosen."""

from __future__ import annotations

import hashlib
import time
from collections.abc import Collection, Iterable, Iterator, Sequence
from dataclasses import dataclass, field, replace
from typing import Any

import param

from anonflow import engine, strict_yaml
from anonflow.dashboards.session.draft_spec import DraftSpec
from anonflow.dashboards.session.files.folders import SessionFolder
from anonflow.dashboards.session.open_table import OpenTable
from anonflow.dashboards.session.project import session_runs_text
from anonflow.dashboards.session.publication import Publication
from anonflow.dashboards.work.jobs import FinishedRun
from anonflow.dashboards.work.user_limits import Limits
from anonflow.errors import ParameterError


@dataclass(eq=False)
class Noted:
    """What screens found out about the runs, by their ids; it outlives their page."""

    attacks: dict[int, Any] = field(default_factory=dict)
    """The attackers' results, in the form of the screen Explore."""
    risks: dict[int, float] = field(default_factory=dict)
    """Measured risk, between 0 and 1."""
    publications: dict[int, Publication] = field(default_factory=dict)
    """Releases that were drawn."""
    drawn: dict[str, list[tuple[int, str]]] = field(default_factory=dict)
    """Of each table, the ids and names of its runs that were drawn: known as long as the session, also of runs that
    are gone."""
    uniqueness: tuple[Any, tuple[str, ...], Any] | None = None
    """A table, its quasi-identifiers, and the sizes of the classes of equal records on them."""
    earlier: dict[int, str] = field(default_factory=dict)
    """The message about people who are in an earlier release."""
    utility: dict[int, dict[str, dict[str, float]]] = field(default_factory=dict)
    """The losses of analyses: a request's title -> the numbers; they belong to the owner."""
    associations: dict[int, Any] = field(default_factory=dict)
    """How strongly columns go together, before and after; the owner's."""

    def keep(self, ids: Collection[int]) -> None:
        """Delete the notes about all runs but these; keep which runs were drawn."""
        for notes in (
            self.attacks, self.risks, self.publications, self.earlier, self.utility, self.associations
        ):  # fmt: skip
            for id in [id for id in notes if id not in ids]:
                del notes[id]


class Runs(param.Parameterized):
    """The finished runs on the open table.

    ``noted`` is what screens found out about them, so that it outlives their page; ``unfinished`` has the seed of each run
    that waits, is at work, or was so when a server was lost, by name. Runs with the same settings have the same seed until their
    release is drawn and holds: to run until a draw passes would bias the draw.

    Invariant: ``finished`` is replaced, never changed in place.
    """

    finished = param.List(default=[], doc="Finished runs, oldest first.")
    chosen = param.Integer(default=None, allow_None=True, doc="Id of the run that is explored and published.")

    def __init__(self, data: OpenTable, place: SessionFolder, limits: Limits) -> None:
        super().__init__()
        self.noted = Noted()
        self.unfinished: dict[str, int] = {}
        self._seeds = place.seeds
        self._data, self._place, self._limits = data, place, limits
        self._ids = 0
        data.confirmed = self.keep

    def __repr__(self) -> str:
        # without the params: a log of this object would contain cells
        return f"Runs({len(self.finished)})"

    def __iter__(self) -> Iterator[FinishedRun]:
        return iter(self.finished)

    def keep(self) -> None:
        """Keep the runs, the chosen one, what was drawn, and the answers on columns in the session's folder."""
        seeds = [*(run.seed for run in self.finished), *self.unfinished.values()]
        self._place.keep_runs(
            session_runs_text(self.finished, self.chosen, self.noted.drawn, self._data.answers), seeds
        )

    def forget(self) -> None:
        """Forget the runs; which were drawn stays known."""
        self.unfinished = {}
        self._place.keep_unfinished({})
        self.noted = Noted(drawn=self.noted.drawn)
        self.param.update(finished=[], chosen=None)

    def seed_for(self, spec: DraftSpec) -> int | None:
        """Return the seed of the last run with the settings of a flow, also of one that is gone; None after a release of it that holds."""
        return self._seeds.get(_digest(spec))

    def remember_seeds(self, seeds: Iterable[tuple[DraftSpec, int]]) -> None:
        """Remember the seeds of runs, for those with the same settings."""
        self._seeds |= {_digest(spec): seed for spec, seed in seeds}
        self._place.keep_seeds(self._seeds)

    def take_up(self, runs: Sequence[FinishedRun]) -> None:
        """Take up the runs of a project, and their seeds for runs with the same settings."""
        self.remember_seeds((run.spec, run.seed) for run in runs if run.seed)
        first = self._ids + 1
        self._ids += len(runs)
        self._put([replace(run, id=id) for id, run in enumerate(runs, first)], self.chosen)

    def resume(
        self,
        runs: Sequence[FinishedRun],
        chosen: int | None,
        drawn: dict[str, list[tuple[int, str]]],
        unfinished: dict[str, int],
    ) -> None:
        """Take up the runs of a server that was lost, what was drawn, and the seeds of those that it did not finish."""
        self._ids = max((run.id for run in runs), default=0)
        self.unfinished, self.noted = unfinished, Noted(drawn=drawn)
        self._put(list(runs), chosen)

    @property
    def repeatable(self) -> list[FinishedRun]:
        """The runs without a result that their seeds repeat, such as those of a project that was saved with its table."""
        return [
            run
            for run in self.finished
            if run.seed and run.result.problem is None and run.result.anonymization is None
        ]

    def keep_results(
        self,
        results: Sequence[tuple[DraftSpec, int, engine.RunResult]],
        instead_of: Sequence[int] = (),
        choose: bool = False,
    ) -> list[int]:
        """Keep results among the runs, and return the ids of these; one is chosen where no other is.

        Parameters
        ----------
        results : sequence of (DraftSpec, int, RunResult)
            The flow that repeats it, its seed, and the result.
        instead_of : sequence of int
            Ids of the runs that the first results stand for from now on.
        choose : bool
            Whether one of them is chosen in any case.
        """
        runs = {run.id: run for run in self.finished}
        ids = []
        for at, (spec, seed, result) in enumerate(results):
            run = runs.get(instead_of[at]) if at < len(instead_of) else None
            if run is not None:
                runs[run.id] = replace(run, spec=spec, result=replace(result, number=run.id))
                ids.append(run.id)
            elif at < len(instead_of):
                ids.append(instead_of[at])  # was deleted meanwhile, and stays so
            else:
                self._ids += 1
                numbered = replace(result, number=self._ids)
                runs[self._ids] = FinishedRun(self._ids, spec, seed, numbered, time.time())
                ids.append(self._ids)
        finished = list(runs.values())
        while self._limits.runs is not None and len(finished) > self._limits.runs:
            # the oldest one goes, of pinned ones only if all are
            finished.remove(next((run for run in finished if not run.pinned), finished[0]))
        with_results = {run.id for run in finished if run.result.anonymization is not None}
        self.remember_seeds((spec, seed) for spec, seed, _ in results)
        order = (*ids, self.chosen) if choose else (self.chosen, *ids)
        self._put(finished, next((id for id in order if id in with_results), self.chosen))
        return ids

    def _put(self, finished: list[FinishedRun], chosen: int | None) -> None:
        """Replace the runs; what was noted about others is gone."""
        self.noted.keep({run.id for run in finished})
        self.param.update(finished=finished, chosen=chosen)
        self.keep()

    def edit(self, id: int, **changes: Any) -> None:
        """Change a run: how it is called (``label``), a note on it (``note``), whether it is ``pinned``, or its ``result``."""
        changed = replace(self.of(id), **changes)
        self.finished = [changed if run.id == id else run for run in self.finished]
        self.keep()

    def delete(self, id: int) -> None:
        """Delete a run, and its drawn release."""
        self.of(id)
        others = [run for run in self.finished if run.id != id]
        chosen = self.chosen if self.chosen != id else None
        if chosen is None:
            chosen = next((run.id for run in reversed(others) if run.result.anonymization is not None), None)
        self._put(others, chosen)

    def choose(self, id: int) -> None:
        """Choose the run that is explored and published."""
        self.of(id)
        self.chosen = id
        self.keep()

    @property
    def chosen_run(self) -> FinishedRun | None:
        """The run that is explored and published; None if no run with a result is chosen."""
        run = self.selection
        return None if run is None or run.result.anonymization is None else run

    @property
    def selection(self) -> FinishedRun | None:
        """The chosen run, whether or not it has a result; None if no run is chosen."""
        return next((run for run in self.finished if run.id == self.chosen), None)

    def of(self, id: int) -> FinishedRun:
        """Return a finished run by its id.

        Raises
        ------
        ParameterError
            If there is no such run.
        """
        for run in self.finished:
            if run.id == id:
                return run
        raise ParameterError(f"there is no run {id}; choose one of the table of runs")

    def settings_of(self, id: int) -> DraftSpec:
        """Return the flow of a finished run, without what it publishes."""
        return _settings(self.of(id).spec)

    def note_drawn(self, table: str, run: FinishedRun) -> None:
        """Remember that the release of a run of a table was drawn, and holds: the next run draws another."""
        self._seeds = {settings: seed for settings, seed in self._seeds.items() if seed != run.seed}
        self._place.keep_seeds(self._seeds)
        of_table = self.noted.drawn.setdefault(table, [])
        if run.id not in dict(of_table):
            of_table.append((run.id, run.name))
            self.keep()


def _settings(spec: DraftSpec) -> DraftSpec:
    return spec.unpublished().model_copy(update={"target": None})


def _digest(spec: DraftSpec) -> str:
    return hashlib.sha256(strict_yaml.dumps(_settings(spec).document).encode()).hexdigest()
