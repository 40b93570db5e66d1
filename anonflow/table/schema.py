"""The columns of a table: roles, kinds, weights, boundaries."""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Collection, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from os import PathLike, fspath
from pathlib import Path
from typing import Any

import pandas as pd

from anonflow import strict_yaml
from anonflow.errors import DataError, Problem, SchemaError, setting
from anonflow.hierarchy import Hierarchy, number_text
from anonflow.option import Option, is_finite
from anonflow.strict_yaml.names import did_you_mean, is_it, suggest
from anonflow.table.arrow import pandas_frame
from anonflow.table.forms.date_forms import DATES, PIVOT, DateForm
from anonflow.table.forms.number_forms import DECIMALS, THOUSANDS, NumberForm
from anonflow.table.forms.text_forms import Form, keys_text
from anonflow.table.infer import advise, infer_columns, rows_of
from anonflow.table.named_settings import MISSING_VALUE, UNDER_PREPARE, say_missing
from anonflow.table.prepare import Preparation
from anonflow.table.published.notation import RANGES, Notation
from anonflow.table.published.published_cells import day_number, reads_as_number
from anonflow.table.view import schema_view
from anonflow.whole_file import as_path

ROLES = ("quasi-identifier", "sensitive", "insensitive", "identifier", "weight", "unit", "household")

UNPUBLISHED = ("identifier", "unit", "household")
"""Roles of columns that are never published."""

AGGREGATES = ("mean", "median")
"""The aggregates that may replace the range of a class for a numeric quasi-identifier."""

KINDS = ("numeric", "categorical", "hierarchy", "suppression", "positions")

MISSING_RULES = {
    "numeric": ("refuse", "suppress", "drop", "value"),
    "categorical": ("value", "refuse", "drop"),
    "hierarchy": ("value", "refuse", "drop"),
    "suppression": ("value", "refuse", "drop"),
    "positions": ("refuse", "drop"),
}
"""The treatments of records without a value, by kind; the first is the default."""

PLAINLY = "plain"
WRITING = (PLAINLY, "source")
"""How a release may write numbers and dates that are not plain in the source; the first is the default."""


def _one_of(words: Iterable[str]) -> str:
    return f"is one of {', '.join(words)}"


COLUMN_OPTIONS = {
    "role": Option(
        kind=str, choices=ROLES, sentence="What an attacker may know of it, and how it is published."
    ),
    "kind": Option(kind=str, choices=KINDS, sentence="How a quasi-identifier may be generalized."),
    "weight": Option(
        kind=float,
        above=0,
        must="must be a positive number",
        sentence="Its weight in every information loss.",
    ),
    "hierarchy": Option(
        sentence="The tree of its values: a CSV file, or nested values. Of a sensitive column, how far values are from each other."
    ),
    "boundary": Option(
        sentence="The widest generalization allowed: node labels of a hierarchy, or the width of fixed intervals of numbers."
    ),
    "missing": Option(
        kind=str,
        choices=tuple(dict.fromkeys(rule for rules in MISSING_RULES.values() for rule in rules)),
        sentence="What happens to records without a value.",
    ),
    "codes": Option(sentence="Texts among numbers that say why a number is missing."),
    "code-weight": Option(
        kind=float,
        above=0,
        below=1,
        must="must be a number between 0 and 1, both excluded",
        sentence="The share of the column's weight that telling numbers from codes has.",
    ),
    "max-width": Option(kind=float, least=0, sentence="The widest range of numbers that is published."),
    "max-set": Option(kind=float, least=1, sentence="The most values in a set that is published."),
    "at-least": Option(
        kind=int,
        least=1,
        must="is a level of the hierarchy, a whole number of at least 1",
        sentence="The level of a hierarchy below which nothing is published.",
    ),
    "aggregate": Option(
        kind=str,
        choices=AGGREGATES,
        must=_one_of(AGGREGATES),
        sentence="What is published of a class instead of its range of numbers.",
    ),
    "notation": Option(sentence="How another tool wrote the column of a release that is checked."),
    "domain": Option(sentence="What everybody may know about the possible values; it is published."),
    "decimal": Option(
        kind=str,
        choices=DECIMALS,
        must=_one_of(map(repr, DECIMALS)),
        sentence="What stands before the fraction of its numbers: a point, or a comma as in 1,25.",
    ),
    "thousands": Option(
        kind=str,
        choices=THOUSANDS,
        must=_one_of(map(repr, THOUSANDS)),
        sentence="What may stand between thousands in its numbers: a comma, a point, a space (also a no-break one) or an apostrophe.",
    ),
    "percent": Option(
        kind=bool,
        must="is true or false",
        sentence="Whether its numbers are percents, of 100 at most: 12.5% is read as 12.5.",
    ),
    "dates": Option(
        kind=str,
        choices=DATES,
        must=_one_of(DATES),
        sentence="How its dates are written: the order of day, month and year, such as d.m.y, whatever stands between them; or excel for serial numbers.",
    ),
    "pivot": Option(
        kind=int,
        least=0,
        most=9900,
        must=f"is a year, such as {PIVOT}: the first that two digits can mean",
        sentence="The first year that two digits can mean in its dates: `1930` takes 30 for `1930` and 29 for `2029`.",
    ),
    "write": Option(
        kind=str,
        choices=WRITING,
        must=_one_of(WRITING),
        sentence="How the release writes its numbers or dates: plain (1.25, 2014-12-31), or source, in the form that the source has.",
    ),
    "scope": Option(
        kind=str,
        pattern=r"\S",
        must="is a text such as survey-2025",
        sentence="Of an identifier or a unit: where its values name the same person, such as survey-2025; those of other scopes name others.",
    ),
}
"""The keys of a column, and what the value of each may be; the checks below read those of no type, and what depends on other keys.

All but the role and the form of cells go with quasi-identifiers alone, but for the hierarchy of a sensitive column and the scope.
"""

