"""Coding steps before a table is anonymized: top and bottom coding, rounding, intervals, recoding, dates, texts, rows.

Each step depends on one cell of one column alone: so a table in pieces, a register of the population and a whole table
are prepared in the same way.
"""

from __future__ import annotations

import csv
import io
import unicodedata
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass
from datetime import date
from decimal import Decimal, InvalidOperation
from os import PathLike
from pathlib import Path
from typing import Annotated, Any, Literal

import numpy as np
import pandas as pd

from anonflow.errors import DataError, Problem, SchemaError, setting
from anonflow.hierarchy import number_text
from anonflow.hierarchy.calendar import is_partial, period_labels
from anonflow.hierarchy.wording import no_such, plural, verb_of
from anonflow.option import NEEDED, Option, options_of
from anonflow.strict_yaml import unknown
from anonflow.table.domain import missing_cells
from anonflow.table.forms.date_forms import DATES, DateForm, partial_ends
from anonflow.table.forms.number_forms import NumberForm
from anonflow.table.forms.numbers import numbers_of
from anonflow.table.forms.text_columns import factorized, text_type
from anonflow.table.forms.text_forms import Form, other_form
from anonflow.table.named_settings import NAME_MISSING

MOST_BYTES = 1 << 25
"""Characters of a table file."""

MOST_VALUES = 100_000
"""Entries of a table of values in a step."""

_POSITIVE = "must be a positive number"


def _is_cell(value: Any) -> bool:
    return isinstance(value, str | int | float) and not isinstance(value, bool)


def _texts_problem(value: Any) -> str | None:
    is_list = isinstance(value, list | tuple) and all(isinstance(text, str) for text in value)
    return None if is_list else "must be a list of texts"


def _values_problem(value: Any) -> str | None:
    if not isinstance(value, list | tuple) or not 0 < len(value) <= MOST_VALUES:
        return "must be a list of values"
    return None if all(map(_is_cell, value)) else "must be a list of texts and numbers"


def _table_problem(value: Any) -> str | None:
    if value is None:
        return None
    if not isinstance(value, Mapping) or not 0 < len(value) <= MOST_VALUES:
        return f"must be a mapping of 1 to {MOST_VALUES:,} values to what they become"
    cells = (*value, *(new for new in value.values() if new is not None))
    return None if all(map(_is_cell, cells)) else "must be a mapping of texts and numbers"


def _date_problem(value: Any) -> str | None:
    try:
        if value is not None:
            _date(value)
    except ValueError:
        return "must be a date such as 2020-01-31"
    return None


Others = Annotated[Any, Option("Texts that stay", check=_texts_problem)]
Values = Annotated[Any, Option("Values", check=_values_problem)]


def top_code(
    cells: pd.Series, *, at: Annotated[float, Option("Largest number")], others: Others = ()
) -> pd.Series:
    """Replace numbers above a bound by the bound.

    Parameters
    ----------
    cells : pandas.Series
    at : float
        The largest number that stays.
    others : list, optional
        Texts that stay beside the numbers, such as codes.
    """
    bound = _exact_decimal(at)
    return _changed_numbers(cells, lambda number: min(number, bound), bound == int(bound), others)


def bottom_code(
    cells: pd.Series, *, at: Annotated[float, Option("Smallest number")], others: Others = ()
) -> pd.Series:
    """Replace numbers below a bound by the bound.

    Parameters
    ----------
    cells : pandas.Series
    at : float
        The smallest number that stays.
    others : list, optional
        Texts that stay beside the numbers, such as codes.
    """
    bound = _exact_decimal(at)
    return _changed_numbers(cells, lambda number: max(number, bound), bound == int(bound), others)


def round_to(
    cells: pd.Series,
    *,
    to: Annotated[float, Option("Multiples of", above=0, must=_POSITIVE)],
    others: Others = (),
) -> pd.Series:
    """Round numbers to the nearest multiple of a number; halves go up.

    Parameters
    ----------
    cells : pandas.Series
    to : float
        A positive number: 1000 rounds to thousands, 0.5 to halves.
    others : list, optional
        Texts that stay beside the numbers, such as codes.
    """
    unit = _exact_decimal(to)
    half = Decimal("0.5")
    return _changed_numbers(
        cells,
        lambda number: _floor(number / unit + half) * unit,
        unit == int(unit),
        others,
    )


