"""The form of the columns, a table of roles and kinds; and how far the columns single people out."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING, Any, NamedTuple

import numpy as np
import param

from anonflow import datasets, strict_yaml
from anonflow.dashboards.components.draft_form import DraftForm
from anonflow.dashboards.protect.settings import share
from anonflow.dashboards.session.draft_spec import ColumnSpec, columns_of, written
from anonflow.dashboards.session.files.table_sources import first_columns
from anonflow.dashboards.session.open_table import ACQUAINTANCES
from anonflow.dashboards.session.screen_words import WITHOUT_CSV, WORDS, on_screen
from anonflow.dashboards.work.screen_work import Background
from anonflow.drawing.method_mark import sparkline
from anonflow.errors import AnonflowError, ParameterError
from anonflow.hierarchy.wording import plural, verb_of
from anonflow.table.coding import column_values
from anonflow.table.domain import missing_cells
from anonflow.table.forms.numbers import numbers_of
from anonflow.table.forms.text_forms import keys_text
from anonflow.table.identification.suggested_hierarchy import suggested_hierarchy
from anonflow.table.identification.uniqueness import unique_as_added
from anonflow.table.identification.value_signs import numbers_in
from anonflow.table.infer import Advice, entries_of, kind_of, read_cells
from anonflow.table.schema import FORM_KEYS, KINDS, MISSING_RULES, ROLES, UNPUBLISHED, Schema, form_of

if TYPE_CHECKING:
    import pandas as pd

NOT_PUBLISHED = "not published"
"""The role of a column that the draft does not name."""

COLUMNS = (
    "column", "values", "type", "distinct", "missing", "who", "role", "why", "kind", "no value", "codes", "form",
)  # fmt: skip
"""Columns of the table of columns."""

ANSWERS = {
    "everybody": ("quasi-identifier",),
    ACQUAINTANCES: ("quasi-identifier",),
    "nobody": ("sensitive", "insensitive"),
}
"""Who could know a person's value -> roles that go with it; a column of another role gets the first."""

_BARS = 20


class ColumnFacts(NamedTuple):
    """What a column's cells are like: type, distinct values, cells without a value, and the heights of a small picture."""

    type: str
    distinct: int
    missing: int
    heights: tuple[float, ...] = ()


