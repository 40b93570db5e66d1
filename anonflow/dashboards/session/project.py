"""A project in one file: the flow, its hierarchies, the runs with their measures and notes; the table where that is asked for.

The file is a ZIP archive of ``project.json``, ``flow.yaml`` and the files that the flow names, in ``files/``. What is
opened is a stranger's: nothing of it is unpacked by name, nothing is run, and every size is bounded.
"""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, replace
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Annotated, Any, Literal, TypeVar

from pydantic import BaseModel, ConfigDict, Field, ValidationError

from anonflow import strict_yaml
from anonflow.algorithms.budget import AUTO
from anonflow.algorithms.registry import REGISTRY
from anonflow.archive import members, zipped
from anonflow.criteria.verification import Finding
from anonflow.dashboards.session.draft_spec import DraftSpec
from anonflow.dashboards.session.files.paths import check_confined, paths_in, safe_name
from anonflow.dashboards.session.files.table_sources import take_upload
from anonflow.dashboards.work.jobs import FinishedRun
from anonflow.dashboards.work.user_limits import Limits
from anonflow.engine.execution.result import ColumnLoss, RunResult
from anonflow.engine.flows.registers import register_holders
from anonflow.engine.flows.spec import SourceSpec
from anonflow.errors import DataError

ENDING = ".anonflow.zip"

MOST_RUNS = 1000
MOST_FILES = 1100
"""The most files: a hierarchy for each column of the widest table, and the table."""
MOST_TEXT = 32 << 20
"""Bytes of ``project.json``, and of ``flow.yaml``, at most."""
MOST_BYTES = 1 << 30
"""Bytes of all files of a project together, unpacked, where a server names no cap of its own."""

LARGEST = 2**53
"""No number of a project is larger: from here on a float no longer tells whole numbers apart."""

WORD, TEXT = 300, 20_000
"""Characters of a name, and of a text, at most."""

Word = Annotated[str, Field(max_length=WORD)]
Text = Annotated[str, Field(max_length=TEXT)]
Count = Annotated[int, Field(ge=0, le=LARGEST)]
Id = Annotated[int, Field(ge=1, le=LARGEST)]
Number = Annotated[float, Field(ge=-LARGEST, le=LARGEST, allow_inf_nan=False)]
Figure = Annotated[int, Field(ge=-LARGEST, le=LARGEST)] | Number | None
Plain = bool | Figure | Word
Plains = Annotated[dict[Word, Plain], Field(max_length=200)]


class _ProjectPart(BaseModel):
    model_config = ConfigDict(extra="forbid", frozen=True, strict=True)


class FindingEntry(_ProjectPart):
    """A finding of a run."""

    criterion: Word
    holds: bool | None
    failed: Count
    detail: Text


class ColumnEntry(_ProjectPart):
    """The loss of a column."""

    column: Text
    loss: Number
    exact: Number
    whole: Number


class ResultEntry(_ProjectPart):
    """What is kept of a result: fields of :class:`~anonflow.engine.execution.result.RunResult`."""

    name: Word
    algorithm: Word
    guarantee: Word
    k: Annotated[int, Field(ge=2, le=LARGEST)]
    records: Count
    measures: Annotated[
        dict[Word, Figure | Annotated[dict[Word, Figure], Field(max_length=200)]], Field(max_length=200)
    ]
    suppressed: Count
    seconds: Annotated[Number, Field(ge=0)]
    findings: Annotated[tuple[FindingEntry, ...], Field(max_length=200)]
    columns: Annotated[tuple[ColumnEntry, ...], Field(max_length=2000)]
    sizes: Annotated[tuple[tuple[Count, Count], ...], Field(max_length=1_000_000)]
    spread: Annotated[tuple[tuple[Count, Count], ...], Field(max_length=101)]
    values: Plains
    problem: Text | None
    said: Annotated[tuple[Text, ...], Field(max_length=200)]