COLUMN_KEYS = {key: option.sentence for key, option in COLUMN_OPTIONS.items()}
"""The keys of a column, each in a sentence."""

_KIND_OF = {
    "code-weight": "numeric",
    "max-width": "numeric",
    "max-set": "categorical",
    "at-least": "hierarchy",
    "aggregate": "numeric",
}
"""The kind with which a key goes, of those that go with one alone."""

_FORM_PARTS = ("decimal", "thousands", "percent", "dates", "pivot")
FORM_KEYS = (*_FORM_PARTS, "write")
"""The keys that say how the cells of a published column are written."""

_OF_ROLES = {
    "sensitive": ("hierarchy", *FORM_KEYS),
    "insensitive": FORM_KEYS,
    "weight": FORM_KEYS,
    "identifier": ("scope",),
    "unit": ("scope",),
}
"""Role other than quasi-identifier -> the keys that go with it."""

CODE_WEIGHT = 0.5
"""The default share of a column's weight that its codes have."""

PUBLIC_HIERARCHY = "hierarchy"
"""What a schema writes under ``domain`` where the hierarchy is public."""


def _roles_of(key: str) -> tuple[str, ...]:
    """Return the roles that a key of a column goes with."""
    others = tuple(role for role, keys in _OF_ROLES.items() if key in keys)
    return others if key == "scope" else ("quasi-identifier", *others)


