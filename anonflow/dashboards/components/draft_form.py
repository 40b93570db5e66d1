"""Forms over the draft: params that are read from the draft, and written to it when they change."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from contextlib import contextmanager
from typing import Any

import param

from anonflow.dashboards.session.draft_spec import ColumnSpec, DraftSpec
from anonflow.dashboards.session.screen_words import on_screen
from anonflow.dashboards.session.workspace import Workspace
from anonflow.errors import AnonflowError


class DraftForm(param.Parameterized):
    """Params over a part of a workspace's draft.

    The draft is the state; params here are a reading of it, in the words of a form. A subclass says which of its
    params write (``WRITES``), how to read (``_read``) and how to write (``_write``, one edit of the draft). Reading
    never writes, so the form follows undo and other pages without writing back.
    """

    workspace = param.ClassSelector(class_=Workspace, constant=True)

    WRITES: tuple[str, ...] = ()

    def __init__(self, workspace: Workspace, **params: Any) -> None:
        super().__init__(workspace=workspace, **params)
        self._reading = 0
        self._read_from: tuple[Any, ...] = ()
        self.renew()
        if self.WRITES:
            # not a dependency: each form has other params, and is told which have changed
            self.param.watch(self._edited, list(self.WRITES))

    def renew(self) -> None:
        """Read the draft again."""
        self._read_from = self._now()
        with self.quietly():
            self._read()

    @contextmanager
    def quietly(self) -> Iterator[None]:
        """Params that change inside are not written."""
        self._reading += 1
        try:
            yield
        finally:
            self._reading -= 1

    @param.depends(
        "workspace.data.frame", "workspace.data.table", "workspace.data.algorithms", "workspace.data.ks",
        "workspace.draft.spec", watch=True,
    )  # fmt: skip
    def _followed(self) -> None:
        opened = self.workspace.data
        if opened.frame is not None and self.flow.table.source != opened.source:
            return  # another table is being opened: its draft follows
        # the draft and its consequences change one after the other: one update is enough
        pairs = zip(self._read_from, self._now(), strict=True)
        # tables are not compared: another one is another object
        if any(a is not b and not (isinstance(a, tuple | dict) and a == b) for a, b in pairs):
            self.renew()

    def _now(self) -> tuple[Any, ...]:
        """Return what the params are read from."""
        opened = self.workspace.data
        return self.flow, opened.frame, opened.table, opened.algorithms, opened.ks

    def _edited(self, *events: param.parameterized.Event) -> None:
        if not self._reading and self.workspace.data.frame is not None:
            self._write({event.name for event in events})

    def _read(self) -> None:
        """Set params from the draft."""

    def _write(self, names: set[str]) -> None:
        """Edit the draft after params of these names changed."""

    def attempt(self, edit: Callable[[], object], says: str = "refusal") -> bool:
        """Make an edit, and return whether it could be made; if not, the param `says` has the reason."""
        self.param.update(**{says: ""})
        try:
            edit()
        except AnonflowError as error:
            self.param.update(**{says: on_screen(error.problems[0])})
            return False
        return True

    @property
    def flow(self) -> DraftSpec:
        """The flow of the draft."""
        return self.workspace.draft.spec

    def declared(self, column: str | None) -> ColumnSpec:
        """Return what the draft says of a column; of one that is not published, nothing."""
        return self.flow.columns.get(column or "", ColumnSpec())

    @property
    def quasi_identifiers(self) -> tuple[str, ...]:
        """Columns that the draft calls quasi-identifiers, in its order; also while it is not valid."""
        return self.columns_of("quasi-identifier")

    def columns_of(self, role: str) -> tuple[str, ...]:
        """Return the table's columns of a role, in the draft's order; also while it is not valid."""
        frame, columns = self.workspace.data.frame, self.flow.columns
        if frame is None:
            return ()
        return tuple(name for name in columns if columns[name].role == role and name in frame.columns)