def intervals(
    cells: pd.Series,
    *,
    width: Annotated[float, Option("Width", above=0, must=_POSITIVE)],
    start: Annotated[float, Option("Start")] = 0,
    others: Others = (),
) -> pd.Series:
    """Replace numbers by the text of an interval: ``[20, 30)`` has 20 and not 30.

    Parameters
    ----------
    cells : pandas.Series
    width : float
        Of every interval, positive.
    start : float, optional
        Where one interval begins.
    others : list, optional
        Texts that stay beside the numbers, such as codes.
    """
    step, first = _exact_decimal(width), _exact_decimal(start)

    def interval(number: Decimal) -> str:
        low = first + _floor((number - first) / step) * step
        return f"[{_decimal_text(low)}, {_decimal_text(low + step)})"

    return _texts_of_numbers(cells, interval, others)


def recode(
    cells: pd.Series,
    *,
    values: Annotated[Any, Option("Values", check=_table_problem)] = None,
    file: Annotated[
        str | None,
        Option("Table file", pattern=r"^[^\0]+$", must="must be the path of a CSV file"),
    ] = None,
    others: Annotated[
        Literal["keep", "missing", "refuse"], Option("Values that the table does not name")
    ] = "keep",
) -> pd.Series:
    """Replace values by others, by a table.

    Parameters
    ----------
    cells : pandas.Series
    values : mapping
        Value -> what it becomes; nothing (``null``) makes it missing. Numbers are written as they are published.
    file : str, optional
        Instead of values: a CSV file of two columns, ``old,new``, with that header, or ``value,label``; an empty new value makes it missing.

        A :class:`Preparation` reads it when it is made, in UTF-8.
    others : {"keep", "missing", "refuse"}, optional
        What happens to values that the table does not name.

    Raises
    ------
    DataError
        If there are others and they are refused, or there is a file that was not read.
    """
    if values is None:
        raise DataError(
            f"column {cells.name!r}: the table file of `recode` was not read; make a Preparation of the step"
        )
    table = {_cell_text(old): None if new is None else _cell_text(new) for old, new in values.items()}
    if others == "refuse":
        absent = int((~_texts_or_missing(cells).isin(list(table)) & ~missing_cells(cells)).sum())
        if absent:
            raise DataError(
                f"column {cells.name!r}: {plural(absent, 'cell', 'have')} a value that `recode` does not name; add it to its "
                "values, or say others: keep or missing"
            )
    return _changed_texts(cells, lambda text: table.get(text, text if others == "keep" else None))


def date_part(
    cells: pd.Series,
    *,
    part: Annotated[
        Literal[
            "year",
            "month",
            "year-month",
            "age",
            "day",
            "quarter",
            "half",
            "5-years",
            "10-years",
            "week",
            "weekday",
        ],
        Option("Part"),
    ],
    on: Annotated[Any, Option("On the date", check=_date_problem)] = None,
    unknown_day: Annotated[
        Literal["refuse", "youngest", "oldest", "missing"], Option("Age without a day of birth")
    ] = "refuse",
) -> pd.Series:
    """Replace dates by a part of the calendar that they lie in, or by the full years until a date.

    Parameters
    ----------
    cells : pandas.Series
    part : str
        ``year``, ``month`` (1 to 12), ``year-month``; ``day`` 2021-02-15, ``quarter`` `2021-Q1`, ``half`` `2021-H1`, ``5-years`` `2020-2024`,
        ``10-years`` `2020-2029`, ``week`` `2021-W07` (ISO 8601), ``weekday`` (1 is Monday); ``age``, the full years on a date.
    on : date, optional
        The date at which somebody born on these dates has the age; needed for it, and for it alone.
    unknown_day : {"refuse", "youngest", "oldest", "missing"}, optional
        The age of somebody of whose birth only the month or the year is known, such as `1984-07`, where it depends on the day.

    Raises
    ------
    DataError
        If cells are no dates, or do not say the part; or somebody is born after the date of the age.
    """
    missing = missing_cells(cells)
    out = np.full(len(cells), None, object)
    partial = _partial_dates(cells)
    if partial.any():
        return _part_of_partial(cells, partial, part, on, unknown_day)
    if not missing.all():
        moments, kind = numbers_of(cells[~missing], str(cells.name), advice=_ADVICE)
        if kind is None:
            raise DataError(f"column {cells.name!r}: has no dates for date-part; write them as 2020-01-31")
        months = moments.astype("datetime64[M]").astype(np.int64)
        years, month = 1970 + months // 12, months % 12 + 1
        if part == "age":
            day = (moments.astype("datetime64[D]") - moments.astype("datetime64[M]")).astype(np.int64) + 1
            at = _date(on)
            not_yet = (month > at.month) | ((month == at.month) & (day > at.day))
            ages = at.year - years - not_yet
            if (ages < 0).any():
                raise DataError(
                    f"column {cells.name!r}: {plural(int((ages < 0).sum()), 'date', 'are')} after {at}, where date-part takes the "
                    "age; take a later date"
                )
            out[~missing] = [str(age) for age in ages.tolist()]
        elif part in ("year", "month"):
            out[~missing] = [str(number) for number in (years if part == "year" else month).tolist()]
        else:
            out[~missing] = period_labels(moments.astype("datetime64[D]"), part.removeprefix("year-"))
    return pd.Series(out, index=cells.index, name=cells.name, dtype=text_type())


