"""Load tables into a workspace: built-in ones and uploaded files, inside its caps."""

from __future__ import annotations

import gzip
import importlib.util
import os
import shutil
import zipfile
import zlib
from collections.abc import Callable, Iterable, Mapping
from dataclasses import replace
from pathlib import Path
from typing import TYPE_CHECKING, Any

from anonflow import datasets
from anonflow.dashboards.session.draft_spec import ColumnSpec, DraftSpec, columns_of, written
from anonflow.dashboards.session.files.paths import paths_in, safe_name
from anonflow.dashboards.work.user_limits import Limits
from anonflow.engine.flows.spec import SourceSpec
from anonflow.errors import AnonflowError, DataError
from anonflow.table.files.csv_form import AUTO, SAMPLE, NoCsvError, refuse_others
from anonflow.table.files.csv_head import PLAIN
from anonflow.table.files.csv_reading import csv_form, is_csv
from anonflow.table.files.opening import must_fit
from anonflow.table.files.parquet_metadata import PARQUET_ENDINGS, is_parquet
from anonflow.table.files.read import read_frame
from anonflow.table.files.statistics_files import READERS, read_statistics
from anonflow.table.files.workbooks import ENDINGS as WORKBOOKS
from anonflow.table.files.workbooks import read_workbook
from anonflow.table.infer import Advice, advise, infer_columns
from anonflow.table.schema import FORM_KEYS, UNPUBLISHED

if TYPE_CHECKING:
    import pandas as pd

ENDINGS = (".csv", ".tsv", ".txt", ".data", ".csv.gz", *PARQUET_ENDINGS, *WORKBOOKS)

SPARSE = 10
"""How many times its size a workbook may unpack to: it is a text with tags around every cell."""

PACKED = 4
"""How many times its size a Parquet file may unpack to: values that repeat make four to one nothing unusual."""

FEW = 64
"""Rows that are unpacked at a time to see how large they are."""


def load_dataset(name: str, limits: Limits, **options: Any) -> pd.DataFrame:
    """Return a built-in table, inside the caps."""
    for option, check in (("n", limits.check_rows), ("q", limits.check_columns)):
        size = options.get(option)
        if isinstance(size, int):
            check(size)
    frame = datasets.load(name, **options)
    limits.check_rows(len(frame))
    return frame


def first_columns(name: str, frame: pd.DataFrame, hierarchies: bool) -> dict[str, dict[str, Any]]:
    """Return the schema of a built-in table to start from, without columns that this frame does not have."""
    return {
        column: dict(entry)
        for column, entry in datasets.schema(name, hierarchies).items()
        if column in frame.columns
    }


def edited_column(
    before: ColumnSpec | None, declared: Mapping[str, Any], cells: pd.DataFrame
) -> ColumnSpec | None:
    """Return what a flow says of a column after an edit by the keys of a file; what does not go with its new role or kind is taken away.

    None takes a key away. A quasi-identifier without a kind gets the one that its `cells`, a frame of the column alone, suggest.
    """
    entry: dict[str, Any] = {} if before is None else written(before)
    column = dict(entry)
    role = declared.get("role", entry.get("role"))
    if role != "quasi-identifier":
        column = {"role": role} if role == entry.get("role") else {}
    elif "kind" in declared and declared["kind"] != entry.get("kind"):
        column = {key: value for key, value in entry.items() if key in ("role", "weight")}
    # a column that is no quasi-identifier has no codes: with some beside its numbers it is of texts, in no form
    if role not in UNPUBLISHED and (role == "quasi-identifier" or "codes" not in entry):
        column = {key: entry[key] for key in FORM_KEYS if key in entry} | column
    column = {key: value for key, value in (column | dict(declared)).items() if value is not None}
    if column.get("role") == "quasi-identifier" and "kind" not in column:
        guess = infer_columns(cells)[str(cells.columns[0])]
        column["kind"] = guess.get("kind", "categorical")
        for key in ("missing", "codes", "hierarchy", *FORM_KEYS):
            if key in guess:
                column.setdefault(key, guess[key])
    return columns_of({str(cells.columns[0]): column})[str(cells.columns[0])] if column else None


def take_upload(name: str, path: Path, folder: Path, limits: Limits) -> Path:
    """Move an uploaded file into the workspace's own folder, under a harmless name.

    Raises
    ------
    DataError
        If it is too large, packed or unpacked, or its name does not end like a table's.
    """
    safe = safe_name(name)
    is_statistics = _is_statistics(safe, limits)
    if not safe.lower().endswith(ENDINGS) and not is_statistics:
        if safe.lower().endswith((".xls", ".ods")):
            raise DataError(
                f"{safe}: is a workbook of another form; save it as .xlsx or its sheet as CSV, and upload that"
            )
        others = ", or one of SPSS, Stata or SAS" if limits.statistics else ""
        raise DataError(f"{safe}: a table is a .csv, .parquet or .xlsx file{others}; rename or convert it")
    limits.check_upload(path.stat().st_size)
    _check_kind(path, safe)
    if safe.lower().endswith(".gz"):
        _check_unpacked(path, safe, limits)
    elif is_parquet(safe):
        _check_parquet(path, safe, limits)
    elif safe.lower().endswith(WORKBOOKS):
        _check_workbook(path, safe, limits)
    target = folder / safe
    if path.resolve() != target.resolve():
        shutil.move(path, target)
    os.chmod(target, 0o600)
    return target


