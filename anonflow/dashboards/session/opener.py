"""Opening: built-in tables, files, frames, projects, links, and what a lost server left; the rest of a link or project may wait for its table."""

from __future__ import annotations

import secrets
import shutil
import tempfile
from collections.abc import Callable, Mapping, Sequence
from contextlib import suppress
from dataclasses import replace
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING, Any

from param.parameterized import batch_call_watchers

from anonflow import datasets, strict_yaml
from anonflow.dashboards.session.draft import FIRST_K, PARTITION, Draft
from anonflow.dashboards.session.draft_spec import DraftSpec, written
from anonflow.dashboards.session.files.folders import SessionFolder
from anonflow.dashboards.session.files.paths import check_confined, paths_in, safe_name
from anonflow.dashboards.session.files.table_sources import (
    WORKBOOK_KEYS,
    bring,
    first_columns,
    load_dataset,
    read_table,
    read_upload,
    take_upload,
    write_frame,
)
from anonflow.dashboards.session.open_table import OpenTable
from anonflow.dashboards.session.project import Project, read_project, read_session_runs, stranger_flow
from anonflow.dashboards.session.review import Review
from anonflow.dashboards.session.runs import Runs
from anonflow.dashboards.session.screen_words import BEGIN, WORDS, listed
from anonflow.dashboards.session.share_link import LinkSpec, configuration, merged
from anonflow.dashboards.session.starts import Starts
from anonflow.dashboards.work.jobs import FinishedRun
from anonflow.dashboards.work.user_limits import Limits
from anonflow.engine.execution.events import Cancelled
from anonflow.engine.flows.spec import SourceSpec, flow_name
from anonflow.engine.report.reviewer import FIELDS
from anonflow.errors import AnonflowError, DataError, FlowError, ParameterError
from anonflow.hierarchy import Hierarchy
from anonflow.hierarchy.wording import plural
from anonflow.table import Table
from anonflow.table.files.csv_head import CsvShape
from anonflow.table.infer import Advice, advise, entries_of

if TYPE_CHECKING:
    import pandas as pd

    from anonflow.table.schema import Column

NOTHING_OPENED = "Nothing was opened."
"""The status of a session whose table, flow or link could not be read; Data says why."""