def numbers(
    cells: pd.Series,
    *,
    decimal: Annotated[Literal[".", ","] | None, Option("Before the fraction")] = None,
    thousands: Annotated[Literal[",", ".", " ", "'"] | None, Option("Between thousands")] = None,
    percent: Annotated[bool, Option("Percents")] = False,
    others: Annotated[Any, Option("Other texts", check=_texts_problem)] = (),
) -> pd.Series:
    """Read numbers as people write them: ``1.234,50 €`` becomes 1234.5; signs of currencies go, a minus may stand at the end.

    Parameters
    ----------
    cells : pandas.Series
        Of texts; numbers stay as they are.
    decimal : {".", ","}, optional
        What stands before the fraction: a point without it, or a comma where points stand between thousands.
    thousands : {",", ".", " ", "'"}, optional
        What may stand between thousands; a space is also a no-break one.
    percent : bool, optional
        Whether they are percents, of 100 at most: 12,5 % becomes 12.5.
    others : list, optional
        Texts that stay, such as codes.

    Raises
    ------
    DataError
        If cells are no such numbers, or have several currencies.
    """
    form = NumberForm(decimal, thousands, percent)
    return _read_texts(cells, form, others)


def dates(
    cells: pd.Series,
    *,
    order: Annotated[str, Option("Order", choices=DATES)],
    pivot: Annotated[int | None, Option("First year of two digits", least=0, most=9900)] = None,
    others: Annotated[Any, Option("Other texts", check=_texts_problem)] = (),
) -> pd.Series:
    """Read dates as people write them: 31.12.2014 becomes 2014-12-31; a month may be a name, and a time may follow.

    Parameters
    ----------
    cells : pandas.Series
        Of texts; dates stay as they are.
    order : str
        Of day, month and year, such as d.m.y, whatever stands between them, or ymd in eight digits; or excel for serial numbers of a
        spreadsheet.
    pivot : int, optional
        The first year that two digits can mean: `1930` takes 30 for `1930` and 29 for `2029`.
    others : list, optional
        Texts that stay, such as codes.

    Raises
    ------
    DataError
        If cells are no such dates, or have years of two digits and there is no pivot.
    """
    return _read_texts(cells, DateForm(order, pivot), others)


def _read_texts(cells: pd.Series, form: Form, others: Iterable[Any]) -> pd.Series:
    """Return plain numbers or ISO dates for the texts of a column; each distinct text is read once."""
    takes_numbers = isinstance(form, DateForm) and form.takes_numbers
    plain_type = pd.api.types.is_numeric_dtype(cells.dtype) and not takes_numbers
    if plain_type or pd.api.types.is_datetime64_any_dtype(cells.dtype):
        return cells
    at, distinct = factorized(cells, str(cells.name))
    values = np.array(list(distinct), object)
    counts = np.bincount(at[at >= 0], minlength=len(values))
    other_texts = {_cell_text(other) for other in others}
    texts = np.array([_cell_text(value) for value in values.tolist()], object)
    written = np.array(
        [
            (takes_numbers or isinstance(value, str)) and text not in other_texts
            for value, text in zip(values.tolist(), texts.tolist(), strict=True)
        ],
        bool,
    )
    result = texts.copy()
    if written.any():
        reading = form.read(texts[written].tolist())
        problem = reading.problem(counts[written])
        bad = ~reading.good
        if bad.any():
            problem = f"{no_such(int(counts[written][bad].sum()), form.kind)} with {form.words}; " + (
                other_form(texts[written].tolist(), counts[written]) or _ADVICE
            )
        if problem is not None:
            raise DataError(f"column {cells.name!r}: {problem}")
        result[written] = reading.plain
    table = np.array([*result, None], object)
    return pd.Series(table[at], index=cells.index, name=cells.name, dtype=text_type())


