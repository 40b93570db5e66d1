"""The open table: as it was read, coded under the draft's columns, and which runs of the draft can work on it."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from contextlib import suppress
from pathlib import Path
from typing import TYPE_CHECKING, Any

import param

from anonflow import datasets
from anonflow.dashboards.session.draft import Draft
from anonflow.dashboards.session.draft_spec import NO_FLOW, DraftSpec
from anonflow.dashboards.session.files.table_sources import edited_column
from anonflow.dashboards.session.screen_words import OPEN_FIRST
from anonflow.dashboards.session.validation import Judgement, code, judged
from anonflow.dashboards.work import screen_work
from anonflow.dashboards.work.turns import Turns
from anonflow.engine.flows.spec import SourceSpec
from anonflow.errors import AnonflowError, FlowError, ParameterError
from anonflow.table import Table
from anonflow.table.infer import Advice, advise
from anonflow.table.prepare import Preparation
from anonflow.table.schema import UNPUBLISHED

if TYPE_CHECKING:
    import pandas as pd

ACQUAINTANCES = "acquaintances"
"""The answer for a column whose values only people know who know the person."""

CODING = "the table is being coded under its columns; wait a few seconds"
"""Why nothing can run while a large table is coded aside."""

UNCODED = "coding the table under its columns was cancelled; change a column, or press Code the table on the screen Data"
"""Why nothing can run after that."""


class OpenTable(param.Parameterized):
    """The open table under the draft.

    Invariants: ``table`` is ``frame`` coded under the draft's columns, or None while they are not valid; while ``coding``,
    it is still what it was before the last edit (None of a table that is new), and nothing can be started.

    Parameters
    ----------
    draft : Draft
        Its flow; :meth:`refresh` is called after each edit of it.
    turns : Turns
        Of the user.
    aside : bool
        Whether a table of many records is coded in a thread of its own, since the turns are those of an event loop.
    """

    frame = param.Parameter(None, doc="The table as it was read (the owner's), or None.")
    source = param.ClassSelector(
        class_=SourceSpec, default=SourceSpec(), instantiate=False, doc="Where the open table was read from."
    )
    table = param.Parameter(None, doc="The frame coded under the draft's columns, or None.")
    coding = param.Boolean(default=False, doc="Whether the frame is being coded aside.")
    problems = param.Parameter((), doc="What cannot work, one sentence each.")
    impossible = param.Dict(
        default={}, doc="Names of runs that can have no result -> why; the others can run."
    )
    algorithms = param.List(default=[], doc="Names of the methods that are run.")
    ks = param.List(default=[], doc="The ks that are run.")
    answers = param.Dict(
        default={},
        doc="Column whose role was declared or confirmed -> who could know it, or nothing: its role says it.",
    )

    def __init__(self, draft: Draft, turns: Turns, aside: bool = False) -> None:
        super().__init__()
        self.draft = draft
        self.coder = screen_work.Background(turns, at_once=True)
        self.judgement = Judgement()
        self.confirmed: Callable[[], None] = lambda: None
        self._aside = aside
        self._coded: tuple[Any, ...] | None = None
        self._column_problems: tuple[str, ...] = ()
        self._next: Callable[[], None] | None = None
        self._first = NO_FLOW
        self._advice: tuple[pd.DataFrame, list[Advice]] | None = None
        self._named: tuple[pd.DataFrame, dict[str, str], pd.DataFrame] | None = None

    def __repr__(self) -> str:
        # without the params: a log of this object would contain cells
        return "OpenTable(no table)" if self.frame is None else f"OpenTable({len(self.frame)} records)"

    def take(
        self, frame: Any, source: SourceSpec, spec: DraftSpec, folder: Path, guessed: bool = False
    ) -> None:
        """Open a frame, and begin the draft anew with a flow over it, whose roles nobody confirmed if they are `guessed`."""
        self._coded, self._next = None, None
        # one change for all watchers: a frame without its columns would be shown as one that cannot be used
        with param.parameterized.batch_call_watchers(self):
            answers = {} if guessed else dict.fromkeys(spec.columns, "")
            self.param.update(frame=frame, source=source, answers=answers)
            self.draft.restart(spec, folder=folder)
            self._first = spec
            self.refresh()

    def close(self) -> None:
        """Forget the table."""
        self.coder.forget()
        self.param.update(frame=None, table=None, coding=False)

    @property
    def is_edited(self) -> bool:
        """Whether there is a table whose flow was edited since it was opened."""
        return self.frame is not None and self.draft.spec != self._first

    def complete(self, change: Callable[[], Any]) -> Any:
        """Return the answer of a change that belongs to the opening of the table: it counts as no edit of the user's."""
        untouched = not self.is_edited
        answer = change()
        if untouched:
            self._first = self.draft.spec
        return answer

    def keep_advice(self, frame: pd.DataFrame, advice: list[Advice]) -> None:
        """Keep what the columns of a frame are guessed to be."""
        self._advice = frame, advice

    def when_coded(self, action: Callable[[], None]) -> None:
        """Call `action` once the table is coded under the draft's columns: now, if it is."""
        self._next = action
        if not self.coding:
            self._go_on()

    def _go_on(self) -> None:
        action, self._next = self._next, None
        if action is not None:
            action()

    def check(self) -> None:
        """Check that the table can be used.

        Raises
        ------
        FlowError
            If there is none, its columns are not valid, or it is being coded.
        """
        if self.table is None or self.coding:
            raise FlowError.collected("this cannot run", self._column_problems or (OPEN_FIRST,))

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

    def advice(self, frame: pd.DataFrame, tell: Callable[[str, int, int], None]) -> list[Advice]:
        """Return what each column of the open table is guessed to be, and why, which takes its time once; `tell` is as :func:`advise` takes it."""
        if self._advice is not None and self._advice[0] is frame:
            return self._advice[1]
        advice = advise(frame, tell=tell) if len(frame) else []
        self._advice = frame, advice
        return advice

    def given_hierarchy(self, column: str | None) -> dict[str, Any] | str | None:
        """Return the hierarchy that comes with the built-in table for a column, if it is one that has it."""
        name = self.source.dataset
        schema: dict[str, Any] = {} if name is None else datasets.schema(name, hierarchies=True)
        return schema.get(column or "", {}).get("hierarchy")

    def set_column(self, column: str, **declared: Any) -> None:
        """Declare a column by the keys of a flow, as one edit that can be undone.

        None takes a key away; what does not go with the new role or kind is taken away, too.
        """
        self.set_columns({column: declared})

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
        self.confirmed()

    def known_to_strangers(self, columns: Sequence[str]) -> tuple[str, ...]:
        """Return which of some columns everybody could know; nothing where acquaintances know no others."""
        public_columns = tuple(name for name in columns if self.answers.get(name) != ACQUAINTANCES)
        return public_columns if len(public_columns) < len(columns) else ()

    def refresh(self) -> None:
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
                self._go_on()

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
        self.refresh()

    def _judge(self, table: Table | None) -> None:
        """Say what of the draft can run on the table, and what cannot."""
        spec, judgement = self.draft.spec, Judgement(problems=self._column_problems)
        if not judgement.problems and table is not None:
            judgement = judged(spec, self.draft.folder, table, self.source)
        self.judgement = judgement
        self.param.update(
            # params do not compare tables: all that depends on it would be told of each edit
            **({} if table is self.table else {"table": table}),
            coding=self._column_problems == (CODING,),
            problems=judgement.problems,
            impossible=dict(judgement.impossible),
            algorithms=[] if self.frame is None else list(spec.algorithms),
            ks=[] if self.frame is None else list(spec.ks),
        )
