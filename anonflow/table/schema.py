"""What the columns of a table are: roles, kinds, weights, boundaries."""

from __future__ import annotations

import math
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from os import PathLike, fspath
from pathlib import Path
from typing import TYPE_CHECKING, Any, TypeGuard

from anonflow.errors import SchemaError
from anonflow.hierarchy import Hierarchy
from anonflow.strict_yaml import suggest

if TYPE_CHECKING:
    import pandas as pd

__all__ = ["KINDS", "MISSING_RULES", "ROLES", "Column", "Schema"]

ROLES = ("quasi-identifier", "sensitive", "insensitive", "identifier")
KINDS = ("numeric", "categorical", "hierarchy", "suppression", "positions")

MISSING_RULES = {
    "numeric": ("refuse", "suppress", "drop"),
    "categorical": ("value", "refuse", "drop"),
    "hierarchy": ("value", "refuse", "drop"),
    "suppression": ("value", "refuse", "drop"),
    "positions": ("refuse", "drop"),
}
"""What may be done with records without a value, by kind; the first is done where nothing is said."""

_QI_KEYS = ("kind", "weight", "hierarchy", "boundary", "missing", "max-width", "max-set")


@dataclass(frozen=True, eq=False)
class Column:
    """One column of a schema.

    Attributes
    ----------
    name : str
    role : {"quasi-identifier", "sensitive", "insensitive", "identifier"}
    kind : {"numeric", "categorical", "hierarchy", "suppression", "positions"} or None
        How a quasi-identifier may be generalized; None for the other roles.
    weight : float
        Weight in every information loss, positive.
    hierarchy : Hierarchy, str, mapping or None
        The tree of kind hierarchy: built, a CSV file, or what :meth:`Hierarchy.from_mapping` takes.
    boundary : tuple of str, float or None
        Maximum allowed generalization: node labels (hierarchy), or the width of fixed intervals (numeric).
    missing : str or None
        What happens to records without a value (see ``MISSING_RULES``).
    limit : float or None
        ``max-width`` (numeric, in the column's unit) or ``max-set`` (categorical, values).
    """

    name: str
    role: str
    kind: str | None = None
    weight: float = 1.0
    hierarchy: Hierarchy | str | Mapping[str, Any] | None = None
    boundary: tuple[str, ...] | float | None = None
    missing: str | None = None
    limit: float | None = None

    def to_mapping(self) -> dict[str, Any]:
        """The column as it is written in a schema.

        Raises
        ------
        SchemaError
            If the hierarchy was built in memory: write it to a CSV file and name that.
        """
        entry: dict[str, Any] = {"role": self.role}
        if self.kind is None:
            return entry
        entry["kind"] = self.kind
        if self.weight != 1.0:
            entry["weight"] = self.weight
        if isinstance(self.hierarchy, Hierarchy):
            raise SchemaError(
                f"column {self.name!r}: its hierarchy was built in memory; "
                "write it with to_csv and name the file in the schema"
            )
        if self.hierarchy is not None:
            entry["hierarchy"] = self.hierarchy if isinstance(self.hierarchy, str) else dict(self.hierarchy)
        if isinstance(self.boundary, tuple):
            entry["boundary"] = list(self.boundary)
        elif self.boundary is not None:
            entry["boundary"] = {"width": self.boundary}
        if self.missing is not None and self.missing != MISSING_RULES[self.kind][0]:
            entry["missing"] = self.missing
        if self.limit is not None:
            entry["max-width" if self.kind == "numeric" else "max-set"] = self.limit
        return entry


class Schema(Mapping[str, Column]):
    """The columns of a table and what they are.

    Parameters
    ----------
    columns : mapping
        Column name -> ``{role, kind, weight, hierarchy, boundary, missing, max-width, max-set}``, as under
        ``columns`` in a flow; or column name -> :class:`Column`.
    folder : path, optional
        Where hierarchy files named by relative paths are; the working directory without it.

    Raises
    ------
    SchemaError
        With every problem: unknown roles, kinds and keys (with the nearest known one), keys that do not go
        with the kind, weights that are not positive, boundaries of another form, no quasi-identifier.

    Notes
    -----
    Columns that a schema does not name are not published.
    """

    def __init__(self, columns: Mapping[str, Any], folder: str | PathLike[str] | None = None) -> None:
        self.folder = Path(folder) if folder is not None else Path()
        problems: list[str] = []
        self._columns: dict[str, Column] = {}
        if not isinstance(columns, Mapping):
            raise SchemaError("a schema is a mapping of column names to their roles")
        for name, entry in columns.items():
            if not isinstance(name, str) or not name:
                problems.append("a column's name is not text; put it in quotes")
            elif isinstance(entry, Column):
                self._columns[name] = entry
            else:
                column = _column(name, entry, problems)
                if column is not None:
                    self._columns[name] = column
        if not problems and not any(c.role == "quasi-identifier" for c in self._columns.values()):
            problems.append("no column has the role quasi-identifier; name those that an attacker may know")
        if problems:
            raise SchemaError.collected("the schema cannot be used", problems)

    @classmethod
    def read(cls, path: str | PathLike[str]) -> Schema:
        """Read a schema from a YAML file with the columns under ``columns:``.

        Paths inside it are relative to the file.

        Raises
        ------
        SchemaError
            If the file cannot be read, is no strict YAML, or its columns have problems.
        """
        from anonflow import strict_yaml

        document = strict_yaml.read(path, error=SchemaError)
        data = document.data
        if not isinstance(data, dict) or set(data) - {"columns", "version"} or "columns" not in data:
            raise SchemaError(
                f"{fspath(path)}: a schema file has the columns under 'columns:' and nothing else"
            )
        return cls(data["columns"], folder=Path(path).parent)

    @classmethod
    def infer(cls, frame: pd.DataFrame) -> Schema:
        """A first guess to edit: roles and kinds from the names and values of a frame.

        Parameters
        ----------
        frame : pandas.DataFrame

        Raises
        ------
        SchemaError
            If the frame has no column that could be a quasi-identifier.
        """
        import pandas as pd

        from anonflow.table.infer import infer_columns

        if not isinstance(frame, pd.DataFrame):
            raise SchemaError("a schema is guessed from a pandas DataFrame; read files with Table.read")
        return cls(infer_columns(frame))

    @classmethod
    def of(cls, schema: Schema | Mapping[str, Any] | str | PathLike[str]) -> Schema:
        """A schema from any of its forms: itself, a mapping of columns, a YAML file.

        Raises
        ------
        SchemaError
            If it is none of them, or has problems.
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

    def to_mapping(self) -> dict[str, dict[str, Any]]:
        """The schema as it is written under ``columns:``; reads back to the same.

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
        from anonflow.table.showing import schema_view

        return schema_view(self)