def _partial_dates(cells: pd.Series) -> np.ndarray:
    """Return which cells are a year, or a year and a month, beside dates, shape (n,), bool."""
    if pd.api.types.is_numeric_dtype(cells.dtype) or pd.api.types.is_datetime64_any_dtype(cells.dtype):
        return np.zeros(len(cells), bool)
    at, distinct = pd.factorize(cells)
    texts = list(distinct)
    partial = [isinstance(text, str) and is_partial(text) for text in texts]
    return (
        np.zeros(len(cells), bool)
        if all(partial) and not any(len(str(text)) == 7 for text in texts)
        else np.array([*partial, False])[at]
    )


def _part_of_partial(
    cells: pd.Series, partial: np.ndarray, part: Any, on: Any, unknown_day: str
) -> pd.Series:
    """Return the parts of dates of which the day, or the month, of some is not known: those of their first and last day, if equal."""
    ends = []
    for place in (0, 1):
        whole = cells.astype(object).copy()
        whole[partial] = [partial_ends(text)[place] for text in cells[partial]]
        ends.append(date_part(whole, part=part, on=on))
    first, last = ends
    open_ = ((first != last) & first.notna()).to_numpy(dtype=bool)
    if not open_.any() or (part == "age" and unknown_day == "oldest"):
        return first
    if part == "age" and unknown_day == "youngest":
        return last
    if part == "age" and unknown_day == "missing":
        return first.mask(open_)
    raise DataError(
        f"column {cells.name!r}: {plural(int(open_.sum()), 'date', 'are')} a month or a year alone and {verb_of(int(open_.sum()), 'do')} not say the {part}; "
        + (
            "say unknown-day: youngest, oldest or missing"
            if part == "age"
            else "take a longer part, such as year"
        )
    )


def normalize_text(
    cells: pd.Series,
    *,
    case: Annotated[Literal["keep", "lower", "upper"], Option("Letters")] = "keep",
    accents: Annotated[Literal["keep", "remove"], Option("Accents")] = "keep",
) -> pd.Series:
    """Normalize texts: those that differ in spaces only become equal; optionally also those that differ in case or accents.

    Outer spaces go, inner ones become one, and letters are composed (Unicode NFC). Texts that are empty then are missing.

    Parameters
    ----------
    cells : pandas.Series
    case : {"keep", "lower", "upper"}, optional
        What happens to letters.
    accents : {"keep", "remove"}, optional
        Whether marks on letters stay.

    Raises
    ------
    DataError
        If the column holds no text.
    """
    if pd.api.types.is_numeric_dtype(cells.dtype) or pd.api.types.is_datetime64_any_dtype(cells.dtype):
        raise DataError(f"column {cells.name!r}: holds no text to normalize; leave the step out")

    def normal(text: str) -> str | None:
        text = " ".join(unicodedata.normalize("NFC", text).split())
        text = {"keep": text, "lower": text.lower(), "upper": text.upper()}[case]
        if accents == "remove":
            letters = unicodedata.normalize("NFD", text)
            text = unicodedata.normalize("NFC", "".join(c for c in letters if not unicodedata.combining(c)))
        return text or None

    return _changed_texts(cells, normal)


Length = Annotated[int, Option("Characters", least=1)]
Shorter = Annotated[Literal["refuse", "keep", "missing"], Option("Shorter codes")]


def prefix(cells: pd.Series, *, length: Length, shorter: Shorter = "refuse") -> pd.Series:
    """Replace codes by their first characters: ``37218-1234`` by ``37218``.

    Parameters
    ----------
    cells : pandas.Series
    length : int
        How many characters stay.
    shorter : {"refuse", "keep", "missing"}, optional
        What happens to codes of fewer characters.

    Raises
    ------
    DataError
        If there are shorter codes and they are refused.
    """
    return _cut(cells, slice(length), length, shorter, "prefix")


def suffix(cells: pd.Series, *, length: Length, shorter: Shorter = "refuse") -> pd.Series:
    """Replace codes by their last characters.

    Parameters
    ----------
    cells : pandas.Series
    length : int
        How many characters stay.
    shorter : {"refuse", "keep", "missing"}, optional
        What happens to codes of fewer characters.

    Raises
    ------
    DataError
        If there are shorter codes and they are refused.
    """
    return _cut(cells, slice(-length, None), length, shorter, "suffix")


def _cut(cells: pd.Series, part: slice, length: int, shorter: str, step: str) -> pd.Series:
    texts = _texts_or_missing(cells)
    short = texts.str.len() < length
    if shorter == "refuse" and short.any():
        raise DataError(
            f"column {cells.name!r}: {plural(int(short.sum()), 'cell', 'have')} fewer than the {length} characters of `{step}`; give a "
            "smaller length, or say shorter: keep or missing"
        )
    return _changed_texts(
        texts, lambda text: None if len(text) < length and shorter == "missing" else text[part]
    )


