"""A project in one file: the flow, its hierarchies, the runs with their measures and notes; the table where that is asked for.

The file is a ZIP archive of ``project.json``, ``flow.yaml`` and the files that the flow names, in ``files/``. What is
opened is a stranger's: nothing of it is unpacked by name, nothing is run, and every size is bounded.
"""

from __future__ import annotations

import io
import json
import math
import re
import zipfile
import zlib
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any

from anonflow import strict_yaml
from anonflow.algorithms.budget import AUTO
from anonflow.algorithms.registry import REGISTRY
from anonflow.criteria.verification import Finding
from anonflow.dashboards.session.draft_spec import DraftSpec
from anonflow.dashboards.session.paths import check_confined, paths_in, safe_name
from anonflow.dashboards.session.table_sources import take_upload
from anonflow.dashboards.work.jobs import FinishedRun
from anonflow.dashboards.work.user_limits import Limits
from anonflow.engine.execution.result import ColumnLoss, RunResult
from anonflow.engine.flows.registers import register_holders
from anonflow.engine.flows.spec import SourceSpec
from anonflow.errors import DataError

__all__ = [
    "ENDING",
    "Project",
    "read_project",
    "read_review",
    "read_session_runs",
    "save_project",
    "session_runs_text",
    "stranger_flow",
]

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

Check = Callable[[Any], bool]


def _text(most: int) -> Check:
    return lambda value: isinstance(value, str) and len(value) <= most


def _whole(least: int) -> Check:
    return lambda value: isinstance(value, int) and not isinstance(value, bool) and least <= value <= LARGEST


def _number(value: Any) -> bool:
    return isinstance(value, int | float) and not isinstance(value, bool) and abs(value) <= LARGEST


def _list(check: Check, most: int) -> Check:
    return lambda value: isinstance(value, list) and len(value) <= most and all(map(check, value))


def _mapping(check: Check, most: int = 200) -> Check:
    return lambda value: (
        isinstance(value, dict) and len(value) <= most and all(len(key) <= 300 for key in value)
        and all(map(check, value.values()))
    )  # fmt: skip


def _either(*checks: Check) -> Check:
    return lambda value: any(check(value) for check in checks)


def _nothing(value: Any) -> bool:
    return value is None


def _boolean(value: Any) -> bool:
    return isinstance(value, bool)


def _share(value: Any) -> bool:
    return _number(value) and value >= 0


def _shape(value: Any, shape: Mapping[str, Check]) -> bool:
    return (
        isinstance(value, dict)
        and value.keys() == shape.keys()
        and all(shape[key](value[key]) for key in shape)
    )


_WORD, _TEXT = _text(300), _text(20_000)
_PLAIN = _either(_nothing, _boolean, _number, _WORD)
_PAIR = _list(_whole(0), 2)
_FINDING = {"criterion": _WORD, "holds": _either(_nothing, _boolean), "failed": _whole(0), "detail": _TEXT}
_COLUMN = {"column": _TEXT, "loss": _number, "exact": _number, "whole": _number}
_RUN: dict[str, Check] = {
    "document": lambda value: isinstance(value, dict),
    "name": _WORD,
    "label": _WORD,
    "note": _TEXT,
    "pinned": _boolean,
    "when": _number,
    "algorithm": _WORD,
    "guarantee": _WORD,
    "k": _whole(2),
    "records": _whole(0),
    "measures": _mapping(_either(_PLAIN, _mapping(_PLAIN))),
    "suppressed": _whole(0),
    "seconds": _share,
    "findings": _list(lambda value: _shape(value, _FINDING), 200),
    "columns": _list(lambda value: _shape(value, _COLUMN), 2000),
    "sizes": _list(lambda value: _PAIR(value) and len(value) == 2, 1_000_000),
    "spread": _list(lambda value: _PAIR(value) and len(value) == 2, 101),
    "values": _mapping(_PLAIN),
    "problem": _either(_nothing, _TEXT),
    "said": _list(_TEXT, 200),
    "seed": _either(
        _nothing, lambda value: isinstance(value, str) and re.fullmatch("[0-9a-f]{1,64}", value) is not None
    ),
}
"""The keys of a project's run, with the check of each."""
_PROJECT: dict[str, Check] = {
    "format": lambda value: value == "anonflow project",
    "version": lambda value: value == 1 and isinstance(value, int),
    "records": _whole(0),
    "columns": _list(_TEXT, 100_000),
    "table": _either(_nothing, _WORD),
    "runs": _list(lambda value: isinstance(value, dict), MOST_RUNS),
}
"""The keys of ``project.json``, with the check of each."""
_SESSION: dict[str, Check] = {
    "runs": _list(lambda value: isinstance(value, dict), MOST_RUNS),
    "ids": _list(_whole(1), MOST_RUNS),
    "chosen": _either(_nothing, _whole(1)),
    "drawn": _list(lambda value: isinstance(value, list) and len(value) == 3 and _TEXT(value[0]) and _whole(1)(value[1])
                   and _WORD(value[2]), 100_000),
}  # fmt: skip
"""The keys of what a session keeps of its runs, with the check of each."""
_MAY_BE: dict[str, Check] = {"review": _mapping(_TEXT)}
"""What it may hold besides: the fields of the reviewer's report that people filled in."""