def did_you_mean(name: object, known: Sequence[str]) -> str:
    """The end of a message about an unknown name: the nearest known one, else all of them."""
    near = suggest(str(name), known)
    return f" (did you mean {near!r}?)" if near else f" (known: {', '.join(known)})"


def _column(name: str, entry: Any, problems: list[str]) -> Column | None:
    """Check one entry; problems are added to the list."""
    at = f"column {name!r}"
    if not isinstance(entry, Mapping):
        problems.append(f"{at}: needs a mapping such as {{role: quasi-identifier, kind: numeric}}")
        return None
    before = len(problems)
    role = entry.get("role")
    if role not in ROLES:
        problems.append(
            f"{at}: no role; say one of {', '.join(ROLES)}"
            if role is None
            else f"{at}: unknown role {_short(role)}{did_you_mean(role, ROLES)}"
        )
        return None
    if role != "quasi-identifier":
        extra = [str(key) for key in entry if key != "role"]
        if extra:
            problems.append(f"{at}: {', '.join(map(repr, extra))} only for the role quasi-identifier")
        return Column(name, role)
    for key in entry:
        if key not in ("role", *_QI_KEYS):
            problems.append(f"{at}: unknown key {_short(key)}{did_you_mean(key, ('role', *_QI_KEYS))}")
    kind = entry.get("kind")
    if kind not in KINDS:
        problems.append(
            f"{at}: no kind; say one of {', '.join(KINDS)}"
            if kind is None
            else f"{at}: unknown kind {_short(kind)}{did_you_mean(kind, KINDS)}"
        )
        return None
    column = Column(
        name,
        role,
        kind,
        weight=_weight(at, entry, problems),
        hierarchy=_hierarchy(at, kind, entry, problems),
        boundary=_boundary(at, kind, entry, problems),
        missing=_missing(at, kind, entry, problems),
        limit=_limit(at, kind, entry, problems),
    )
    return column if len(problems) == before else None


def _weight(at: str, entry: Mapping[str, Any], problems: list[str]) -> float:
    weight = entry.get("weight", 1.0)
    if not _is_number(weight) or not 0 < weight < math.inf:
        problems.append(f"{at}: weight must be a positive number")
        return 1.0
    return float(weight)


def _hierarchy(
    at: str, kind: str, entry: Mapping[str, Any], problems: list[str]
) -> Hierarchy | str | Mapping[str, Any] | None:
    given = entry.get("hierarchy")
    if kind != "hierarchy":
        if given is not None:
            problems.append(f"{at}: a hierarchy goes with kind hierarchy, not {kind}")
        return None
    if isinstance(given, PathLike):
        return fspath(given)
    if isinstance(given, Hierarchy | str) or (isinstance(given, Mapping) and given):
        return given
    problems.append(f"{at}: kind hierarchy needs 'hierarchy': a CSV file, or nested, intervals or positions")
    return None


def _boundary(
    at: str, kind: str, entry: Mapping[str, Any], problems: list[str]
) -> tuple[str, ...] | float | None:
    given = entry.get("boundary")
    if given is None:
        return None
    if (
        kind == "hierarchy"
        and isinstance(given, list | tuple)
        and given
        and all(isinstance(g, str) for g in given)
    ):
        return tuple(given)
    if kind == "numeric" and isinstance(given, Mapping) and set(given) == {"width"}:
        width = given["width"]
        if _is_number(width) and 0 < width < math.inf:
            return float(width)
    problems.append(
        f"{at}: a boundary is a list of node labels for kind hierarchy, or {{width: w}} with w > 0 for kind numeric"
    )
    return None


def _missing(at: str, kind: str, entry: Mapping[str, Any], problems: list[str]) -> str:
    rules = MISSING_RULES[kind]
    given = entry.get("missing", rules[0])
    if given not in rules:
        problems.append(f"{at}: 'missing' of kind {kind} is one of {', '.join(rules)}")
        return rules[0]
    return str(given)


def _limit(at: str, kind: str, entry: Mapping[str, Any], problems: list[str]) -> float | None:
    for key, home, least in (("max-width", "numeric", 0.0), ("max-set", "categorical", 1.0)):
        given = entry.get(key)
        if given is None:
            continue
        if kind != home:
            problems.append(f"{at}: {key} goes with kind {home}, not {kind}")
        elif not _is_number(given) or not least <= given < math.inf:
            problems.append(f"{at}: {key} must be a number of at least {least:g}")
        else:
            return float(given)
    return None


def _is_number(value: object) -> TypeGuard[float]:
    return isinstance(value, int | float) and not isinstance(value, bool)


def _short(value: object) -> str:
    """A key or word of the schema for a message, never more than 40 characters."""
    text = repr(value)
    return text if len(text) <= 40 else text[:37] + "..."