def filter_rows(
    cells: pd.Series,
    *,
    at_least: Annotated[float | None, Option("At least")] = None,
    at_most: Annotated[float | None, Option("At most")] = None,
    values: Values = None,
    without: Annotated[Any, Option("Without the values", check=_values_problem)] = None,
    missing: Annotated[Literal["drop", "keep"], Option("Rows without a value")] = "drop",
) -> pd.Series:
    """Return which rows stay: those whose value is in a range, among some values, or not among others.

    Parameters
    ----------
    cells : pandas.Series
    at_least, at_most : float, optional
        The smallest and the largest number that stay.
    values : list, optional
        Those that stay.
    without : list, optional
        Those that go.
    missing : {"drop", "keep"}, optional
        Whether rows without a value go or stay.
    """
    lacking = missing_cells(cells)
    good = np.ones(len(cells), bool)
    if at_least is not None or at_most is not None:
        numbers = np.zeros(len(cells))
        numbers[~lacking] = _numbers_there(cells, lacking)
        good &= numbers >= (-np.inf if at_least is None else at_least)
        good &= numbers <= (np.inf if at_most is None else at_most)
    if values is not None or without is not None:
        texts = _texts_or_missing(cells)
        if values is not None:
            good &= texts.isin([_cell_text(value) for value in values]).to_numpy()
        if without is not None:
            good &= ~texts.isin([_cell_text(value) for value in without]).to_numpy()
    good[lacking] = missing == "keep"
    return pd.Series(good, index=cells.index)


def rename(
    cells: pd.Series, *, to: Annotated[str, Option("New name", pattern=r"\S", must="must not be empty")]
) -> pd.Series:
    """Rename a column.

    Parameters
    ----------
    cells : pandas.Series
    to : str
        A name that no other column has.
    """
    return cells.rename(to)


STEPS: dict[str, Callable[..., pd.Series]] = {
    "numbers": numbers,
    "dates": dates,
    "top-code": top_code,
    "bottom-code": bottom_code,
    "round": round_to,
    "intervals": intervals,
    "recode": recode,
    "date-part": date_part,
    "normalize-text": normalize_text,
    "prefix": prefix,
    "suffix": suffix,
    "filter": filter_rows,
    "rename": rename,
}
"""Every step by its name in a flow, with its function of a column's cells."""


@dataclass(frozen=True)
class Step:
    """One step.

    Attributes
    ----------
    name : str
        Of `STEPS`.
    column : str
    options : dict
        As the step's function takes them.
    file : str or None
        The table file that the options' values were read from.
    declared : bool
        Whether it is among the steps; otherwise it follows from the keys of a column (``decimal``, ``dates`` ...).
    """

    name: str
    column: str
    options: dict[str, Any]
    file: str | None = None
    declared: bool = True

    @property
    def written(self) -> dict[str, Any]:
        """The options as a flow has them: a table file by its name."""
        if self.file is None:
            return self.options
        return {"file": self.file, **{key: value for key, value in self.options.items() if key != "values"}}

    @property
    def words(self) -> str:
        """The step in a few words; tables of values as their length."""
        options = [
            f"{key.replace('_', '-')} {f'({len(value)})' if isinstance(value, Mapping | list | tuple) else value}"
            for key, value in self.written.items()
        ]
        return f"{self.name} {self.column}" + (f": {', '.join(options)}" if options else "")

    def apply(self, frame: pd.DataFrame) -> pd.DataFrame:
        """Return the frame after the step.

        Raises
        ------
        DataError
            If cells do not go with the step, or a new name is there already.
        """
        result = STEPS[self.name](frame[self.column], **self.options)
        if self.name == "filter":
            return frame.loc[result.to_numpy(dtype=bool)]
        if self.name == "rename":
            if result.name in frame.columns:
                raise DataError(
                    f"column {self.column!r}: its new name {result.name!r} is taken; take another"
                )
            return frame.rename(columns={self.column: result.name})
        return frame.assign(**{self.column: result})