@dataclass(frozen=True, eq=False)
class Column:
    """One column of a schema.

    Attributes
    ----------
    name : str
    role : {"quasi-identifier", "sensitive", "insensitive", "identifier", "weight", "unit", "household"}
        A unit column names the person of a row, if people have several; a household column, the household of this person.
        Without a unit column each row is a person.
        Neither is ever published. A weight says how many people of the population a record stands for; it is published as insensitive columns
        are, and is never a quasi-identifier.
    kind : {"numeric", "categorical", "hierarchy", "suppression", "positions"} or None
        How a quasi-identifier may be generalized; None for the other roles.
    weight : float
        Weight in every information loss, positive.
    hierarchy : Hierarchy, str, mapping or None
        The tree of kind hierarchy: built, a CSV file, or what :meth:`Hierarchy.from_mapping` takes. Of a sensitive column:
        how far its values are from each other, for t-closeness.
    boundary : tuple of str, float or None
        Maximum allowed generalization: node labels (hierarchy), or the width of fixed intervals (numeric).
    missing : str or None
        What happens to records without a value (see ``MISSING_RULES``).
    limit : float or None
        ``max-width`` (numeric, in the column's unit) or ``max-set`` (categorical, values).
    at_least : int or None
        The level of a hierarchy below which nothing is published: 1 for the parents of its leaves.
    aggregate : {"mean", "median"} or None
        The mean or median that replaces the range of an equivalence class (microaggregation).
    notation : Notation or None
        The notation of the column in another tool's release; undeclared parts are guessed.
    codes : tuple of str
        Texts of a numeric column that are no numbers and stand for a reason why a number is missing, such as ``N``.
    code_weight : float
        Of a numeric column with codes, or with ``missing: value``: the share of the weight that telling numbers from codes
        has, in (0, 1); the range has the rest.
    domain : tuple, "hierarchy" or None
        The public domain of the values, and the only part of it that is published: (lowest, highest) as texts (numeric);
        the values, None for a missing one (categorical, suppression); the characters that may stand in each position
        (positions); ``hierarchy`` where its file is public. None: what ``*`` stands for is not published.
    scope : str or None
        Of an identifier or a unit: where its values name the same person. Serial numbers of two years have two scopes, and a
        number that both have is no person who was released before. Without it values name the same person everywhere.
    form : NumberForm, DateForm or None
        How the cells are written, if not as plain numbers or ISO dates; they are read before any preparation step.
    release_form : NumberForm, DateForm or None
        How files of the release have them; None is plain.
    """

    name: str
    role: str
    kind: str | None = None
    weight: float = 1.0
    hierarchy: Hierarchy | str | Mapping[str, Any] | None = None
    boundary: tuple[str, ...] | float | None = None
    missing: str | None = None
    limit: float | None = None
    at_least: int | None = None
    aggregate: str | None = None
    notation: Notation | None = None
    codes: tuple[str, ...] = ()
    code_weight: float = CODE_WEIGHT
    domain: tuple[str | None, ...] | str | None = None
    scope: str | None = None
    form: Form | None = None
    release_form: Form | None = None

    @property
    def has_codes(self) -> bool:
        """Whether a cell of this numeric column may be a code, or blank, in the place of a number."""
        return self.kind == "numeric" and (bool(self.codes) or self.missing == "value")

    @property
    def empty_is_missing(self) -> bool:
        """Whether an empty text is a missing value: in published columns that are no quasi-identifiers.

        A published file has an empty cell for both there; of quasi-identifiers it has a missing value as the empty cell
        and the empty text as ``""``.
        """
        return self.role in ("sensitive", "insensitive")

    @property
    def details(self) -> str:
        """Return the other declarations in a few words; labels of a boundary are among them."""
        tree, limits = self.hierarchy, self.boundary
        if isinstance(tree, Hierarchy):
            source: str | None = f"{tree.n_leaves:,} leaves, height {int(tree.height[0])}"
        else:
            source = None if tree is None else f"from {tree if isinstance(tree, str) else next(iter(tree))}"
        if isinstance(limits, tuple):
            widest: str | None = "boundary " + ", ".join(limits)
        else:
            widest = None if limits is None else f"boundary: width {number_text(limits)}"
        missing = self.missing if self.kind and self.missing != MISSING_RULES[self.kind][0] else None
        unit = "wide" if self.kind == "numeric" else "values"
        parts = [
            source,
            widest,
            self.limit is not None and f"at most {number_text(self.limit)} {unit}",
            self.at_least is not None and f"at least level {self.at_least}",
            self.aggregate and f"class {self.aggregate}",
            missing and f"missing: {missing}",
            self.codes and "codes " + ", ".join(self.codes),
            self.code_weight != CODE_WEIGHT and f"code-weight {number_text(self.code_weight)}",
            self.weight != 1.0 and f"weight {number_text(self.weight)}",
            self.form is not None
            and keys_text(self.form) + ("" if self.release_form is None else ", write: source"),
        ]
        return "; ".join(part for part in parts if part)

    def to_mapping(self) -> dict[str, Any]:
        """Return the column as it is written in a schema.

        Raises
        ------
        SchemaError
            If the hierarchy was built in memory: write it to a CSV file and name that.
        """
        if isinstance(self.hierarchy, Hierarchy):
            raise SchemaError(
                f"column {self.name!r}: its hierarchy was built in memory; "
                "write it with to_csv and name the file in the schema"
            )
        entry: dict[str, Any] = {
            "role": self.role,
            "kind": self.kind,
            "weight": None if self.weight == 1.0 else self.weight,
            "hierarchy": dict(self.hierarchy) if isinstance(self.hierarchy, Mapping) else self.hierarchy,
            "scope": self.scope,
            **({} if self.form is None else self.form.to_mapping()),
            "write": None if self.form is None or self.release_form is None else "source",
        }
        if self.kind is not None:
            domain: Any = list(self.domain) if isinstance(self.domain, tuple) else self.domain
            if isinstance(self.domain, tuple) and self.kind == "numeric":
                domain = dict(zip(("low", "high"), map(_as_written, self.domain), strict=True))
            boundary = self.boundary
            entry |= {
                "boundary": list(boundary)
                if isinstance(boundary, tuple)
                else boundary and {"width": boundary},
                "missing": None if self.missing == MISSING_RULES[self.kind][0] else self.missing,
                "codes": list(self.codes) or None,
                "code-weight": None if self.code_weight == CODE_WEIGHT else self.code_weight,
                "max-width" if self.kind == "numeric" else "max-set": self.limit,
                "at-least": self.at_least,
                "aggregate": self.aggregate,
                "notation": None if self.notation is None else self.notation.to_mapping(),
                "domain": domain,
            }
        return {key: value for key, value in entry.items() if value is not None}


