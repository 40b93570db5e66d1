"""The form in which people write numbers: separators, signs, percent, currencies; read from text, and recognized."""

from __future__ import annotations

import re
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from functools import cached_property
from typing import Any, ClassVar

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from anonflow.hierarchy import number_text
from anonflow.hierarchy.wording import plural

_BLANK = "[ \\t\u00a0\u2007\u2009\u202f]"
_DECIMALS = {".": "a decimal point", ",": "a decimal comma"}
_THOUSANDS = {
    ",": (",", "commas"),
    ".": ("[.]", "points"),
    " ": (_BLANK, "spaces"),
    "'": ("['\u2019]", "apostrophes"),
}
DECIMALS = tuple(_DECIMALS)
"""What may stand before the fraction of a number."""

THOUSANDS = tuple(_THOUSANDS)
"""What may stand between thousands; a space is also a no-break or a narrow one."""

_CODES = (
    "AUD BGN BRL CAD CHF CNY CZK DKK EUR GBP HUF INR ISK JPY KRW MXN NOK NZD PLN RON RUB SEK TRY UAH USD ZAR"
)
_MONEY = (
    rf"(?:(?:A|C|R|US)?\p{{Sc}}|{_CODES.replace(' ', '|')}|SFr\.?|Fr\.?|Kč|kr\.?|zł|Ft|lei|лв\.?|руб\.?|р\.)"
)
_PERCENT = "%\uff05"
_DIGIT = re.compile("[0-9]")
_NO_NUMBER = re.compile(rf"[0-9](?!(?:{_BLANK}|[.,'\u2019])*(?:[eE][+\-]?)?[0-9])[^0-9]+[0-9]")
"""Something between two digits that no number has there."""

_LEDGER = r"^\(([^()+\-\x{2212}]*)\)$"
"""A negative number as accountants write it, in parentheses."""

_FIRST = 1_000
"""Distinct texts on which every form is tried before it is tried on all."""


