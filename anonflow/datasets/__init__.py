"""Tables to start with: generated, fetched, and printed in the papers."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any

from anonflow.datasets.census import census_like, census_years
from anonflow.datasets.files import adult, adult_hierarchies, cmc, nursery, on_disk
from anonflow.datasets.generated import (
    artificial,
    artificial_hierarchies,
    random_normal,
    theorem4,
    theorem4_patterns,
    write_random_normal,
)
from anonflow.datasets.hierarchies import cmc_hierarchies, nursery_hierarchies
from anonflow.datasets.printed import (
    concealment_examples,
    freeform_example,
    freeform_example_anonymized,
    freeform_example_matches,
    location_boundary,
    location_example,
    location_example_masked,
    location_tree,
    patients_anonymized,
    patients_concealed,
    patients_example,
    patients_trees,
    zip_example,
    zip_example_global,
    zip_example_heterogeneous,
    zip_example_local,
    zip_example_private,
    zip_example_public,
)
from anonflow.errors import ParameterError
from anonflow.option import Option, options_of
from anonflow.strict_yaml.names import did_you_mean

if TYPE_CHECKING:
    import pandas as pd

__all__ = [
    "adult",
    "adult_hierarchies",
    "artificial",
    "artificial_hierarchies",
    "census_like",
    "census_years",
    "cmc",
    "cmc_hierarchies",
    "concealment_examples",
    "declared",
    "describe",
    "freeform_example",
    "freeform_example_anonymized",
    "freeform_example_matches",
    "load",
    "location_boundary",
    "location_example",
    "location_example_masked",
    "location_tree",
    "names",
    "nursery",
    "nursery_hierarchies",
    "options",
    "patients_anonymized",
    "patients_concealed",
    "patients_example",
    "patients_trees",
    "random_normal",
    "schema",
    "theorem4",
    "theorem4_patterns",
    "write_random_normal",
    "zip_example",
    "zip_example_global",
    "zip_example_heterogeneous",
    "zip_example_local",
    "zip_example_private",
    "zip_example_public",
]


@dataclass(frozen=True)
class _Entry:
    """A named table: how it is made, its size, origin, licence and schema.

    The schema is a text: kinds of quasi-identifiers, and other roles, each with its columns. `trees` are hierarchies of categorical
    columns for who wants them, `printed_trees` those without which the table is not the paper's.
    """

    make: Callable[..., pd.DataFrame]
    rows: int
    columns: int
    origin: str
    licence: str
    schema: str
    fetched: bool = False
    trees: Callable[[], Mapping[str, Any]] = dict
    printed_trees: Callable[[], Mapping[str, Any]] = dict
    boundaries: Mapping[str, Sequence[str]] = field(default_factory=dict)


def names() -> tuple[str, ...]:
    """Return the names that :func:`load` and a flow's ``dataset:`` know."""
    return tuple(_ENTRIES)


def load(name: str, **settings: Any) -> pd.DataFrame:
    """Return a table by its name.

    Parameters
    ----------
    name : str
        One of :func:`names`.
    **settings
        Options of the table's own function, such as ``n``, ``seed``, ``complete``; see :func:`options`.

    Returns
    -------
    pandas.DataFrame

    Raises
    ------
    ParameterError
        If the name or an option is unknown, or an option's value is outside its domain.
    DataError
        If the table must be fetched, and that fails.
    """
    option_names = tuple(options(name))
    for option in settings:
        if option not in option_names:
            has = did_you_mean(option, option_names) if option_names else " (it has none)"
            raise ParameterError(f"data set {name!r}: unknown option {option!r}{has}")
    return _entry_named(name).make(**settings)


def options(name: str) -> dict[str, Any]:
    """Return the options that :func:`load` takes for a table, with their defaults.

    Parameters
    ----------
    name : str
        One of :func:`names`.

    Raises
    ------
    ParameterError
        If the name is unknown.
    """
    return {option: parameter.default for option, parameter in declared(name).items()}


def declared(name: str) -> Mapping[str, Option]:
    """Return the options of a table, as its function declares them.

    Parameters
    ----------
    name : str
        One of :func:`names`.

    Raises
    ------
    ParameterError
        If the name is unknown.
    """
    return options_of(_entry_named(name).make, keyword_only=False)