class Schema(Mapping[str, Column]):
    """The columns of a table with their roles and kinds.

    Parameters
    ----------
    columns : mapping
        Column name -> ``{role, kind, weight, hierarchy, boundary, missing, codes, code-weight, max-width, max-set,
        at-least, aggregate, notation, domain, decimal, thousands, percent, dates, pivot, write}``, as under ``columns`` in a flow; or column name -> :class:`Column`.
    folder : path, optional
        Where hierarchy files named by relative paths are; the working directory without it.
    prepare : list of mapping, or Preparation, optional
        Preparation steps, as under ``prepare`` in a flow; the columns are those after them.

    Attributes
    ----------
    folder : pathlib.Path
    preparation : Preparation
        The steps, after those that read columns in their forms.

    Raises
    ------
    SchemaError
        With every problem: unknown roles, kinds and keys (with the nearest known one), keys that do not go
        with the kind, weights that are not positive, boundaries of another form, no quasi-identifier.

    Notes
    -----
    Columns that a schema does not name are not published.
    """

    def __init__(
        self,
        columns: Mapping[str, Any],
        folder: str | PathLike[str] | None = None,
        prepare: Sequence[Any] | Preparation | None = None,
    ) -> None:
        self.folder = Path(folder) if folder is not None else Path()
        self.preparation = prepare if isinstance(prepare, Preparation) else Preparation(prepare, folder)
        problems: list[Problem] = []
        self._columns: dict[str, Column] = {}
        if not isinstance(columns, Mapping):
            raise SchemaError("a schema is a mapping of column names to their roles")
        for name, entry in columns.items():
            if not isinstance(name, str) or not name:
                problems.append(
                    Problem((), "a column's name is not text, or empty; in a file, put it in quotes")
                )
            elif isinstance(entry, Column):
                self._columns[name] = entry
            else:
                noted = _ColumnProblems(name)
                column = _checked_column(noted, entry)
                problems += noted.problems
                if column is not None:
                    self._columns[name] = column
        if not problems and not any(c.role == "quasi-identifier" for c in self._columns.values()):
            problems.append(
                Problem((), "no column has the role quasi-identifier; name those that an attacker may know")
            )
        for role in ("weight", "unit", "household"):
            having = [name for name, column in self._columns.items() if column.role == role]
            if len(having) > 1:
                problems.append(
                    Problem((having[1], "role"), f"column {having[1]!r}: a second {role}; a table has one")
                )
        if problems:
            raise SchemaError.collected("the schema cannot be used", [text for _, text in problems], problems)
        forms = {name: column.form for name, column in self._columns.items() if column.form is not None}
        if forms or self.preparation.forms:
            codes = {name: self._columns[name].codes for name in forms}
            self.preparation = self.preparation.with_forms(forms, codes)

    @classmethod
    def read(cls, path: str | PathLike[str]) -> Schema:
        """Read a schema from a YAML file with the columns under ``columns:``, and steps before under ``prepare:``.

        Paths inside it are relative to the file.

        Raises
        ------
        SchemaError
            If the file cannot be read, is no strict YAML, or its columns have problems.
        """
        document = strict_yaml.read(as_path(path), error=SchemaError)
        data = document.data
        if (
            not isinstance(data, dict)
            or set(data) - {"columns", "version", "prepare"}
            or "columns" not in data
        ):
            raise SchemaError(
                f"{fspath(path)}: a schema file has the columns under 'columns:', steps under 'prepare:', and nothing else"
            )
        try:
            return cls(data["columns"], folder=Path(path).parent, prepare=data.get("prepare"))
        except SchemaError as error:
            raise error.in_file(fspath(path)) from None

    @classmethod
    def infer(cls, frame: pd.DataFrame) -> Schema:
        """Return a first guess to edit: roles and kinds from the names and values of a frame.

        Parameters
        ----------
        frame : pandas.DataFrame, or what speaks Arrow's PyCapsule interface

        Raises
        ------
        DataError
            If the frame cannot be read or has no rows, or names of columns are not text, missing or repeated.
        SchemaError
            If the frame has no column that could be a quasi-identifier.
        """
        return cls(infer_columns(_guessed_from(frame)))

    @staticmethod
    def advise(frame: pd.DataFrame) -> pd.DataFrame:
        """Return the guesses of :meth:`infer` with their reasons, for the owner, who knows what others can know.

        Parameters
        ----------
        frame : pandas.DataFrame

        Returns
        -------
        pandas.DataFrame
            Columns column, role, kind, distinct, reasons; quasi-identifiers first, the most distinct on top. Reasons have
            counts, and never a value but the usual codes for a missing one.

        Raises
        ------
        DataError
            If the frame cannot be read or has no rows, or names of columns are not text, missing or repeated.
        SchemaError
            If it is no frame.
        """
        return pd.DataFrame(
            rows_of(advise(_guessed_from(frame))), columns=["column", "role", "kind", "distinct", "reasons"]
        )

    @classmethod
    def of(cls, schema: Schema | Mapping[str, Any] | str | PathLike[str]) -> Schema:
        """Return a schema from any of its forms: itself, a mapping of columns, a YAML file.

        Raises
        ------
        SchemaError
            If it has another type, or has problems.
        """
        if isinstance(schema, Schema):
            return schema
        if isinstance(schema, Mapping):
            return cls(schema)
        if isinstance(schema, str | PathLike):
            return cls.read(schema)
        raise SchemaError("a schema is an anonflow.Schema, a mapping of columns, or the path of a YAML file")

    @property
    def columns(self) -> dict[str, Column]:
        """The columns by name, in the schema's order."""
        return dict(self._columns)

    @property
    def quasi_identifiers(self) -> tuple[str, ...]:
        """Names of the QI columns, in the schema's order."""
        return tuple(name for name, column in self._columns.items() if column.role == "quasi-identifier")

    @property
    def weight_column(self) -> str | None:
        """The column that says how many people of the population each record stands for."""
        return next((name for name, column in self._columns.items() if column.role == "weight"), None)

    @property
    def unit_column(self) -> str | None:
        """The unit column, if people may have several rows."""
        return next((name for name, column in self._columns.items() if column.role == "unit"), None)

    @property
    def household_column(self) -> str | None:
        """The household column of a row's person."""
        return next((name for name, column in self._columns.items() if column.role == "household"), None)

    @property
    def needed(self) -> frozenset[str]:
        """The columns that a table must have: those with a role, and those that the preparation steps read."""
        return frozenset(self._columns).union(step.column for step in self.preparation.steps)

    def prepared(self) -> Schema:
        """Return the same columns without preparation steps, as they are after them: with plain numbers and ISO dates."""
        if not self.preparation:
            return self
        plain = {name: replace(column, form=None) for name, column in self._columns.items()}
        return Schema(plain, self.folder)

    def with_separators(self, decimal: str | None, thousands: str | None) -> Schema:
        """Return the same schema with the separators of a source in the columns of numbers that do not declare theirs.

        These are the columns of kind numeric without dates, and the weights.

        Parameters
        ----------
        decimal, thousands : str or None
            As :class:`NumberForm` has them; None is undeclared.
        """
        if decimal is None and thousands is None:
            return self
        columns = {}
        for name, column in self._columns.items():
            form = column.form or NumberForm()
            numbers = column.kind == "numeric" or column.role == "weight"
            if numbers and isinstance(form, NumberForm) and form.decimal is None and form.thousands is None:
                column = replace(column, form=replace(form, decimal=decimal, thousands=thousands))
            columns[name] = column
        return Schema(columns, self.folder, self.preparation)

    def without(self, names: Collection[str]) -> Schema:
        """Return the same schema without some of its columns.

        Parameters
        ----------
        names : collection of str
        """
        columns = {name: column for name, column in self._columns.items() if name not in names}
        return Schema(columns, self.folder, self.preparation)

    def to_mapping(self) -> dict[str, dict[str, Any]]:
        """Return the schema as it is written under ``columns:``; reads back to the same.

        Raises
        ------
        SchemaError
            If a hierarchy was built in memory.
        """
        return {name: column.to_mapping() for name, column in self._columns.items()}

    def __getitem__(self, name: str) -> Column:
        return self._columns[name]

    def __iter__(self) -> Iterator[str]:
        return iter(self._columns)

    def __len__(self) -> int:
        return len(self._columns)

    def __repr__(self) -> str:
        lines = [
            f"  {name}: {column.role}" + (f", {column.kind}" if column.kind else "")
            for name, column in self._columns.items()
        ]
        return "\n".join(["Schema", *lines])

    def _repr_html_(self) -> str:
        return schema_view([(name, c.role, c.kind or "", c.details) for name, c in self._columns.items()])