class Preparation:
    """The steps before, in their order.

    Parameters
    ----------
    steps : sequence of mapping
        Each has the name of one step, with its column and options:
        ``{"top-code": {"column": "age", "at": 90}}``.
    folder : path, optional
        Where relative paths of table files start; the working directory without it.

    Attributes
    ----------
    steps : tuple of Step

    Raises
    ------
    SchemaError
        With every problem: another form than a list, unknown steps and options, invalid values of options, unreadable files.
    """

    def __init__(self, steps: Sequence[Any] | None = (), folder: str | PathLike[str] | None = None) -> None:
        problems: list[Problem] = []
        checked_steps: list[Step] = []
        if steps is not None and (not isinstance(steps, Sequence) or isinstance(steps, str)):
            problems.append(
                Problem((), "prepare: is a list of steps such as {top-code: {column: age, at: 90}}")
            )
            steps = ()
        for place, entry in enumerate(steps or ()):
            step = _step(place, entry, problems, Path(folder or ""))
            if step is not None:
                checked_steps.append(step)
        if problems:
            raise SchemaError.collected(
                "the steps before cannot be used", [problem.text for problem in problems], problems
            )
        self.steps = tuple(checked_steps)

    @property
    def files(self) -> tuple[str, ...]:
        """The table files, as they are named."""
        return tuple(step.file for step in self.steps if step.file is not None)

    @property
    def forms(self) -> bool:
        """Whether some steps follow from the keys of columns."""
        return not all(step.declared for step in self.steps)

    def __bool__(self) -> bool:
        return bool(self.steps)

    def __repr__(self) -> str:
        return "\n".join(["Preparation", *(f"  {step.words}" for step in self.steps)])

    def to_list(self) -> list[dict[str, Any]]:
        """Return the steps in a flow's form, which reads back to the same steps."""
        return [
            {
                step.name: {
                    "column": step.column,
                    **{key.replace("_", "-"): value for key, value in step.written.items()},
                }
            }
            for step in self.steps
            if step.declared
        ]

    def with_forms(self, forms: Mapping[str, Form], others: Mapping[str, Sequence[str]]) -> Preparation:
        """Return the same steps after those that read columns in some forms.

        Parameters
        ----------
        forms : mapping
            Column, by its name after all steps, -> how its cells are written.
        others : mapping
            Column -> texts that stay.
        """
        declared = tuple(step for step in self.steps if step.declared)
        before: dict[str, str] = {}
        for step in declared:
            if step.name == "rename":
                before[step.options["to"]] = before.pop(step.column, step.column)
        first = []
        for name, form in forms.items():
            options = form.options | ({"others": list(others[name])} if others.get(name) else {})
            first.append(Step(form.kind, before.get(name, name), options, declared=False))
        other = Preparation()
        other.steps = (*first, *declared)
        return other

    def renamed(self, names: Iterable[str]) -> dict[str, str]:
        """Return column -> its name after all steps, for those that have another one then.

        Parameters
        ----------
        names : iterable of str
            The columns before.
        """
        now = {name: name for name in names}
        for step in self.steps:
            if step.name == "rename":
                now = {old: step.options["to"] if name == step.column else name for old, name in now.items()}
        return {old: name for old, name in now.items() if old != name}

    def apply(self, frame: pd.DataFrame, partial: bool = False) -> pd.DataFrame:
        """Return a frame after all steps; the argument is not changed.

        Parameters
        ----------
        frame : pandas.DataFrame
        partial : bool, optional
            Whether columns may be absent, as in a register: their steps are then left out.

        Raises
        ------
        SchemaError
            If a step names a column that is not there.
        DataError
            If cells do not go with a step.
        """
        for step in self.steps:
            if step.column not in frame.columns:
                if partial or not step.declared:  # the schema's check says which column is not there
                    continue
                raise _absent(step, frame)
            frame = step.apply(frame)
        return frame

    def changes(self, frame: pd.DataFrame) -> pd.DataFrame:
        """Return the changes of each step in a frame, one after the other.

        Parameters
        ----------
        frame : pandas.DataFrame

        Returns
        -------
        pandas.DataFrame
            Columns step, column, changed (cells that are another value than before), removed (rows), distinct (values
            before) and left (distinct values after). Counts, never a value.

        Raises
        ------
        SchemaError, DataError
            As :meth:`apply`.
        """
        rows = []
        for step in self.steps:
            if step.column not in frame.columns:
                raise _absent(step, frame)
            after = step.apply(frame)
            name = step.options["to"] if step.name == "rename" else step.column
            old, new = _texts_or_missing(frame[step.column].loc[after.index]), _texts_or_missing(after[name])
            same = (old == new) | (missing_cells(old) & missing_cells(new))
            rows.append(
                {
                    "step": step.words,
                    "column": step.column,
                    "changed": int((~same).sum()),
                    "removed": len(frame) - len(after),
                    "distinct": int(frame[step.column].nunique()),
                    "left": int(after[name].nunique()),
                }
            )
            frame = after
        return pd.DataFrame(rows, columns=["step", "column", "changed", "removed", "distinct", "left"])