class RunEntry(ResultEntry):
    """A run as a project has it; its flow is checked by :class:`DraftSpec`."""

    document: dict[str, Any]
    label: Word
    note: Text
    pinned: bool
    when: Number
    seed: Annotated[str, Field(pattern="^[0-9a-f]{1,64}$")] | None

    @classmethod
    def of(cls, run: FinishedRun, secret: bool) -> RunEntry:
        """Return the entry of a run; its seed and the registers of its attackers are secrets."""
        spec = run.spec if secret else without_registers(run.spec)
        return cls(
            document=spec.document,
            label=run.label[:WORD],
            note=run.note[:TEXT],
            pinned=run.pinned,
            when=float(run.when),
            seed=f"{run.seed:x}" if secret and run.seed else None,
            **{name: _storable(getattr(run.result, name)) for name in ResultEntry.model_fields},
        )

    def run(self, id: int, folder: Path) -> FinishedRun:
        """Return the run, without its result's records; its flow may name files in `folder` alone.

        Raises
        ------
        DataError
            If this version does not have its method.
        """
        if self.algorithm not in (*REGISTRY, AUTO):
            raise DataError(
                f"run {id} of this project used a method that this version does not have: open it with the version that saved it"
            )
        if isinstance(self.measures.get("gcp"), dict):
            raise DataError(
                f"run {id} of this project: measures is no part of a project; save it again on the screen Data"
            )
        spec = DraftSpec.of(self.document)
        check_confined(spec, folder)
        fields = {name: getattr(self, name) for name in ResultEntry.model_fields}
        fields["measures"] = {
            name: math.nan if value is None else value for name, value in self.measures.items()
        }
        fields["findings"] = tuple(Finding(**item.model_dump()) for item in self.findings)
        fields["columns"] = tuple(ColumnLoss(**item.model_dump()) for item in self.columns)
        result = RunResult(number=id, **fields)
        seed = int(self.seed, 16) if self.seed else 0
        return FinishedRun(id, spec, seed, result, self.when, self.label, self.note, self.pinned)


Runs = Annotated[tuple[RunEntry, ...], Field(max_length=MOST_RUNS)]


class ProjectEntry(_ProjectPart):
    """``project.json``."""

    format: Literal["anonflow project"] = "anonflow project"
    version: Literal[1] = 1
    records: Count
    columns: Annotated[tuple[Text, ...], Field(max_length=100_000)]
    table: Word | None
    runs: Runs
    review: Annotated[dict[Word, Text], Field(max_length=200)] = {}
    """What people filled in into the reviewer's report."""


class SessionEntry(_ProjectPart):
    """What a session keeps of its runs: ids, the chosen one, table, id and name of those that were drawn; and the answers about columns."""

    runs: Runs
    ids: Annotated[tuple[Id, ...], Field(max_length=MOST_RUNS)]
    chosen: Id | None
    drawn: Annotated[tuple[tuple[Text, Id, Word], ...], Field(max_length=100_000)]
    answers: dict[Text, Word] | None = None


Entry = TypeVar("Entry", bound=_ProjectPart)


@dataclass(frozen=True, eq=False)
class Project:
    """The content of a project file."""

    spec: DraftSpec = field(repr=False)
    """The flow."""
    files: dict[str, bytes] = field(repr=False)
    """Name -> bytes, of what the flow names."""
    runs: tuple[FinishedRun, ...]
    """Without their results' records: ids count from 1."""
    records: int = -1
    """Records of its table; -1 if unknown."""
    columns: tuple[str, ...] = field(default=(), repr=False)
    """Of that table."""
    review: dict[str, str] = field(default_factory=dict, repr=False)
    """What people filled in into the reviewer's report."""

    def over(self, source: SourceSpec, folder: Path) -> Project:
        """Return the project over a table that is open, read from `source`; its runs are checked by the engine's loader.

        The draft is not: it may have been saved between two edits, and the screens say what it lacks.
        """
        runs = tuple(replace(run, spec=run.spec.with_table(source=source)) for run in self.runs)
        for run in runs:
            run.spec.loaded(folder)
        return replace(self, spec=self.spec.with_table(source=source), runs=runs)

    def unpack(self, folder: Path, limits: Limits) -> None:
        """Write the files into a folder, for their owner alone, with the checks of an upload."""
        with TemporaryDirectory(dir=folder) as place:
            for name, content in self.files.items():
                path = Path(place) / "upload"
                path.write_bytes(content)
                take_upload(name, path, folder, limits)