class Opener:
    """What opens tables and projects in a workspace.

    ``not_opened`` says why what the session was to begin with could not be opened. A project without its table, and a link
    without one, wait for the next table that is opened.
    """

    def __init__(
        self,
        data: OpenTable,
        runs: Runs,
        starts: Starts,
        review: Review,
        place: SessionFolder,
        limits: Limits,
    ) -> None:
        self.not_opened: Sequence[str] = ()
        self._data = data
        self._runs = runs
        self._starts = starts
        self._review = review
        self._place = place
        self._limits = limits
        self._waiting: LinkSpec | None = None
        self._project: Project | None = None

    def open_dataset(self, name: str, **options: Any) -> None:
        """Open a built-in table, with the options of :func:`anonflow.datasets.load`, and ``hierarchies``."""
        self.read_dataset(name, **options)()

    def read_dataset(self, name: str, **options: Any) -> Callable[[], None]:
        """Make or read a built-in table, which takes its time and changes no param; what is handed back opens it."""
        hierarchies = bool(options.pop("hierarchies", False))
        frame = load_dataset(name, self._limits, **options)
        columns = first_columns(name, frame, hierarchies)
        return partial(self._open, frame, SourceSpec(dataset=name, **options), columns, name, False)

    def open_file(self, name: str, path: Path, **options: Any) -> None:
        """Open an uploaded file, as its user calls it; it is moved into the workspace's own folder. Options are those of :func:`read_upload`."""
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
        self._place.checked_files()
        home = Path(tempfile.mkdtemp(prefix="reading-", dir=self._place.path))
        place = home / safe_name(name)
        try:
            place = take_upload(name, Path(path), home, self._limits)
            frame, source, advice = reading(place, self._limits, **options)
        except AnonflowError as error:
            if place.exists() and not isinstance(error, Cancelled):
                place.replace(path)  # it may be read again, in another encoding, or another sheet of it
            shutil.rmtree(home)
            raise

        def opened() -> None:
            place.replace(self._place.checked_files() / place.name)
            home.rmdir()
            self._open_guessed(frame, source, advice, safe_name(name).split(".")[0])

        return opened

    def reread(self, **options: Any) -> Callable[[], None]:
        """Read the file that is open again, in another form; as :meth:`read_file`, what is handed back opens it.

        Its sheet, and the lines above its header, stay those that were said before.

        Raises
        ------
        DataError
            If no file is open.
        """
        source = self._data.source
        name = source.file
        if name is None:
            raise DataError("no file is open that could be read again; open one first")
        options = source.model_dump(include=source.model_fields_set & WORKBOOK_KEYS) | options
        frame, source, advice = read_table(self._place.checked_files() / name, self._limits, **options)
        return partial(self._open_guessed, frame, source, advice, name.split(".")[0])

    def set_aside(self, path: Path) -> Path:
        """Take an uploaded file out of the folder whose files a flow may name, until it is read; its new place."""
        self._place.checked_files()
        place = self._place.path / f"upload-{secrets.token_hex(8)}"
        path.replace(place)
        return place

    def open_frame(
        self, frame: pd.DataFrame, columns: Mapping[str, Any] | None = None, name: str = "table"
    ) -> None:
        """Open a frame that is in memory, with its columns as under ``columns`` of a flow, or a guess at them; the flow names the Parquet file that it is written to."""
        place = self._place.checked_files() / f"{flow_name(name)}.parquet"
        write_frame(frame, place)
        read, source = read_upload(place, self._limits)
        if columns:
            self._open(read, source, dict(columns), name, False)
        else:
            self._open_guessed(read, source, advise(read), name)

    def open_table(self, table: Table, name: str = "table") -> None:
        """Open a table with its schema."""
        entries = {column: table.schema[column] for column in table.schema if column in table.frame.columns}
        columns = {
            column: _column_entry(entry, self._place.checked_files(), at)
            for at, (column, entry) in enumerate(entries.items())
        }
        self.open_frame(table.frame, columns, name)

    def open_own_flow(self, path: Path) -> None:
        """Go on with a flow file of one's own: what it names beside it is copied into the workspace."""
        home, folder = Path(path).parent, self._place.checked_files()
        spec = bring(DraftSpec.read(strict_yaml.read(path, error=FlowError), home), home, folder)
        check_confined(spec, folder)
        self._open_spec(spec)

    def read_project_file(self, path: Path) -> Callable[[], None]:
        """Read a project, or a flow, and its table, which takes its time and changes no param; what is handed back opens it.

        A project without its table, and a flow whose table is not there, go on with the next table that is opened.
        """
        folder = self._place.checked_files()
        with path.open("rb") as stream:
            begins = stream.read(4)
        if begins == b"PK\x03\x04":
            return self._opening_of(read_project(path, folder, self._limits))
        with path.open("rb") as stream:
            text = stream.read(strict_yaml.MAX_BYTES + 1).decode("utf-8", "replace")
        return self._opening_of(self._flow_alone(text))

    def _flow_alone(self, text: str) -> Project:
        files = self._place.checked_files()
        document = stranger_flow(text, files, self._limits).unpublished().document
        # what was dropped beside a flow lies beside it, whatever its folder was
        for _, holder, key in paths_in(document):
            beside = safe_name(holder[key])
            if not (files / holder[key]).exists() and (files / beside).exists():
                holder[key] = beside
        return Project(DraftSpec.of(document), {}, ())

    def _opening_of(self, project: Project) -> Callable[[], None]:
        file = project.spec.table.source.file
        project.unpack(self._place.checked_files(), self._limits)
        if file is not None and not (self._place.checked_files() / file).exists():
            return partial(self._wait_for_table, project)
        return partial(self._take_project, project, *self._read_again(project.spec.table.source))

    def _read_again(self, source: SourceSpec) -> tuple[Any, SourceSpec]:
        """Return the table of a flow, and how it was read."""
        if source.dataset is not None:
            return load_dataset(source.dataset, self._limits, **_dataset_options(source)), source
        if source.file is None:
            raise FlowError("the flow names no table; table.source is a dataset, a csv or a parquet file")
        keys = written(source)
        named = ("delimiter", "encoding", "missing", "sheet", "labels", "codes")
        form = {key: keys[key] for key in named if key in keys}
        return read_upload(
            self._place.checked_files() / source.file, self._limits, shape=CsvShape.of(keys), **form
        )

    def _take_project(self, project: Project, frame: Any, source: SourceSpec) -> None:
        lacking = [name for name in project.columns if name not in frame.columns]
        if lacking:
            raise DataError(
                f"this project was made with a table that has the column {lacking[0]!r}, which this table lacks; "
                "open the table that it was made with"
            )
        self._project = None
        project = project.over(source, self._place.checked_files())
        self._take(frame, source, project.spec)
        self._runs.take_up(project.runs)
        self._review.put(project.review)
        sentence = f"{plural(len(frame), 'record', 'are')} open, and {plural(len(project.runs), 'run')} of the project."
        if project.records not in (-1, len(frame)):
            sentence += f" It was made with a table of {project.records:,}: its measures are of that one."
        self._starts.status = sentence

    def _wait_for_table(self, project: Project) -> None:
        self._project = project
        self._starts.status = (
            f"Open its table now, {self.waits_for}: the flow and its runs are waiting for it."
        )

    @property
    def waits_for(self) -> str:
        """The name of the table that a project waits for; empty if none does."""
        return "" if self._project is None else safe_name(self._project.spec.table.source.file or "")

    def forget_project(self) -> None:
        """Let the next table begin anew, whatever waits for one."""
        self._project = None
        if self._data.frame is None:
            self._starts.status = BEGIN

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
        elif self._data.frame is not None:
            spec = merged(self._data.draft.spec, shared)
            check_confined(spec, self._place.checked_files())
            self._data.draft.put(spec)
        else:
            self._waiting = shared
            self._starts.status = (
                "Open your table: the methods and parameters of the link are waiting for it."
            )

    def _open_guessed(self, frame: Any, source: SourceSpec, advice: list[Advice], name: str) -> None:
        self._data.keep_advice(frame, advice)
        self._open(frame, source, entries_of(advice), name)
        if source.sheet is not None:
            self._starts.status += f" They are those of the sheet {source.sheet}; if the table is in another one, {WORDS['sheet']}."
        # no byte of a file proves another encoding
        if source.csv is not None and not source.encoding.startswith("utf"):
            self._starts.status += f" The letters of the file are read as {source.encoding}; if some are wrong, {WORDS['encoding']}."

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
            check_confined(spec, self._place.checked_files())
        self._take(frame, source, spec, guessed)

    @property
    def is_resumed(self) -> bool:
        """Whether a server that was lost left something in the session's folder to go on with."""
        return self._place.draft is not None

    def resume(self) -> None:
        """Continue with the data that a lost server left in the session's folder."""
        if self._place.draft is None:
            return
        folder = self._place.checked_files()
        # not :meth:`DraftSpec.read`: the draft may have been invalid between two edits
        spec = DraftSpec.of(strict_yaml.loads(self._place.draft).data)
        check_confined(spec, folder)
        with self._place.unchanged():
            self._open_spec(spec)
        runs: list[FinishedRun] = []
        drawn: dict[str, list[tuple[int, str]]] = {}
        chosen, unfinished, are_read = None, self._place.unfinished, False
        text = self._place.runs
        if text is not None:
            with suppress(AnonflowError):
                runs, chosen, drawn, self._data.answers = read_session_runs(text, folder)
                are_read = True
        self._review.put({field: text for field, text in self._place.review.items() if field in FIELDS})
        sentence = "; your runs are there." if runs else "." if are_read else "; runs are to be run again."
        if unfinished:
            sentence += f" Not finished: {listed(list(unfinished), 3)}; press Run again."
        self._starts.status = f"Your table is open again, as the server kept it{sentence}"
        self._runs.resume(runs, chosen, drawn, unfinished)
        self._starts.restore([run for run in runs if run.seed and self._place.results(run.seed).is_dir()])

    def _take(self, frame: Any, source: SourceSpec, spec: DraftSpec, guessed: bool = False) -> None:
        """Open a frame under a flow over it, as :meth:`OpenTable.take` does; what was open, and its runs, are gone."""
        folder = self._place.checked_files()
        # whoever watches the table finds its runs gone already
        with batch_call_watchers(self._runs), batch_call_watchers(self._starts):
            self._starts.abandon()
            self._starts.status = (
                f"{plural(len(frame), 'record')} and {plural(len(frame.columns), 'column')} are open."
            )
            self._review.put({})
            self._data.take(frame, source, spec, folder, guessed)
            self._runs.keep()

    def _open_spec(self, spec: DraftSpec) -> None:
        frame, _ = self._read_again(spec.table.source)
        self._take(frame, spec.table.source, spec.unpublished())


def _dataset_options(source: SourceSpec) -> dict[str, Any]:
    return {key: value for key, value in written(source).items() if key not in ("dataset", "pieces")}


def _column_entry(column: Column, folder: Path, at: int) -> dict[str, Any]:
    """Return a column of a schema as a flow has it; a hierarchy in memory becomes a file beside the flow."""
    if not isinstance(column.hierarchy, Hierarchy):
        return column.to_mapping()
    name = f"hierarchy-{at}.csv"
    column.hierarchy.to_csv(folder / name)
    return replace(column, hierarchy=name).to_mapping()
