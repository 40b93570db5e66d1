"""From a column of a frame to codes and a domain."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any, cast

import numpy as np
import pandas as pd

from anonflow.errors import DataError, HierarchyError, SchemaError
from anonflow.hierarchy import EMPTY, Hierarchy, number_text
from anonflow.hierarchy.calendar import is_partial, partial_leaf
from anonflow.hierarchy.wording import plural
from anonflow.table.domain import NUMBER_MEMBER, Domain, Kind, missing_cells
from anonflow.table.forms.numbers import numbers_of
from anonflow.table.forms.text_columns import check_characters, factorized, value_text
from anonflow.table.forms.text_forms import other_form
from anonflow.table.named_settings import UNDER_PREPARE, say_missing
from anonflow.table.published.published_cells import WHOLE, category_text, day_number, read_float
from anonflow.table.records import ranked_values
from anonflow.table.schema import Column


@dataclass(frozen=True, eq=False)
class Coded:
    """A QI column as codes.

    Attributes
    ----------
    domains : list of Domain
        One; of a positions column, one for each position; of a numeric column with codes its numbers and its codes.
    codes : list of numpy.ndarray, each shape (n,), int32
    """

    domains: list[Domain]
    codes: list[np.ndarray]


def column_values(cells: pd.Series, name: str) -> tuple[list[str], np.ndarray]:
    """Return the distinct values of a column as the text that a hierarchy has for them, and how often each occurs.

    Parameters
    ----------
    cells : pandas.Series, n values
    name : str
        The column, for messages.

    Returns
    -------
    values : list of str, length D
        Sorted as text; a missing value is ``""`` and comes first.
    counts : numpy.ndarray, shape (D,), int64

    Raises
    ------
    DataError
        If it has values that are no single value, infinite, or that read the same as text.
    """
    texts, codes = _coded_texts(cells, missing_cells(cells), name)
    return ["" if text is None else text for text in texts], np.bincount(codes, minlength=len(texts))


def code_column(cells: pd.Series, column: Column, folder: Path) -> Coded:
    """Code a quasi-identifier's cells.

    Parameters
    ----------
    cells : pandas.Series, n values
        The missing-value rule has been applied: dropped records are not in it.
    column : Column
    folder : pathlib.Path
        The folder of relative paths of hierarchy files.

    Returns
    -------
    Coded
        O(n log D) time.

    Raises
    ------
    DataError
        If values do not fit the kind: mixed types, texts instead of numbers, infinity, missing values that the column's
        rule refuses, codes of different lengths (column and count).
    HierarchyError
        If the hierarchy cannot be read, or values of the table are not among its leaves.
    SchemaError
        If the boundary does not go with the hierarchy.
    """
    missing = missing_cells(cells)
    _check_missing(column, int(missing.sum()))
    coders: dict[str | None, Callable[[pd.Series, np.ndarray, Column, Path], Coded]] = {
        "numeric": _numeric,
        "categorical": _categorical,
        "suppression": _categorical,
        "hierarchy": _hierarchy,
        "positions": _positions,
    }
    coded = coders[column.kind](cells, missing, column, folder)
    outside = sum(_outside(domain, column) for domain in coded.domains)
    if outside:
        raise DataError(
            f"column {column.name!r}: {outside:,} {'characters' if column.kind == 'positions' else 'values'} lie outside "
            "the domain that the schema declares; widen it, or correct them"
        )
    return coded


def stand_in(column: Column, folder: Path) -> Domain | None:
    """Return a domain in the place of a column's own while no cell is known, for checks of names and levels.

    Parameters
    ----------
    column : Column
        A quasi-identifier.
    folder : pathlib.Path
        The folder of relative paths of hierarchy files.

    Returns
    -------
    Domain or None
        Two values, or the leaves of the schema's hierarchy and a missing value. None where the cells decide about the levels
        (positions, hierarchies made from values, a kind that is not declared), and where a hierarchy cannot be read.
    """
    tree = None
    match column.kind:
        case "suppression":
            tree = Hierarchy.suppression(("0", "1"))
        case "hierarchy":
            if not _is_given(column.hierarchy):
                return None
            try:
                tree = _column_tree(column, [], folder)
            except HierarchyError:
                return None
            if "" not in tree.leaves:  # a missing value is a leaf of its own, below the root
                tree = tree.extended("")
            tree = tree.spread()
        case "positions" | None:
            return None
    labels = ("0", "1") if tree is None else tree.leaves
    points = np.arange(len(labels), dtype=np.float64)
    return Domain(
        column.name,
        cast("Kind", column.kind),
        labels,
        points,
        np.ones(len(labels), np.int64),
        column.weight,
        hierarchy=tree,
    )


def _check_missing(column: Column, count: int) -> None:
    """Refuse missing values of a quasi-identifier whose rule refuses them.

    Parameters
    ----------
    column : Column
    count : int
        Missing values of the whole table.

    Raises
    ------
    DataError
        If there are any, and the rule refuses them.
    """
    if count and column.missing == "refuse":
        rules = {"numeric": "suppress, drop or value", "positions": "drop"}
        rest = rules.get(str(column.kind), "value or drop")
        raise DataError(
            f"column {column.name!r}: {plural(count, 'missing value')}; "
            + say_missing(rest, " in the schema")
        )


def _outside(domain: Domain, column: Column) -> int:
    """Return how many of a column's values are not in the domain that its schema declares public."""
    declared = column.domain
    if not isinstance(declared, tuple):
        return 0  # a hierarchy has been compared with its leaves
    if column.kind != "numeric":
        labels = {category_text(value) for value in declared}
        if column.kind == "positions":
            labels = {str(value) for value in declared}
        return sum(label not in labels for label in domain.labels)
    ends = [day_number(str(end)) if domain.dates else read_float(str(end)) for end in declared]
    if ends[0] is None or ends[1] is None:
        return domain.size  # dates for numbers, or numbers for dates
    return int(((domain.points < ends[0]) | (domain.points > ends[1])).sum())


