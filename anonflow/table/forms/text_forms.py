"""What the texts of a column are: numbers or dates in one of the forms in which people write them, or in several."""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
import pandas as pd

from anonflow.errors import Sentence, setting
from anonflow.hierarchy.wording import plural
from anonflow.table.forms.date_forms import PIVOT, DateForm, are_digits, date_forms, may_be_date
from anonflow.table.forms.number_forms import NumberForm, may_be_number, number_forms

Form = NumberForm | DateForm
"""How the cells of a column are written."""

_FIRST = 1_000  # texts of a column that are looked at: its form shows in fewer
_CALENDAR = setting("calendar", ", with kind hierarchy and hierarchy: {calendar: [month, year]}")


@dataclass(frozen=True)
class Seen:
    """The forms in which all texts of a column can be read.

    Attributes
    ----------
    forms : tuple of NumberForm or DateForm
        One for each reading.
    texts : tuple of str
        Examples, three at most.
    needs_pivot : bool
        Whether they are dates with years of two digits.
    has_currency : bool
        Whether some have the sign of a currency.
    partial : int
        How many dates are a month or a year alone.
    problem : str or None
        What forbids to read them all so, in words.
    """

    forms: tuple[Form, ...]
    texts: tuple[str, ...] = ()
    needs_pivot: bool = False
    has_currency: bool = False
    partial: int = 0
    problem: str | None = None

    @property
    def form(self) -> Form | None:
        """The only form; None if there are several, if a century must be said, or if something forbids it."""
        return self.forms[0] if len(self.forms) == 1 and not self.needs_pivot and not self.problem else None

    def sentence(self, examples: bool) -> Sentence:
        """Return what is seen and what to declare.

        Parameters
        ----------
        examples : bool
            Whether values are shown, to the owner, of a column whose entry declares the only form.
        """
        if self.problem:
            return Sentence(f"it {self.problem}")
        kind = self.forms[0].kind
        answers = [
            DateForm(form.dates, PIVOT) if self.needs_pivot and isinstance(form, DateForm) else form
            for form in self.forms
        ]
        if len(answers) == 1 and not self.needs_pivot:
            example_text = f" ({'; '.join(self._shown(self.forms[0]))})" if examples else ""
            money = " and signs of a currency" if self.has_currency else ""
            sentence = f"its {kind} are written with {answers[0].words}{money}{example_text}"
            if self.partial:
                sentence += f", and {self.partial:,} are a month or a year alone"
                if not examples:
                    return sentence + ": " + add_keys(answers[0]) + _CALENDAR
            # an entry with examples has the keys already
            return Sentence(sentence) if examples else sentence + ": " + add_keys(answers[0])
        ways = Sentence("")
        for number, (form, answer) in enumerate(zip(self.forms, answers, strict=True)):
            example_text = f" ({'; '.join(self._shown(answer))})" if examples else ""
            ways = (
                ways
                + ("" if not number else ", or ")
                + f"with {form.words}{example_text}: "
                + add_keys(answer)
            )
        ambiguity = [f"can be read in {len(answers)} ways"] if len(answers) > 1 else []
        problems = " and ".join((["have years of two digits"] if self.needs_pivot else []) + ambiguity)
        end = (
            f"; with pivot: {PIVOT} the year {PIVOT} is {1900 + PIVOT}, and {PIVOT - 1} is {1999 + PIVOT}"
            if self.needs_pivot
            else ""
        )
        return f"its {kind} {problems}: " + ways + end

    def _shown(self, form: Form) -> list[str]:
        return [
            f"{text} is {plain}" for text, plain in zip(self.texts, form.read(self.texts).plain, strict=True)
        ]


def keys_text(form: Form) -> str:
    """Return the keys of a form as a schema has them: ``decimal: ",", thousands: "."``."""
    keys = form.to_mapping() or {"decimal": "."}
    return ", ".join(
        f"{key}: {str(value).lower() if isinstance(value, bool) else value if key in ('dates', 'pivot') else chr(34) + value + chr(34)}"
        for key, value in keys.items()
    )


def add_keys(form: Form) -> Sentence:
    """Return the advice to declare a form."""
    keys = keys_text(form)
    return setting("form", f"add {keys} to the column", keys)


