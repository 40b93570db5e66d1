"""A first guess at a schema from the names and values of a frame, with its reasons."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from itertools import combinations
from typing import Any

import numpy as np
import pandas as pd

from anonflow.errors import DataError
from anonflow.hierarchy.calendar import is_partial
from anonflow.hierarchy.wording import plural
from anonflow.table.domain import missing_cells
from anonflow.table.files.csv_head import PLAIN, CsvShape
from anonflow.table.forms.date_forms import DateForm, are_digits, date_forms
from anonflow.table.forms.number_forms import NumberForm, has_second_reading
from anonflow.table.forms.numbers import numbers_of
from anonflow.table.forms.text_columns import value_text
from anonflow.table.forms.text_forms import Form, mixture, seen, texts_of
from anonflow.table.identification.code_signs import (
    amount_name,
    code_entry,
    code_name,
    code_texts,
    code_values,
)
from anonflow.table.identification.column_signs import (
    are_school_classes,
    group_name,
    is_count_of_things,
    name_says,
)
from anonflow.table.identification.value_signs import (
    MANY,
    codes_among,
    filled,
    form,
    is_dates,
    is_numeric,
    numbers_in,
    rarity,
)
from anonflow.table.identification.weight_signs import scaled_weights, weight_name, weight_shape
from anonflow.table.named_settings import NAME_MISSING
from anonflow.table.published.published_cells import reads_as_number

_MOST_CODES, _OFTEN, _FEW_NUMBERS = 10, 5, 10
"""Codes beside numbers are so many at most, each stands in so many cells at least, and there are more numbers than so many."""

_FEW_CODES, _SMALL_CODES = 5, 9
"""The most distinct whole numbers, each frequent, that are taken for codes of categories; and of small ones, most of which repeat."""

_MOST_ROWS, _FEWEST_GROUPS = 100, 0.1
"""The most rows of a person or of a household, and the fewest of them, as a share of the rows."""

_SAME, _FEWEST_REPEATED, _MOST_LIKELY_UNITS = 0.95, 20, 5
"""Of the values that several rows have: the least share whose rows agree in a column, and how many there are at least; and the columns that are looked at."""

_OTHERS_KNOW = "can others know them?"
"""What is asked of values that may be a quasi-identifier's."""

_SCALED = "some are below 1: scaled weights do not say how many people a record stands for, and are published as they are"
"""Why weights have no role of their own."""

_BY_VALUES = "its numbers begin with zeros or end with a check digit, as codes do"

_NUMBER_CODES = (-1, -9, -8, -7, -99, -999, 99, 999, 9999, 99999)
"""Numbers that usually do, where they lie far from all others."""

_CODES_TOGETHER = ((97, 98, 99), (997, 998, 999), (9997, 9998, 9999))
"""Numbers of which several usually do: refused, not known, not asked."""


@dataclass(frozen=True)
class Advice:
    """A guess about one column.

    Attributes
    ----------
    column : str
    entry : dict
        As a schema has it: role, kind, ...
    reasons : tuple of str
        Why, and what else to look at: counts and words of this package, and a value only as one of three examples of how numbers
        or dates are written.
    distinct : int
        Distinct values.
    """

    column: str
    entry: dict[str, Any]
    reasons: tuple[str, ...]
    distinct: int


def infer_columns(frame: pd.DataFrame) -> dict[str, dict[str, Any]]:
    """Guess ``{role, kind}`` for each column.

    Parameters
    ----------
    frame : pandas.DataFrame

    Returns
    -------
    dict
        Column name -> entry, in the frame's order; see :func:`advise`.
    """
    return entries_of(advise(frame))


def entries_of(advice: Sequence[Advice]) -> dict[str, dict[str, Any]]:
    """Return column name -> entry of a schema, in the frame's order."""
    return {advised.column: advised.entry for advised in advice}


def rows_of(advice: Sequence[Advice]) -> list[tuple[str, str, str, int, str]]:
    """Return column, role, kind, distinct values and reasons: quasi-identifiers first, the most distinct on top."""
    rows = [
        (
            advised.column,
            advised.entry["role"],
            advised.entry.get("kind", ""),
            advised.distinct,
            "; ".join(advised.reasons),
        )
        for advised in advice
    ]
    return sorted(rows, key=lambda row: (row[1] != "quasi-identifier", -row[3]))