def _numeric(cells: pd.Series, missing: np.ndarray, column: Column, folder: Path) -> Coded:
    if column.has_codes:
        coded = _numeric_with_codes(cells, missing, column, folder)
        return replace(coded, domains=[replace(domain, values_decide=True) for domain in coded.domains])
    values, dates = numbers_of(cells[~missing], column.name)
    distinct, rank, counts = ranked_values(values)
    codes = np.full(len(cells), -1, np.int32)
    codes[~missing] = rank
    if dates:
        points = (distinct - np.datetime64(0, _unit(distinct))) / np.timedelta64(1, "D")
        labels = _date_texts(distinct, dates)
    else:
        points = distinct.astype(np.float64)
        labels = tuple(number_text(value) for value in distinct.tolist())
    if dates and column.aggregate is not None:
        raise DataError(
            f"column {column.name!r}: aggregate goes with numbers, and these are dates; leave it out, or make them numbers "
            + UNDER_PREPARE
        )
    if not len(distinct):
        raise DataError(f"column {column.name!r}: has no value at all; leave it out of the quasi-identifiers")
    bound = None
    if isinstance(column.boundary, float):
        interval = _intervals(distinct, points, column.boundary)
        first = np.searchsorted(interval, interval, side="left")
        last = np.searchsorted(interval, interval, side="right") - 1
        alone = np.isinf(interval)  # such narrow intervals have one number each
        first[alone] = last[alone] = np.flatnonzero(alone)
        bound = np.stack([first, last], axis=1).astype(np.int32)
    domain = Domain(
        column.name,
        "numeric",
        labels,
        points,
        counts.astype(np.int64),
        column.weight,
        bound=bound,
        limit=column.limit,
        has_missing=bool(missing.any()),
        aggregate=column.aggregate,
        dates=dates,
        values_decide=column.aggregate is not None,
    )
    return Coded([domain], [codes])