@dataclass(frozen=True, eq=False)
class Project:
    """The content of a project file.

    Attributes
    ----------
    spec : DraftSpec
        The flow.
    files : dict
        Name -> bytes, of what the flow names.
    runs : tuple of FinishedRun
        Without their results' records: ids count from 1.
    records : int
        Records of its table; -1 if unknown.
    columns : tuple of str
        Of that table.
    review : dict
        What people filled in into the reviewer's report.
    """

    spec: DraftSpec = field(repr=False)
    files: dict[str, bytes] = field(repr=False)
    runs: tuple[FinishedRun, ...]
    records: int = -1
    columns: tuple[str, ...] = field(default=(), repr=False)
    review: dict[str, str] = field(default_factory=dict, repr=False)

    def over(self, source: SourceSpec, folder: Path) -> Project:
        """Return the project over a table that is open, checked by the engine's loader.

        Parameters
        ----------
        source : SourceSpec
            Where the table is read from.
        folder : pathlib.Path
            Where the files are.

        Raises
        ------
        FlowError
            If the flow, or that of a run, cannot be used.
        """

        def moved(spec: DraftSpec) -> DraftSpec:
            there = spec.with_table(source=source)
            there.loaded(folder)
            return there

        runs = tuple(replace(run, spec=moved(run.spec)) for run in self.runs)
        return replace(self, spec=moved(self.spec), runs=runs)

    def unpack(self, folder: Path, limits: Limits) -> None:
        """Write the files into a folder, for their owner alone, with the checks of an upload.

        Raises
        ------
        DataError
            As :func:`~anonflow.dashboards.session.table_sources.take_upload`.
        """
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
    """Return a project as one file.

    Parameters
    ----------
    spec : DraftSpec
        The flow.
    folder : pathlib.Path
        Where the files are that it names.
    runs : sequence of FinishedRun
    records : int
    columns : sequence of str
        Of the table that is open.
    with_table : bool
        Whether the table goes along, where it is a file, registers of attackers and the seeds of the runs with it: then the
        file is as secret as they are. Else no register is named either.
    review : mapping, optional
        What people filled in into the reviewer's report.

    Returns
    -------
    bytes
        A ZIP archive.

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
    text = json.dumps(
        {
            "format": "anonflow project",
            "version": 1,
            "records": records,
            "columns": [str(name) for name in columns],
            "table": table if with_table else None,
            "runs": [_run_entry(run, with_table) for run in runs],
            **({"review": dict(review)} if review else {}),
        },
        allow_nan=False,
        ensure_ascii=False,
    )
    stream = io.BytesIO()
    with zipfile.ZipFile(stream, "w", zipfile.ZIP_DEFLATED) as archive:

        def put(name: str, content: bytes) -> None:
            # the same project is the same bytes: no clock in it
            entry = zipfile.ZipInfo(name, (1980, 1, 1, 0, 0, 0))
            entry.external_attr = 0o600 << 16
            archive.writestr(entry, content, zipfile.ZIP_DEFLATED)

        put("project.json", text.encode())
        put("flow.yaml", strict_yaml.dumps(document).encode())
        for name in sorted(named):
            try:
                put(f"files/{safe_name(name)}", (folder / name).read_bytes())
            except OSError:
                raise DataError(f"{safe_name(name)}: cannot be read any more; open the table again") from None
    return stream.getvalue()


def session_runs_text(
    runs: Sequence[FinishedRun], chosen: int | None, drawn: Mapping[str, Sequence[tuple[int, str]]]
) -> str:
    """Return the runs of a session as JSON, with their seeds, for the session's own folder.

    Parameters
    ----------
    runs : sequence of FinishedRun
    chosen : int or None
        Id of the run that is explored and published.
    drawn : mapping
        Of each table, the ids and names of its runs that were drawn.
    """
    entries = {
        "runs": [_run_entry(run, True) for run in runs],
        "ids": [run.id for run in runs],
        "chosen": chosen,
        "drawn": [[table, id, name] for table, of_table in drawn.items() for id, name in of_table],
    }
    return json.dumps(entries, allow_nan=False, ensure_ascii=False)


def without_registers(spec: DraftSpec) -> DraftSpec:
    """Return a flow without the attackers who have a register: it is a table about people."""
    return spec.with_steps(
        attack=tuple(each for each in spec.steps.attack if not any(register_holders([each])))
    )


def _run_entry(run: FinishedRun, secret: bool) -> dict[str, Any]:
    result = run.result
    return {
        "document": (run.spec if secret else without_registers(run.spec)).document,
        "name": result.name,
        "label": run.label,
        "note": run.note,
        "pinned": run.pinned,
        "when": float(run.when),
        "algorithm": result.algorithm,
        "guarantee": result.guarantee,
        "k": int(result.k),
        "records": int(result.records),
        "measures": {str(name): _plain(value) for name, value in result.measures.items()},
        "suppressed": int(result.suppressed),
        "seconds": float(result.seconds),
        "findings": [
            {
                "criterion": item.criterion,
                "holds": None if item.holds is None else bool(item.holds),
                "failed": int(item.failed),
                "detail": item.detail,
            }
            for item in result.findings
        ],
        "columns": [
            {"column": item.column, "loss": float(item.loss), "exact": float(item.exact), "whole": float(item.whole)}
            for item in result.columns
        ],
        "sizes": [[int(a), int(b)] for a, b in result.sizes],
        "spread": [[int(a), int(b)] for a, b in result.spread],
        "values": {str(key): _plain(value) for key, value in result.values.items()},
        "problem": result.problem,
        "said": list(result.said),
        "seed": f"{run.seed:x}" if secret and run.seed else None,
    }  # fmt: skip


def _plain(value: Any) -> Any:
    """Return a measure as plain JSON: without NaN and infinities, and without numpy's types."""
    if isinstance(value, Mapping):
        return {str(key): _plain(item) for key, item in value.items()}
    if hasattr(value, "item"):
        value = value.item()
    if isinstance(value, float) and not math.isfinite(value):
        return None
    return value if isinstance(value, int | float | bool | None) else str(value)


