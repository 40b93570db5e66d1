"""The description of a published table, computed from its own cells and the schema's declarations.

This module never reads the original. A description is a function of the published cells and of the declarations
(schema, k, guarantee), so that two originals with the same files and declarations have the same one.
"""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace

import numpy as np
import pandas as pd

from anonflow import __version__
from anonflow.errors import DataError
from anonflow.hierarchy import Hierarchy
from anonflow.table.forms.text_forms import Form
from anonflow.table.published.published_cells import (
    NUMBER,
    WHOLE,
    Range,
    range_pattern,
    read_number,
    rows_of_stars,
    stars,
)
from anonflow.table.schema import PUBLIC_HIERARCHY, UNPUBLISHED, Column, Schema

EXACT = "exact"
"""The notation of a column that is published as it was."""

NOTATIONS = {
    "numeric": "range",
    "categorical": "set",
    "hierarchy": "node",
    "suppression": "suppression",
    "positions": "positions",
}
"""Kind of a quasi-identifier -> how its cells are written."""

AGGREGATED = ("class-mean", "class-median")
"""The notations of a numeric column that is published as the mean or median of its classes."""

CODED = "range-or-code"
"""The notation of a numeric column with codes, or blanks, beside its numbers."""

TYPES = ("boolean", "integer", "number", "date", "time", "utc", "text")
"""What a value may be; ``utc`` is a time in UTC."""

_LONGEST = 40
"""The most characters of a number that is published as it was."""


@dataclass(frozen=True)
class SeenCells:
    """The types that are visible in the cells of a published table.

    Attributes
    ----------
    rows : int
    types : mapping
        Column -> one of `TYPES`, or None where no cell says it (all are ``*``); without the hidden rows, whose generalized
        columns all are ``*``.
    hidden_types : mapping
        The same for the hidden rows, in the columns that are published as they were.
    hidden_rows : int
    withheld : bool
        Whether all that is ``*``, too: the values of the hidden rows are not published.
    stars : frozenset of str
        Columns published as they were that have a ``*`` in another row: there it is a value.
    """

    rows: int
    types: Mapping[str, str | None]
    hidden_types: Mapping[str, str | None]
    hidden_rows: int = 0
    withheld: bool = False
    stars: frozenset[str] = frozenset()

    @classmethod
    def of(cls, frame: pd.DataFrame, about: ReleaseMetadata) -> SeenCells:
        """Read the types of a published frame.

        Parameters
        ----------
        frame : pandas.DataFrame
            As it is published, not as a CSV file of it is read.
        about : ReleaseMetadata
            The declarations of its columns.
        """
        names = [str(name) for name in frame.columns]
        generalized = [column.name for column in about.columns if column.is_generalized]
        as_was = [name for name in names if name not in generalized]
        hidden = rows_of_stars(frame, generalized)
        types: dict[str, str | None] = {}
        for name in names:
            if name in about.ranges:
                texts = [text for text in pd.unique(frame[name]) if isinstance(text, str)]
                types[name] = _widest({ends.type for ends in map(Range.read, texts) if ends is not None})
            else:
                types[name] = _exact_type(frame.loc[~hidden, name])
        hidden_types = {name: _exact_type(frame.loc[hidden, name]) for name in as_was} if hidden.any() else {}
        withheld = bool(hidden.any() and rows_of_stars(frame[hidden], as_was).all())
        values = frozenset(name for name in as_was if (stars(frame[name]) & ~hidden).any())
        return cls(len(frame), types, hidden_types, int(hidden.sum()), withheld, values)

    @property
    def all_types(self) -> Mapping[str, str | None]:
        """The types with those of the hidden rows, where their values are published."""
        return self.types if self.withheld else _wider(self.types, self.hidden_types)


def _wider(first: Mapping[str, str | None], second: Mapping[str, str | None]) -> dict[str, str | None]:
    """Return one type for the cells of both, column by column."""
    return {
        name: _widest({kind for kind in (first.get(name), second.get(name)) if kind is not None})
        for name in dict.fromkeys([*first, *second])
    }


