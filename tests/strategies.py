"""All hypothesis strategies: small tables of every mix of quasi-identifier kinds; how many examples and values a test tries."""

from __future__ import annotations

import functools
import inspect
import os
from collections.abc import Callable, Iterable
from typing import Any

import numpy as np
import pandas as pd
import pytest
from hypothesis import settings
from hypothesis import strategies as st

from anonflow.hierarchy import Hierarchy
from anonflow.table import Schema, Table

WITHOUT_CODES = ("numeric", "categorical", "hierarchy", "suppression", "positions")
KINDS = (*WITHOUT_CODES, "coded")
"""Kinds of columns, and numbers with codes and blanks."""

TREE = {
    "*": {
        "West": {"San Diego": None, "Los Angeles": None},
        "Midwest": {"Kansas": {"Wichita": None, "Topeka": None}, "Lincoln": None},
    }
}
CITIES = ("San Diego", "Los Angeles", "Wichita", "Topeka", "Lincoln")
ODD_TEXTS = ("a", "b", "", "*", "{x}", "p|q", '"q"', " lead", "é", "NA", "None", "1", "0-1")


EVERYTHING = os.environ.get("ANONFLOW_EXAMPLES") == "all"
"""Whether `.ci/run --all` runs: also what takes long and is proved otherwise for smaller tables or other values of k."""
MULTIPLE = 5 if EVERYTHING else 1
"""How many times the thorough number of examples `.ci/run --all` tries."""


def examples(thorough: int) -> settings:
    """So many examples in CI, and a quarter of them elsewhere: the decorator of a test with a number of its own."""
    return settings(max_examples=MULTIPLE * thorough if os.environ.get("CI") else max(5, thorough // 4))


def seeded(thorough: int, quick: int) -> Callable[[Callable[..., None]], Callable[..., None]]:
    """Give a test the argument `seeds`, for tables that it draws itself: so many where `CI` is set, fewer elsewhere.

    CI runs what is `thorough` with the slow tests.
    """
    count = MULTIPLE * thorough if os.environ.get("CI") else quick
    argument = pytest.mark.parametrize("seeds", [pytest.param(range(count), id=f"{count}-seeds")])
    return lambda test: pytest.mark.thorough(argument(test))


def loop(
    names: str | tuple[str, ...], values: Iterable[Any]
) -> Callable[[Callable[..., None]], Callable[..., None]]:
    """Run a test with all values, as a single case of pytest: a failure has a note with the values it had.

    The arguments are those of `pytest.mark.parametrize`; all values share what fixtures give the test.
    """
    listed = [value if isinstance(names, tuple) else (value,) for value in values]
    arguments = names if isinstance(names, tuple) else (names,)
    assert listed, "a test of no values cannot fail"

    def whole_test(test: Callable[..., None]) -> Callable[..., None]:
        @functools.wraps(test)
        def whole(**fixtures: Any) -> None:
            for value in listed:
                chosen = dict(zip(arguments, value, strict=True))
                try:
                    test(**fixtures, **chosen)
                except BaseException as problem:
                    problem.add_note(f"with {chosen}")
                    raise

        signature = inspect.signature(test)
        left = [parameter for name, parameter in signature.parameters.items() if name not in arguments]
        vars(whole)["__signature__"] = signature.replace(parameters=left)
        return whole

    return whole_test


def city_tree() -> Hierarchy:
    """A small unbalanced tree."""
    return Hierarchy.from_nested(TREE)


@st.composite
def column_entry(
    draw: st.DrawFn, kind: str, n: int, weights: bool = True
) -> tuple[list[Any], dict[str, Any]]:
    """The cells of one QI column of a kind, and its schema entry."""
    entry: dict[str, Any] = {"role": "quasi-identifier", "kind": "numeric" if kind == "coded" else kind}
    if weights:
        entry["weight"] = draw(st.sampled_from([1, 0.5, 3]))

    def cells(values: st.SearchStrategy[Any]) -> list[Any]:
        return draw(st.lists(values, min_size=n, max_size=n))

    if kind == "coded":
        entry |= {
            "missing": "value",
            "codes": ["N", "p|q"],
            "code-weight": draw(st.sampled_from([0.25, 0.5])),
        }
        values = cells(st.one_of(st.integers(-5, 5).map(str), st.sampled_from(["N", "p|q", None])))
        if not any(value not in ("N", "p|q", None) for value in values):
            values[0] = "1.5"
        return values, entry
    if kind == "numeric":
        if draw(st.booleans()):
            entry["missing"] = "suppress"
            values = cells(st.one_of(st.integers(-5, 5).map(float), st.none()))
            if all(value is None for value in values):
                values[0] = 1.5
            return values, entry
        return cells(st.sampled_from([-3.5, -1.0, 0.0, 0.25, 2.0, 7.0, 1e6])), entry
    if kind == "hierarchy":
        entry["hierarchy"] = city_tree()
        return cells(st.sampled_from([*CITIES, None])), entry
    if kind == "positions":
        return cells(st.text("01", min_size=3, max_size=3)), entry
    return cells(st.one_of(st.sampled_from(ODD_TEXTS), st.none())), entry


@st.composite
def tables(
    draw: st.DrawFn,
    min_n: int = 1,
    max_n: int = 12,
    kinds: tuple[str, ...] = KINDS,
    max_columns: int = 4,
    weights: bool = True,
) -> Table:
    """A table of a few records over any mix of kinds, with one sensitive column."""
    n = draw(st.integers(min_n, max_n))
    chosen = draw(st.lists(st.sampled_from(kinds), min_size=1, max_size=max_columns))
    frame: dict[str, Any] = {}
    schema: dict[str, Any] = {}
    for at, kind in enumerate(chosen):
        cells, entry = draw(column_entry(kind, n, weights))
        frame[f"q{at}"] = pd.array(cells, dtype="float64" if kind == "numeric" else object)
        schema[f"q{at}"] = entry
    frame["secret"] = draw(st.lists(st.sampled_from(["x", "y", "z"]), min_size=n, max_size=n))
    schema["secret"] = {"role": "sensitive"}
    return Table(pd.DataFrame(frame), Schema(schema))


@st.composite
def regular_matches(draw: st.DrawFn, n: int, k: int) -> np.ndarray:
    """A k-regular graph with self matches in column 0, shape (n, k), int32: distinct cyclic shifts, relabelled."""
    shifts = [0, *draw(st.permutations(range(1, n)))[: k - 1]]
    order = np.array(draw(st.permutations(range(n))))
    matches = np.empty((n, k), np.int32)
    for d, shift in enumerate(shifts):
        matches[order, d] = np.roll(order, -shift)
    return matches


@st.composite
def labels(draw: st.DrawFn, n: int) -> np.ndarray:
    """Class labels of n records."""
    return np.array(draw(st.lists(st.integers(0, 3), min_size=n, max_size=n)), np.int64)