class ColumnChoice(DraftForm):
    """Roles and kinds of the columns, one edit of the draft for each choice.

    Counts of a column are made once for a table, those of unique records once for its quasi-identifiers; of many
    records in a thread of their own.
    """

    refusal = param.String(default="", doc="Why the last choice was not taken; empty if it was.")
    counting = param.Boolean(default=False, doc="Whether something is being counted.")
    rows = param.Parameter(default=None, doc="The table of columns, a DataFrame; None until it is counted.")
    bars = param.List(default=[], doc="(column, unique records up to it, their share in words, 0 to 1).")

    def __init__(self, workspace: Any, **params: Any) -> None:
        self._facts: tuple[Any, dict[str, ColumnFacts], dict[str, Advice]] | None = None
        self._unique: tuple[Any, tuple[str, ...], list[int]] | None = None
        self.background = Background(workspace.turns, at_once=True)
        super().__init__(workspace, **params)

    # ------------------------------------------------------------------------------- what there is

    def about(self) -> dict[str, ColumnFacts]:
        """Return what each column is like; nothing while they are counted."""
        frame = self.workspace.data.named
        return {} if self._facts is None or self._facts[0] is not frame else self._facts[1]

    def table(self) -> pd.DataFrame:
        """Return a row for each column of the table, in its order: what it is, and what it is taken for."""
        import pandas as pd

        rows, advice = [], {} if self._facts is None else self._facts[2]
        words = WITHOUT_CSV if self.workspace.data.source.csv is None else WORDS
        for name, (sort, distinct, missing, heights) in self.about().items():
            column = self.declared(name)
            rule, kind = column.missing, column.kind or ""
            if rule is None and kind in MISSING_RULES and missing:
                rule = MISSING_RULES[kind][0]
            role, codes = column.role or NOT_PUBLISHED, ", ".join(column.codes or ())
            cells = {
                "column": name, "values": _picture(sort, distinct, missing, heights), "type": sort, "distinct": distinct,
                "missing": missing, "who": self._who(name), "role": role, "why": reasons_of(advice.get(name), role, words),
                "kind": kind, "no value": rule or "", "codes": codes, "form": _form_text(column),
            }  # fmt: skip
            rows.append(cells)
        return pd.DataFrame(rows, columns=list(COLUMNS))

    def _who(self, column: str) -> str:
        """Return who could know a column, as it was answered; with a question mark as it is guessed, empty where it is not published."""
        role = self.declared(column).role
        guess = next((question for question, roles in ANSWERS.items() if role in roles), "")
        answer = self.workspace.data.answers.get(column)
        if answer in ANSWERS and role in ANSWERS[answer]:
            return answer
        return guess if answer is not None or not guess else f"{guess}?"

    @property
    def known(self) -> tuple[str, ...]:
        """The quasi-identifiers; where only acquaintances could know some, those are last."""
        names = self.quasi_identifiers
        strangers = self.workspace.data.known_to_strangers(names)
        return (*strangers, *(name for name in names if name not in strangers))

    def unique(self) -> list[int]:
        """Return unique records on the first quasi-identifier, the first two, and so on; nothing while they are counted."""
        cache, now = self._unique, (self.workspace.data.named, self.known)
        return [] if cache is None or cache[0] is not now[0] or cache[1] != now[1] else cache[2]

    def sentence(self) -> str:
        """Return how many records are unique on the quasi-identifiers."""
        if self.counting:
            return "Counting the records that are unique…"
        counts = self.unique()
        if not counts:
            return (
                ""
                if self.workspace.data.named is None
                else "No column is a quasi-identifier yet: choose at least one."
            )
        n, strangers = (
            len(self.workspace.data.named),
            self.workspace.data.known_to_strangers(self.quasi_identifiers),
        )
        alone = counts[-1]
        sentence = f"{plural(alone, 'record')} ({share(alone, n)}) {verb_of(alone, 'are')} unique on these quasi-identifiers."
        if strangers:
            few = counts[len(strangers) - 1]
            sentence += f" To strangers, who know {', '.join(strangers)} only, {few:,} ({share(few, n)}) {verb_of(few, 'are')}."
        return sentence

    # ------------------------------------------------------------------------------------ choosing

    def choose(self, column: str, field: str, value: Any) -> bool:
        """Take a choice of a field that was made in the table of columns, as the browser sent it; where it is not taken, `refusal` says why."""
        choices = {"no value": self._choose_rule, "codes": self._choose_codes, "form": self._choose_form}

        def edit() -> None:
            if field in ("who", "role", "kind"):
                self._declare([column], field, value)
            elif field in choices:
                choices[field](column, value)
            else:
                raise ParameterError(
                    "only role, kind, codes, form, who knows it and the rule for missing values are chosen here"
                )

        success = self.attempt(edit)
        if not success:
            self.param.trigger("rows")
        return success

    def choose_many(self, columns: Sequence[str], field: str, value: Any) -> bool:
        """Take a role, a kind or an answer for several columns at once, as one edit; where it is not taken, `refusal` says why, and nothing is changed."""
        if self.workspace.data.named is None or not columns:
            self.refusal = "choose some columns first: tick them in the table"
            return False
        return self.attempt(lambda: self._declare(columns, field, value))

    def _declare(self, columns: Sequence[str], field: str, value: Any) -> None:
        """Take a role, a kind or an answer of some columns; a role and an answer are confirmed by it."""
        self.workspace.data.set_columns({column: self._declared(column, field, value) for column in columns})
        if field != "kind":
            self.workspace.data.confirm(dict.fromkeys(columns, value if field == "who" else ""))

    def _declared(self, column: str, field: str, value: Any) -> dict[str, Any]:
        """Return the declaration of a choice."""
        if field == "who":
            if value not in ANSWERS:
                raise ParameterError(f"who could know it is one of {', '.join(ANSWERS)}")
            role = self.declared(column).role
            return {"role": role if role in ANSWERS[value] else ANSWERS[value][0]}
        if field == "role" and value == NOT_PUBLISHED:
            return {"role": None, "kind": None}
        if field == "role" and value in ROLES:
            return {"role": value}
        if field != "kind":
            raise ParameterError(f"a role is one of {', '.join(ROLES)}")
        return self._declared_kind(column, value)

    def confirm(self) -> None:
        """Confirm the roles of all columns as they are."""
        self.workspace.data.confirm(dict.fromkeys(self.workspace.data.unconfirmed(self.flow), ""))

    def _declared_kind(self, column: str, kind: Any) -> dict[str, Any]:
        if kind not in KINDS:
            raise ParameterError(f"a kind is one of {', '.join(KINDS)}")
        if self.declared(column).role != "quasi-identifier":
            raise ParameterError(
                f"column {column!r}: a kind says how a quasi-identifier is generalized; choose that role first"
            )
        declared: dict[str, Any] = {"role": "quasi-identifier", "kind": kind}
        if kind == "hierarchy":
            tree = self.workspace.data.given_hierarchy(column)
            values = column_values(self.workspace.data.named[column], column)[0]
            declared["hierarchy"] = tree or suggested_hierarchy([value for value in values if value], column)
        if kind == "numeric":  # texts beside its numbers, which would keep it from being one
            cells, form = read_cells(self.workspace.data.named[column])
            guess = kind_of(cells)
            declared |= form | {
                key: guess[key] for key in ("codes", "missing") if guess["kind"] == "numeric" and key in guess
            }
        return declared

    def _choose_rule(self, column: str, rule: Any) -> None:
        kind = self.declared(column).kind
        if kind not in MISSING_RULES:
            raise ParameterError("a rule for missing values is for quasi-identifiers only")
        if rule not in MISSING_RULES[kind]:
            raise ParameterError(f"without a value, kind {kind} can {', '.join(MISSING_RULES[kind])}")
        self.workspace.data.set_column(column, missing=None if rule == MISSING_RULES[kind][0] else rule)

    def _choose_codes(self, column: str, text: Any) -> None:
        """Take the codes that stand in place of numbers, as they were typed: `N, R`; nothing for none."""
        entry = written(self.declared(column))
        if self.declared(column).kind != "numeric":
            raise ParameterError(
                "codes stand in place of numbers: choose the kind numeric first, then type them"
            )
        codes = [code.strip() for code in str(text or "").split(",") if code.strip()]
        if codes:
            Schema({column: entry | {"codes": codes}})  # refuses a code that is a number
        self.workspace.data.set_column(column, codes=codes or None)

    def _choose_form(self, column: str, text: Any) -> None:
        """Take the form of numbers or dates as it was typed, `decimal: ","`; nothing for a plain one."""
        try:
            keys = strict_yaml.loads(f"form: {{{text or ''}}}", error=ParameterError).data["form"]
        except ParameterError:
            keys = None
        if not isinstance(keys, dict) or any(key not in FORM_KEYS for key in keys):
            raise ParameterError(
                "the form of cells has the words decimal, thousands, percent, dates, pivot and write"
            )
        if keys:
            Schema({column: {"role": "quasi-identifier", "kind": "numeric"} | keys})
            if (self.declared(column).role or UNPUBLISHED[0]) in UNPUBLISHED:
                raise ParameterError("a form is for columns that are published: choose another role first")
        self.workspace.data.set_column(column, **(dict.fromkeys(FORM_KEYS) | keys))

    def infer(self) -> None:
        """Go back to the first guess at roles and kinds, as one edit."""
        frame, draft = self.workspace.data.named, self.workspace.draft
        if frame is None:
            return

        name = self.workspace.data.source.dataset
        if name is not None:
            columns = first_columns(name, frame, False)
        elif self._facts is not None and self._facts[2]:
            columns = entries_of(list(self._facts[2].values()))
        else:  # cancelled, or still at work
            self._facts = None
            self._read()
            return
        draft.put(self.flow.with_table(columns=columns_of(columns)))

    def _now(self) -> tuple[Any, ...]:
        return self.workspace.data.named, self.flow.columns, self.known

    def _read(self) -> None:
        frame, names = self.workspace.data.named, self.known
        if frame is None:
            self.background.forget()
            self.param.update(counting=False, rows=None, bars=[])
            return
        facts, unique = self._facts if self.about() else None, self.unique()
        if facts is not None and (unique or not names):
            self.background.forget()
            self._show(facts, names, unique)
            return

        def work() -> tuple[Any, list[int]]:
            result, tell = facts, self.background.tell
            if result is None:
                advice = {entry.column: entry for entry in self.workspace.data.advice(frame, tell)}
                counts = {}
                for at, name in enumerate(frame.columns):
                    tell(f"counting column {name}", at, frame.shape[1])
                    counts[str(name)] = _count(frame[name])
                result = frame, counts, advice
            tell("counting who is unique")
            return result, unique_as_added(frame, names) if names else []

        self.counting = True
        if facts:
            self._show_rows()
        self.background.of_records(
            len(frame),
            work,
            lambda counts: self._show(counts[0], names, counts[1]),
            self._failed,
            "looking at the columns",
            self._stop,
        )

    def _stop(self) -> None:
        """Go on without the counts of the columns."""
        if not self.about():
            frame = self.workspace.data.named
            self._facts = frame, {str(name): ColumnFacts("not counted", 0, 0) for name in frame.columns}, {}
        self._failed("Counting was cancelled. First guess again counts, too.")
        self._show_rows()

    def _show(self, facts: Any, names: tuple[str, ...], unique: list[int]) -> None:
        frame = self.workspace.data.named
        self._facts, self._unique = facts, (frame, names, unique)
        n = len(frame)
        self.counting = False
        self._show_rows()
        self.bars = [
            (name, count, share(count, n), count / n if n else 0.0)
            for name, count in zip(names, unique, strict=True)
        ]

    @param.depends("workspace.data.answers", watch=True)
    def _answered(self) -> None:
        self._show_rows()
        self.renew()

    def _show_rows(self) -> None:
        rows = self.table() if self.about() else None
        if rows is None or self.rows is None or not rows.equals(self.rows):
            self.rows = rows

    def _failed(self, problem: str) -> None:
        self.param.update(counting=False, refusal=problem)