def advise(
    frame: pd.DataFrame,
    shape: CsvShape = PLAIN,
    tell: Callable[[str, int, int], None] = lambda words, at, of: None,
) -> list[Advice]:
    """Guess what each column is, and say why.

    Names decide first (identifiers in several languages, sampling weights, sensitive columns, postal codes). A number of a person
    or a household whose values repeat has the role unit or household. Then decides what
    values look like (addresses, numbers with check digits, coordinates, free text, numbers that count up), however few there
    are; then text that is nearly unique, or rare in an almost empty column, is an identifier, numbers and dates are numeric
    QIs, and other text is a categorical QI. One value and blanks are two states of a categorical QI. A column is insensitive
    only if all records have the same cell. Texts that are numbers or dates in one form alone (1,25, 31.12.2014) are read so, and
    the entry says how; texts that can be read in two are text, and the reason says what to declare. Distinctness does not decide anything else: only the owner knows what others can know.
    Identifiers are not published until the schema says otherwise.

    Parameters
    ----------
    frame : pandas.DataFrame
    shape : CsvShape, optional
        The separators that the source declares.
    tell : callable
        Called before each column: what it is, how many were before it, and of how many.

    Returns
    -------
    list of Advice
        In the frame's order. O(n) per column.

    Raises
    ------
    DataError
        If there are no rows: nothing says what a column is.
    """
    if not len(frame):
        raise DataError("the table has no rows")
    advice = []
    for at, name in enumerate(map(str, frame.columns)):
        tell(f"looking at column {name}", at, frame.shape[1])
        advice.append(_advice(name, frame.iloc[:, at], shape))
    for role in ("weight", "unit", "household"):
        columns = [at for at, advised in enumerate(advice) if advised.entry["role"] == role]
        for at in columns[1:]:
            reason = f"{advice[at].reasons[0]}, and column {advice[columns[0]].column!r} has this role"
            advice[at] = replace(advice[at], entry={"role": "identifier"}, reasons=(reason,))
    if not {"unit", "household"} & {advised.entry["role"] for advised in advice}:
        _ask_about_unit(frame, advice)
    return advice


def _ask_about_unit(frame: pd.DataFrame, advice: list[Advice]) -> None:
    """Ask of the column that may say whose each row is: the same value comes with the same answers in columns of which none follows from another."""
    n = len(frame)
    likely = [
        at
        for at, advised in enumerate(advice)
        if advised.entry["role"] in ("identifier", "quasi-identifier")
        and _FEWEST_GROUPS * n <= advised.distinct < n
    ]
    codes: dict[int, np.ndarray] = {}

    def coded(at: int) -> np.ndarray:
        if at not in codes:
            codes[at] = pd.factorize(frame.iloc[:, at], use_na_sentinel=False)[0]
        return codes[at]

    for at in sorted(likely, key=lambda at: -advice[at].distinct)[:_MOST_LIKELY_UNITS]:
        rows = np.bincount(coded(at))
        if (
            missing_cells(frame.iloc[:, at]).any()
            or rows.max() > _MOST_ROWS
            or (rows > 1).sum() < _FEWEST_REPEATED
        ):
            continue
        same = [
            other
            for other, advised in enumerate(advice)
            if 1 < advised.distinct <= len(rows) // 2 and _agreement(coded(at), coded(other)) >= _SAME
        ]
        apart = next(
            (
                pair
                for pair in combinations(same, 2)
                if all(
                    _agreement(coded(first), coded(second)) < _SAME for first, second in (pair, pair[::-1])
                )
            ),
            None,
        )
        if apart is not None:
            names = " and ".join(repr(advice[other].column) for other in apart)
            question = (
                f"up to {int(rows.max()):,} rows have the same value, and then the same in columns {names}: "
                "is it the number of a person, of role unit, or can others know it?"
            )
            reasons = [reason.removesuffix(f": {_OTHERS_KNOW}") for reason in advice[at].reasons]
            advice[at] = replace(advice[at], reasons=(*reasons, question))
            return