# ----------------------------------------------------------------------------------------------- opening


def read_project(path: Path, folder: Path, limits: Limits) -> Project:
    """Return the content of a project file, with the checks for a stranger's file.

    Parameters
    ----------
    path : pathlib.Path
    folder : pathlib.Path
        Where its files will lie; the flow may name nothing outside.
    limits : Limits
        Of an upload, for all its files together, unpacked.

    Raises
    ------
    DataError
        If it is no project, or too large.
    FlowError
        If it contains no valid flow, or the flow names files outside its folder.
    """
    parts = _members(path, MOST_BYTES if limits.upload_bytes is None else limits.upload_bytes)
    if "project.json" not in parts or "flow.yaml" not in parts:
        raise DataError(
            "this is not an anonflow project: project.json or flow.yaml is missing; save it again on the screen Data"
        )
    entries = _check(_json(parts["project.json"]), _PROJECT, "project.json", _MAY_BE)
    try:
        text = parts["flow.yaml"].decode("utf-8")
    except UnicodeDecodeError:
        raise DataError("flow.yaml of this project is not text; save it again on the screen Data") from None
    spec = stranger_flow(text, folder, limits).unpublished()
    files = {
        name.removeprefix("files/"): content for name, content in parts.items() if name.startswith("files/")
    }
    runs = _runs(entries["runs"], folder)
    return Project(
        spec, files, runs, entries["records"], tuple(entries["columns"]), dict(entries.get("review", {}))
    )


def stranger_flow(text: str, folder: Path, limits: Limits) -> DraftSpec:
    """Return a stranger's flow whose files may not be there yet; :meth:`Project.over` checks the rest.

    Raises
    ------
    FlowError
        If it is no strict YAML, no flow, or names files outside `folder`.
    DataError
        If it is too large.
    """
    limits.check_flow(text)
    document = strict_yaml.loads(text).data
    check_confined(document, folder)
    return DraftSpec.of(document)


def read_review(text: str) -> dict[str, str]:
    """Return what people filled in, as it was kept.

    Raises
    ------
    DataError
        If it is none.
    """
    return dict(_check({"review": _json(text.encode())}, _MAY_BE, "the report's fields")["review"])


def read_session_runs(
    text: str, folder: Path
) -> tuple[list[FinishedRun], int | None, dict[str, list[tuple[int, str]]]]:
    """Return runs, the chosen one and what was drawn, as :func:`session_runs_text` takes them.

    Raises
    ------
    DataError, FlowError
        If the text is none of that function's.
    """
    entries = _check(_json(text.encode()), _SESSION, "the runs that were kept")
    runs = _runs(entries["runs"], folder)
    if len(runs) != len(entries["ids"]):
        raise DataError("the runs that were kept cannot be read")
    drawn: dict[str, list[tuple[int, str]]] = {}
    for table, id, name in entries["drawn"]:
        drawn.setdefault(table, []).append((id, name))
    of_session = [replace(run, id=id) for run, id in zip(runs, entries["ids"], strict=True)]
    return of_session, entries["chosen"], drawn


