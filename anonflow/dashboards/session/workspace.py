"""The workspace: all state of one user: the draft, the open table, the runs. Screens show it; it knows no screen."""

from __future__ import annotations

import weakref
from collections.abc import Callable, Sequence
from contextlib import ExitStack
from dataclasses import replace
from pathlib import Path
from typing import Any

import param

from anonflow.dashboards.session.draft import Draft
from anonflow.dashboards.session.files.folders import SessionFolder, local_folders
from anonflow.dashboards.session.files.memory import ReleaseMemory
from anonflow.dashboards.session.open_table import OpenTable
from anonflow.dashboards.session.opener import Opener
from anonflow.dashboards.session.project import save_project
from anonflow.dashboards.session.publication import Publication, publication
from anonflow.dashboards.session.review import Review
from anonflow.dashboards.session.runs import Runs
from anonflow.dashboards.session.screen_words import OPEN_FIRST
from anonflow.dashboards.session.starts import Starts
from anonflow.dashboards.work.fair_queue import FairQueue
from anonflow.dashboards.work.turns import Turns
from anonflow.dashboards.work.user_limits import Limits
from anonflow.errors import DataError
from anonflow.table.identification.earlier import OWNER


class Workspace(param.Parameterized):
    """All state of one user.

    ``opener`` opens tables and projects in it; ``turns`` are those of its work on the event loop and in the queue.

    Invariant: ``draft``, ``data``, ``runs`` and ``starts`` stay the same objects.

    Parameters
    ----------
    schedule : callable, optional
        Takes a callable and has it called where params may change: a server's event loop. At once without it.
    line : FairQueue, optional
        The queue of the runs; by default that of the process.
    scheduler : str
        What runs run on, as :func:`anonflow.engine.start` takes it.
    freed : callable, optional
        Called when a run was cancelled or ran too long, and may still occupy a worker.
    place : SessionFolder, optional
        The session's own folder, which is deleted with the workspace.
    owner : pathlib.Path, optional
        Where keyed marks of the people of its releases are kept, as in the owner's folder of a flow; they outlive it.
    aside : bool
        Whether a table of many records is coded in a thread of its own, since `schedule` is an event loop.

    Raises
    ------
    ParameterError
        If there is no `place`, and no folder can be made.
    """

    draft: Draft = param.ClassSelector(class_=Draft, constant=True, doc="The one flow behind all screens.")
    data: OpenTable = param.ClassSelector(class_=OpenTable, constant=True, doc="The open table.")
    runs: Runs = param.ClassSelector(class_=Runs, constant=True, doc="The finished runs on it.")
    starts: Starts = param.ClassSelector(class_=Starts, constant=True, doc="What runs on it.")
    review: Review = param.ClassSelector(class_=Review, constant=True, doc="The reviewer's report.")
    limits: Limits = param.ClassSelector(class_=Limits, constant=True, doc="Caps.")
    folder = param.ClassSelector(class_=Path, default=None, allow_None=True, doc="This session's own.")
    owner = param.ClassSelector(class_=Path, default=None, allow_None=True, doc="Remembers releases.")
    shares_owner = param.Boolean(default=False, doc="Whether strangers' releases are remembered there, too.")
    uploads = param.Integer(default=0, doc="How often earlier releases were uploaded, or removed.")
    drawings = param.Integer(default=0, doc="How often a release was drawn, to be published or attacked.")
    closed = param.Boolean(default=False, doc="Whether its session is over.")
    dark = param.Boolean(default=False, doc="Whether the screens are dark.")

    def __init__(
        self,
        schedule: Callable[[Callable[[], None]], None] | None = None,
        line: FairQueue | None = None,
        scheduler: str = "threads",
        freed: Callable[[], None] | None = None,
        place: SessionFolder | None = None,
        aside: bool = False,
        limits: Limits | None = None,
        **params: Any,
    ) -> None:
        place = place or local_folders().begin()
        draft, turns, limits = Draft(folder=place.files), Turns(schedule, line), limits or Limits()
        data = OpenTable(draft, turns, aside)
        owner = params.get("owner")
        memory = ReleaseMemory(
            place.path / OWNER if owner is None else owner,
            place.path / "earlier",
            owner is not None,
            limits,
            shared=owner is not None and params.get("shares_owner", False),
        )
        runs = Runs(data, place, limits)
        starts = Starts(data, runs, turns, memory, place, limits, scheduler, freed or (lambda: None))
        super().__init__(
            folder=place.files,
            draft=draft,
            data=data,
            runs=runs,
            starts=starts,
            review=Review(place),
            limits=limits,
            **params,
        )
        self.place = place
        self.memory = memory
        self.turns = turns
        self.opener = Opener(data, runs, starts, self.review, place, limits)
        self._delete = weakref.finalize(self, place.delete)
        draft.changed = self._draft_changed

    def __repr__(self) -> str:
        # without the params: a log of this object would contain cells
        return f"Workspace({self.data!r}, {self.runs!r})"

    # What notebooks call on `app.workspace`: it stays here, wherever the work is done.

    def set_algorithms(self, names: Sequence[str]) -> None:
        """Set the methods of the draft, as one edit."""
        self.draft.set_algorithms(names)

    def set_ks(self, ks: Sequence[int]) -> None:
        """Set the ks of the draft, as one edit."""
        self.draft.set_ks(ks)

    def start(self) -> None:
        """Run the draft in the background, as :meth:`anonflow.dashboards.session.starts.Starts.start`."""
        self.starts.start()

    def wait(self, timeout: float | None = None) -> None:
        """Wait until nothing runs, as :meth:`anonflow.dashboards.session.starts.Starts.wait`."""
        self.starts.wait(timeout)

    @property
    def has_work(self) -> bool:
        """Whether another table would replace runs or edits."""
        has_runs = bool(self.runs.finished or self.starts.running)
        return self.data.is_edited or (self.data.frame is not None and has_runs)

    def save_project(self, with_table: bool = False) -> bytes:
        """Return the flow, its hierarchies, and the runs with their measures and notes, in one file.

        With the table go the seeds of the runs: then it is the owner's.

        Raises
        ------
        DataError
            If no table is open.
        """
        frame = self.data.frame
        if frame is None:
            raise DataError(OPEN_FIRST)
        names, folder = [str(name) for name in frame.columns], self.place.checked_files()
        return save_project(
            self.draft.spec, folder, self.runs.finished, len(frame), names, with_table, self.review.fields
        )

    def _draft_changed(self) -> None:
        if self.data.frame is not None:
            self.place.keep(self.draft.text())
        self.data.refresh()

    def publish(
        self,
        id: int,
        again: bool = False,
        tell: Callable[[str, int, int], None] = lambda words, count, of: None,
    ) -> Publication:
        """Return the release of a run, and all that goes with it; verified again, and empty if a check fails.

        Unless it is wanted `again`, one whose people are in an earlier release is not remembered. `tell` is as :func:`publication` takes it.
        """
        run = self.runs.of(id)
        _, count = self.memory.kept
        files = publication(run.spec, run.seed, run.result, self.draft.folder, self.memory, tell)
        anonymization = run.result.anonymization
        if anonymization is not None and files.release is not None and (again or not files.again):
            tell("remembering who is in it", 1, 1)  # of a draw that was cancelled nobody is
            missed = self.memory.keep(anonymization.table, files.release, files.people, count)
            if missed is not None:
                remark = missed.sentence()
                files = replace(files, again=remark, warnings=(*files.warnings, remark))
        return files

    def move(self, schedule: Callable[[Callable[[], None]], None]) -> None:
        """Continue in another page, or in none: the watchers of the former page are removed."""
        for watched in self.watched:
            watched.param.watchers = {}
        self.turns.move(schedule)

    @property
    def watched(self) -> tuple[param.Parameterized, ...]:
        """All that screens watch."""
        return self, self.draft, self.data, self.data.coder, self.runs, self.starts, self.review

    def close(self, keep: bool = False) -> None:
        """Stop everything and delete this workspace's folder with its uploads, unless it is to stay for the next server to go on with."""
        with ExitStack() as stack:
            for watched in self.watched:  # there are no listeners any more
                stack.enter_context(param.parameterized.discard_events(watched))
            stack.enter_context(self.place.unchanged())
            self.starts.abandon()
            self.data.close()
        self.turns.end()
        if keep:
            self._delete.detach()
            self.place.leave()
        else:
            self._delete()
        self.closed = True