def _agreement(groups: np.ndarray, codes: np.ndarray) -> float:
    """Return the share of the groups of several rows that have the same code throughout; 0 where most of all rows have one code."""
    counts = np.bincount(groups)
    if np.bincount(codes).max() > MANY * len(codes) or not (counts > 1).any():
        return 0.0
    low, high = np.full(len(counts), len(codes)), np.zeros(len(counts), np.int64)
    np.minimum.at(low, groups, codes)
    np.maximum.at(high, groups, codes)
    return float((low == high)[counts > 1].mean())


def read_cells(cells: pd.Series, shape: CsvShape = PLAIN) -> tuple[pd.Series, dict[str, Any]]:
    """Return the cells of a column as plain numbers or ISO dates where their texts have one form alone, and its keys.

    Parameters
    ----------
    cells : pandas.Series
    shape : CsvShape, optional
        The separators that the source declares.
    """
    plain, form, _ = _cells_with_form(cells, shape)
    return plain, form


def _cells_with_form(cells: pd.Series, shape: CsvShape) -> tuple[pd.Series, dict[str, Any], list[str]]:
    """Return the cells as :func:`read_cells` does, the keys of their form, and what to say of it; texts without a digit may be codes."""
    cells = _days_as_texts(cells)
    distinct = texts_of(cells[~missing_cells(cells)])
    if distinct is None:
        return cells, {}, []
    texts, counts = distinct
    digits = np.array([any(map(str.isdigit, text)) for text in texts], bool)
    if not digits.any() or (~digits).sum() > _MOST_CODES:
        return cells, {}, []
    written = [text for text, has_digit in zip(texts, digits, strict=True) if has_digit]
    if shape.decimal or shape.thousands:
        declared = NumberForm(shape.decimal, shape.thousands)
        if declared.read(written).good.all():
            return _cells_in_form(cells, declared, written), {}, []
    if is_numeric(pd.Series(written)) and not has_second_reading(written) and not are_digits(written):
        return cells, {}, []
    forms_seen = seen(written, counts[digits])
    if forms_seen is None:
        words = mixture(written, counts[digits])
        return cells, {}, [words] if words else []
    remarks = [str(forms_seen.sentence(examples=True))]
    only = forms_seen.form
    if only is None:
        return cells, {}, remarks
    if isinstance(only, DateForm) and only.read(written).plain.tolist() == written:
        return cells, {}, remarks  # partial dates beside whole ones, as ISO writes them
    return _cells_in_form(cells, only, written), only.to_mapping() or {"decimal": "."}, remarks


def _days_as_texts(cells: pd.Series) -> pd.Series:
    """Return the cells as texts if they are whole numbers of eight digits that may be dates, such as 20140312; else as they are."""
    values = cells[~missing_cells(cells)]
    if not len(values) or not pd.api.types.is_numeric_dtype(values.dtype) or values.dtype == bool:
        return cells
    texts = list(map(value_text, values.unique()[:1000]))
    if not are_digits(texts) or not date_forms(texts):
        return cells
    return cells.map(value_text, na_action="ignore")


def _are_partial_dates(values: pd.Series) -> bool:
    """Return whether texts are dates, and some of them a month or a year alone."""
    distinct = texts_of(values)
    if distinct is None or not any(map(is_partial, distinct[0])):
        return False
    reading = DateForm("y-m-d").read(distinct[0])
    return bool(reading.good.all() and not reading.partial.all())


def _cells_in_form(cells: pd.Series, form: Form, written: list[str]) -> pd.Series:
    """Return the cells with some of their texts read in a form."""
    plain = dict(zip(written, form.read(written).plain.tolist(), strict=True))
    return cells.map(lambda text: plain.get(text, text), na_action="ignore")