def _absent(step: Step, frame: pd.DataFrame) -> SchemaError:
    names = [str(name) for name in frame.columns]
    return SchemaError(f"prepare, {step.name}: {unknown(step.column, names, 'column')}")


def _step(place: int, entry: Any, problems: list[Problem], folder: Path) -> Step | None:
    """Check one entry."""
    before = len(problems)

    def add(text: str, *path: str) -> None:
        problems.append(Problem((place, *path), f"prepare, step {place + 1}: {text}"))

    if not isinstance(entry, Mapping) or len(entry) != 1:
        add("needs one name with its options, such as {top-code: {column: age, at: 90}}")
        return None
    ((name, step_options),) = entry.items()
    if name not in STEPS:
        add(unknown(str(name), STEPS, "step"))
        return None
    if not isinstance(step_options, Mapping):
        add(f"{name} needs a mapping with its column", name)
        return None
    options = options_of(STEPS[name])
    column = step_options.get("column")
    if not isinstance(column, str) or not column:
        add(f"{name} needs the name of its column", name)
    read: dict[str, Any] = {}
    spelled = {key.replace("_", "-"): key for key in options}
    for key, value in step_options.items():
        if key == "column":
            continue
        option_name = spelled.get(str(key).replace("_", "-"))
        if option_name is None:
            add(f"{name}: {unknown(str(key), ['column', *spelled])}", name, str(key))
            continue
        problem = options[option_name].problem(value)
        if problem is not None:
            add(f"{name}: {key} {problem}", name, str(key))
        read[option_name] = value
    for key, option in options.items():
        if option.default is NEEDED and key not in read:
            add(f"{name} needs {key.replace('_', '-')}", name)
    if len(problems) == before:
        text = _together(name, read)
        if text is not None:
            add(f"{name}: {text}", name)
    file = read.pop("file", None)
    if len(problems) == before and file is not None:
        try:
            read["values"] = table_of_file(folder / file)
        except SchemaError as error:
            add(f"{name}: {error.message}", name, "file")
    return Step(name, str(column), read, file) if len(problems) == before else None


def table_of_file(path: Path) -> dict[str, str | None]:
    """Return the table of a file, value -> what it becomes: a CSV file with the header old,new, or value,label of a codebook.

    Raises
    ------
    SchemaError
        If the file cannot be read, or is no such table.
    """
    try:
        with path.open(encoding="utf-8-sig", newline="") as file:
            text = file.read(MOST_BYTES + 1)
    except (OSError, ValueError) as error:
        why = (
            "is not in UTF-8; convert it"
            if isinstance(error, UnicodeError)
            else "cannot be read; check the path"
        )
        raise SchemaError(f"the table file {path.name!r} {why}") from None
    if len(text) > MOST_BYTES:
        raise SchemaError(f"the table file {path.name!r} has more than {MOST_BYTES:,} characters; shorten it")
    try:
        rows = list(csv.reader(io.StringIO(text), strict=True))
    except csv.Error:
        raise SchemaError(
            f"the table file {path.name!r} is no CSV file; write values with commas in quotes"
        ) from None
    if not rows or [cell.strip().lower() for cell in rows[0]] not in (["old", "new"], ["value", "label"]):
        raise SchemaError(
            f"the table file {path.name!r} does not begin with the line old,new; add it (of a codebook: value,label)"
        )
    table: dict[str, str | None] = {}
    for line, row in enumerate(rows[1:], start=2):
        if not row:
            continue
        if len(row) != 2:
            raise SchemaError(
                f"the table file {path.name!r}, line {line}: has {len(row)} cells; write old,new"
            )
        if row[0] in table:
            raise SchemaError(
                f"the table file {path.name!r}, line {line}: its value is there already; keep one of the two"
            )
        table[row[0]] = row[1] or None
    if not 0 < len(table) <= MOST_VALUES:
        raise SchemaError(
            f"the table file {path.name!r} has {len(table):,} values; 1 to {MOST_VALUES:,} can be used"
        )
    return table


def _together(step: str, options: Mapping[str, Any]) -> str | None:
    """Return the problem of a combination of options that are valid separately."""
    if step == "recode" and (options.get("values") is None) == (options.get("file") is None):
        return "needs values or a table file, one of the two"
    if step == "date-part" and (options["part"] == "age") != (options.get("on") is not None):
        return "the date `on` goes with the part age, and age needs it"
    if step == "filter" and not {"at_least", "at_most", "values", "without"} & {
        key for key, value in options.items() if value is not None
    }:
        return "needs at-least, at-most, values or without"
    if step == "numbers":
        return NumberForm(**{key: value for key, value in options.items() if key != "others"}).problem
    low, high = options.get("at_least"), options.get("at_most")
    if low is not None and high is not None and low > high:
        return "at-least is above at-most; no row would stay"
    return None