def _is_statistics(name: str, limits: Limits) -> bool:
    """Return whether a file is one of SPSS, Stata or SAS by its name; a DataError says where such files are not read."""
    if not name.lower().endswith(tuple(READERS)):
        return False
    if not limits.statistics:
        raise DataError(
            f"{name}: files of SPSS, Stata and SAS are not read on this server, where a table is a .csv, .parquet or .xlsx file; export it as CSV, "
            f"or {limits.elsewhere}"
        )
    return True


def _check_kind(path: Path, name: str) -> None:
    """Refuse a file of another kind under a CSV file's name."""
    if not name.lower().endswith((*PARQUET_ENDINGS, ".gz", *WORKBOOKS)):
        with path.open("rb") as stream:
            try:
                refuse_others(stream.read(SAMPLE))
            except NoCsvError as error:
                raise DataError(f"{name}: {error}") from None


WORKBOOK_KEYS = {"sheet", "skip", "footer"}
"""Keys of a source that say which rows of a workbook are read."""


def read_settings(name: str, form: Mapping[str, Any]) -> dict[str, Any]:
    """Return those settings of a form that belong to a file, by its name, and are filled in."""
    keys: tuple[str, ...] = ()
    if is_csv(name):
        keys = ("delimiter", "encoding", "missing", "skip")
    elif name.lower().endswith(WORKBOOKS):
        keys = ("sheet", "skip")
    elif name.lower().endswith(tuple(READERS)):
        keys = ("codes",)
    return {key: form[key] for key in keys if form[key]}


def read_upload(path: Path, limits: Limits, **options: Any) -> tuple[pd.DataFrame, SourceSpec]:
    """Return the table in an uploaded file, and how it was read.

    Without ``delimiter`` and ``encoding`` of a CSV file they are found out.

    Raises
    ------
    DataError
        If it is no table, or has too many records.
    """
    try:
        if is_parquet(path):
            source = SourceSpec(parquet=path.name)
            frame = read_frame(path)
        elif path.name.lower().endswith(WORKBOOKS):
            sheet, sheets = options.get("sheet"), list[str]()
            skip = options.get("skip", options.get("shape", PLAIN).skip)
            footer = options.get("footer", options.get("shape", PLAIN).footer)
            frame = read_workbook(
                path,
                sheet=sheet,
                skip=skip,
                footer=footer,
                fits=_check_of_parts(path, limits),
                tell_sheets=sheets.extend,
            )
            # of several, the one that was read is named: whoever opens it must see which
            declared = {
                "sheet": sheet or (sheets[0] if len(sheets) > 1 else None),
                "skip": skip or None,
                "footer": footer,
            }
            source = SourceSpec(
                excel=path.name, **{key: value for key, value in declared.items() if value is not None}
            )
        elif _is_statistics(path.name, limits):
            declared = {key: options[key] for key in ("labels", "codes") if key in options}
            source = SourceSpec(stats=path.name, **declared)
            frame = read_statistics(
                path,
                labels=source.labels,
                user_missing=source.codes == "values",
                fits=_check_of_parts(path, limits),
            )
        else:
            settings = {key: value for key, value in options.items() if value}
            shape = settings.pop("shape", PLAIN)
            shape = replace(shape, skip=settings.pop("skip", shape.skip))
            form = csv_form(
                path,
                delimiter=settings.get("delimiter", AUTO),
                encoding=settings.get("encoding", AUTO),
                shape=shape,
            )
            settings |= {"delimiter": form.delimiter, "encoding": form.encoding}
            source = SourceSpec(csv=path.name, **settings, **shape.to_mapping())
            limits.check_columns(form.columns)  # reading very many takes minutes
            frame = read_frame(path, shape=shape, **settings)
    except AnonflowError as error:
        # the message must not show the file's place on the server
        raise error.renamed(str(path), path.name) from None
    limits.check_rows(len(frame))
    limits.check_columns(frame.shape[1])
    if not len(frame):
        raise DataError(f"{path.name}: has a header and no records; upload a table with records")
    return frame, source