def _advice(name: str, cells: pd.Series, shape: CsvShape) -> Advice:
    missing = missing_cells(cells)
    values = cells[~missing]
    try:
        distinct = int(values.nunique())
    except TypeError:
        return Advice(
            name, {"role": "identifier"}, ("its values are lists or the like, which are not understood",), 0
        )
    if any(isinstance(value, bytes) for value in values[:1]):
        return Advice(
            name, {"role": "identifier"}, ("its values are bytes, which are not published",), distinct
        )
    if not distinct:
        return Advice(name, {"role": "insensitive"}, ("it has no value",), distinct)
    original, raw = cells, values
    plain, keys, remarks = _cells_with_form(cells, shape)
    if plain is not cells:
        cells, values = plain, plain[~missing]
    numeric = is_numeric(values) and (bool(keys) or not remarks)
    partial = bool(remarks) and _are_partial_dates(values)
    dates = (numeric and is_dates(values)) or partial

    def advice(entry: dict[str, Any], *reasons: str) -> Advice:
        if entry["role"] != "identifier":
            # codes beside numbers stand in quasi-identifiers alone; other columns with some are texts, in no form
            entry |= keys if numeric or entry["role"] == "quasi-identifier" else {}
            reasons = (*remarks, *reasons)
        reasons = (*reasons, *_possible_codes(values, numeric, dates))
        # a question comes last: what follows it would be read as its answer
        return Advice(name, entry, tuple(sorted(reasons, key=lambda reason: reason.endswith("?"))), distinct)

    group = None if missing.any() else _group_hint(name, values, distinct)
    if group is not None:
        return Advice(name, {"role": group[0]}, (group[1],), distinct)
    hint = name_says(name)
    if hint is not None and hint[0] == "weight" and not (numeric and (numbers_in(values) > 0).all()):
        hint = None
    if hint is None and numeric and not dates:
        hint = _weight_hint(name, values)
    elif hint is not None and hint[0] == "weight" and float(numbers_in(values).min()) < 1:
        hint = "insensitive", f"{hint[1]}, and {_SCALED}"
    if hint is not None and hint[0] == "sensitive" and are_school_classes(name, values.unique()):
        hint = None
    if hint is not None and hint[0] == "identifier" and numeric and is_count_of_things(name):
        hint = None
    if hint is not None and hint[0] in ("identifier", "sensitive", "insensitive", "weight"):
        return advice({"role": hint[0]}, hint[1])
    look = form(filled(raw), numeric, dates)
    if look is None and values is not raw:
        look = form(filled(values), numeric, dates)
    if look is not None:
        return advice({"role": "identifier"}, look)
    if distinct == 1 and not missing.any():
        return advice({"role": "insensitive"}, "it has one value")
    entry: dict[str, Any] = {"role": "quasi-identifier"}
    coded = None if dates else _code_reason(name, raw)
    if coded is not None:
        kind = _code_kind(name, original)
    else:
        kind = {"kind": "categorical"} if remarks and not keys and not partial else _plain_kind(cells)
    if coded is not None and kind["kind"] != "categorical":
        rare = rarity(raw, len(cells)) if coded == _BY_VALUES else None
        if rare is not None:
            return advice({"role": "identifier"}, rare)
        reasons = (coded, *_uneven(raw, kind["kind"]), *_possible_codes(raw, numeric, dates, mixed=False))
        return Advice(name, entry | kind, reasons, distinct)
    if "codes" in kind:
        count = len(kind["codes"])
        counted = f"its numbers are mixed with {count} code{'s' * (count > 1)}, published beside ranges"
        return Advice(name, entry | kind | keys, (*remarks, counted, _OTHERS_KNOW), distinct)
    rare = None if numeric or remarks else rarity(values, len(cells))
    if rare is not None:
        return advice({"role": "identifier"}, rare)
    if distinct == 1:
        states = f"one value for {len(values):,} of {len(cells):,} records and blanks are two states: {_OTHERS_KNOW}"
        return advice(entry | kind, states)
    reason = f"it has {distinct:,} different {'numbers' if numeric else 'values'}: {_OTHERS_KNOW}"
    if numeric and kind["kind"] == "categorical":
        reason = f"its {distinct:,} whole numbers look like codes, of kind numeric if they are amounts: {_OTHERS_KNOW}"
    blanks = f"its {int(missing.sum()):,} blanks are published beside ranges"
    beside = (blanks,) if kind.get("missing") == "value" else ()
    if dates and not partial:
        reason = f"it has {distinct:,} exact dates: publish months or years, or give intervals"
    elif kind["kind"] == "numeric" and weight_shape(numbers_in(values), named=False):
        reason = f"it has {distinct:,} different numbers, of role weight if each says how many people its record stands for: {_OTHERS_KNOW}"
    return advice(entry | kind, reason, *beside)