def _form_text(column: ColumnSpec) -> str:
    """Return the form of a column as it is typed; of a draft that was edited by hand, nothing if it is none."""
    form = form_of(written(column))
    return (
        ""
        if form is None or isinstance(form, str)
        else keys_text(form) + ", write: source" * (column.write == "source")
    )


def about_datasets() -> dict[str, str]:
    """Return the page's line about each built-in table, by its name."""
    return {
        row["name"]: f"{row['rows']:,} records, {row['columns']} columns · {row['origin']} · {row['licence']}"
        + ("" if row["available"] else " · needs a download (or its file on disk)")
        for row in datasets.describe().to_dict("records")
    }


def read_type(values: pd.Series) -> tuple[str, np.ndarray | None]:
    """Return the type of a column's values, number, date, truth value, text or empty, and their numbers where they are numbers or dates."""
    import pandas as pd

    if not len(values):
        return "empty", None
    if pd.api.types.is_bool_dtype(values.dtype):
        return "truth value", None
    try:
        numbers, dates = numbers_of(values, "", advice=None)
    except (AnonflowError, ValueError, TypeError, OverflowError):
        return "text", None
    return "number" if dates is None else "date", numbers


def _count(cells: pd.Series) -> ColumnFacts:
    missing = missing_cells(cells)
    values = cells[~missing]
    sort, numbers = read_type(values)
    try:
        distinct = int(values.nunique())
    except TypeError:
        # lists and the like: the reader refuses them, a frame may have them
        return ColumnFacts(sort, 0, int(missing.sum()))
    return ColumnFacts(sort, distinct, int(missing.sum()), _heights(values, numbers))