def _members(path: Path, most: int) -> dict[str, bytes]:
    """Return the members of an archive, by name; none is larger than it may be, whatever the archive says."""
    parts: dict[str, bytes] = {}
    try:
        with zipfile.ZipFile(path) as archive:
            entries = archive.infolist()
            if len(entries) > MOST_FILES:
                raise DataError(
                    f"this project holds {len(entries):,} files, more than any that is saved here"
                )
            left = most
            for entry in entries:
                name = entry.filename
                own = name in ("project.json", "flow.yaml")
                # of the other compressions a few bytes are unpacked to any number at once
                packed_here = entry.compress_type in (zipfile.ZIP_STORED, zipfile.ZIP_DEFLATED)
                encrypted = bool(entry.flag_bits & 1)
                if name in parts or encrypted or not packed_here or not (own or _is_file(name)):
                    raise DataError("this is not an anonflow project: it holds a file that no project has")
                cap = min(left, MOST_TEXT) if own else left
                with archive.open(entry) as stream:
                    content = stream.read(cap + 1)
                if len(content) > cap:
                    raise DataError(
                        f"this project is larger than {most / 1e6:,.0f} MB when it is unpacked, the most that is taken here"
                    )
                left -= len(content)
                parts[name] = content
    except (
        zipfile.BadZipFile,  # a directory or a checksum that does not fit
        zlib.error,
        EOFError,
        NotImplementedError,  # a kind of archive that Python does not read
        OSError,  # a place before the file's begin
        ValueError,  # a name that is no text
    ):
        raise DataError("this is not an anonflow project: the file is damaged, or of another kind") from None
    return parts


def _is_file(name: str) -> bool:
    last = name.removeprefix("files/")
    return name.startswith("files/") and bool(last) and safe_name(last) == last


def _json(content: bytes) -> Any:
    def refused(constant: str) -> Any:
        raise ValueError(constant)

    try:
        return json.loads(content.decode("utf-8"), parse_constant=refused)
    except (ValueError, RecursionError):
        raise DataError(
            "project.json of this project is not JSON; save the project again on the screen Data"
        ) from None


def _check(
    entry: Any, shape: Mapping[str, Check], where: str, may_be: Mapping[str, Check] | None = None
) -> dict[str, Any]:
    """Refuse what does not have the keys of a shape, or something else there.

    Raises
    ------
    DataError
        With the first place that is wrong; what stands there is not repeated.
    """
    if not isinstance(entry, dict):
        raise DataError(f"{where}: is not a mapping; save the project again on the screen Data")
    known = {**shape, **{name: check for name, check in (may_be or {}).items() if name in entry}}
    for name, check in known.items():
        if name not in entry:
            raise DataError(f"{where}: {name} is missing; save the project again on the screen Data")
        if not check(entry[name]):
            raise DataError(f"{where}: {name} is no part of a project; save it again on the screen Data")
    if len(entry) > len(known):
        raise DataError(f"{where}: holds a key that no project has; open it with the version that saved it")
    return entry


def _runs(entries: Sequence[Any], folder: Path) -> tuple[FinishedRun, ...]:
    runs = []
    for number, entry in enumerate(entries, 1):
        _check(entry, _RUN, f"run {number} of this project")
        if entry["algorithm"] not in (*REGISTRY, AUTO):
            raise DataError(
                f"run {number} of this project used a method that this version does not have: open it with the version that saved it"
            )
        check_confined(entry["document"], folder)
        result = RunResult(
            number=number, name=entry["name"], algorithm=entry["algorithm"], guarantee=entry["guarantee"], k=entry["k"],
            records=entry["records"],
            measures={name: math.nan if value is None else value for name, value in entry["measures"].items()},
            suppressed=entry["suppressed"], seconds=entry["seconds"],
            findings=tuple(Finding(**item) for item in entry["findings"]),
            columns=tuple(ColumnLoss(**item) for item in entry["columns"]),
            sizes=tuple((a, b) for a, b in entry["sizes"]), spread=tuple((a, b) for a, b in entry["spread"]), values=dict(entry["values"]),
            problem=entry["problem"], said=tuple(entry["said"]),
        )  # fmt: skip
        seed = int(entry["seed"], 16) if entry["seed"] else 0
        runs.append(
            FinishedRun(
                number,
                DraftSpec.of(entry["document"]),
                seed,
                result,
                entry["when"],
                entry["label"],
                entry["note"],
                entry["pinned"],
            )
        )
    return tuple(runs)