class _UnfitKey(Exception):
    """A key of a column has a value that it cannot have: the words about it, and the key."""


class _ColumnProblems:
    """The problems of a column."""

    def __init__(self, name: str) -> None:
        self.name = name
        self.problems: list[Problem] = []

    def add(self, text: str, key: str | None = None) -> None:
        """Note a problem of the column, or of one of its keys."""
        path = (self.name,) if key is None else (self.name, key)
        self.problems.append(Problem(path, f"column {self.name!r}: " + text))

    def read(self, reader: Callable[..., Any], *arguments: Any, otherwise: Any = None) -> Any:
        """Return what a reader makes of the column's keys; note what it refuses, and return something else then."""
        try:
            return reader(*arguments)
        except _UnfitKey as refused:
            self.add(*refused.args)
            return otherwise


def _checked_column(noted: _ColumnProblems, entry: Any) -> Column | None:
    """Check one entry."""
    name = noted.name
    if not isinstance(entry, Mapping):
        noted.add("needs a mapping such as {role: quasi-identifier, kind: numeric}")
        return None
    role = noted.read(_word, entry, "role")
    if role is None:
        return None
    if role != "quasi-identifier":
        role_keys = ("role", *_OF_ROLES.get(role, ()))
        extra = [str(key) for key in entry if key not in role_keys]
        for roles in dict.fromkeys(map(_roles_of, extra)):
            keys = ", ".join(repr(key) for key in extra if _roles_of(key) == roles)
            noted.add(f"{keys} only for the role{'s' * (len(roles) > 1)} {', '.join(roles)}")
        form = noted.read(_form, entry)
        release_form = noted.read(_release_form, entry, form)
        scope = noted.read(_option_value, entry, "scope")
        if entry.get("hierarchy") is None or noted.problems:
            return Column(name, role, scope=scope, form=form, release_form=release_form)
        tree = noted.read(_given_hierarchy, entry)
        return Column(name, role, hierarchy=tree, form=form, release_form=release_form)
    if "scope" in entry:
        noted.add("scope is for the roles identifier and unit", "scope")
    for key in entry:
        if key not in COLUMN_KEYS:
            noted.add(f"unknown key {short_form(key)}{did_you_mean(key, tuple(COLUMN_KEYS))}", str(key))
    kind = noted.read(_word, entry, "kind")
    if kind is None:
        return None
    form = noted.read(_form, entry)
    limits = [noted.read(_of_kind, kind, entry, key) for key in ("max-width", "max-set")]
    column = Column(
        name,
        role,
        kind,
        weight=float(noted.read(_of_kind, kind, entry, "weight") or 1.0),
        hierarchy=noted.read(_hierarchy, kind, entry),
        boundary=noted.read(_boundary, kind, entry),
        missing=noted.read(_missing, kind, entry),
        limit=next((float(limit) for limit in limits if limit is not None), None),
        at_least=noted.read(_of_kind, kind, entry, "at-least"),
        aggregate=noted.read(_of_kind, kind, entry, "aggregate"),
        notation=noted.read(_notation, entry),
        codes=noted.read(_checked_codes, kind, entry, otherwise=()),
        code_weight=noted.read(_code_weight, kind, entry, otherwise=CODE_WEIGHT),
        domain=noted.read(_domain, kind, entry),
        form=form,
        release_form=noted.read(_release_form, entry, form),
    )
    if column.has_codes and (column.boundary is not None or column.limit is not None):
        noted.add(
            "a boundary or max-width does not go with codes or " + MISSING_VALUE + "; leave one of them out",
            "boundary" if column.boundary is not None else "max-width",
        )
    if column.has_codes and column.domain is not None:
        noted.add("a domain does not go with codes or " + MISSING_VALUE + "; leave one of them out", "domain")
    if column.aggregate is not None and (
        column.has_codes or column.boundary is not None or column.limit is not None
    ):
        noted.add(
            "aggregate does not go with codes, "
            + MISSING_VALUE
            + ", a boundary or max-width: a class mean shows neither codes "
            "nor how wide its class is; leave one of them out",
            "aggregate",
        )
    if column.codes and column.missing == "suppress":
        noted.add(
            setting("missing", "missing: suppress", "suppress")
            + " does not go with codes; "
            + say_missing("value, drop or refuse"),
            "missing",
        )
    return None if noted.problems else column


