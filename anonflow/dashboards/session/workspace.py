"""The workspace: all state of one user: the table, the draft, the runs. Screens show it; it knows no screen."""

from __future__ import annotations

import os
import secrets
import shutil
import tempfile
import time
import weakref
from collections.abc import Callable, Mapping, Sequence
from contextlib import suppress
from dataclasses import replace
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING, Any

import param

from anonflow import datasets, engine, strict_yaml
from anonflow.dashboards.session.draft import FIRST_K, PARTITION, Draft
from anonflow.dashboards.session.draft_spec import NO_FLOW, DraftSpec, DraftTable, written
from anonflow.dashboards.session.folders import SessionFolder, local_folders
from anonflow.dashboards.session.memory import ReleaseMemory
from anonflow.dashboards.session.noted import Noted
from anonflow.dashboards.session.paths import check_confined, paths_in, safe_name
from anonflow.dashboards.session.project import (
    Project,
    read_project,
    read_session_runs,
    save_project,
    session_runs_text,
    stranger_flow,
)
from anonflow.dashboards.session.publication import Publication, publication
from anonflow.dashboards.session.screen_words import BEGIN, OPEN_FIRST
from anonflow.dashboards.session.share_link import LinkSpec, configuration, link, merged
from anonflow.dashboards.session.table_sources import (
    bring,
    edited_column,
    first_columns,
    flow_name,
    load_dataset,
    read_table,
    read_upload,
    take_upload,
    write_frame,
)
from anonflow.dashboards.session.validation import Judgement, code, judged, running_flow
from anonflow.dashboards.work import screen_work
from anonflow.dashboards.work.fair_queue import FairQueue
from anonflow.dashboards.work.jobs import FinishedRun, Job, JobGroup, sentence, summary
from anonflow.dashboards.work.turns import Turns
from anonflow.dashboards.work.user_limits import Limits
from anonflow.engine.execution.events import Cancelled
from anonflow.engine.flows.spec import SourceSpec
from anonflow.engine.report.reviewer import FIELDS
from anonflow.errors import AnonflowError, DataError, FlowError, ParameterError
from anonflow.hierarchy import Hierarchy
from anonflow.hierarchy.wording import plural
from anonflow.table import Table
from anonflow.table.files.csv_head import CsvShape
from anonflow.table.identification.earlier import OWNER
from anonflow.table.infer import Advice, advise, entries_of
from anonflow.table.prepare import Preparation
from anonflow.table.schema import UNPUBLISHED

if TYPE_CHECKING:
    import pandas as pd

    from anonflow.table.schema import Column

LONGEST_FIELD = 4_000
"""Characters of a field of the reviewer's report, at most."""

ACQUAINTANCES = "acquaintances"
"""The answer for a column whose values only people know who know the person."""

NOTHING_OPENED = "Nothing was opened."
"""The status of a session whose table, flow or link could not be read; Data says why."""

CODING = "the table is being coded under its columns; wait a few seconds"
"""Why nothing can run while a large table is coded aside."""

UNCODED = "coding the table under its columns was cancelled; change a column, or press Code the table on the screen Data"
"""Why nothing can run after that."""