@dataclass(frozen=True)
class NumberForm:
    """How the numbers of a column are written.

    Attributes
    ----------
    decimal : {".", ","} or None
        What stands before the fraction; None is a point, or a comma where points stand between thousands.
    thousands : {",", ".", " ", "'"} or None
        What may stand between thousands; None is nothing.
    percent : bool
        Whether they are percents: with a percent sign each, or none of them. 12,5 % is read as 12.5.
    """

    decimal: str | None = None
    thousands: str | None = None
    percent: bool = False

    kind: ClassVar[str] = "numbers"
    """What is written so."""

    @property
    def point(self) -> str:
        """What stands before the fraction."""
        return self.decimal or ("," if self.thousands == "." else ".")

    @property
    def problem(self) -> str | None:
        """What is wrong with the two separators together, in words; None if nothing is."""
        if self.point == self.thousands:
            return "decimal and thousands are the same; a number has another one for each"
        return None

    @property
    def words(self) -> str:
        """The form in words."""
        words = [_DECIMALS[self.point]]
        if self.thousands is not None:
            words.append(f"{_THOUSANDS[self.thousands][1]} between thousands")
        return " and ".join(words + (["percent signs"] if self.percent else []))

    @property
    def example(self) -> str:
        """A large number in this form."""
        return self.written("-1234567.5").removeprefix("-") + ("%" if self.percent else "")

    def to_mapping(self) -> dict[str, Any]:
        """Return the keys of a schema's column."""
        keys = {"decimal": self.decimal, "thousands": self.thousands, "percent": self.percent or None}
        return {key: value for key, value in keys.items() if value is not None}

    @property
    def options(self) -> dict[str, Any]:
        """The options of the step that reads them."""
        return self.to_mapping()

    @cached_property
    def _pattern(self) -> str:
        between = None if self.thousands is None else _THOUSANDS[self.thousands][0]
        grouped = "" if between is None else rf"[0-9]{{1,3}}(?:{between}[0-9]{{3}})+|"
        fraction = r"\.[0-9]*" if self.point == "." else r",[0-9]+"
        return (
            rf"^(?P<sign>[+\-\x{{2212}}]?){_BLANK}*(?P<money>{_MONEY})?{_BLANK}*(?P<inner>[+\-\x{{2212}}]?){_BLANK}*"
            rf"(?P<whole>{grouped}[0-9]*)(?P<fraction>{fraction})?(?P<exponent>[eE][+-]?[0-9]{{1,3}})?"
            rf"{_BLANK}*(?P<unit>{_MONEY}|[{_PERCENT}])?{_BLANK}*(?P<after>[\-\x{{2212}}]?)$"
        )

    def read(self, texts: Sequence[str]) -> Reading:
        """Return the plain numbers of texts, all at once.

        Parameters
        ----------
        texts : sequence of str
            Distinct values.
        """
        cells = pc.replace_substring_regex(
            pa.array(texts, pa.string()), rf"^(?:{_BLANK}|\s)+|(?:{_BLANK}|\s)+$", ""
        )
        cells = pc.replace_substring_regex(cells, _LEDGER, r"-\1")
        parts = pc.extract_regex(cells, self._pattern)
        fits = np.asarray(parts.is_valid())

        def part(name: str) -> pa.Array:
            return pc.fill_null(pc.struct_field(parts, name), "")

        whole = pc.replace_substring_regex(part("whole"), "[^0-9]", "")
        fraction = pc.replace_substring_regex(part("fraction"), "[^0-9]", "")
        signs = [np.asarray(pc.not_equal(part(name), "")) for name in ("sign", "inner", "after")]
        money, unit = part("money"), part("unit")
        sign_of_percent = np.asarray(pc.is_in(unit, value_set=pa.array(list(_PERCENT))))
        fits &= np.asarray(pc.not_equal(pc.binary_join_element_wise(whole, fraction, ""), ""))
        fits &= np.sum(signs, axis=0) <= 1
        fits &= ~(np.asarray(pc.not_equal(money, "")) & np.asarray(pc.not_equal(unit, "")))
        fits &= ~sign_of_percent | self.percent
        negative = pc.match_substring_regex(
            pc.binary_join_element_wise(part("sign"), part("inner"), part("after"), ""), r"[\-−]"
        )
        whole = pc.replace_substring_regex(pc.binary_join_element_wise("0", whole, ""), "^0+([0-9])", r"\1")
        fraction = pc.replace_substring_regex(fraction, "0+$", "")
        plain = pc.if_else(pc.equal(fraction, ""), whole, pc.binary_join_element_wise(whole, fraction, "."))
        power = part("exponent")
        zero = pc.match_substring_regex(plain, "^0$")
        plain = pc.if_else(pc.and_not(negative, zero), pc.binary_join_element_wise("-", plain, ""), plain)
        plain = pc.binary_join_element_wise(plain, power, "")
        numbers = np.array(plain.to_pylist(), object)
        for at in np.flatnonzero(np.asarray(pc.not_equal(power, "")) & fits).tolist():
            numbers[at] = number_text(float(numbers[at]))
        numbers[~fits] = None
        currency = pc.if_else(sign_of_percent, "", pc.binary_join_element_wise(money, unit, ""))
        return Reading(
            numbers, fits & sign_of_percent, np.where(fits, currency.to_pylist(), ""), self.percent
        )

    def cell(self, plain: str) -> str:
        """Return a plain number as a release writes it in this form: percents with their sign."""
        return self.written(plain) + ("%" if self.percent else "")

    def written(self, plain: str) -> str:
        """Return a plain number in this form, without a sign of percent or currency."""
        sign, digits = ("-", plain[1:]) if plain[:1] == "-" else ("", plain)
        whole, dot, fraction = digits.partition(".")
        if "e" in digits or "E" in digits:
            return plain.replace(".", self.point)
        if self.thousands is not None:
            whole = re.sub(r"(?<=\d)(?=(?:\d{3})+$)", self.thousands, whole)
        return sign + whole + (self.point + fraction if dot else "")