def form_of(keys: Any) -> Form | str | None:
    """Return the form that the keys of a column declare, or what is wrong with them; None if they declare nothing."""
    noted = _ColumnProblems("")
    form: Form | None = noted.read(_form, keys) if isinstance(keys, Mapping) else None
    return noted.problems[0].text if noted.problems else form


def _release_form(entry: Mapping[str, Any], form: Form | None) -> Form | None:
    """Return the form in which the release writes a column; None is plain."""
    if _option_value({"write": PLAINLY, **entry}, "write") == PLAINLY:
        return None
    elif form is None:
        raise _UnfitKey(
            "write: source goes with decimal, thousands, percent or dates, which say how the source writes it",
            "write",
        )
    elif isinstance(form, DateForm) and form.is_serial:
        raise _UnfitKey("serial numbers are published as dates; leave out write", "write")
    elif entry.get("kind") not in (None, "numeric"):
        raise _UnfitKey(f"write: source goes with kind numeric, not {entry.get('kind')}", "write")
    return form


def _form(entry: Mapping[str, Any]) -> Form | None:
    """Return how the cells of a column are written; None if nothing is said."""
    declared = {key: _option_value(entry, key) for key in _FORM_PARTS if entry.get(key) is not None}
    pivot, dates = declared.pop("pivot", None), declared.pop("dates", None)
    if dates is not None and declared:
        raise _UnfitKey("dates do not go with decimal, thousands or percent; leave one of them out", "dates")
    elif pivot is not None and dates is None:
        raise _UnfitKey("pivot goes with dates", "pivot")
    elif dates is not None:
        return DateForm(dates, pivot)
    elif declared:
        form = NumberForm(**declared)
        if form.problem is None:
            return form
        raise _UnfitKey(form.problem, "thousands")
    return None