# ------------------------------------------------------------------------------------------------ saving


def save_project(
    spec: DraftSpec,
    folder: Path,
    runs: Sequence[FinishedRun],
    records: int,
    columns: Sequence[str],
    with_table: bool = False,
    review: Mapping[str, str] | None = None,
) -> bytes:
    """Return a project as one file, a ZIP archive.

    With the table, where it is a file, go registers of attackers and the seeds of the runs: then the file is as secret as they are. Else no
    register is named either.

    Raises
    ------
    DataError
        If a file that the flow names cannot be read.
    """
    document = (spec if with_table else without_registers(spec)).document
    table = spec.table.source.file
    named = {str(holder[key]) for place, holder, key in paths_in(document) if not place.startswith("publish")}
    if not with_table:
        named -= {table}
    entry = ProjectEntry(
        records=records,
        columns=tuple(map(str, columns)),
        table=table if with_table else None,
        runs=tuple(RunEntry.of(run, with_table) for run in runs),
        review=dict(review or {}),
    )
    text = entry.model_dump_json(exclude=None if review else {"review"})
    files = {"project.json": text.encode(), "flow.yaml": strict_yaml.dumps(document).encode()}
    for name in sorted(named):
        try:
            files[f"files/{safe_name(name)}"] = (folder / name).read_bytes()
        except OSError:
            raise DataError(f"{safe_name(name)}: cannot be read any more; open the table again") from None
    return zipped(files)


def session_runs_text(
    runs: Sequence[FinishedRun],
    chosen: int | None,
    drawn: Mapping[str, Sequence[tuple[int, str]]],
    answers: Mapping[str, str],
) -> str:
    """Return the runs of a session as JSON, with their seeds, for the session's own folder."""
    entry = SessionEntry(
        runs=tuple(RunEntry.of(run, True) for run in runs),
        ids=tuple(run.id for run in runs),
        chosen=chosen,
        drawn=tuple((table, id, name) for table, of_table in drawn.items() for id, name in of_table),
        answers=dict(answers),
    )
    return entry.model_dump_json()


def without_registers(spec: DraftSpec) -> DraftSpec:
    """Return a flow without the attackers who have a register: it is a table about people."""
    return spec.with_steps(
        attack=tuple(attacker for attacker in spec.steps.attack if not any(register_holders([attacker])))
    )


def _storable(value: Any) -> Any:
    """Return a measure without NaN and infinities, and without numpy's types."""
    if isinstance(value, Mapping):
        return {str(key): _storable(item) for key, item in value.items()}
    if isinstance(value, tuple):
        return tuple(map(_storable, value))
    if isinstance(value, Finding | ColumnLoss):
        kind = FindingEntry if isinstance(value, Finding) else ColumnEntry
        return kind(**{name: _storable(getattr(value, name)) for name in kind.model_fields})
    if hasattr(value, "item"):
        value = value.item()
    if isinstance(value, float) and not math.isfinite(value):
        return None
    return value if isinstance(value, int | float | bool | None) else str(value)[:TEXT]


# ----------------------------------------------------------------------------------------------- opening


