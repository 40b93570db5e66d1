"""What a workspace does with tables: built-in ones, files, flows and frames are opened, columns declared."""

from __future__ import annotations

import threading
from collections.abc import Callable, Mapping
from dataclasses import replace
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING, Any

import param

from anonflow import datasets, strict_yaml
from anonflow.dashboards.session.draft import Draft
from anonflow.dashboards.session.limits import Limits
from anonflow.dashboards.session.paths import check_confined, safe_name
from anonflow.dashboards.session.share_link import configuration, merged
from anonflow.dashboards.session.sources import (
    bring,
    edited_column,
    first_columns,
    flow_name,
    load_dataset,
    read_upload,
    take_upload,
    write_frame,
)
from anonflow.errors import AnonflowError, DataError, FlowError, ParameterError
from anonflow.hierarchy import Hierarchy
from anonflow.table import Table
from anonflow.table.infer import infer_columns

if TYPE_CHECKING:
    import pandas as pd

    from anonflow.table.schema import Column

__all__ = ["Tables"]

PARTITION = 250
"""Records in a partition of a first draft, where the table has more."""


class Tables(param.Parameterized):
    """The table of a workspace, and how it gets there; :class:`anonflow.dashboards.Workspace` has the rest."""

    draft: Draft = param.ClassSelector(class_=Draft, constant=True, doc="The one flow behind all screens.")
    frame = param.Parameter(None, doc="The table as it was read (the owner's), or None.")
    source = param.Dict(default={}, doc="As under table.source of a flow; empty before a table is opened.")
    status = param.String(default="Open a table to begin.", doc="One plain sentence.")
    limits = param.ClassSelector(class_=Limits, default=Limits(), doc="Caps.")
    folder = param.ClassSelector(class_=Path, default=None, allow_None=True, doc="This session's own.")

    _waiting: dict[str, Any] | None = None

    def __init__(self, **given: Any) -> None:
        super().__init__(**given)
        self._reading = threading.Lock()

    def _take(self, frame: Any, source: dict[str, Any], document: dict[str, Any]) -> None:
        raise NotImplementedError

    def open_dataset(self, name: str, **options: Any) -> None:
        """Open a built-in table.

        Parameters
        ----------
        name : str
            One of :func:`anonflow.datasets.names`.
        **options
            Those of :func:`anonflow.datasets.load`; and ``hierarchies``, as :func:`anonflow.datasets.schema` has it.

        Raises
        ------
        ParameterError
            If the name or an option is unknown.
        DataError
            If it cannot be had, or is too large here.
        """
        hierarchies = bool(options.pop("hierarchies", False))
        frame = load_dataset(name, self.limits, **options)
        self._open(frame, {"dataset": name, **options}, first_columns(name, frame, hierarchies), name)

    def open_file(self, name: str, path: Path, **options: Any) -> None:
        """Open an uploaded file; it is moved into the workspace's own folder.

        Parameters
        ----------
        name : str
            As the user calls it; it tells CSV from Parquet.
        path : pathlib.Path
            Where it was uploaded to.
        **options
            ``delimiter``, ``encoding``, ``missing`` of a CSV file.

        Raises
        ------
        DataError
            If it is too large, or no table.
        """
        self.read_file(name, path, **options)()

    def read_file(self, name: str, path: Path, **options: Any) -> Callable[[], None]:
        """Read an uploaded file, which takes its time and changes no param; what is handed back opens it.

        Parameters
        ----------
        name, path, **options
            As for :meth:`open_file`.

        Returns
        -------
        callable
            To be called where params may change; it may raise what :meth:`open_file` raises.

        Raises
        ------
        DataError
            If it is too large, or no table.
        """
        with self._reading:  # two files of one name are not read into each other
            place = take_upload(name, Path(path), self._own_folder(), self.limits)
            try:
                frame, source = read_upload(place, self.limits, **options)
            except AnonflowError:
                place.unlink(missing_ok=True)
                raise
            columns = infer_columns(frame)
        return partial(self._open, frame, source, columns, safe_name(name).split(".")[0])

    def open_flow(self, text: str) -> None:
        """Go on with a flow file: its data set is loaded, or the file that it names, uploaded before, is read.

        Parameters
        ----------
        text : str
            Of the flow file.

        Raises
        ------
        FlowError
            If it is no flow, or names files that it may not.
        DataError, ParameterError
            If its table cannot be had; of an uploaded file, upload it first.
        """
        document = Draft.read(text, folder=self._own_folder(), confined=True).document
        source = dict(document["table"]["source"])
        if "dataset" in source:
            options = {key: value for key, value in source.items() if key != "dataset"}
            frame = load_dataset(source["dataset"], self.limits, **options)
        else:
            place = self._own_folder() / str(source.get("csv", source.get("parquet")))
            given = {key: source[key] for key in ("delimiter", "encoding", "missing") if key in source}
            frame, _ = read_upload(place, self.limits, **given)
        kept = {key: value for key, value in document.items() if key not in ("publish", "run")}
        self._take(frame, source, kept)

    def open_own_flow(self, path: Path) -> None:
        """Go on with a flow file of one's own: what it names beside it is copied into the workspace.

        Raises
        ------
        FlowError
            If it is no flow.
        DataError, ParameterError
            If its table cannot be had.
        """
        document = strict_yaml.read(path, error=FlowError).data
        brought = bring(document, Path(path).parent, self._own_folder())
        self.open_flow(strict_yaml.dumps(brought))

    def open_frame(
        self, frame: pd.DataFrame, columns: Mapping[str, Any] | None = None, name: str = "table"
    ) -> None:
        """Open a frame that is in memory; the flow names the Parquet file that it is written to.

        Parameters
        ----------
        frame : pandas.DataFrame
        columns : mapping, optional
            As under ``columns`` of a flow; a guess without it.
        name : str

        Raises
        ------
        DataError
            If it has no names, or values that are no plain ones.
        """
        place = self._own_folder() / f"{flow_name(name)}.parquet"
        write_frame(frame, place)
        read, source = read_upload(place, self.limits)
        self._open(read, source, dict(columns) if columns else infer_columns(read), name)

    def open_table(self, table: Table, name: str = "table") -> None:
        """Open a table with its schema.

        Raises
        ------
        DataError
            As :meth:`open_frame`.
        """
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
            If it is no link, or names a table or an option that there is not.
        FlowError
            If it names files: no link of ours does.
        DataError
            If the table cannot be had, or is too large here.
        """
        found = configuration(text)
        source = found.get("source")
        if isinstance(source, dict) and isinstance(source.get("dataset"), str):
            options = {str(key): value for key, value in source.items() if key != "dataset"}
            unknown = [key for key in options if key not in datasets.options(source["dataset"])]
            if unknown:
                raise ParameterError(
                    "this link asks for an option that its table does not have; start without it"
                )
            self._waiting = found
            try:
                self.open_dataset(source["dataset"], **options)
            finally:
                self._waiting = None
        elif self.frame is not None:
            document = merged(self.draft.document, found)
            check_confined(document, self._own_folder())
            self.draft.put(document)
        else:
            self._waiting = found
            self.status = "Open your table: the methods and parameters of the link are waiting for it."

    def _open(self, frame: Any, source: dict[str, Any], columns: dict[str, Any], name: str) -> None:
        first = Draft.start(source, columns, name=flow_name(name), k=max(2, min(10, len(frame) // 3)))
        if len(frame) > PARTITION:
            first.set(("partition",), {"order": "lexicographic", "size": PARTITION})
        document = first.document
        if self._waiting is not None:  # a link without a table of its own
            document, self._waiting = merged(document, self._waiting), None
            check_confined(document, self._own_folder())
        self._take(frame, source, document)

    def set_column(self, column: str, **declared: Any) -> None:
        """Say what a column is, as one edit that can be undone.

        Parameters
        ----------
        column : str
        **declared
            ``role``, ``kind``, ``hierarchy``, ``boundary``, ``weight``, ...: as under ``columns`` of a flow; None takes
            away. What does not go with the new role or kind is taken away, too.

        Raises
        ------
        ParameterError
            If the table has no such column.
        """
        if self.frame is None or column not in self.frame.columns:
            raise ParameterError("the table has no such column; name one of its header")
        entry = edited_column(
            self.draft.get(("table", "columns", column), {}), declared, self.frame[[column]]
        )
        self.draft.set(("table", "columns", column), entry or None)

    def _own_folder(self) -> Path:
        if self.folder is None or not self.folder.exists():
            raise DataError("this session is over; reload the page")
        return self.folder


def _entry(column: Column, folder: Path, at: int) -> dict[str, Any]:
    """A column of a schema as a flow has it; a hierarchy in memory becomes a file beside the flow."""
    if not isinstance(column.hierarchy, Hierarchy):
        return column.to_mapping()
    name = f"hierarchy-{at}.csv"
    column.hierarchy.to_csv(folder / name)
    return replace(column, hierarchy=name).to_mapping()