def _hierarchy(kind: str, entry: Mapping[str, Any]) -> Hierarchy | str | Mapping[str, Any] | None:
    declared = entry.get("hierarchy")
    if kind != "hierarchy":
        if declared is not None:
            raise _UnfitKey(f"a hierarchy goes with kind hierarchy, not {kind}", "hierarchy")
        return None
    return _given_hierarchy(entry)


def _given_hierarchy(entry: Mapping[str, Any]) -> Hierarchy | str | Mapping[str, Any] | None:
    declared = entry.get("hierarchy")
    if isinstance(declared, PathLike):
        return fspath(declared)
    if isinstance(declared, Hierarchy | str) or (isinstance(declared, Mapping) and declared):
        return declared
    needs = "kind hierarchy needs 'hierarchy'" if "kind" in entry else "hierarchy must be"
    raise _UnfitKey(
        f"{needs}: a CSV file, or nested, intervals, positions, prefixes or calendar", "hierarchy"
    )


def _boundary(kind: str, entry: Mapping[str, Any]) -> tuple[str, ...] | float | None:
    boundary = entry.get("boundary")
    if boundary is None:
        return None
    if (
        kind == "hierarchy"
        and isinstance(boundary, list | tuple)
        and boundary
        and all(isinstance(g, str) for g in boundary)
    ):
        return tuple(boundary)
    if kind == "numeric" and isinstance(boundary, Mapping) and set(boundary) == {"width"}:
        width = boundary["width"]
        if is_finite(width) and width > 0:
            return float(width)
    raise _UnfitKey(
        "a boundary is a list of node labels for kind hierarchy, or {width: w} with w > 0 for kind numeric",
        "boundary",
    )


def _missing(kind: str, entry: Mapping[str, Any]) -> str:
    rules = MISSING_RULES[kind]
    rule = entry.get("missing", rules[0])
    if rule not in rules:
        raise _UnfitKey(f"'missing' of kind {kind} is one of {', '.join(rules)}", "missing")
    return str(rule)


def _checked_codes(kind: str, entry: Mapping[str, Any]) -> tuple[str, ...]:
    codes = entry.get("codes")
    if codes is None:
        return ()
    if kind != "numeric":
        raise _UnfitKey(f"codes go with kind numeric, not {kind}", "codes")
    if not isinstance(codes, list | tuple) or not codes:
        raise _UnfitKey("codes are a list of texts that are no numbers, such as [N]", "codes")
    for code in codes:
        if is_finite(code) or (isinstance(code, str) and reads_as_number(code)):
            raise _UnfitKey(
                "a code is a number, which a range would cover; recode it to a text first, with a step "
                + UNDER_PREPARE,
                "codes",
            )
        if not isinstance(code, str) or not code.strip() or code != code.strip():
            raise _UnfitKey(
                "a code is a text without outer spaces, and not empty; for blank cells "
                + say_missing("value"),
                "codes",
            )
    if len(set(codes)) < len(codes):
        raise _UnfitKey("a code is listed twice", "codes")
    return tuple(codes)


def _code_weight(kind: str, entry: Mapping[str, Any]) -> float:
    if entry.get("code-weight") and not entry.get("codes") and entry.get("missing") != "value":
        raise _UnfitKey(
            "code-weight goes with codes, or with " + MISSING_VALUE + " of kind numeric", "code-weight"
        )
    return float(_of_kind(kind, entry, "code-weight") or CODE_WEIGHT)


def _option_value(entry: Mapping[str, Any], key: str) -> Any:
    """Return the value of a key of :data:`COLUMN_OPTIONS`; None if it is not there."""
    value, option = entry.get(key), COLUMN_OPTIONS[key]
    problem = None if value is None else option.problem(value)
    if problem is not None:
        near = suggest(str(value), option.choices)
        raise _UnfitKey(f"{key} {problem}" + (f" (did you mean {near!r}?)" if near else ""), key)
    return value


def _of_kind(kind: str, entry: Mapping[str, Any], key: str) -> Any:
    """Return the value of a key that may go with a kind alone; None if it is not there."""
    home = _KIND_OF.get(key, kind)
    if entry.get(key) is not None and kind != home:
        raise _UnfitKey(f"{key} goes with kind {home}, not {kind}", key)
    return _option_value(entry, key)