def _intervals(distinct: np.ndarray, points: np.ndarray, width: float) -> np.ndarray:
    """Return the fixed interval of a width that each distinct value is in, shape (D,), ascending; infinite where they are too narrow."""
    if distinct.dtype.kind in "iu" and (np.abs(points) >= 2.0**53).any():
        numerator, denominator = width.as_integer_ratio()
        exact = [value * denominator // numerator for value in distinct.tolist()]
        return np.unique(np.array(exact, object), return_inverse=True)[1]
    with np.errstate(over="ignore"):
        return np.floor(points / width)


def _numeric_with_codes(cells: pd.Series, missing: np.ndarray, column: Column, folder: Path) -> Coded:
    """Return numbers, and which cells are a number, a code or blank; only numbers if there are no codes and blanks."""
    if isinstance(cells.dtype, pd.CategoricalDtype):
        cells = cells.astype(cells.cat.categories.dtype)
    names = ("", *sorted(column.codes))  # a blank first, as in sets
    member = np.where(missing, 1, 0)
    if column.codes:
        is_code = cells.isin(list(column.codes)).to_numpy(dtype=bool) & ~missing
        place = {name: at for at, name in enumerate(names, start=1)}
        member[is_code] = [place[name] for name in cells[is_code]]
    has_number = member == 0
    if not has_number.any():
        raise DataError(
            f"column {column.name!r}: has codes and no number at all; use kind categorical, or leave it out"
        )
    plain = replace(column, codes=(), missing="refuse")
    numbers = cells[has_number]
    if pd.api.types.is_object_dtype(numbers.dtype):
        numbers = numbers.infer_objects()
    coded = _numeric(numbers, np.zeros(len(numbers), bool), plain, folder)
    if has_number.all():
        return coded
    codes = np.full(len(cells), -1, np.int32)
    codes[has_number] = coded.codes[0]
    occurs, places = np.unique(np.append(member, 0), return_inverse=True)
    labels = (NUMBER_MEMBER, *(category_text(names[at - 1] or None) for at in occurs[1:].tolist()))
    share = column.code_weight
    range_domain = replace(coded.domains[0], weight=column.weight * (1 - share), has_codes=True)
    codes_domain = Domain(
        column.name,
        "codes",
        labels,
        np.arange(len(labels), dtype=np.float64),
        np.bincount(places[:-1], minlength=len(labels)).astype(np.int64),
        column.weight * share,
    )
    return Coded([range_domain, codes_domain], [codes, places[:-1].astype(np.int32)])


def _date_texts(values: np.ndarray, dates: str) -> tuple[str, ...]:
    whole = (values == values.astype("datetime64[s]")).all()
    unit: Any = "D" if dates == "date" else "s" if whole else _unit(values)
    texts = np.datetime_as_string(values, unit=unit)
    return tuple(f"{text}Z" for text in texts) if dates == "utc" else tuple(str(text) for text in texts)


def _unit(dates: np.ndarray) -> Any:
    """Return the unit of a datetime64 array."""
    return np.datetime_data(dates.dtype)[0]


def _coded_texts(cells: pd.Series, missing: np.ndarray, name: str) -> tuple[list[str | None], np.ndarray]:
    """Return the distinct values as text (None: missing), sorted with the missing one first, and each row's place."""
    if isinstance(cells.dtype, pd.CategoricalDtype):
        cells = cells.astype(cells.cat.categories.dtype)
    at, distinct = factorized(cells, name)
    texts = [_checked_text(value, name) for value in distinct]
    check_characters(texts, name)
    repeated = len(texts) - len(set(texts))
    if repeated:
        raise DataError(
            f"column {name!r}: {plural(repeated, 'text', 'stand')} for values of different types; make them of one type"
        )
    order = sorted(range(len(texts)), key=texts.__getitem__)
    rank = np.empty(len(texts), np.int32)
    rank[order] = np.arange(len(texts), dtype=np.int32)
    values: list[str | None] = [texts[u] for u in order]
    if missing.any():
        codes = np.zeros(len(cells), np.int32)
        codes[~missing] = rank[at[~missing]] + 1
        return [None, *values], codes
    return values, rank[at]


def _checked_text(value: object, name: str) -> str:
    if isinstance(value, float | np.floating) and np.isinf(value):
        raise DataError(f"column {name!r}: has infinite values; replace or drop them")
    if isinstance(value, bytes):
        raise DataError(f"column {name!r}: holds bytes; decode them to text")
    return value_text(value)


def _categorical(cells: pd.Series, missing: np.ndarray, column: Column, folder: Path) -> Coded:
    texts, codes = _coded_texts(cells, missing, column.name)
    labels = tuple(category_text(text) for text in texts)
    counts = np.bincount(codes, minlength=len(labels)).astype(np.int64)
    tree = Hierarchy.suppression(labels) if column.kind == "suppression" else None
    points = np.arange(len(labels), dtype=np.float64)
    domain = Domain(
        column.name,
        "suppression" if tree else "categorical",
        labels,
        points,
        counts,
        column.weight,
        hierarchy=tree,
        limit=column.limit,
    )
    return Coded([domain], [codes.astype(np.int32)])


def _hierarchy(cells: pd.Series, missing: np.ndarray, column: Column, folder: Path) -> Coded:
    texts, codes = _coded_texts(cells, missing, column.name)
    values = ["" if text is None else text for text in texts]
    if len(set(values)) < len(values):
        raise DataError(
            f"column {column.name!r}: has missing values and empty texts; make them one of the two"
        )
    tree = _column_tree(column, [value for value in values if value], folder)
    if _is_calendar(column.hierarchy):
        values = [partial_leaf(value) if is_partial(value) else value for value in values]
    if "" in values and "" not in tree.leaves:
        tree = tree.extended("")
    stray = tree.labels.count(WHOLE) - (tree.labels[0] == WHOLE)
    if stray:
        raise HierarchyError(
            f"column {column.name!r}: only the root of its hierarchy may be called {WHOLE!r}"
        )
    if any(label.startswith(EMPTY) for label in tree.labels):
        raise HierarchyError(
            f"column {column.name!r}: a label begins with the character NUL; write it without"
        )
    tree.check_values(values, column.name, np.bincount(codes, minlength=len(values)).tolist())
    tree = tree.spread()
    leaf = tree.leaf_indexes(values)[codes]
    counts = np.bincount(leaf, minlength=len(tree.leaves)).astype(np.int64)
    bound = None
    if isinstance(column.boundary, tuple):
        try:
            bound = tree.bounds(column.boundary)
        except HierarchyError as error:
            problems = [f"column {column.name!r}: {problem}" for problem in error.problems]
            raise SchemaError.collected("boundaries that are no nodes", problems) from None
    floor = None if column.at_least is None else _floor(tree, column, column.at_least)
    if _is_calendar(column.hierarchy):
        floor = _floor_of_partial(tree, floor)
    if (
        bound is not None
        and floor is not None
        and ((bound[:, 0] > floor[:, 0]) | (bound[:, 1] < floor[:, 1])).any()
    ):
        raise SchemaError(
            f"column {column.name!r}: a boundary is below "
            f"{'the periods of its partial dates' if column.at_least is None else f'level {column.at_least}'}, at which it is published at least; lower "
            "at-least, or widen the boundary"
        )
    # a leaf that no value can have adds no width
    points = np.cumsum(tree.has_value) - 1.0
    domain = Domain(
        column.name,
        "hierarchy",
        tree.leaves,
        points,
        counts,
        column.weight,
        hierarchy=tree,
        bound=bound,
        floor=floor,
        values_decide=not _is_given(column.hierarchy),
    )
    return Coded([domain], [leaf])


def _is_given(source: Any) -> bool:
    """Return whether a hierarchy has leaves of its own, and is not made of the values of the table."""
    return not isinstance(source, Mapping) or bool({"csv", "nested"} & set(source))


def _is_calendar(source: Any) -> bool:
    return isinstance(source, Mapping) and "calendar" in source


def _floor_of_partial(tree: Hierarchy, floor: np.ndarray | None) -> np.ndarray | None:
    """Return a floor at which dates of which the day is not known are published as their period at least."""
    leaves = [at for at, label in enumerate(tree.leaves) if label.endswith("-??")]
    if not leaves:
        return floor
    codes = np.arange(tree.n_leaves, dtype=np.int32)
    floor = np.stack([codes, codes], axis=1) if floor is None else floor.copy()
    above = tree.parent[tree.leaf_node[leaves]]
    floor[leaves, 0] = np.minimum(floor[leaves, 0], tree.first[above])
    floor[leaves, 1] = np.maximum(floor[leaves, 1], tree.last[above])
    return floor


def _floor(tree: Hierarchy, column: Column, level: int) -> np.ndarray:
    """Return the run of the highest node of at most a level above each leaf, shape (D, 2), int32."""
    levels = int(tree.height[0])
    if level >= levels:
        raise SchemaError(
            f"column {column.name!r}: at-least {level} would hide the whole column, its hierarchy has {levels - 1} levels between "
            "values and root; take a lower one, or leave the column out"
        )
    node = tree.at_level(level)
    return np.stack([tree.first[node], tree.last[node]], axis=1)


def _column_tree(column: Column, values: list[str], folder: Path) -> Hierarchy:
    hierarchy = column.hierarchy
    if isinstance(hierarchy, Hierarchy):
        return hierarchy
    if hierarchy is None:
        raise SchemaError(f"column {column.name!r}: kind hierarchy needs a hierarchy")
    try:
        return Hierarchy.from_mapping(hierarchy, folder=folder, values=values)
    except HierarchyError as error:
        intervals = isinstance(hierarchy, Mapping) and "intervals" in hierarchy
        form = other_form(values) if intervals else None
        problems = [
            f"column {column.name!r}: {problem}" + ("" if form is None else "; " + form)
            for problem in error.problems
        ]
        raise HierarchyError.collected(
            f"column {column.name!r}: its hierarchy cannot be used", problems
        ) from None


def _positions(cells: pd.Series, missing: np.ndarray, column: Column, folder: Path) -> Coded:
    texts, at = _coded_texts(cells, missing, column.name)
    values = [text or "" for text in texts]
    lengths = {len(value) for value in values}
    if len(lengths) != 1 or lengths == {0}:
        raise DataError(
            f"column {column.name!r}: its codes have {len(lengths)} different lengths; cut them with a step `prefix`, or use kind "
            "hierarchy with prefixes, or kind suppression"
        )
    if any(WHOLE in value for value in values):
        raise DataError(
            f"column {column.name!r}: some codes contain {WHOLE!r}, which stands for a hidden position"
        )
    characters = np.array(values, dtype=f"U{lengths.pop()}").view("U1").reshape(len(values), -1)
    domains, codes = [], []
    for position in range(characters.shape[1]):
        distinct, inverse = np.unique(characters[:, position], return_inverse=True)
        labels = tuple(str(character) for character in distinct)
        code = inverse[at].astype(np.int32)
        domains.append(
            Domain(
                column.name,
                "positions",
                labels,
                np.arange(len(labels), dtype=np.float64),
                np.bincount(code, minlength=len(labels)).astype(np.int64),
                column.weight,
                hierarchy=Hierarchy.suppression(labels),
                position=position,
            )
        )
        codes.append(code)
    return Coded(domains, codes)