def _widest(seen: set[str]) -> str | None:
    """Return one type for all cells; whole numbers and others are numbers, dates and times are times."""
    if "boolean" in seen and len(seen) > 1:
        return "text"
    return max(seen, key=TYPES.index) if seen else None


def _exact_type(cells: pd.Series) -> str | None:
    """Return the type of values that are published as they were, from their texts: a CSV file has nothing else."""
    if pd.api.types.is_bool_dtype(cells.dtype):
        return "boolean" if len(cells) else None
    if pd.api.types.is_numeric_dtype(cells.dtype):
        values = cells.dropna().to_numpy()
        if not len(values) or values.dtype.kind != "f":
            return "integer" if len(values) else None
        if not np.isfinite(values).all():
            return "text"
        return "integer" if ((values == np.floor(values)) & (np.abs(values) < 1e16)).all() else "number"
    seen: set[str] = set()
    for text in pd.unique(cells.dropna()):
        seen.add(_text_type(str(text)))
        if "text" in seen:
            break
    return _widest(seen)


def _text_type(text: str) -> str:
    """Return the type of a text, if it has the published form of numbers or bools."""
    if text in ("True", "False"):
        return "boolean"
    if len(text) > _LONGEST or read_number(text, canonical=True) is None:
        return "text"
    return Range(text, text, dates=False).type


@dataclass(frozen=True)
class ColumnMetadata:
    """The description of one published column.

    Attributes
    ----------
    name : str
    role : str
        As in a schema.
    notation : str
        ``range``, ``set``, ``node`` (of a hierarchy), ``suppression``, ``positions`` or ``exact``; of numbers also those of
        `CODED` and `AGGREGATED`.
    type : str or None
        One of `TYPES`; None where no cell says it.
    missing : bool
        Whether the schema lets values be missing that no declared domain has: ``*`` stands for them, too.
    bounds : (str, str) or None
        Of a range: the declared domain.
    values : tuple of (str or None), or None
        Of a set, a suppression or positions: the declared values (None is a missing one); of positions, the characters
        that may stand in each.
    tree : Hierarchy or None
        Of a node: the declared hierarchy.
    withheld : bool
        Of a column that is published as it was: whether ``*`` is no value, but one that is not published. Only the hidden
        rows have it, whose generalized columns all are ``*``.
    form : NumberForm, DateForm or None
        The form in which files have its numbers or dates; None is plain.
    """

    name: str
    role: str
    notation: str
    type: str | None = None
    missing: bool = False
    bounds: tuple[str, str] | None = None
    values: tuple[str | None, ...] | None = None
    tree: Hierarchy | None = None
    withheld: bool = False
    form: Form | None = None

    @classmethod
    def declared(cls, column: Column, tree: Hierarchy | None = None) -> ColumnMetadata:
        """Return the schema's declarations of a column, without the type.

        Parameters
        ----------
        column : Column
        tree : Hierarchy, optional
            Its hierarchy, where that is public.
        """
        if column.kind is None:
            return cls(column.name, column.role, EXACT, form=column.release_form)
        notation, domain = CODED if column.has_codes else NOTATIONS[column.kind], column.domain
        missing = column.missing == {"numeric": "suppress", "hierarchy": "value"}.get(column.kind, "")
        common = cls(column.name, column.role, notation, missing=missing, tree=tree, form=column.release_form)
        if column.aggregate is not None:
            common = replace(common, notation=f"class-{column.aggregate}")
        if notation == "range":
            return replace(common, bounds=domain if isinstance(domain, tuple) else None)  # type: ignore[arg-type]
        common = replace(common, type="text")
        return replace(common, values=domain) if isinstance(domain, tuple) else common

    @property
    def is_generalized(self) -> bool:
        """Whether cells may be less than a value."""
        return self.notation != EXACT

    @property
    def has_domain(self) -> bool:
        """Whether the domain of ``*`` is published."""
        return self.bounds is not None or self.values is not None or self.tree is not None

    @property
    def pattern(self) -> str | None:
        """A regular expression (ECMAScript) of its cells, where they have one."""
        if self.form is not None:
            return None
        if self.notation in AGGREGATED:
            return f"{re.escape(WHOLE)}|{NUMBER}"
        if self.notation != "range":
            return None
        if self.type is None:
            return re.escape(WHOLE)
        dates = self.type not in ("integer", "number")
        number = r"-?[0-9]+" if self.type == "integer" else NUMBER
        return f"{re.escape(WHOLE)}|{range_pattern(dates, number)}"

    @property
    def sentences(self) -> str:
        """Return the meaning of its cells, in words."""
        form = (
            []
            if self.form is None
            else [f"{self.form.kind.capitalize()} are written with {self.form.words}."]
        )
        return " ".join([*_MEANINGS[self.notation](self), *form, _star(self)])