def schema(name: str, hierarchies: bool = False) -> dict[str, dict[str, Any]]:
    """Return the schema of a named table to start from.

    Parameters
    ----------
    name : str
        One of :func:`names`.
    hierarchies : bool
        Whether categorical quasi-identifiers get the hierarchies of the table, if it has any: those of Tassa 2012 for
        ``artificial``, our own for ``nursery`` and ``cmc``, the files of :func:`adult_hierarchies` for ``adult`` (complete
        records only; age stays numeric).

    Returns
    -------
    dict
        Column -> ``{role, kind, ...}``, as :class:`anonflow.Schema` and a flow's ``columns`` take it.

    Raises
    ------
    ParameterError
        If the name is unknown.
    """
    entry = _entry_named(name)
    columns: dict[str, dict[str, Any]] = {}
    for group in entry.schema.split("; "):
        word, named = group.split(": ")
        settings = (
            {"role": word}
            if word in ("identifier", "sensitive")
            else {"role": "quasi-identifier", "kind": word}
        )
        columns |= {column: dict(settings) for column in named.split(", ")}
    for column, tree in {**entry.printed_trees(), **(entry.trees() if hierarchies else {})}.items():
        if columns.get(column, {}).get("kind") == "categorical":
            columns[column] |= {
                "kind": "hierarchy", "hierarchy": tree if isinstance(tree, str) else {"nested": tree}
            }  # fmt: skip
    for column, labels in entry.boundaries.items():
        columns[column]["boundary"] = list(labels)
    return columns


def describe() -> pd.DataFrame:
    """Return the named tables and where they come from.

    Returns
    -------
    pandas.DataFrame
        A row for each: name, rows and columns (without options), origin, licence, available
        (whether it is there without a download).
    """
    import pandas as pd

    rows = [
        (name, e.rows, e.columns, e.origin, e.licence, on_disk(name) if e.fetched else True)
        for name, e in _ENTRIES.items()
    ]
    return pd.DataFrame(rows, columns=["name", "rows", "columns", "origin", "licence", "available"])


def _entry_named(name: str) -> _Entry:
    if name not in _ENTRIES:
        raise ParameterError(f"unknown data set {name!r}{did_you_mean(name, names())}")
    return _ENTRIES[name]


_OURS = "BSD-3-Clause"
_PRINTED = "printed in the paper"
_UCI = "CC BY 4.0"

_ENTRIES = {
    "census_like": _Entry(
        census_like, 20_000, 9, "generated: the shape of CENSUS (Doka 2015 and Murakami 2018)", _OURS,
        "numeric: Age; categorical: Gender; numeric: Education; categorical: Marital, Race, Workclass, Country, Occupation; "
        "sensitive: Salary-class",
    ),
    "adult": _Entry(
        adult, 32_561, 15, "UCI Adult", _UCI,
        "numeric: age; categorical: workclass, education, marital-status, occupation, race, sex, native-country; "
        "sensitive: salary-class",
        fetched=True, trees=adult_hierarchies,
    ),
    "nursery": _Entry(
        nursery, 12_960, 8, "UCI Nursery, generated: the full product", _UCI,
        "categorical: parents, has_nurs, form, children, housing, finance, social, health", trees=nursery_hierarchies,
    ),
    "cmc": _Entry(
        cmc, 1_473, 10, "UCI Contraceptive Method Choice", _UCI,
        "numeric: wife_age; categorical: wife_education, husband_education; numeric: children_born; categorical: wife_religion, "
        "wife_working, husband_occupation, SOL_index, media_exposure; sensitive: contraceptive_method_use",
        fetched=True, trees=cmc_hierarchies,
    ),
    "artificial": _Entry(
        artificial, 5_000, 6, "generated: Tassa 2012, section 9", _OURS, "categorical: A1, A2, A3, A4, A5, A6",
        trees=artificial_hierarchies,
    ),
    "random_normal": _Entry(
        random_normal, 100_000, 10, "generated: Murakami 2018, section 4", _OURS,
        "suppression: q1, q2, q3, q4, q5, q6, q7, q8, q9, q10",
    ),
    "freeform_example": _Entry(freeform_example, 8, 2, "Doka 2015, Table 1", _PRINTED, "numeric: Age, Salary"),
    "zip_example": _Entry(
        zip_example, 7, 5, "Murakami 2018, Table 1", _PRINTED,
        "identifier: Name; positions: Zip code; suppression: Gender, Country; sensitive: Income",
    ),
    "location_example": _Entry(
        location_example, 7, 8, "Miller 2008, Figure 3", _PRINTED,
        "identifier: Name, SSN; numeric: Age; categorical: Location, Sex, Race; sensitive: Diagnosis, Income",
        printed_trees=lambda: {"Location": location_tree()}, boundaries={"Location": location_boundary()},
    ),
    "patients_example": _Entry(
        patients_example, 5, 4, "Tassa 2012, Table 1", _PRINTED,
        "identifier: name; numeric: age; categorical: zipcode; sensitive: disease", printed_trees=patients_trees,
    ),
}  # fmt: skip