def _heights(values: pd.Series, numbers: np.ndarray | None) -> tuple[float, ...]:
    """Return how many records have each value, or each of some ranges; of texts, the most frequent first; codes behind numbers."""
    texts = values
    if numbers is None:
        numbers = numbers_in(values.astype(str))
        are_numbers = ~np.isnan(numbers)
        if 2 * are_numbers.sum() < len(numbers):  # the texts, and no number among them
            are_numbers[:] = False
        numbers, texts = numbers[are_numbers], values[~are_numbers]
    else:
        texts = values[:0]
    distinct, times = np.unique(numbers, return_counts=True)
    if len(distinct) > _BARS:
        # dates as numbers; halves: the whole range may be beyond the largest number
        times, _ = np.histogram(numbers.astype(float) / 2, _BARS)
    most = texts.value_counts().iloc[:_BARS]
    return tuple(map(float, (*times, *most)))


def _picture(sort: str, distinct: int, missing: int, heights: Sequence[float]) -> str:
    """Return the picture of a column's values, and the counts below it."""
    words = [sort] if not distinct else [sort, f"{distinct:,} different"]
    if missing:
        words.append(f"{missing:,} blank")
    counts = ", ".join(words)
    return f"{sparkline(heights, counts) if heights else ''}<div class='counts'>{counts}</div>"


def reasons_of(advice: Advice | None, role: str, words: Mapping[str, str] = WORDS) -> str:
    """Return the reasons of the guess at a column, with settings in the `words` of the screens; its role first, where that is another now."""
    if advice is None:
        return ""
    reasons = "; ".join(on_screen(reason, words) for reason in advice.reasons)
    guess = advice.entry["role"]
    return reasons if guess == role else f"guess: {guess}, because {reasons}"