def read_table(
    path: Path,
    limits: Limits,
    tell: Callable[[str, int, int], None] = lambda words, count, of: None,
    **options: Any,
) -> tuple[pd.DataFrame, SourceSpec, list[Advice]]:
    """Return the table in an uploaded file, how it was read, and what its columns seem to be; `tell` is as :func:`advise` takes it."""
    frame, source = read_upload(path, limits, **options)
    return frame, source, advise(frame, tell=tell)


class TableReading:
    """Reads the copies of a file with which many sessions begin, each version of it once; none of them changes its frame in place."""

    def __init__(self) -> None:
        self._version: tuple[str, int, int] | None = None
        self._answer: tuple[pd.DataFrame, SourceSpec, list[Advice]] | None = None

    def __call__(
        self, path: Path, limits: Limits, **options: Any
    ) -> tuple[pd.DataFrame, SourceSpec, list[Advice]]:
        """Return what :func:`read_table` returns; a copy has the time of the file's last change."""
        file_status = path.stat()
        version = path.name, file_status.st_size, file_status.st_mtime_ns
        if self._answer is None or version != self._version:
            self._answer, self._version = read_table(path, limits, **options), version
        return self._answer


def _check_unpacked(path: Path, name: str, limits: Limits) -> None:
    """Refuse a small packed file that is a very large table."""
    if limits.upload_bytes is None:
        return
    size = 0
    try:
        with gzip.open(path, "rb") as stream:
            while block := stream.read(1 << 20):
                size += len(block)
                limits.check_upload(size)
    except (OSError, EOFError, zlib.error):
        raise DataError(f"{name}: is not a readable .gz file; upload it unpacked") from None


def _check_parquet(path: Path, name: str, limits: Limits) -> None:
    """Refuse a small Parquet file that is a very large table."""
    import pyarrow as pa
    import pyarrow.parquet as pq

    try:
        with pq.ParquetFile(path) as file:
            limits.check_rows(file.metadata.num_rows)
            limits.check_columns(file.metadata.num_columns)
            if limits.upload_bytes is None:
                return
            # a value that is repeated is in the file once, so its sizes say little: what it unpacks to is counted
            unpacked = 0
            for batch in file.iter_batches(FEW, use_threads=False):
                unpacked += batch.nbytes
                limits.check_upload(unpacked // PACKED)
    except (pa.ArrowException, OSError, UnicodeError):
        raise DataError(
            f"{name}: is not a readable Parquet file; write it again, or upload a CSV file"
        ) from None


def _check_workbook(path: Path, name: str, limits: Limits) -> None:
    """Count what a workbook, which is an archive, unpacks to before it is read."""
    if importlib.util.find_spec("openpyxl") is None:
        raise DataError(
            f"{name}: is an Excel workbook, which this server does not read (it needs: pip install 'anonflow[excel]'); "
            "save its sheet as CSV, and upload that"
        )
    try:
        with zipfile.ZipFile(path) as archive:
            _check_of_parts(path, limits)([part.file_size for part in archive.infolist()])
    except (zipfile.BadZipFile, OSError):
        raise DataError(
            f"{name}: is not a readable Excel workbook; save it again as .xlsx, or export it as CSV"
        ) from None


def _check_of_parts(path: Path, limits: Limits) -> Callable[[Iterable[int]], None]:
    """Return a function that refuses a file whose parts, or whose rows, have too many bytes; it is read no further."""

    def check(sizes: Iterable[int]) -> None:
        unpacked = 0
        for size in sizes:
            unpacked += size
            limits.check_upload(unpacked // SPARSE)

    return must_fit(path) if limits.upload_bytes is None else check


def write_frame(frame: pd.DataFrame, path: Path) -> None:
    """Write a frame as a Parquet file that only its owner can read.

    Raises
    ------
    DataError
        If it holds values that are no plain ones, or columns without a name.
    """
    import pyarrow as pa

    named = frame.reset_index(drop=True)
    named.columns = [str(name) for name in named.columns]
    try:
        named.to_parquet(path, index=False)
    except (pa.ArrowException, ValueError, TypeError):
        raise DataError(
            "the frame has columns that are no plain values; convert them to text or numbers"
        ) from None
    os.chmod(path, 0o600)


def bring(spec: DraftSpec, home: Path, folder: Path) -> DraftSpec:
    """Return a flow of one's own with the files that it names beside `home` copied to a folder, and named there.

    Raises
    ------
    DataError
        If a file that it names cannot be read.
    """
    brought = spec.unpublished().document
    for number, (_, holder, key) in enumerate(paths_in(brought)):
        path, name = holder[key], safe_name(holder[key])
        if (folder / name).exists():
            name = f"{number}-{name}"
        try:
            shutil.copyfile(home / path, folder / name)
            os.chmod(folder / name, 0o600)
        except (OSError, ValueError):
            raise DataError(f"{home / path}: cannot be read; the flow names it") from None
        holder[key] = name
    return DraftSpec.of(brought)