def _group_hint(name: str, values: pd.Series, distinct: int) -> tuple[str, str] | None:
    """Return the role that a name gives values that repeat, and why."""
    role = group_name(name)
    rows = int(values.value_counts().iloc[0])
    if role is None or rows == 1 or rows > _MOST_ROWS or distinct < _FEWEST_GROUPS * len(values):
        return None
    of = "household" if role == "household" else "person"
    return (
        role,
        f"its name is that of a number that stands for one {of}, and up to {rows:,} rows have the same",
    )


def _weight_hint(name: str, values: pd.Series) -> tuple[str, str] | None:
    """Return the role that a name gives numbers that may be weights, and why."""
    says = weight_name(name)
    if says == "replicate":
        return "identifier", "its name is that of a replicate weight, which has no role"
    if says == "maybe" and weight_shape(numbers_in(values)):
        return "weight", "its name and its numbers are those of a sampling weight"
    if says == "maybe" and scaled_weights(numbers_in(values)):
        return "insensitive", f"its name and its numbers are those of a sampling weight, and {_SCALED}"
    return None


def _code_reason(name: str, values: pd.Series) -> str | None:
    """Return why a column, whose values are no dates, has codes; None for another column."""
    hint = name_says(name)
    if hint is not None and hint[0] == "code":
        return hint[1]
    if values.dtype == bool or values.nunique() < 2:
        return None
    if code_name(name, code_texts(filled(values))):
        return "its name is that of codes"
    return _BY_VALUES if code_values(name, code_texts(values)) else None


def _uneven(values: pd.Series, kind: str) -> list[str]:
    """Return what to do about codes of several lengths."""
    lengths = {len(text) for text in code_texts(values) or map(str, values)}
    if kind != "hierarchy" or len(lengths) == 1:
        return []
    several = f"its codes have {min(lengths)} to {max(lengths)} characters"
    if pd.api.types.is_numeric_dtype(values.dtype):
        return [f"{several}: if they lost zeros in front as numbers, write them as text with their zeros"]
    return [f"{several}: a step `prefix` makes them equally long"]


def _code_kind(name: str, cells: pd.Series) -> dict[str, Any]:
    missing = missing_cells(cells)
    values = cells[~missing]
    return code_entry(name, code_texts(values) or list(map(str, values)), bool(missing.any()))


def kind_of(cells: pd.Series) -> dict[str, Any]:
    """Guess the kind of a quasi-identifier, and the treatment of its blanks.

    Parameters
    ----------
    cells : pandas.Series

    Returns
    -------
    dict
        Keys of a schema's column: ``kind``, of numbers also ``codes`` and ``missing``, of codes also ``hierarchy``.
    """
    values = cells[~missing_cells(cells)]
    dates = is_numeric(values) and is_dates(values)
    coded = len(values) > 0 and not dates and _code_reason(str(cells.name), values) is not None
    return _code_kind(str(cells.name), cells) if coded else _plain_kind(cells)


def _plain_kind(cells: pd.Series) -> dict[str, Any]:
    """Return the kind of a column without codes of several characters, and the treatment of its blanks."""
    missing = missing_cells(cells)
    values = cells[~missing]
    if missing.any() and len(values) and (values.astype(str) == str(values.iloc[0])).all():
        return {"kind": "categorical"}  # one value and blanks are two states
    if is_numeric(values):
        if _are_codes(values) and not amount_name(str(cells.name)):
            return {"kind": "categorical"}
        return {"kind": "numeric"} | ({"missing": "value"} if missing.any() else {})
    if _are_partial_dates(values):
        return {"kind": "hierarchy", "hierarchy": {"calendar": ["month", "year"]}}
    codes = [] if values.dtype == bool else _codes_beside_numbers(values)
    if codes:
        return {"kind": "numeric", "codes": codes} | ({"missing": "value"} if missing.any() else {})
    return {"kind": "categorical"}