@dataclass(frozen=True)
class Reading:
    """The numbers of distinct texts.

    Attributes
    ----------
    plain : numpy.ndarray, shape (u,), object
        The text of each plain number, without a loss of digits; None where a text is no number of the form.
    percent : numpy.ndarray, shape (u,), bool
        Which have a percent sign.
    currency : numpy.ndarray, shape (u,), str
        The sign or code of a currency, ``""`` without one.
    percents : bool
        Whether all are percents.
    """

    plain: np.ndarray
    percent: np.ndarray
    currency: np.ndarray
    percents: bool = False

    @property
    def good(self) -> np.ndarray:
        """Which texts are numbers of the form, shape (u,), bool."""
        return np.array([text is not None for text in self.plain.tolist()], bool)

    def problem(self, counts: np.ndarray) -> str | None:
        """Return what forbids to take these for the numbers of one column, in words without a value; None if nothing does.

        Parameters
        ----------
        counts : numpy.ndarray, shape (u,), int64
            How often each text occurs.
        """
        currencies = len(set(self.currency.tolist()) - {""})
        if currencies > 1:
            return f"has amounts in {currencies} currencies; convert them to one"
        if not self.percents:
            return None
        read = self.good
        with_sign = int(counts[self.percent].sum())
        without = int(counts[read & ~self.percent].sum())
        if with_sign and without:
            return f"has {plural(with_sign, 'value')} with a percent sign and {without:,} without; write all of them in one way"
        over = np.zeros(len(self.plain), bool)
        over[read] = np.abs(self.plain[read].astype(np.float64)) > 100
        if over.any():
            return f"has {int(counts[over].sum()):,} percents above 100; correct them"
        return None


def number_forms(texts: Sequence[str]) -> list[NumberForm]:
    """Return the forms in which texts can be read, one for each reading, the plainest first.

    Parameters
    ----------
    texts : sequence of str
        All distinct values of a column.

    Returns
    -------
    list of NumberForm
        Empty if they are not numbers in any form; several if the same texts are other numbers in each.
    """
    if all(text.strip().startswith("(") for text in texts):
        return []  # numbers of a list, such as (1) and (2)
    if not all(map(may_be_number, texts)):
        return []
    sign = any(text.rstrip().endswith(tuple(_PERCENT)) for text in texts)
    forms: list[NumberForm] = []
    readings: list[list[str]] = []
    for form in _candidates(sign):
        for part in (texts[:_FIRST], texts):
            reading = form.read(part)
            if not reading.good.all() or not _is_consistent(part, form):
                break
        else:
            plain = reading.plain.tolist()
            if plain not in readings:
                forms.append(form)
                readings.append(plain)
    return forms


def may_be_number(text: str) -> bool:
    """Return whether a text has digits, and between them what a number may have there; another text is no number in any form.

    Arrow takes a millisecond or two to compile the pattern of a form, each time: columns of other texts are told without it.
    """
    return bool(_DIGIT.search(text)) and not _NO_NUMBER.search(text)


def has_second_reading(texts: Sequence[str]) -> bool:
    """Return whether plain numbers can also be read with points between thousands, as other numbers: 1.234.

    Parameters
    ----------
    texts : sequence of str
        All distinct values of a column, all plain numbers.
    """
    other = NumberForm(None, ".")
    pointed = [text for text in texts if "." in text]
    fits = bool(pointed) and bool(other.read(pointed[:_FIRST]).good.all())
    return fits and bool(other.read(texts).good.all()) and _is_consistent(texts, other)


def _candidates(percent: bool) -> Iterator[NumberForm]:
    for thousands in (None, *THOUSANDS):
        for decimal in DECIMALS:
            if decimal == thousands:
                continue
            # a schema says what is not plain, and no more
            yield NumberForm(None if decimal == "." and thousands != "." else decimal, thousands, percent)


def _is_consistent(texts: Sequence[str], form: NumberForm) -> bool:
    """Return whether thousands are parted throughout: at least in all numbers of five digits, and of four in all or none."""
    if form.thousands is None:
        return True
    cells = pa.array(texts, pa.string())
    between = _THOUSANDS[form.thousands][0]

    def some(pattern: str) -> bool:
        return bool(pc.any(pc.match_substring_regex(cells, pattern)).as_py())

    before = r"(?:^|[^0-9.,'’])"
    end = rf"(?:$|[^0-9.,]|{re.escape(form.point)})"
    if some(rf"{before}[0-9]{{5,}}{end}") or some(rf"{before}0[0-9]*{between}[0-9]{{3}}"):
        return False
    return not (some(rf"{before}[0-9]{{4}}{end}") and some(rf"{before}[0-9]{between}[0-9]{{3}}{end}"))