class Workspace(param.Parameterized):
    """All state of one user.

    ``noted`` is what screens found out about runs, so that it outlives their page.

    Invariants: ``draft`` stays the same object; ``table`` is ``frame`` coded under the draft's columns, or None while
    they are not valid; while ``coding``, it is still what it was before the last edit (None of a table that is new),
    and nothing can be started; ``runs`` is replaced, never changed in place; what comes from the threads of runs reaches
    params through `turns` alone.

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
    frame = param.Parameter(None, doc="The table as it was read (the owner's), or None.")
    source = param.ClassSelector(
        class_=SourceSpec, default=SourceSpec(), instantiate=False, doc="Where the open table was read from."
    )
    status = param.String(default=BEGIN, doc="One plain sentence.")
    limits = param.ClassSelector(class_=Limits, default=Limits(), doc="Caps.")
    folder = param.ClassSelector(class_=Path, default=None, allow_None=True, doc="This session's own.")
    owner = param.ClassSelector(class_=Path, default=None, allow_None=True, doc="Remembers releases.")
    shares_owner = param.Boolean(default=False, doc="Whether strangers' releases are remembered there, too.")
    table = param.Parameter(None, doc="The frame coded under the draft's columns, or None.")
    coding = param.Boolean(default=False, doc="Whether the frame is being coded aside.")
    problems = param.Parameter((), doc="What cannot work, one sentence each.")
    impossible = param.Dict(
        default={}, doc="Names of runs that can have no result -> why; the others can run."
    )
    algorithms = param.List(default=[], doc="Names of the methods that are run.")
    ks = param.List(default=[], doc="The ks that are run.")
    runs = param.List(default=[], doc="Finished runs, oldest first.")
    uploads = param.Integer(default=0, doc="How often earlier releases were uploaded, or removed.")
    drawings = param.Integer(default=0, doc="How often a release was drawn, or its remedies priced.")
    chosen = param.Integer(default=None, allow_None=True, doc="Id of the run that is explored and published.")
    review = param.Dict(default={}, doc="What people filled in into the reviewer's report, by field.")
    answers = param.Dict(
        default={},
        doc="Column whose role was declared or confirmed -> who could know it, or nothing: its role says it.",
    )
    running = param.Boolean(default=False)
    progress = param.Dict(default={}, doc="Run name -> share done, while running.")
    doing = param.Dict(default={}, doc="Run name -> what it is at, in a few words, while running.")
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
        **params: Any,
    ) -> None:
        place = place or local_folders().begin()
        params.setdefault("draft", Draft(folder=place.files))
        super().__init__(folder=place.files, **params)
        self._place = place
        own = place.path / OWNER if self.owner is None else self.owner
        lasts = self.owner is not None
        self.memory = ReleaseMemory(
            own, place.path / "earlier", lasts, self.limits, shared=lasts and self.shares_owner
        )
        self.turns = Turns(schedule, line)
        self._scheduler = scheduler
        self._freed = freed or (lambda: None)
        self._waiting: LinkSpec | None = None
        self._project: Project | None = None
        self._batch: JobGroup | None = None
        self._started: tuple[DraftSpec, frozenset[str]] | None = None
        self._ids = 0
        self._coded: tuple[Any, ...] | None = None
        self._aside = aside
        self.coder = screen_work.Background(self.turns, at_once=True)
        self._advice: tuple[pd.DataFrame, list[Advice]] | None = None
        self._named: tuple[pd.DataFrame, dict[str, str], pd.DataFrame] | None = None
        self._column_problems: tuple[str, ...] = ()
        self._judgement = Judgement()
        self.noted = Noted()
        self._seeds: dict[str, int] = {}
        self._folder_stays = False
        self.not_opened: Sequence[str] = ()
        self._chooses_next = self._starts_coded = False
        self._first = NO_FLOW
        self._restorer = screen_work.Background(self.turns, at_once=True)
        self._delete = weakref.finalize(self, place.delete)
        self.draft.changed = self._draft_changed

    def __repr__(self) -> str:
        # without the params: a log of this object would contain cells
        records = "no table" if self.frame is None else f"{len(self.frame)} records"
        return f"Workspace({records}, {len(self.runs)} runs)"

    # ------------------------------------------------------------------------------------- the table

    def open_dataset(self, name: str, **options: Any) -> None:
        """Open a built-in table, with the options of :func:`anonflow.datasets.load`, and ``hierarchies``."""
        self.read_dataset(name, **options)()

    def read_dataset(self, name: str, **options: Any) -> Callable[[], None]:
        """Make or read a built-in table, which takes its time and changes no param; what is handed back opens it."""
        hierarchies = bool(options.pop("hierarchies", False))
        frame = load_dataset(name, self.limits, **options)
        columns = first_columns(name, frame, hierarchies)
        return partial(self._open, frame, SourceSpec(dataset=name, **options), columns, name, False)

    def open_file(self, name: str, path: Path, **options: Any) -> None:
        """Open an uploaded file, as its user calls it; it is moved into the workspace's own folder. Options are those of a CSV file: ``delimiter``, ``encoding``, ``missing``."""
        self.read_file(name, path, **options)()

    def read_file(
        self,
        name: str,
        path: Path,
        *,
        reading: Callable[..., tuple[Any, SourceSpec, list[Advice]]] = read_table,
        **options: Any,
    ) -> Callable[[], None]:
        """Read an uploaded file by :func:`read_table`, or what answers like it, which takes its time and changes no param; what is handed back opens it."""
        # apart from the table that is open, whose file may have this name
        self._own_folder()
        home = Path(tempfile.mkdtemp(prefix="reading-", dir=self._place.path))
        place = home / safe_name(name)
        try:
            place = take_upload(name, Path(path), home, self.limits)
            frame, source, advice = reading(place, self.limits, **options)
        except AnonflowError as error:
            if place.exists() and not isinstance(error, Cancelled):
                place.replace(path)  # a CSV file may be read again, in another encoding
            shutil.rmtree(home)
            raise

        def opened() -> None:
            place.replace(self._own_folder() / place.name)
            home.rmdir()
            self._open_guessed(frame, source, advice, safe_name(name).split(".")[0])

        return opened

    def set_aside(self, path: Path) -> Path:
        """Take an uploaded file out of the folder whose files a flow may name, until it is read; its new place."""
        self._own_folder()
        place = self._place.path / f"upload-{secrets.token_hex(8)}"
        path.replace(place)
        return place

    def shelve(self, name: str, path: Path, copied: bool = False) -> Path:
        """Put an uploaded file, or a copy of it, where no flow can name it, until what goes with it is there; its new place."""
        self._own_folder()
        place = self._place.path / f"shelved-{safe_name(name)}"
        if copied:
            shutil.copyfile(path, place)
            os.chmod(place, 0o600)
        else:
            path.replace(place)
        return place

    def reread(self, **options: Any) -> Callable[[], None]:
        """Read the CSV file that is open again, in another form; as :meth:`read_file`, what is handed back opens it.

        Raises
        ------
        DataError
            If no CSV file is open.
        """
        name = self.source.csv
        if name is None:
            raise DataError("no CSV file is open that could be read again; open one first")
        frame, source, advice = read_table(self._own_folder() / name, self.limits, **options)
        return partial(self._open_guessed, frame, source, advice, name.split(".")[0])

    @property
    def named(self) -> pd.DataFrame | None:
        """The table as it was read, its columns under the names that the steps before give them."""
        if self.frame is None:
            return None
        try:
            steps = Preparation(self.draft.spec.table.prepare, self.draft.folder)
            names = steps.renamed(map(str, self.frame.columns))
        except AnonflowError:  # said where the steps are
            names = {}
        if self._named is None or self._named[0] is not self.frame or self._named[1] != names:
            # the same object as long as nothing changes: screens tell by it whether they must look again
            self._named = self.frame, names, self.frame.rename(columns=names) if names else self.frame
        return self._named[2]

    @property
    def table_name(self) -> str:
        """The name of the open table: that of its file or of the built-in table; empty if none is open."""
        return "" if self.frame is None else self.source.file or self.source.dataset or "table"

    def _open_spec(self, spec: DraftSpec) -> None:
        frame, _ = self._read_again(spec.table.source)
        self._take(frame, spec.table.source, spec.unpublished())

    @property
    def has_work(self) -> bool:
        """Whether another table would replace runs or edits."""
        return self.frame is not None and bool(self.runs or self.running or self.draft.spec != self._first)

    def complete(self, change: Callable[[], Any]) -> Any:
        """Return the answer of a change that belongs to the opening of the table: it counts as no work of the user's."""
        untouched = not self.has_work
        answer = change()
        if untouched:
            self._first = self.draft.spec
        return answer

    @property
    def is_resumed(self) -> bool:
        """Whether a server that was lost left something in this workspace's folder to go on with."""
        return self._place.draft is not None

    def resume(self) -> None:
        """Continue with the data that a lost server left in this workspace's folder."""
        if self._place.draft is None:
            return
        # opening the table begins without them
        kept, review, unfinished = self._place.runs, self._place.review, self._place.unfinished
        self._folder_stays = True
        # not :meth:`DraftSpec.read`: the draft may have been invalid between two edits
        spec = DraftSpec.of(strict_yaml.loads(self._place.draft).data)
        check_confined(spec, self._own_folder())
        try:
            self._open_spec(spec)
        finally:
            self._folder_stays = False
        sentence = "runs are to be run again."
        self.review = {field: text for field, text in review.items() if field in FIELDS}
        self._keep_review()
        if kept is not None:
            with suppress(AnonflowError):
                runs, chosen, drawn, answers = read_session_runs(kept, self._own_folder())
                self._ids = max((run.id for run in runs), default=0)
                self.noted = Noted(drawn=drawn)
                self.param.update(runs=runs, chosen=chosen, answers=answers)
                if runs:
                    sentence = "your runs are there."
        self._seeds = unfinished
        if unfinished:
            names = ", ".join(list(unfinished)[:3]) + (
                f" and {len(unfinished) - 3:,} more" if len(unfinished) > 3 else ""
            )
            sentence += f" Not finished: {names}; press Run again."
        self.status = f"Your table is open again, as the server kept it; {sentence}"
        self._keep_runs()
        self._restore([run for run in self.runs if run.seed and self._place.results(run.seed).is_dir()])

    def _restore(self, runs: Sequence[FinishedRun]) -> None:
        """Give runs their results again, in the background: those of their partitions are stored."""
        frame, folder, source = self.frame, self.draft.folder, self.source

        def tables() -> list[Table | None]:
            coded: list[tuple[DraftTable, Table | None]] = []
            for run in runs:
                if all(of != run.spec.table for of, _ in coded):
                    coded.append((run.spec.table, code(frame, run.spec, folder, source)[0]))
            return [next(table for of, table in coded if of == run.spec.table) for run in runs]

        def begin(of_runs: list[Table | None]) -> None:
            status, jobs, ids = self.status, [], {}
            for run, table in zip(runs, of_runs, strict=True):
                with suppress(AnonflowError):
                    flow = run.spec.loaded(folder)
                    if table is not None and not self.running:
                        jobs.append(self._job(flow, flow.runs[0], run.spec, table, len(runs), run.seed))
                        ids[jobs[-1]] = run.id

            def restored(batch: JobGroup, job: Job, result: engine.RunResult | None) -> None:
                if result is not None and result.problem is None:
                    self.runs = [
                        replace(run, result=replace(result, number=run.id, name=run.result.name, values=run.result.values))
                        if run.id == ids[job]
                        else run
                        for run in self.runs
                    ]  # fmt: skip
                    if self.chosen is None:
                        self.chosen = ids[job]
                if batch.is_over:
                    self.param.update(running=False, progress={}, doing={}, status=status)

            if jobs and not self.running:
                self._batch = JobGroup(jobs, self.turns, self._freed, self._show, restored)
                self.param.update(running=True, progress={job.run.name: 0.0 for job in jobs})
                self._batch.start()

        if runs:
            self._restorer.start(tables, begin, lambda problem: None)

    def open_own_flow(self, path: Path) -> None:
        """Go on with a flow file of one's own: what it names beside it is copied into the workspace."""
        home, folder = Path(path).parent, self._own_folder()
        spec = bring(DraftSpec.read(strict_yaml.read(path, error=FlowError), home), home, folder)
        check_confined(spec, folder)
        self._open_spec(spec)

    def save_project(self, with_table: bool = False) -> bytes:
        """Return the flow, its hierarchies, and the runs with their measures and notes, in one file.

        With the table go the seeds of the runs: then it is the owner's.

        Raises
        ------
        DataError
            If no table is open.
        """
        if self.frame is None:
            raise DataError(OPEN_FIRST)
        names = [str(name) for name in self.frame.columns]
        return save_project(
            self.draft.spec,
            self._own_folder(),
            self.runs,
            len(self.frame),
            names,
            with_table,
            self.review,
        )

    def read_project_file(self, path: Path) -> Callable[[], None]:
        """Read a project, or a flow, and its table, which takes its time and changes no param; what is handed back opens it.

        A project without its table, and a flow whose table is not there, go on with the next table that is opened.
        """
        folder = self._own_folder()
        with path.open("rb") as stream:
            begins = stream.read(4)
        if begins == b"PK\x03\x04":
            return self._opening_of(read_project(path, folder, self.limits))
        with path.open("rb") as stream:
            text = stream.read(strict_yaml.MAX_BYTES + 1).decode("utf-8", "replace")
        return self._opening_of(self._flow_alone(text))

    def _flow_alone(self, text: str) -> Project:
        document = stranger_flow(text, self._own_folder(), self.limits).unpublished().document
        # what was dropped beside a flow lies beside it, whatever its folder was
        for _, holder, key in paths_in(document):
            beside = safe_name(holder[key])
            if not (self._own_folder() / holder[key]).exists() and (self._own_folder() / beside).exists():
                holder[key] = beside
        return Project(DraftSpec.of(document), {}, ())

    def _opening_of(self, project: Project) -> Callable[[], None]:
        file = project.spec.table.source.file
        project.unpack(self._own_folder(), self.limits)
        if file is not None and not (self._own_folder() / file).exists():
            return partial(self._wait_for_table, project)
        return partial(self._take_project, project, *self._read_again(project.spec.table.source))

    def _wait_for_table(self, project: Project) -> None:
        self._project = project
        self.status = f"Open its table now, {self.waits_for}: the flow and its runs are waiting for it."

    def _read_again(self, source: SourceSpec) -> tuple[Any, SourceSpec]:
        """Return the table of a flow, and how it was read."""
        if source.dataset is not None:
            return load_dataset(source.dataset, self.limits, **_dataset_options(source)), source
        if source.file is None:
            raise FlowError("the flow names no table; table.source is a dataset, a csv or a parquet file")
        keys = written(source)
        form = {key: keys[key] for key in ("delimiter", "encoding", "missing", "sheet") if key in keys}
        return read_upload(self._own_folder() / source.file, self.limits, shape=CsvShape.of(keys), **form)

    def _take_project(self, project: Project, frame: Any, source: SourceSpec) -> None:
        lacking = [name for name in project.columns if name not in frame.columns]
        if lacking:
            raise DataError(
                f"this project was made with a table that has the column {lacking[0]!r}, which this table lacks; "
                "open the table that it was made with"
            )
        self._project = None
        project = project.over(source, self._own_folder())
        self._take(frame, source, project.spec)
        self._take_runs(project.runs)
        self.review = dict(project.review)
        self._keep_review()
        sentence = f"{len(frame):,} records are open, and {plural(len(project.runs), 'run')} of the project."
        if project.records not in (-1, len(frame)):
            sentence += f" It was made with a table of {project.records:,}: its measures are of that one."
        self.status = sentence

    def _take_runs(self, runs: Sequence[FinishedRun]) -> None:
        first = self._ids + 1
        self._ids += len(runs)
        self.runs = [replace(run, id=id) for id, run in enumerate(runs, first)]
        self._keep_runs()

    def fill_in(self, field: str, text: str) -> None:
        """Fill in a field of the reviewer's report; an empty text takes it away.

        Raises
        ------
        ParameterError
            If there is no such field, or the text is too long.
        """
        if field not in FIELDS:
            raise ParameterError("the reviewer's report has no such field")
        if len(text) > LONGEST_FIELD:
            raise ParameterError(
                f"a field of the report holds at most {LONGEST_FIELD:,} characters; write less, or refer to a document"
            )
        others = {key: value for key, value in self.review.items() if key != field}
        self.review = {**others, **({field: text} if text.strip() else {})}
        self._keep_review()

    def _keep_review(self) -> None:
        self._place.keep_review(self.review)

    def _keep_runs(self) -> None:
        """Keep the runs, the chosen one and what was drawn; when the table of a lost server is opened, what it left stays."""
        if not self._folder_stays:
            seeds = [run.seed for run in self.runs] + list(self._seeds.values())
            if self._batch is not None:
                seeds += [job.seed for job in self._batch.jobs if not job.ended]
            self._place.keep_runs(
                session_runs_text(self.runs, self.chosen, self.noted.drawn, self.answers), seeds
            )

    def note_drawn(self, table: str, run: FinishedRun) -> None:
        """Remember that the release of a run of a table was drawn."""
        of_table = self.noted.drawn.setdefault(table, [])
        if run.id not in dict(of_table):
            of_table.append((run.id, run.name))
            self._keep_runs()

    @property
    def waits_for(self) -> str:
        """The name of the table that a project waits for; empty if none does."""
        return "" if self._project is None else safe_name(self._project.spec.table.source.file or "")

    def forget_project(self) -> None:
        """Let the next table begin anew, whatever waits for one."""
        self._project = None
        if self.frame is None:
            self.status = BEGIN

    def open_frame(
        self, frame: pd.DataFrame, columns: Mapping[str, Any] | None = None, name: str = "table"
    ) -> None:
        """Open a frame that is in memory, with its columns as under ``columns`` of a flow, or a guess at them; the flow names the Parquet file that it is written to."""
        place = self._own_folder() / f"{flow_name(name)}.parquet"
        write_frame(frame, place)
        read, source = read_upload(place, self.limits)
        if columns:
            self._open(read, source, dict(columns), name, False)
        else:
            self._open_guessed(read, source, advise(read), name)

    def open_table(self, table: Table, name: str = "table") -> None:
        """Open a table with its schema."""
        kept = {column: table.schema[column] for column in table.schema if column in table.frame.columns}
        columns = {
            column: _entry(entry, self._own_folder(), at) for at, (column, entry) in enumerate(kept.items())
        }
        self.open_frame(table.frame, columns, name)

    def open_link(self, text: str) -> None:
        """Go on with the configuration of a link; without a built-in table in it, the next table that is opened.

        Raises
        ------
        ParameterError
            If it names an option that its table does not have.
        """
        shared = configuration(text)
        source = shared.source
        if source is not None and source.dataset is not None:
            options = _dataset_options(source)
            if not set(options) <= set(datasets.options(source.dataset)):
                raise ParameterError(
                    "this link asks for an option that its table does not have; start without it"
                )
            self._waiting = shared
            try:
                self.open_dataset(source.dataset, **options)
            finally:
                self._waiting = None
        elif self.frame is not None:
            spec = merged(self.draft.spec, shared)
            check_confined(spec, self._own_folder())
            self.draft.put(spec)
        else:
            self._waiting = shared
            self.status = "Open your table: the methods and parameters of the link are waiting for it."

    def _open_guessed(self, frame: Any, source: SourceSpec, advice: list[Advice], name: str) -> None:
        self._advice = frame, advice
        self._open(frame, source, entries_of(advice), name)

    def advice(self, frame: pd.DataFrame, tell: Callable[[str, int, int], None]) -> list[Advice]:
        """Return what each column of the open table is guessed to be, and why, which takes its time once; `tell` is as :func:`advise` takes it."""
        if self._advice is not None and self._advice[0] is frame:
            return self._advice[1]
        advice = advise(frame, tell=tell) if len(frame) else []
        self._advice = frame, advice
        return advice

    def _open(
        self, frame: Any, source: SourceSpec, columns: dict[str, Any], name: str, guessed: bool = True
    ) -> None:
        if self._project is not None:
            self._take_project(self._project, frame, source)
            return
        k = max(2, min(FIRST_K, len(frame) // 3))
        spec = Draft.start(source, columns, name=flow_name(name), k=k).spec
        if len(frame) > PARTITION:
            spec = spec.with_partition(size=PARTITION)
        if self._waiting is not None:  # a link without a table of its own
            spec, self._waiting = merged(spec, self._waiting), None
            check_confined(spec, self._own_folder())
        self._take(frame, source, spec, guessed)

    def set_column(self, column: str, **declared: Any) -> None:
        """Declare a column by the keys of a flow, as one edit that can be undone.

        None takes a key away; what does not go with the new role or kind is taken away, too.
        """
        self.set_columns({column: declared})

    def unconfirmed(self, spec: DraftSpec) -> list[str]:
        """Return the columns that a flow publishes though nobody confirmed their roles, which were guessed."""
        former = (
            {}
            if self.named is None or self._named is None
            else {new: old for old, new in self._named[1].items()}
        )
        return [
            name
            for name, column in spec.columns.items()
            if column.role not in UNPUBLISHED and not {name, former.get(name, name)} & set(self.answers)
        ]

    def confirm(self, answers: Mapping[str, str]) -> None:
        """Confirm the roles of some columns: column -> who could know it, or nothing."""
        self.answers = {**self.answers, **answers}
        self._keep_runs()

    def known_to_strangers(self, columns: Sequence[str]) -> tuple[str, ...]:
        """Return which of some columns everybody could know; nothing where acquaintances know no others."""
        known = tuple(name for name in columns if self.answers.get(name) != ACQUAINTANCES)
        return known if len(known) < len(columns) else ()

    def set_columns(self, declared: Mapping[str, Mapping[str, Any]]) -> None:
        """Declare several columns, as :meth:`set_column` does one, as one edit.

        Raises
        ------
        ParameterError
            If the table has no such column.
        """
        frame, spec = self.named, self.draft.spec
        if frame is None or not set(declared) <= set(frame.columns):
            raise ParameterError("the table has no such column; name one of its header")
        changes = {
            column: edited_column(spec.columns.get(column), entry, frame[[column]])
            for column, entry in declared.items()
        }
        self.draft.put(spec.with_columns(changes))

    def _own_folder(self) -> Path:
        if self.folder is None or not self.folder.exists():
            raise DataError("this session is over; reload the page")
        return self.folder

    def _take(self, frame: Any, source: SourceSpec, spec: DraftSpec, guessed: bool = False) -> None:
        self._abandon()
        self._coded = None
        status = f"{plural(len(frame), 'record')} and {plural(len(frame.columns), 'column')} are open."
        folder = self._own_folder()
        self.noted = Noted(drawn=self.noted.drawn)
        # one change for all watchers: a frame without its columns would be shown as one that cannot be used
        with param.parameterized.batch_call_watchers(self):
            answers = {} if guessed else dict.fromkeys(spec.columns, "")
            self.param.update(
                frame=frame, source=source, runs=[], chosen=None, review={}, answers=answers, status=status
            )
            self._keep_runs()
            self._keep_review()
            self.draft.restart(spec, folder=folder)
            self._first = spec
            self._refresh()

    def _abandon(self) -> None:
        """Stop the runs that are at work; they are not kept."""
        if self._batch is not None:
            self._batch.abandon()
        if not self._folder_stays:
            self._seeds = {}
            self._place.keep_unfinished({})
        self._restorer.forget()
        self.param.update(running=False, progress={}, doing={})

    # ------------------------------------------------------------------------------------- the draft

    def _draft_changed(self) -> None:
        if self.frame is not None:
            self._place.keep(self.draft.text())
        self._refresh()

    def _refresh(self) -> None:
        """Update everything that depends on the draft, as one change; of many records once they are coded."""
        spec = self.draft.spec
        declared = spec.columns, spec.table.prepare
        if declared != self._coded:
            self.coder.forget()
        if self.frame is None:
            self._coded, self._column_problems = None, (OPEN_FIRST,)
            self._judge(None)
            return
        if declared == self._coded:
            self._judge(self.table)
            return
        frame, folder, before = self.frame, self.draft.folder, self.table if self._coded else None
        source, self._coded = self.source, declared

        def keep(coded: tuple[Table | None, tuple[str, ...]]) -> None:
            table, self._column_problems = coded
            self._judge(table)
            with suppress(FlowError):  # its problems are shown
                self._start_coded()

        if not self._aside or len(frame) <= screen_work.FEW:
            keep(code(frame, spec, folder, source))
            return
        self._column_problems = (CODING,)
        self._judge(before)
        self.coder.start(
            lambda: code(frame, spec, folder, source, self.coder.tell),
            keep,
            lambda problem: keep((None, (problem,))),
            "coding the table",
            lambda: keep((None, (UNCODED,))),
        )

    def code_again(self) -> None:
        """Code the table under its columns, after that was cancelled."""
        self._coded = None
        self._refresh()

    def _judge(self, table: Table | None) -> None:
        """Say what of the draft can run on the table, and what cannot."""
        spec, judgement = self.draft.spec, Judgement(problems=self._column_problems)
        if not judgement.problems and table is not None:
            judgement = judged(spec, self.draft.folder, table, self.source)
        self._judgement = judgement
        self.param.update(
            # params do not compare tables: all that depends on it would be told of each edit
            **({} if table is self.table else {"table": table}),
            coding=self._column_problems == (CODING,),
            problems=judgement.problems,
            impossible=dict(judgement.impossible),
            algorithms=[] if self.frame is None else list(spec.algorithms),
            ks=[] if self.frame is None else list(spec.ks),
        )

    # -------------------------------------------------------------------------------------- the runs

    def start(self) -> None:
        """Run every method with every k in the background; results arrive in ``runs`` one by one.

        After :meth:`cancel`, as long as the draft is the same, what was done is not done again.

        Raises
        ------
        FlowError
            If something cannot work: then ``problems`` says what.
        """
        if self.running:
            return
        if self.problems:
            raise FlowError.collected("this cannot run", self.problems)
        flow, spec = self._judgement.flow, self.draft.spec
        assert self.table is not None
        assert flow is not None
        done = self._done_before_cancel()
        runs = [run for run in self._judgement.runs if run.name not in done]
        self._started = spec, done
        self._begin([(flow, run, spec.single(run)) for run in runs], self.table)

    def start_flows(self, runs: Sequence[tuple[engine.Flow, engine.Run, DraftSpec]]) -> None:
        """Run other flows than the draft on the open table, in the background: of each run its flow, and the flow that it is alone.

        Raises
        ------
        FlowError
            If the table cannot be used.
        """
        if self.running:
            return
        if self.table is None or self.coding:
            raise FlowError.collected("this cannot run", self._column_problems or (OPEN_FIRST,))
        self._started = None
        self._begin(runs, self.table)

    def run_again(self, id: int, **options: Any) -> None:
        """Run a finished run again on its own table, with other options of its method; it is chosen when it is done.

        The draft stays as it is; None takes an option away.

        Raises
        ------
        ParameterError
            If there is no such run with a result.
        """
        done = self.run_of(id)
        if self.running:
            return
        if done.result.anonymization is None:
            raise ParameterError("this run has no result; choose one that has")
        again = done.spec.changed((("steps", "anonymize", name), value) for name, value in options.items())
        flow = again.loaded(self.draft.folder)
        self._started = None
        table = done.result.anonymization.table
        self._choose_next(lambda: self._begin([(flow, flow.runs[0], again)], table))

    @property
    def repeatable(self) -> list[FinishedRun]:
        """The runs without a result that their seeds repeat, such as those of a project that was saved with its table."""
        return [
            run
            for run in self.runs
            if run.seed and run.result.problem is None and run.result.anonymization is None
        ]

    def repeat(self) -> None:
        """Give the runs of :attr:`repeatable` their results, with the same bits, in the background; nothing else changes."""
        if not self.running:
            self._restore(self.repeatable)

    def apply(self, id: int, change: Sequence[tuple[Sequence[str], Any]]) -> None:
        """Take up the settings of a run with a change, as one edit, and run that; the new run is chosen when it is done.

        The change is as :meth:`DraftSpec.changed` takes it.
        """
        if self.running:
            return
        self.draft.put(self.settings_of(id).changed(change))
        self._starts_coded = True
        if not self.coding:
            self._start_coded()

    def _start_coded(self) -> None:
        if self._starts_coded:
            self._starts_coded = False
            self._choose_next(self.start)

    def _choose_next(self, start: Callable[[], None]) -> None:
        """Start a run, which is chosen when it is done."""
        self._chooses_next = True  # before the start: a short run may be over when it returns
        try:
            start()
        finally:
            self._chooses_next &= self.running

    def settings_of(self, id: int) -> DraftSpec:
        """Return the flow of a finished run, without what it publishes."""
        return self.run_of(id).spec.unpublished().model_copy(update={"target": None})

    def _begin(self, runs: Sequence[tuple[engine.Flow, engine.Run, DraftSpec]], table: Table) -> None:
        """Run some runs of flows in the background, each with the flow that it is alone."""
        jobs = [
            self._job(flow, run, spec, table, len(runs), self._seeds.pop(run.name, None))
            for flow, run, spec in runs
        ]
        self._batch = JobGroup(jobs, self.turns, self._freed, self._show, self._end)
        self.param.update(running=True, progress={job.run.name: 0.0 for job in jobs}, status="Starting.")
        self._place.keep_unfinished({job.run.name: job.seed for job in jobs})
        self._batch.start()

    def _job(
        self,
        flow: engine.Flow,
        run: engine.Run,
        spec: DraftSpec,
        table: Table,
        together: int,
        seed: int | None,
    ) -> Job:
        """Return the job of one of some runs that begin together."""
        settings: dict[str, Any] = {"scheduler": self._scheduler}
        if self._scheduler == "threads":
            settings["workers"] = max(1, (os.cpu_count() or 1) // min(together, self.turns.line.slots))
        alone = running_flow(flow.going_on_from(self.memory.folder), run, table)
        return Job(run, spec, alone, table, settings, self.limits.seconds, seed, self._place.results)

    def keep_results(
        self, results: Sequence[tuple[DraftSpec, int, engine.RunResult]], instead_of: Sequence[int] = ()
    ) -> list[int]:
        """Keep results that were made aside among the runs, and return the ids of these.

        Parameters
        ----------
        results : sequence of (DraftSpec, int, RunResult)
            The flow that repeats it, its seed, and the result.
        instead_of : sequence of int
            Ids of the runs that the first results stand for from now on.
        """
        runs = {run.id: run for run in self.runs}
        ids = []
        for at, (spec, seed, result) in enumerate(results):
            known = runs.get(instead_of[at]) if at < len(instead_of) else None
            if known is not None:
                runs[known.id] = replace(known, spec=spec, result=replace(result, number=known.id))
                ids.append(known.id)
            elif at < len(instead_of):
                ids.append(instead_of[at])  # was deleted meanwhile, and stays so
            else:
                self._ids += 1
                own = replace(result, number=self._ids)
                runs[self._ids] = FinishedRun(self._ids, spec, seed, own, time.time())
                ids.append(self._ids)
        kept = self._capped(list(runs.values()))
        there = {run.id for run in kept if run.result.anonymization is not None}
        chosen = self.chosen if self.chosen in there else next((id for id in ids if id in there), None)
        self.param.update(runs=kept, chosen=chosen)
        self._keep_runs()
        return ids

    def _done_before_cancel(self) -> frozenset[str]:
        """Return names of the draft's runs that were done when the others were cancelled; none once all are done."""
        if self._batch is None or self._started is None or self._started[0] != self.draft.spec:
            return frozenset()
        jobs = self._batch.jobs
        if not any(job.cancelled for job in jobs):
            return frozenset()
        kept = {run.result.name for run in self.runs}
        now = {job.run.name for job in jobs if job.ended and not job.cancelled}
        return frozenset((now | self._started[1]) & kept)

    @property
    def missing(self) -> int:
        """How many runs a start would do: all of the draft that can have a result, or what a cancelled start left."""
        return self.possible - len(self._done_before_cancel())

    @property
    def possible(self) -> int:
        """How many runs of the draft can have a result."""
        return len(self._judgement.runs)

    def cancel(self) -> None:
        """Stop running and waiting jobs; finished runs are kept."""
        if self._batch is not None:
            self._batch.cancel()

    def wait(self, timeout: float | None = None) -> None:
        """Wait until nothing is coded and nothing runs, from another thread than the one that `schedule` calls in.

        Raises
        ------
        TimeoutError
            If that takes longer than `timeout` seconds.
        """
        if self.coding:
            self.coder.wait(timeout)
        if self._batch is not None and not self._batch.wait(timeout):
            raise TimeoutError("the runs are not over yet")

    def _show(self, batch: JobGroup) -> None:
        progress = {job.run.name: job.share for job in batch.jobs}
        doing = {job.run.name: job.doing for job in batch.jobs}
        self.param.update(progress=progress, doing=doing, status=sentence(list(batch.jobs)))

    def _end(self, batch: JobGroup, job: Job, result: engine.RunResult | None) -> None:
        """Keep the run of a finished job; the last one ends the start."""
        changes: dict[str, Any] = {}
        if result is not None:
            self._ids += 1
            spec = job.final_spec(result)
            run = FinishedRun(self._ids, spec, job.seed, replace(result, number=self._ids), time.time())
            changes["runs"] = self._capped([*self.runs, run])
            if (self.chosen_run is None or self._chooses_next) and run.result.anonymization is not None:
                changes["chosen"], self._chooses_next = run.id, False
        if batch.is_over:
            self._chooses_next = False
            status = summary(list(batch.jobs), batch.seconds)
            changes |= {"running": False, "progress": {}, "doing": {}, "status": status}
        self.param.update(**changes)
        if result is not None:
            self._keep_runs()
        self._place.keep_unfinished({job.run.name: job.seed for job in batch.jobs if not job.ended})

    def _capped(self, runs: list[FinishedRun]) -> list[FinishedRun]:
        """Without the oldest that are one too many; pinned ones go last."""
        most = self.limits.runs
        while most is not None and len(runs) > most:
            runs.remove(next((run for run in runs if not run.pinned), runs[0]))
        return runs

    def edit_run(self, id: int, **changes: Any) -> None:
        """Say how a run is called (``label``), a note on it (``note``), or whether it is ``pinned``."""
        changed = replace(self.run_of(id), **changes)
        self.runs = [changed if run.id == id else run for run in self.runs]
        self._keep_runs()

    def delete_run(self, id: int) -> None:
        """Delete a run, and its drawn release."""
        self.run_of(id)
        left = [run for run in self.runs if run.id != id]
        chosen = self.chosen if self.chosen != id else None
        if chosen is None:
            chosen = next((run.id for run in reversed(left) if run.result.anonymization is not None), None)
        self.param.update(runs=left, chosen=chosen)
        self._keep_runs()

    def choose(self, id: int) -> None:
        """Choose the run that is explored and published."""
        self.run_of(id)
        self.chosen = id
        self._keep_runs()

    @property
    def chosen_run(self) -> FinishedRun | None:
        """The run that is explored and published; None if no run with a result is chosen."""
        for run in self.runs:
            if run.id == self.chosen and run.result.anonymization is not None:
                return run
        return None

    def run_of(self, id: int) -> FinishedRun:
        """Return a finished run by its id.

        Raises
        ------
        ParameterError
            If there is no such run.
        """
        for run in self.runs:
            if run.id == id:
                return run
        raise ParameterError(f"there is no run {id}; choose one of the table of runs")

    def link(self) -> str:
        """Return the configuration as the query of a link (:func:`anonflow.dashboards.session.share_link.link`): no data in it."""
        return link(self.draft.spec)

    def publish(
        self,
        id: int,
        again: bool = False,
        tell: Callable[[str, int, int], None] = lambda words, done, of: None,
    ) -> Publication:
        """Return the release of a run, and all that goes with it; verified again, and empty if a check fails.

        Unless it is wanted `again`, one whose people are in an earlier release is not remembered. `tell` is as :func:`publication` takes it.
        """
        run = self.run_of(id)
        files = publication(run.spec, run.seed, run.result, self.draft.folder, self.memory, tell)
        anonymization = run.result.anonymization
        if anonymization is not None and files.release is not None and (again or not files.again):
            tell("remembering who is in it", 1, 1)  # of a draw that was cancelled nobody is
            self.memory.keep(anonymization.table, files.release, files.people)
        return files

    def move(self, schedule: Callable[[Callable[[], None]], None]) -> None:
        """Continue in another page, or in none: the watchers of the former page are removed."""
        for watched in (self, self.draft, self.coder):
            watched.param.watchers = {}
        self.turns.move(schedule)

    # --------------------------------------------------------------------------------------- the end

    def close(self, keep: bool = False) -> None:
        """Stop everything and delete this workspace's folder with its uploads, unless it is to stay for the next server to go on with."""
        self._folder_stays = keep
        with param.parameterized.discard_events(self):  # there are no listeners any more
            self._abandon()
            self.coder.forget()
            self.param.update(frame=None, table=None, coding=False, runs=[], chosen=None)
        self.turns.end()
        if keep:
            self._delete.detach()
            self._place.leave()
        else:
            self._delete()
        self.closed = True


def _dataset_options(source: SourceSpec) -> dict[str, Any]:
    return {key: value for key, value in written(source).items() if key not in ("dataset", "pieces")}


def _entry(column: Column, folder: Path, at: int) -> dict[str, Any]:
    """Return a column of a schema as a flow has it; a hierarchy in memory becomes a file beside the flow."""
    if not isinstance(column.hierarchy, Hierarchy):
        return column.to_mapping()
    name = f"hierarchy-{at}.csv"
    column.hierarchy.to_csv(folder / name)
    return replace(column, hierarchy=name).to_mapping()