def _of_range(column: ColumnMetadata) -> list[str]:
    if column.type in ("date", "time", "utc"):
        zone = " Times are in UTC." if column.type == "utc" else ""
        return [
            "A cell is a date or time, or two with a slash between them: one from the first to the second, both "
            f"included.{zone}"
        ]
    return [
        "A cell is a number, or two with a hyphen between them (-500--20 is from -500 to -20): some number from the "
        "first to the second, both included."
    ]


def _of_class(column: ColumnMetadata) -> list[str]:
    aggregate = column.notation.removeprefix("class-")
    return [
        f"A cell is the {aggregate} of the numbers of all rows that have equal generalized columns, not a person's number: people's "
        "numbers differ from it, and the variance of the cells is smaller than that of the numbers."
    ]


_QUOTED = (
    "A value is written as a JSON string where it is empty, is *, begins with a quotation mark, contains {, | or }, or "
    "begins or ends with a space. An empty cell or member is a missing value."
)
_MEANINGS = {
    "range": _of_range,
    **dict.fromkeys(AGGREGATED, _of_class),
    "set": lambda column: ["A cell is a value, or {a|b|c}: one of these values.", _QUOTED],
    "node": lambda column: [
        "A cell is the label of a node of a hierarchy: a value, or a group of values and then some value of the group.",
        "An empty cell is a missing value.",
    ],
    "suppression": lambda column: ["A cell is a value.", _QUOTED],
    "positions": lambda column: ["A cell is a code; a * in it is a character that is hidden."],
    CODED: lambda column: [
        "A cell is a number (or a date), or two with a hyphen (dates: a slash) between them: some number from the first to the "
        "second, both included; or a code; or {a|b}: one of these codes. 53-59|N is some number from 53 to 59, or the code N.",
        _QUOTED,
    ],
    "exact": lambda column: ["A cell is the value as it was; an empty cell is a missing value."],
}


def _star(column: ColumnMetadata) -> str:
    if column.withheld:
        return "* is a value that is not published: that of a row whose generalized columns all are *."
    if column.notation == EXACT:
        return "In a row whose generalized columns all are *, a * is a value that is not published."
    alone = "A cell that is * alone" if column.notation == "positions" else "*"
    sentence = (
        f"{alone} is any value of the domain that is given here"
        if column.has_domain
        else f"{alone} is any value; which values there are is not published"
    )
    return sentence + (", or a missing value." if column.missing else ".")