def seen(texts: Sequence[str], counts: np.ndarray | None = None) -> Seen | None:
    """Return the forms in which all of some texts are numbers, or all dates; None if there is none.

    Parameters
    ----------
    texts : sequence of str
        All distinct values of a column.
    counts : numpy.ndarray, shape (u,), int64, optional
        How often each occurs.
    """
    texts = list(texts)
    if not texts:
        return None
    digits: Sequence[Form] = date_forms(texts) if are_digits(texts) else ()
    forms = digits or number_forms(texts) or date_forms(texts)
    if not forms:
        return None
    if isinstance(forms[0], NumberForm):
        reading = forms[0].read(texts)
        problem = reading.problem(np.ones(len(texts), np.int64) if counts is None else counts)
        return Seen(
            tuple(forms), _telling(texts, forms), has_currency=any(reading.currency.tolist()), problem=problem
        )
    dates = [_with_sign(form, texts) for form in forms if isinstance(form, DateForm)]
    first = dates[0].read(texts)
    short = bool(first.short.any())
    times = np.ones(len(texts), np.int64) if counts is None else counts
    partial = int(times[first.partial].sum())
    problem = None if short else first.problem(times)
    return Seen(tuple(dates), _telling(texts, dates), short, partial=partial, problem=problem)


def _with_sign(form: DateForm, texts: Sequence[str]) -> DateForm:
    """Return a form of dates with the sign that most of them have."""
    signs = Counter(sign for text in texts[:_FIRST] for sign in "./-" if text.count(sign) >= 2)
    sign = signs.most_common(1)[0][0] if signs else form.sign
    return DateForm(sign.join(form.order))


def _telling(texts: Sequence[str], forms: Sequence[Form]) -> tuple[str, ...]:
    """Return up to three texts that are written otherwise than the values they are, in the order of the column."""
    readings = [form.read(texts[:_FIRST]).plain.tolist() for form in forms]
    telling = [text for text, *plain in zip(texts, *readings) if any(value != text for value in plain)]
    return tuple((telling or list(texts))[:3])


_MIXED: tuple[tuple[Callable[[str], bool], Sequence[Form]], ...] = (
    (may_be_date, (DateForm("d/m/y"), DateForm("m/d/y"), DateForm("y/m/d"))),
    (
        may_be_number,
        (
            NumberForm(),
            NumberForm(","),
            NumberForm(None, ","),
            NumberForm(",", "."),
            NumberForm(None, " "),
            NumberForm(",", " "),
        ),
    ),
)
"""What tells in no time that a text has none of some forms, and the forms of which a column may have several."""


def mixture(texts: Sequence[str], counts: np.ndarray | None = None) -> str | None:
    """Return in words how texts are written that no form reads all of; None if most of them are neither numbers nor dates.

    Parameters
    ----------
    texts : sequence of str
        Distinct values of a column.
    counts : numpy.ndarray, shape (u,), int64, optional
        How often each occurs.
    """
    texts = list(texts)
    if not texts or not any(character.isdigit() for text in texts[:_FIRST] for character in text):
        return None
    times = np.ones(len(texts), np.int64) if counts is None else counts
    for may_be, forms in _MIXED:
        if np.mean(list(map(may_be, texts[:_FIRST]))) < 0.4:
            continue
        if np.mean([form.read(texts[:_FIRST]).good for form in forms], axis=1).max() < 0.4:
            continue
        good = np.array([form.read(texts).good for form in forms])
        total = int(times.sum())
        read = good.any(axis=0)
        best = int(np.argmax(good @ times))
        first = forms[best]
        rest = ~good[best]
        if int(times[good[best]].sum()) < 0.5 * total and not read.all():
            continue
        second = int(np.argmax((good & rest) @ times))
        both = int(times[good[second] & rest].sum())
        numbers = f"{int(times[good[best]].sum()):,} {first.kind} with {first.words}"
        if both:
            words = forms[second].words
            return f"it has {numbers} and {both:,} with {words}; write all of them in one way"
        if best and rest.any():
            return (
                f"it has {numbers}, and {plural(int(times[rest].sum()), 'other value')}; correct those, then "
                + add_keys(first)
            )
    return None


def other_form(texts: Sequence[str], counts: np.ndarray | None = None) -> Sentence | str | None:
    """Return how texts are written that were read in another form, and what to declare, without a value.

    Parameters
    ----------
    texts, counts
        As :func:`mixture` takes them.
    """
    form = seen(texts, counts)
    return mixture(texts, counts) if form is None else form.sentence(examples=False)


def texts_of(cells: pd.Series) -> tuple[list[str], np.ndarray] | None:
    """Return the distinct texts of a column, and how often each occurs; None if some of its values are no texts."""
    times = cells.value_counts(sort=False)
    values: list[Any] = list(times.index)
    if not values or not all(isinstance(value, str) for value in values):
        return None
    return [str(value) for value in values], times.to_numpy(dtype=np.int64)
