"""A column of a release for computations: the values that each cell may stand for."""

from __future__ import annotations

import math
from collections.abc import Collection, Sequence
from dataclasses import dataclass, replace
from functools import cached_property
from typing import Any

import numpy as np
import pandas as pd

from anonflow.errors import DataError, ParameterError
from anonflow.hierarchy import Hierarchy
from anonflow.hierarchy.wording import plural
from anonflow.table.forms.text_columns import value_text
from anonflow.table.published.metadata import AGGREGATED, CODED, ColumnMetadata
from anonflow.table.published.published_cells import (
    IS_NUMBER,
    WHOLE,
    PublishedCells,
    Range,
    code_cells,
    code_name,
    coded_cell,
    fits,
    is_set,
    moment,
    named_values,
    read_float,
    values_of,
)

_EXACT = 2.0**53  # below it float64 has every whole number
_DATES = ("date", "time", "utc")
_NUMBERS = ("integer", "number")


@dataclass(frozen=True, eq=False, repr=False)
class PublishedColumn:
    """A column of a release, with the values that each of its cells may stand for.

    Attributes
    ----------
    cells : pandas.Series, length n
        As published.
    about : ColumnMetadata
        The release's description of the column.
    withheld : bool
        Whether a ``*`` of a column that is published as it was stands for a value that is not published: suppressed
        records have it.

    Notes
    -----
    Cells that read alike are read once: u distinct texts, ``codes`` says which one each row has. What ``*`` stands for is
    known where the release, or :meth:`with_domain`, says it; else its ends, members and shares are missing, and it may
    stand for every value. A missing value is None.
    """

    cells: pd.Series
    about: ColumnMetadata
    withheld: bool = False

    def __repr__(self) -> str:
        # without its values: messages and logs contain reprs
        return f"PublishedColumn({self.name!r}, {self.about.notation}, {len(self.cells)} rows)"

    def __len__(self) -> int:
        return len(self.cells)

    @property
    def name(self) -> str:
        """The column's name."""
        return self.about.name

    @cached_property
    def _published(self) -> PublishedCells:
        return PublishedCells.of(self.cells, "" if self.about.is_generalized else None)

    @property
    def codes(self) -> np.ndarray:
        """The number of the distinct text of each row, shape (n,), integer."""
        return self._published.rows

    @property
    def texts(self) -> tuple[str | None, ...]:
        """The distinct texts, length u; None is the empty cell of a column that is published as it was."""
        return self._published.texts

    # ------------------------------------------------------------------------------------------ kinds of cells

    @cached_property
    def hidden(self) -> np.ndarray:
        """Whether each cell is ``*`` alone, shape (n,), bool."""
        return self._of_rows(self._stars)

    @cached_property
    def _stars(self) -> np.ndarray:
        """Whether each distinct text hides a value, shape (u,), bool."""
        return self._published.hidden & (self.about.is_generalized or self.withheld)

    @cached_property
    def exact(self) -> np.ndarray:
        """Whether each cell is a single value, shape (n,), bool; leaves of a hierarchy that is not public are not recognized.

        The mean or median of a class is not such a value.
        """
        notation, tree = self.about.notation, self.about.tree
        if notation == "exact":
            return ~self.hidden
        if notation == CODED:
            single = [ends is None or ends.low == ends.high for ends in self._ranges]
            return self._of_rows(single) & self.categories.exact
        if notation in AGGREGATED:
            return np.zeros(len(self), bool)
        if notation == "range":
            return self._of_rows([ends is not None and ends.low == ends.high for ends in self._ranges])
        if notation == "positions":
            return self._of_rows([WHOLE not in str(text) for text in self.texts])
        if notation == "node":
            leaves = set() if tree is None else set(tree.leaves)
            return self._of_rows([text == "" or text in leaves for text in self.texts])
        return self._of_rows([text != WHOLE and not is_set(str(text)) for text in self.texts])

    def _of_rows(self, of_text: Sequence[bool] | np.ndarray) -> np.ndarray:
        return np.array(of_text, bool)[self.codes]

    # ------------------------------------------------------------------------------------------ numbers and dates

    @cached_property
    def categories(self) -> PublishedColumn:
        """The categories beside numbers with codes, as a column: ``number``, or which code; None of a missing value.

        Raises
        ------
        ParameterError
            If the column has no codes.
        """
        if self.about.notation != CODED:
            raise ParameterError(f"column {self.name!r}: has no codes beside numbers")
        metadata = replace(self.about, name=code_name(self.name), notation="set", type="text", form=None)
        return PublishedColumn(code_cells(self.cells), metadata)

    @cached_property
    def _ranges(self) -> tuple[Range | None, ...]:
        """Each distinct text as a range of numbers or dates, None where it has none."""
        if self.about.notation != CODED:
            return self._published.ranges
        runs = (coded_cell(str(text))[0] for text in self.texts)
        return tuple(None if run is None else Range.read(run) for run in runs)

    @cached_property
    def is_ordered(self) -> bool:
        """Whether its values are numbers or dates, so that they have ends, a middle and a width."""
        return self.about.notation in ("range", CODED, *AGGREGATED) or self.about.type in (*_NUMBERS, *_DATES)

    @cached_property
    def has_dates(self) -> bool:
        """Whether its values are dates or times."""
        if self.about.notation == CODED:
            return any(ends is not None and ends.dates for ends in self._ranges)
        return self.about.type in _DATES

    @cached_property
    def ends(self) -> np.ndarray:
        """The lowest and the highest value of each distinct text, shape (u, 2), float64 or datetime64[us].

        Missing (NaN, NaT) of a missing value or a code, and of ``*`` where no domain is known; the mean or median of a class says as
        little as ``*`` of where a person's number lies.

        Raises
        ------
        ParameterError
            If the values are neither numbers nor dates.
        DataError
            If cells are no ranges.
        """
        if not self.is_ordered:
            raise ParameterError(
                f"column {self.name!r}: is neither of numbers nor of dates; ask for its members instead"
            )
        pairs: list[tuple[str, str] | None] = []
        wrong = np.zeros(len(self.texts), bool)
        dates = self.has_dates
        for u, text in enumerate(self.texts):
            if self._stars[u]:
                pairs.append(self.about.bounds)
            elif text is None or (self.about.notation == CODED and self._ranges[u] is None):
                pairs.append(None)
            elif self.about.notation in AGGREGATED:
                wrong[u] = read_float(text) is None
                pairs.append(self.about.bounds)
            elif not self.about.is_generalized and not dates:
                wrong[u] = read_float(text) is None
                pairs.append(None if wrong[u] else (text, text))
            else:
                ends = self._ranges[u]
                wrong[u] = ends is None or ends.dates != dates or any(map(math.isnan, ends.points))
                pairs.append(None if ends is None or wrong[u] else (ends.low, ends.high))
        form = "a range" if self.about.notation == "range" else "a date" if dates else "a number"
        self._refuse(wrong, form)
        return values_of(pairs, dates)

    def check(self) -> None:
        """Refuse cells that cannot be read, or lie outside the published domain.

        Raises
        ------
        DataError
            If one cannot, or does not.
        """
        if self.about.notation == CODED:
            return  # which texts are codes is not published
        metadata = self.about
        if metadata.notation in ("range", *AGGREGATED) or (
            metadata.type in _NUMBERS and not metadata.is_generalized
        ):
            low, high = self.ends.T
            if metadata.notation in AGGREGATED:
                low = high = self._class_numbers
            if metadata.bounds is not None:
                pair = [self._point(end) for end in metadata.bounds]
                self._refuse((low < pair[0]) | (high > pair[1]), "in the domain")
        elif metadata.notation == "positions":
            characters = None if metadata.values is None else {WHOLE, *metadata.values}
            lengths = {len(text or "") for text in self.texts if text != WHOLE}
            wrong = [characters is not None and not characters.issuperset(text or "") for text in self.texts]
            self._refuse(np.array(wrong, bool) | (len(lengths) > 1), "a code of one length")
        elif metadata.type == "boolean":
            wrong = [text not in (None, "True", "False") for text in self.texts]
            self._refuse(np.array(wrong, bool) & ~self._stars, "True or False")
        elif metadata.is_generalized:
            self._named  # noqa: B018

    @property
    def low(self) -> pd.Series:
        """The lowest value that each cell may stand for, float64 or datetime64[us].

        Raises
        ------
        ParameterError, DataError
            As :attr:`ends`.
        """
        return self._series(self.ends[:, 0])

    @property
    def high(self) -> pd.Series:
        """The highest value that each cell may stand for, float64 or datetime64[us].

        Raises
        ------
        ParameterError, DataError
            As :attr:`ends`.
        """
        return self._series(self.ends[:, 1])

    @property
    def middle(self) -> pd.Series:
        """The middle between the two ends, float64 or datetime64[us]; the mean or median of a class, where that is published.

        Raises
        ------
        ParameterError, DataError
            As :attr:`ends`.
        """
        low, high = self.ends.T
        middle = low + (high - low) / 2
        if self.about.notation in AGGREGATED:
            middle = np.where(np.isnan(self._class_numbers), middle, self._class_numbers)
        return self._series(middle)

    @cached_property
    def _class_numbers(self) -> np.ndarray:
        """The mean or median of each distinct text, shape (u,), float64; NaN of ``*``."""
        numbers = (read_float(str(text)) for text in self.texts)
        return np.array([math.nan if number is None else number for number in numbers], np.float64)

    @property
    def width(self) -> pd.Series:
        """The highest less the lowest value, float64 or timedelta64[us].

        Raises
        ------
        ParameterError, DataError
            As :attr:`ends`.
        """
        return self._series(self.ends[:, 1] - self.ends[:, 0])

    # ------------------------------------------------------------------------------------------ values of a set

    @cached_property
    def _named(self) -> tuple[tuple[str | None, ...] | None, ...]:
        """The values that each distinct text names; None for all values, and if they are not known."""
        if self.about.notation == CODED:
            raise self._numbers_not_members()
        named = []
        wrong = np.zeros(len(self.texts), bool)
        for u, text in enumerate(self.texts):
            try:
                named.append(None if self._stars[u] else self._values_of(text))
            except ValueError:
                wrong[u] = True
                named.append(None)
        self._refuse(
            wrong, {"set": "a set", "node": "a node of its hierarchy"}.get(self.about.notation, "a value")
        )
        return tuple(named)

    def _values_of(self, text: str | None) -> tuple[str | None, ...] | None:
        metadata = self.about
        if text is None or not metadata.is_generalized:
            return (text,)
        if metadata.notation == "positions":
            return None if WHOLE in text else (text,)
        if metadata.notation == "node":
            return self._below(text, metadata.tree)
        if metadata.notation == "suppression" and is_set(text):
            raise ValueError
        values = named_values(text)
        if metadata.values is not None and not set(values) <= set(metadata.values):
            raise ValueError
        return values

    @staticmethod
    def _below(text: str, tree: Hierarchy | None) -> tuple[str | None, ...] | None:
        if text == "":
            return (None,)
        if tree is None:
            return None
        if text not in tree:
            raise ValueError
        return tree.leaves_below(text)

    @cached_property
    def values(self) -> tuple[str | None, ...]:
        """All values there are: those declared, else those that cells name; None first, then sorted by text.

        Of a hierarchy its leaves in their order; of one that is not public the labels that are published.

        Raises
        ------
        ParameterError
            If the values are numbers or dates.
        DataError
            If cells cannot be read.
        """
        if self.about.notation in ("range", CODED, *AGGREGATED):
            raise self._numbers_not_members()
        tree, blank = self.about.tree, "" in self.texts
        if tree is not None and self.about.notation == "node":
            return (*([None] if blank and "" not in tree.leaves else []), *tree.leaves)
        if self.about.values is not None and self.about.notation != "positions":
            return self.about.values
        if self.about.notation in ("node", "positions"):
            seen = {text for text in self.texts if text != WHOLE}
            return tuple(sorted((text or None for text in seen), key=_by_text))
        return tuple(sorted({value for members in self._named for value in members or ()}, key=_by_text))

    @property
    def members(self) -> pd.Series:
        """The values that each cell may stand for: a tuple of them, None where that is not published.

        Raises
        ------
        ParameterError, DataError
            As :attr:`values`.
        """
        domain = self.values if self.about.has_domain and self.about.notation != "positions" else None
        members = [domain if star else named for named, star in zip(self._named, self._stars, strict=True)]
        return self._series(np.fromiter(members, object, len(members)))

    @cached_property
    def candidates(self) -> np.ndarray:
        """Whether each distinct text may stand for each of :attr:`values`, shape (u, D), bool.

        ``*`` may stand for all of them. O(u D) memory.

        Raises
        ------
        ParameterError, DataError
            As :attr:`values`.
        """
        place = {value: at for at, value in enumerate(self.values)}
        allowed = np.zeros((len(self.texts), len(place)), bool)
        for u, (members, text) in enumerate(zip(self._named, self.texts, strict=True)):
            if members is not None:
                allowed[u, [place[value] for value in members]] = True
            elif self.about.notation == "positions":
                allowed[u] = [fits(str(value), text) for value in self.values]
            elif self._stars[u]:
                allowed[u] = True
            else:
                allowed[u, place[text or None]] = True  # the label of a node
        return allowed

    # ------------------------------------------------------------------------------------------ questions

    def contains(self, value: Any) -> pd.Series:
        """Return whether each cell may stand for a value, bool: the published data do not exclude it.

        Parameters
        ----------
        value : number, date, text or None
            None asks for a missing value. A node's label asks for the label where the hierarchy is not public.

        Raises
        ------
        DataError
            If cells cannot be read.
        ParameterError
            If the value does not have the column's type.
        """
        if self.about.notation == CODED and not self._is_point(value):
            return self.categories.contains(value)
        if self.is_ordered:
            if value is None:
                _ = self.ends  # refuses cells that cannot be read
                blank = np.array([text is None or text == "" for text in self.texts], bool)
                return self._series(
                    blank | self._stars & (self.about.missing or not self.about.is_generalized)
                )
            at = self._point(value)
            low, high = self.ends.T
            unbounded = self._unknown(low) & (self._stars | (self.about.notation in AGGREGATED))
            return self._series((low <= at) & (at <= high) | unbounded)
        if self.about.notation == "positions":
            return self._series(np.array([fits(str(value), text) for text in self.texts], bool))
        value = _as_value(value)
        in_domain = (
            not self.about.has_domain or (value is None and self.about.missing) or value in self.values
        )
        possible = [
            in_domain if star else text == value if members is None else value in members
            for star, text, members in zip(self._stars, self.texts, self._named, strict=True)
        ]
        return self._series(np.array(possible, bool))

    def share_of(self, values: Any) -> pd.Series:
        """Return which share of what each cell may stand for lies among some values, as if all were equally likely, float64.

        Parameters
        ----------
        values : (low, high), or list of values
            Of numbers and dates the two ends, both included: of whole numbers and dates, those between are counted; of
            other numbers and times, lengths are compared. Of numbers with codes either: a cell's number, and each of its
            codes, are equally likely.

        Returns
        -------
        pandas.Series, length n, float64
            Missing where it is not published what the cell stands for, and of missing numbers.

        Raises
        ------
        DataError
            If cells cannot be read.
        ParameterError
            If the values do not have the column's type.
        """
        if self.about.notation == CODED:
            if isinstance(values, list | tuple) and all(map(self._is_point, values)):
                between = np.nan_to_num(self._share_between(values)[self.codes])
                return self.categories.share_of([IS_NUMBER]) * between
            return self.categories.share_of(values)
        if self.is_ordered:
            return self._series(self._share_between(values))
        if isinstance(values, str) or not isinstance(values, Collection):
            raise ParameterError(f"column {self.name!r}: share_of takes a list of values")
        chosen = {_as_value(value) for value in values}
        if self.about.notation == "positions":
            return self._series(
                np.array([self._share_of_codes(chosen, text) for text in self.texts], np.float64)
            )
        domain = self.values if self.about.has_domain else None
        shares = np.full(len(self.texts), math.nan)
        for u, (named, star) in enumerate(zip(self._named, self._stars, strict=True)):
            members = domain if star else named
            if members is not None:
                shares[u] = sum(value in chosen for value in members) / len(members)
        return self._series(shares)

    def _share_between(self, values: Any) -> np.ndarray:
        try:
            first, last = values
        except (TypeError, ValueError):
            raise ParameterError(f"column {self.name!r}: share_of takes (low, high), both included") from None
        a, b = self._point(first), self._point(last)
        low, high = self.ends.T
        unknown = self._unknown(low)
        if self.about.notation in AGGREGATED:
            unknown = np.ones(len(low), bool)  # the distribution of numbers around a mean is unknown
        if self.has_dates:
            day = self.about.type == "date"
            scale = np.timedelta64(1, "D")
            start = np.datetime64("1970-01-01")
            low, high, a, b = ((moments - start) / scale for moments in (low, high, a, b))
        else:
            day = self._has_whole_numbers
        if day:  # whole numbers are counted
            inside = np.minimum(high, np.floor(b)) - np.maximum(low, np.ceil(a)) + 1
            shares = np.clip(inside, 0, None) / (high - low + 1)
        else:
            inside = np.clip(np.minimum(high, b) - np.maximum(low, a), 0, None)
            point = high == low
            shares = np.divide(
                inside, high - low, out=((low >= a) & (low <= b)).astype(np.float64), where=~point & ~unknown
            )
        return np.where(unknown, math.nan, shares)

    @property
    def _has_whole_numbers(self) -> bool:
        if self.about.notation == CODED:
            return all(ends is None or ends.type == "integer" for ends in self._ranges)
        return self.about.type == "integer"

    def _unknown(self, ends: np.ndarray) -> np.ndarray:
        """Return which ends are missing, bool."""
        return np.isnat(ends) if self.has_dates else np.isnan(ends)

    def _share_of_codes(self, values: Collection[Any], text: str | None) -> float:
        fitting = sum(fits(str(value), text) for value in values)
        hidden = str(text).count(WHOLE)
        if not hidden:
            return float(fitting)
        if self.about.values is None or text == WHOLE:
            return math.nan
        return fitting / len(self.about.values) ** hidden

    def _is_point(self, value: Any) -> bool:
        try:
            self._point(value)
        except ParameterError:
            return False
        return value is not None

    def _point(self, value: Any) -> Any:
        """Return a value as :attr:`ends` has them.

        Raises
        ------
        ParameterError
            If it is no number, or no date.
        """
        try:
            point = moment(str(value)) if self.has_dates else float(value)
            if self.has_dates and np.isnat(point):
                raise ValueError
        except (TypeError, ValueError):
            scale = "date" if self.has_dates else "number"
            raise ParameterError(f"column {self.name!r}: the given value is not a {scale}") from None
        return point

    # ------------------------------------------------------------------------------------------ other views

    def nullable(self) -> pd.Series:
        """Return the cells that are one value, missing elsewhere: Int64, Float64, boolean, string, or datetime64[us].

        Means and medians of classes are numbers here, too; codes beside numbers are missing, :attr:`categories` has them.

        Raises
        ------
        DataError
            If cells cannot be read.
        """
        single = self.exact
        if self.about.notation in AGGREGATED:
            self.check()
            return self._series(self._class_numbers).astype("Float64")
        if self.is_ordered:
            points = self.low.where(single)
            if self.has_dates:
                return points
            whole = self._has_whole_numbers and not (points.abs() >= _EXACT).any()
            return points.astype("Int64" if whole else "Float64")
        is_open = self.about.notation == "node" and self.about.tree is None
        values = [
            None if is_open or members is None or len(members) != 1 else members[0] for members in self._named
        ]
        texts = self._series(np.fromiter(values, object, len(values))).where(single, None)
        if self.about.type == "boolean":
            return texts.map({"True": True, "False": False}).astype("boolean")
        return texts.astype(pd.StringDtype())

    def intervals(self) -> pd.Series:
        """Return ranges as closed intervals, other generalized cells as tuples of values; others as :meth:`nullable`.

        Raises
        ------
        DataError
            If cells cannot be read.
        """
        if not self.about.is_generalized:
            return self.nullable()
        if not self.is_ordered:
            return self.members
        pairs = pd.arrays.IntervalArray.from_arrays(self.low, self.high, closed="both")
        return pd.Series(pairs, index=self.cells.index, name=self.cells.name)

    def with_domain(self, domain: Any) -> PublishedColumn:
        """Return the same column with the domain of ``*``, if the release does not say it and you know it.

        Parameters
        ----------
        domain : (low, high), list of values, or Hierarchy
            Of a range, of a set or suppression (None is a missing value), of nodes. Of positions, the characters that may
            stand in each.

        Raises
        ------
        ParameterError
            If the domain does not go with the column.
        """
        metadata = self.about
        if metadata.notation == "node":
            if not isinstance(domain, Hierarchy):
                raise ParameterError(f"column {self.name!r}: its domain is a Hierarchy")
            return PublishedColumn(self.cells, replace(metadata, tree=domain))
        if metadata.notation in ("range", CODED, *AGGREGATED):
            try:
                low, high = domain
                texts = value_text(low), value_text(high)
            except (TypeError, ValueError):
                raise ParameterError(f"column {self.name!r}: its domain is (lowest, highest)") from None
            if self._point(texts[0]) > self._point(texts[1]):
                raise ParameterError(f"column {self.name!r}: its domain is (lowest, highest)")
            return PublishedColumn(self.cells, replace(metadata, bounds=texts))
        if not metadata.is_generalized:
            raise ParameterError(f"column {self.name!r}: is published as it was, and needs no domain")
        if isinstance(domain, str) or not isinstance(domain, Collection) or not domain:
            raise ParameterError(f"column {self.name!r}: its domain is a list of values")
        values = tuple(sorted({_as_value(value) for value in domain}, key=_by_text))
        return PublishedColumn(self.cells, replace(metadata, values=values))

    def _series(self, of_text: np.ndarray) -> pd.Series:
        """Return for each row the value of its distinct text."""
        return pd.Series(of_text[self.codes], index=self.cells.index, name=self.cells.name)

    def _numbers_not_members(self) -> ParameterError:
        codes = "; its codes are in categories" if self.about.notation == CODED else ""
        return ParameterError(
            f"column {self.name!r}: has numbers or dates; ask for low and high instead{codes}"
        )

    def _refuse(self, wrong: np.ndarray, kind: str) -> None:
        if wrong.any():
            count = int(wrong[self.codes].sum())
            raise DataError(
                f"column {self.name!r}: {plural(count, 'cell', 'are')} not {kind}, as its description says (notation "
                f"{self.about.notation!r}); read the release with the description that belongs to it"
            )


def _by_text(value: str | None) -> tuple[bool, str]:
    return value is not None, value or ""


def _as_value(value: Any) -> str | None:
    """Return a value as the members of cells are written; None is a missing one."""
    return None if value is None else value_text(value)