@dataclass(frozen=True)
class ReleaseMetadata:
    """The description of a published table.

    Attributes
    ----------
    columns : tuple of ColumnMetadata
        In the table's order.
    guarantee : str or None
        The criterion that the method promises.
    k : int or None
    version : str
        Of anonflow.
    rows : int or None
    """

    columns: tuple[ColumnMetadata, ...]
    guarantee: str | None = None
    k: int | None = None
    version: str = ""
    rows: int | None = None

    @classmethod
    def declared(
        cls, schema: Schema, names: Sequence[str], guarantee: str | None = None, k: int | None = None
    ) -> ReleaseMetadata:
        """Return the part of the description that does not depend on cells.

        Parameters
        ----------
        schema : Schema
        names : sequence of str
            The published columns, in their order.
        guarantee : str, optional
        k : int, optional

        Raises
        ------
        HierarchyError
            If a hierarchy that is declared public cannot be read.
        """
        columns = [ColumnMetadata.declared(schema[name], public_tree(schema[name], schema)) for name in names]
        return cls(tuple(columns), guarantee, k, __version__)

    @classmethod
    def of_schema(cls, schema: Schema, frame: pd.DataFrame) -> ReleaseMetadata:
        """Return the metadata of a release whose file is alone, from the schema that it was made with.

        Parameters
        ----------
        schema : Schema
        frame : pandas.DataFrame
            The release as it was read.

        Raises
        ------
        HierarchyError
            If a hierarchy cannot be read.
        """
        names = [str(name) for name in frame.columns if schema[str(name)].role not in UNPUBLISHED]
        bare = cls.declared(schema, names)
        columns = [
            column
            if column.tree is not None
            else replace(column, tree=hierarchy_of(schema[column.name], schema))
            for column in bare.columns
        ]
        described = replace(bare, columns=tuple(columns))
        return described.seeing(SeenCells.of(frame, described))

    def seeing(self, seen: SeenCells) -> ReleaseMetadata:
        """Return the same with the types that the published cells show."""
        types = seen.all_types
        columns = [
            replace(
                column,
                type=types[column.name] if column.type is None else column.type,
                withheld=seen.withheld and not column.is_generalized and column.name not in seen.stars,
            )
            for column in self.columns
        ]
        return replace(self, columns=tuple(columns), rows=seen.rows)

    def with_numbers(self, frame: pd.DataFrame) -> ReleaseMetadata:
        """Return the same with the types of a frame's columns of numbers that are published as they were."""
        columns = [
            replace(column, type=_exact_type(frame[column.name]))
            if column.notation == EXACT and pd.api.types.is_numeric_dtype(frame[column.name].dtype)
            else column
            for column in self.columns
        ]
        return replace(self, columns=tuple(columns))

    def agreeing(self, declared: ReleaseMetadata, name: str) -> ReleaseMetadata:
        """Return the same with the domains that a schema adds.

        Parameters
        ----------
        declared : ReleaseMetadata
            The schema's declarations.
        name : str
            Of the release, for messages.

        Raises
        ------
        DataError
            If the two contradict each other.
        """
        columns, problems = [], []
        for column in self.columns:
            other = declared[column.name]
            same = (column.notation, column.role) == (other.notation, other.role)
            domains = [(c.bounds, c.values, c.tree) for c in (column, other) if c.has_domain]
            if not same or (len(domains) == 2 and domains[0] != domains[1]):
                problems.append(
                    f"column {column.name!r}: the description and the schema of {name} contradict each other"
                )
            columns.append(
                column
                if column.has_domain
                else replace(other, type=column.type, withheld=column.withheld, form=column.form)
            )
        if problems:
            raise DataError.collected(f"{name}: its description does not match the schema", problems)
        return replace(self, columns=tuple(columns))

    @property
    def ranges(self) -> tuple[str, ...]:
        """Names of the columns whose cells are ranges, or numbers of classes."""
        return tuple(column.name for column in self.columns if column.notation in ("range", *AGGREGATED))

    def __getitem__(self, name: str) -> ColumnMetadata:
        for column in self.columns:
            if column.name == name:
                return column
        raise DataError(f"column {name!r}: is not in the release")


def public_tree(column: Column, schema: Schema) -> Hierarchy | None:
    """Return the hierarchy of a column, where the schema declares it public."""
    return hierarchy_of(column, schema) if column.domain == PUBLIC_HIERARCHY else None


def hierarchy_of(column: Column, schema: Schema) -> Hierarchy | None:
    """Return the schema's hierarchy of a column; None if it is built from a table's values, which are not available here.

    Raises
    ------
    HierarchyError
        If it cannot be read.
    """
    entry = column.hierarchy
    if entry is None or isinstance(entry, Hierarchy):
        return entry
    if isinstance(entry, Mapping) and not {"csv", "nested"} & set(entry):
        return None
    return Hierarchy.from_mapping(entry, folder=schema.folder)