def _are_codes(values: pd.Series) -> bool:
    """Return whether numbers are few, whole and all frequent: 1, 2, 9 for categories."""
    numbers, times = np.unique(numbers_in(values), return_counts=True)
    few = 0 < len(numbers) <= _FEW_CODES and bool(times.min() >= _OFTEN)
    if _FEW_CODES < len(numbers) <= _SMALL_CODES:
        # numbers that begin with 0 are counts, and those that begin with 10 or 18 amounts
        few = bool(np.median(times) >= 2 and 1 <= numbers.min() < 10 and numbers.max() < 100)
    return few and not is_dates(values) and bool((numbers == np.floor(numbers)).all())


def _codes_beside_numbers(values: pd.Series) -> list[str]:
    """Return the codes of a column that is mostly numbers: the few texts that are not numbers, each too frequent to be an error."""
    texts = values.astype(str)
    numbers = ~np.isnan(numbers_in(texts))
    rest = texts[~numbers]
    times = rest.value_counts()
    if numbers.mean() < 0.5 or not 0 < len(times) <= _MOST_CODES or times.min() < _OFTEN:
        return []
    codes = sorted(str(text) for text in times.index)
    plain = all(text and text == text.strip() and not reads_as_number(text) for text in codes)
    try:
        numbers_of(texts[numbers], "", advice=None)
    except (DataError, ValueError, TypeError):
        return []
    return codes if plain and texts[numbers].nunique() > _FEW_NUMBERS else []


def _possible_codes(values: pd.Series, numeric: bool, dates: bool, mixed: bool = True) -> list[str]:
    """Return a column's values that may be codes for a missing value, and whether numbers are mixed with codes."""
    if dates:
        return []
    name_it = "if they stand for missing values, " + NAME_MISSING
    if numeric:
        numbers = numbers_in(values)
        below = numbers[numbers < 0]
        codes = sorted({int(number) for number in below if number in _NUMBER_CODES}, reverse=True)
        if len(codes) > 1 and np.isin(below, codes).all() and len(numbers) - len(below) >= 5:
            return [
                f"{plural(len(below), 'value', 'are')} {', '.join(map(str, codes))}, and no other is below 0: "
                + name_it
            ]
        for together in (*_CODES_TOGETHER, *((code,) for code in _NUMBER_CODES)):
            are_codes = np.isin(numbers, together)
            codes, others = sorted(map(int, set(numbers[are_codes]))), numbers[~are_codes]
            if len(codes) < min(2, len(together)) or len(others) < 5:
                continue
            # if other numbers are as large, they are ordinary numbers
            low, high = float(others.min()), float(others.max())
            gap = low - codes[-1] if codes[-1] < low else codes[0] - high if codes[0] > high else 0.0
            if gap > max(high - low, 1.0) * 0.5 or (codes[-1] < 0 <= low):
                count = plural(int(are_codes.sum()), "value", "are")
                return [f"{count} {', '.join(map(str, codes))}, far from all others: " + name_it]
        return []
    texts = values.astype(str)
    coded = texts.isin(codes_among(texts.unique()))
    numbers = ~np.isnan(numbers_in(texts))
    if numbers.mean() < 0.5:  # among words, such a number is not a code for a missing value
        coded |= texts.str.strip().isin([str(code) for code in _NUMBER_CODES])
    reasons: list[str] = (
        [f"{plural(int(coded.sum()), 'value', 'look')} like codes (?, N, NA, -9 and the like): " + name_it]
        if coded.any()
        else []
    )
    strange = texts[~numbers].nunique()
    if mixed and numbers.mean() >= 0.5 and 0 < strange <= 10:
        reasons.append(
            f"{int(numbers.sum()):,} numbers are mixed with {plural(strange, 'code')}: as categories they are published as lists"
        )
    return reasons