def read_project(path: Path, folder: Path, limits: Limits) -> Project:
    """Return the content of a project file, with the checks for a stranger's file; the flow may name nothing outside `folder`.

    Raises
    ------
    DataError
        If it is no project, or too large.
    """
    parts = _archive_members(path, MOST_BYTES if limits.upload_bytes is None else limits.upload_bytes)
    if "project.json" not in parts or "flow.yaml" not in parts:
        raise DataError(
            "this is not an anonflow project: project.json or flow.yaml is missing; save it again on the screen Data"
        )
    entry = _validated(parts["project.json"], ProjectEntry, "project.json")
    try:
        text = parts["flow.yaml"].decode("utf-8")
    except UnicodeDecodeError:
        raise DataError("flow.yaml of this project is not text; save it again on the screen Data") from None
    spec = stranger_flow(text, folder, limits).unpublished()
    files = {
        name.removeprefix("files/"): content for name, content in parts.items() if name.startswith("files/")
    }
    runs = tuple(run_entry.run(id, folder) for id, run_entry in enumerate(entry.runs, 1))
    return Project(spec, files, runs, entry.records, entry.columns, entry.review)


def stranger_flow(text: str, folder: Path, limits: Limits) -> DraftSpec:
    """Return a stranger's flow whose files may not be there yet; :meth:`Project.over` checks the rest."""
    limits.check_flow(text)
    spec = DraftSpec.of(strict_yaml.loads(text).data)
    check_confined(spec, folder)
    return spec


def read_session_runs(
    text: str, folder: Path
) -> tuple[list[FinishedRun], int | None, dict[str, list[tuple[int, str]]], dict[str, str]]:
    """Return runs, the chosen one, what was drawn and the answers, as :func:`session_runs_text` takes them.

    Raises
    ------
    DataError, FlowError
        If the text is none of that function's.
    """
    entry = _validated(text.encode(), SessionEntry, "the runs that were kept")
    if len(entry.runs) != len(entry.ids):
        raise DataError("the runs that were kept cannot be read")
    drawn: dict[str, list[tuple[int, str]]] = {}
    for table, id, name in entry.drawn:
        drawn.setdefault(table, []).append((id, name))
    runs = [run_entry.run(id, folder) for run_entry, id in zip(entry.runs, entry.ids, strict=True)]
    return runs, entry.chosen, drawn, dict(entry.answers or {})


def _archive_members(path: Path, most: int) -> dict[str, bytes]:
    """Return the members of an archive, by name; together they have no more bytes than they may."""
    parts: dict[str, bytes] = {}

    def most_of(name: str) -> int:
        is_main_part, last = name in ("project.json", "flow.yaml"), name.removeprefix("files/")
        is_file = name.startswith("files/") and bool(last) and safe_name(last) == last
        if name in parts or not (is_main_part or is_file):
            raise DataError("this is not an anonflow project: it holds a file that no project has")
        return MOST_TEXT if is_main_part else most

    for name, content in members(
        path, "this project", MOST_FILES, most, most_of,
        ending=", more than any that is saved here",
        damaged="this is not an anonflow project: the file is damaged, or of another kind",
    ):  # fmt: skip
        parts[name] = content
    return parts


def _validated(content: bytes, kind: type[Entry], where: str) -> Entry:
    """Return a JSON text as its model; a DataError says the first place that is wrong, and does not repeat what stands there."""
    try:
        return kind.model_validate_json(content)
    except ValidationError as error:
        wrong = error.errors(include_url=False, include_input=False)[0]
    kind_of_error, place = wrong["type"], wrong["loc"]
    if place[:1] == ("runs",) and len(place) > 2:
        where, place = f"run {int(place[1]) + 1} of this project", place[2:]
    if kind_of_error == "json_invalid":
        raise DataError("project.json of this project is not JSON; save the project again on the screen Data")
    if not place:
        raise DataError(f"{where}: is not a mapping; save the project again on the screen Data")
    if kind_of_error == "extra_forbidden" and len(place) == 1:
        raise DataError(f"{where}: holds a key that no project has; open it with the version that saved it")
    if kind_of_error == "missing" and len(place) == 1:
        raise DataError(f"{where}: {place[0]} is missing; save the project again on the screen Data")
    raise DataError(f"{where}: {place[0]} is no part of a project; save it again on the screen Data")