def _cell_text(value: Any) -> str:
    """Return a cell as text: a number in its shortest form."""
    if isinstance(value, int | float | np.integer | np.floating) and not isinstance(value, bool | np.bool_):
        return number_text(value)
    return str(value)


def _date(value: Any) -> date:
    return value if type(value) is date else date.fromisoformat(str(value))


def _exact_decimal(number: float) -> Decimal:
    return Decimal(repr(number))


def _floor(number: Decimal) -> Decimal:
    whole = Decimal(int(number))
    return whole - 1 if whole > number else whole


def _decimal_text(number: Decimal) -> str:
    return number_text(int(number) if number == int(number) else float(number))


_ADVICE = "recode them in a step before, or " + NAME_MISSING
_STAY = _ADVICE + "; codes stay: " + setting("others", "name them under 'others' of the step")


def _numbers_there(cells: pd.Series, missing: np.ndarray) -> np.ndarray:
    """Return the numbers of the cells that have a value."""
    if missing.all():
        return np.zeros(0, np.int64)
    values, dates = numbers_of(cells[~missing], str(cells.name), advice=_STAY)
    if dates is not None:
        raise DataError(f"column {cells.name!r}: has dates, not numbers; take date-part before")
    return values


def _once_per_number(values: np.ndarray, function: Callable[[Decimal], Any]) -> list[Any]:
    """Return a function of every number, computed once for each distinct one."""
    distinct, inverse = np.unique(values, return_inverse=True)
    try:
        results = [function(Decimal(repr(number))) for number in distinct.tolist()]
    except InvalidOperation:
        raise DataError(
            "a number is too large for the step; leave it out, or give a wider interval"
        ) from None
    return [results[at] for at in inverse.tolist()]


def _without(cells: pd.Series, others: Iterable[Any]) -> np.ndarray:
    """Return which cells are no numbers: missing ones, and texts that stay."""
    missing, texts = missing_cells(cells), list(others)
    if not texts or pd.api.types.is_numeric_dtype(cells.dtype):
        return missing
    return missing | cells.isin(texts).to_numpy(dtype=bool)


def _changed_numbers(
    cells: pd.Series, function: Callable[[Decimal], Decimal], whole: bool, others: Iterable[Any] = ()
) -> pd.Series:
    """Return another number for each: numbers stay numbers, and texts of numbers texts.

    The type depends on that of the column alone, never on its values: all pieces of a table get the same.
    """
    if not pd.api.types.is_numeric_dtype(cells.dtype):
        return _texts_of_numbers(cells, lambda number: _decimal_text(function(number)), others)
    missing = missing_cells(cells)
    numbers = _once_per_number(_numbers_there(cells, missing), function)
    if pd.api.types.is_integer_dtype(cells.dtype) and whole:
        # a bound may lie outside a small type, and pandas writes the cells that do not fit into its error
        nullable = isinstance(cells.dtype, pd.api.extensions.ExtensionDtype)
        is_wide = str(cells.dtype).lower().endswith("int64")
        integers = cells.copy() if is_wide else cells.astype("Int64" if nullable else "int64")
        integers[~missing] = np.array([int(number) for number in numbers], np.int64)
        return integers
    floats = np.full(len(cells), np.nan)
    floats[~missing] = [float(number) for number in numbers]
    return pd.Series(floats, index=cells.index, name=cells.name)


def _texts_of_numbers(
    cells: pd.Series, function: Callable[[Decimal], str], others: Iterable[Any] = ()
) -> pd.Series:
    missing = _without(cells, others)
    out = np.full(len(cells), None, object)
    out[~missing] = _once_per_number(_numbers_there(cells, missing), function)
    stays = missing & ~missing_cells(cells)
    out[stays] = [_cell_text(text) for text in cells[stays]]
    return pd.Series(out, index=cells.index, name=cells.name, dtype=text_type())


def _texts_or_missing(cells: pd.Series) -> pd.Series:
    """Return the cells as texts, missing where they are."""
    return _changed_texts(cells, lambda text: text)


def _changed_texts(cells: pd.Series, function: Callable[[str], str | None]) -> pd.Series:
    """Return another text for each value, computed once for each distinct one."""
    codes, distinct = pd.factorize(cells)
    results = np.array([None, *(function(_cell_text(value)) for value in distinct)], object)
    return pd.Series(results[codes + 1], index=cells.index, name=cells.name, dtype=text_type())