def _word(entry: Mapping[str, Any], key: str) -> str:
    """Return the role or the kind of a column."""
    word, choices = entry.get(key), COLUMN_OPTIONS[key].choices
    if word in choices:
        return str(word)
    raise _UnfitKey(
        f"no {key}{is_it(key, [str(other) for other in entry if other not in COLUMN_OPTIONS])}; say one of {', '.join(choices)}"
        if word is None
        else f"unknown {key} {short_form(word)}{did_you_mean(word, choices)}",
        key,
    )


def _notation(entry: Mapping[str, Any]) -> Notation | None:
    declared = entry.get("notation")
    notation = None if declared is None else Notation.of(declared)
    if declared is not None and notation is None:
        raise _UnfitKey(
            f"a notation is one of {', '.join(RANGES)}, or {{ranges: ..., hidden: [texts]}}", "notation"
        )
    return notation


def _domain(kind: str, entry: Mapping[str, Any]) -> tuple[str | None, ...] | str | None:
    domain = entry.get("domain")
    if domain is None:
        return None
    if kind == "numeric":
        return _bounds(domain)
    if kind == "hierarchy":
        source = entry.get("hierarchy")
        if isinstance(source, Mapping) and not {"csv", "nested"} & set(source):
            raise _UnfitKey(
                "its hierarchy is made from the values of the table; write one to a file to make it public",
                "domain",
            )
        elif domain != PUBLIC_HIERARCHY:
            raise _UnfitKey(
                "the domain of kind hierarchy is the word hierarchy, where its file is public", "domain"
            )
        return PUBLIC_HIERARCHY
    values = tuple(domain) if isinstance(domain, list | tuple) else ()
    characters = kind == "positions"
    texts = [value for value in values if isinstance(value, str)]
    good = len(texts) == len(values) or (not characters and [*values].count(None) + len(texts) == len(values))
    if not values or not good or len(set(values)) < len(values):
        raise _UnfitKey(
            "a domain is a list of the values, each once, as texts; null is a missing one", "domain"
        )
    if characters and any(len(text) != 1 for text in texts):
        raise _UnfitKey(
            "the domain of kind positions is a list of characters that may stand in each", "domain"
        )
    return tuple(sorted(values, key=lambda value: (value is not None, value or "")))


def _bounds(domain: Any) -> tuple[str, str] | None:
    """Return the lowest and the highest value of a declared domain, as texts."""
    ends: list[Any] = [domain.get(key) for key in ("low", "high")] if isinstance(domain, Mapping) else []
    if len(ends) == 2 and set(domain) == {"low", "high"}:
        if all(is_finite(end) for end in ends) and ends[0] <= ends[1]:
            return number_text(ends[0]), number_text(ends[1])
        if all(isinstance(end, str) for end in ends):
            first, last = (day_number(end) for end in ends)
            if first is not None and last is not None and first <= last:
                return ends[0], ends[1]
    raise _UnfitKey(
        "the domain of kind numeric is {low: LOWEST, high: HIGHEST}, two numbers or two ISO dates", "domain"
    )


def _as_written(end: str | None) -> Any:
    """Return an end of a declared domain in a schema's form: a number, or the text of a date."""
    try:
        number = float(str(end))
    except ValueError:
        return end
    return int(str(end)) if str(end).lstrip("-").isdigit() else number


def short_form(value: object) -> str:
    """Return a key or word of a schema or description for a message, never more than 40 characters."""
    text = repr(value)
    return text if len(text) <= 40 else text[:37] + "..."


def _guessed_from(frame: Any) -> pd.DataFrame:
    """Return the pandas frame from which a schema is guessed."""
    frame = pandas_frame(frame)
    if not isinstance(frame, pd.DataFrame):
        raise SchemaError("a schema is guessed from a pandas DataFrame; read files with Table.read")
    check_names(list(frame.columns))
    return frame


def check_names(names: Sequence[Any]) -> None:
    """Refuse names of columns that a schema cannot have.

    Raises
    ------
    DataError
        If names are missing, not text, or occur twice.
    """
    if any(name is None or name == "" or name != name for name in names):
        raise DataError("some columns have no name; name them")
    if any(isinstance(name, tuple) for name in names):
        raise DataError(
            "the columns have names of several levels (a MultiIndex); join the levels: "
            "frame.columns = ['_'.join(map(str, name)) for name in frame.columns]"
        )
    if any(not isinstance(name, str) for name in names):
        raise DataError("some column names are not text; rename them")
    times = Counter(names)
    if len(times) < len(names):
        repeated = min(name for name, count in times.items() if count > 1)
        raise DataError(f"column {repeated!r} appears {times[repeated]} times; rename them")
