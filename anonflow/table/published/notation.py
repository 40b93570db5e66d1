"""Other tools' notations of generalized cells: intervals in brackets, one-sided ranges, sets, words for hidden cells."""

from __future__ import annotations

import math
import re
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any, NamedTuple

import numpy as np
import pandas as pd

from anonflow.hierarchy.wording import plural, verb_of
from anonflow.table.domain import Domain, coded_texts, read_coded, set_bits
from anonflow.table.published.published_cells import (
    BETWEEN,
    WHOLE,
    PublishedCells,
    coded_parts,
    day_number,
    read_float,
    set_text,
)

RANGES = ("closed", "right-open", "left-open", "open")
"""Which ends belong to a range that is written without brackets, such as ``20-30``."""

HIDDEN = ("NA", "N/A", "<NA>", "NaN", "nan", "null", "NULL", "(null)", "None", "any", "Any", "suppressed")
"""Words that mean a hidden cell if they are not values of the column."""

_DATE = r"[0-9]{4}-[0-9]{2}-[0-9]{2}(?:T[0-9:.]+Z?)?"
_NUMBER = r"[+-]?(?:[0-9]+(?:\.[0-9]*)?|\.[0-9]+)(?:[eE][+-]?[0-9]+)?"
_END = rf"(?:{_DATE}|{_NUMBER})"
_FAR = r"(?:[+-]?\s*(?:inf(?:inity)?|∞)|)"
_BETWEEN = rf"\s*(?:{'|'.join(map(re.escape, BETWEEN.values()))}|,|;|–|—|:|\.\.+|\bto\b)\s*"
_FORMS = tuple(
    (form, re.compile(pattern, re.IGNORECASE))
    for form, pattern in (
        ("number", rf"(?P<low>{_END})"),
        (
            "brackets",
            rf"(?P<opens>[\[\](])\s*(?P<low>{_END}|{_FAR}){_BETWEEN}(?P<high>{_END}|{_FAR})\s*(?P<closes>[\[\])])",
        ),
        ("range", rf"(?P<low>{_END}){_BETWEEN}(?P<high>{_END})"),
        ("one-sided", rf"(?P<opens>>=|≥|=>|>)\s*(?P<low>{_END})"),
        ("one-sided", rf"(?P<closes><=|≤|=<|<)\s*(?P<high>{_END})"),
        ("one-sided", rf"(?P<low>{_END})\s*\+"),
    )
)
"""The notations of intervals: another tool's is a line here. An end that a pattern lacks is infinite."""

_OPEN = {"opens": ("]", "(", ">"), "closes": ("[", ")", "<")}
"""The signs beside an end that does not belong to the interval."""

_LONGEST = 200
"""The most characters of an interval: a hostile cell must not slow the patterns down."""


@dataclass(frozen=True)
class Notation:
    """A schema's declaration of the notation in which another tool wrote a column.

    Attributes
    ----------
    ranges : {"closed", "right-open", "left-open", "open"} or None
        Which ends belong to a range without brackets; None is undeclared, and read as closed.
    hidden : tuple of str
        Texts that stand for a hidden cell, besides ``*`` and those that are guessed.
    """

    ranges: str | None = None
    hidden: tuple[str, ...] = ()

    @classmethod
    def of(cls, content: Any) -> Notation | None:
        """Parse a notation in a schema: a word of `RANGES`, or a mapping; return None for anything else."""
        if isinstance(content, Notation):
            return content
        entry: Mapping[Any, Any] = content if isinstance(content, Mapping) else {"ranges": content}
        if not entry or set(entry) - {"ranges", "hidden"}:
            return None
        ranges, hidden = entry.get("ranges"), entry.get("hidden", ())
        if (ranges is not None or "ranges" in entry) and ranges not in RANGES:
            return None
        if not isinstance(hidden, list | tuple) or not all(isinstance(text, str) for text in hidden):
            return None
        return cls(ranges, tuple(hidden))

    def to_mapping(self) -> str | dict[str, Any]:
        """Return the same as a schema writes it."""
        if self.ranges is not None and not self.hidden:
            return self.ranges
        ranges = {} if self.ranges is None else {"ranges": self.ranges}
        return ranges | {"hidden": list(self.hidden)}


@dataclass(frozen=True)
class Interval:
    """Numbers between two ends; dates as days since 1970.

    Attributes
    ----------
    low, high : float
        May be infinite.
    has_low, has_high : bool
        Whether the ends belong to it.
    form : {"number", "range", "brackets", "one-sided"}
        How it was written.
    """

    low: float
    high: float
    has_low: bool
    has_high: bool
    form: str

    def run(self, points: np.ndarray) -> tuple[int, int]:
        """Return the first and the last of some ascending numbers that lie in it; the last before the first where none does."""
        first = int(np.searchsorted(points, self.low, side="left" if self.has_low else "right"))
        last = int(np.searchsorted(points, self.high, side="right" if self.has_high else "left")) - 1
        return first, last


def read_interval(text: str, ranges: str = "closed") -> Interval | None:
    """Return an interval in any of the usual notations.

    Parameters
    ----------
    text : str
        ``27``, ``20-29``, ``20 - 29``, ``20..29``, ``[27, 47[``, ``[27, 47)``, ``]27, 47]``, ``>=90``, ``<20``, ``90+``; ends
        are numbers or ISO dates, and may be infinite (or left out) inside brackets.
    ranges : str
        One of `RANGES`: which ends belong to a range without brackets.

    Returns
    -------
    Interval or None
        None if the text is not a range, or its ends are in the wrong order.
    """
    text = text.strip()
    matches = ((form, pattern.fullmatch(text)) for form, pattern in _FORMS if len(text) <= _LONGEST)
    form, match = next(((form, match) for form, match in matches if match is not None), ("", None))
    if match is None:
        return None
    parts = match.groupdict()
    low = _interval_end(parts.get("low", ""), None if form == "number" else -math.inf)
    high = low if form == "number" else _interval_end(parts.get("high", ""), math.inf)
    has_low, has_high = (parts.get(sign) not in _OPEN[sign] for sign in ("opens", "closes"))
    if form == "range":
        has_low, has_high = ranges in ("closed", "right-open"), ranges in ("closed", "left-open")
    if low is None or high is None or low > high or (low == high and not (has_low and has_high)):
        return None
    return Interval(low, high, has_low, has_high, form)


def _interval_end(text: str, far: float | None = None) -> float | None:
    """Return an end as a number; `far` for an infinite one, or one that is left out."""
    if re.fullmatch(_DATE, text, re.IGNORECASE):
        return day_number(text.upper())
    number = read_float(text)
    return far if number is None or not math.isfinite(number) else number


class CellCodes(NamedTuple):
    """The codes of a column's u distinct texts.

    Attributes
    ----------
    lo, hi : numpy.ndarray, shape (u,), int32
        Runs of a range domain; ``(D, -1)`` is none.
    bits : numpy.ndarray, shape (words, u), uint64
        Sets of a set domain, or of the codes beside numbers.
    numbers : numpy.ndarray, shape (u,), float64
        Means or medians of classes; NaN for a hidden one.
    bad : numpy.ndarray, shape (u,), bool
        Texts that cannot be read.
    """

    lo: np.ndarray
    hi: np.ndarray
    bits: np.ndarray
    numbers: np.ndarray
    bad: np.ndarray


class ColumnReader:
    """Read one column of a release in the published notation.

    Parameters
    ----------
    domain : Domain
    positions : int
        Of a code: how many positions it has.
    codes : Domain, optional
        Of a numeric column with codes: these.
    canonical : bool
        Whether a text in another spelling than the published one cannot be read: it would distinguish equal rows.
    """

    def __init__(
        self, domain: Domain, positions: int = 1, codes: Domain | None = None, canonical: bool = False
    ) -> None:
        self.domain = domain
        self.positions = positions
        self.codes = codes
        self.canonical = canonical

    def read(self, texts: Sequence[str], cells: Sequence[int]) -> CellCodes:
        """Read the distinct texts of the column.

        Parameters
        ----------
        texts : sequence of str, u texts
        cells : sequence of int
            How many cells read so.
        """
        domain, count = self.domain, len(texts)
        whole, nothing = (0, domain.size - 1), (domain.size, -1)
        numbers = np.full(count, np.nan)
        sets: list[list[int] | None] = []
        if domain.shape == "set" and self.codes is None:
            lo, hi = (np.full(count, end, np.int32) for end in nothing)
            bits, bad = self.sets(texts, cells)
        else:
            runs: list[tuple[int, int] | None] = [nothing] * count
            sets = [[] for _ in texts]
            for u, (text, times) in enumerate(zip(texts, cells, strict=True)):
                if self.codes is not None:
                    run, sets[u] = self.coded(text, times) or (None, None)
                    runs[u] = nothing if run is None else self.run(run, times)
                elif domain.aggregate is not None:
                    number = math.nan if self.hides(text) else domain.read_aggregate(text, self.canonical)
                    numbers[u], runs[u] = (math.nan, None) if number is None else (number, whole)
                else:
                    runs[u] = self.run(text, times)
            lo, hi = np.array([run or nothing for run in runs], np.int32).reshape(-1, 2).T
            bits = set_bits(sets, (self.codes or domain).words)
            bad = np.array(
                [run is None or codes is None for run, codes in zip(runs, sets, strict=True)], bool
            )
        if self.canonical and domain.aggregate is None:
            parts = texts if domain.position is None else map(self._part, texts)
            cut, plain = (
                np.array([*column, None], object)[:-1] for column in (parts, self._plain(lo, hi, bits))
            )
            for u in np.flatnonzero((cut != WHOLE) & (cut != plain) & ~bad).tolist():
                bad[u] = not self._is_within(texts[u], sets[u] if sets else None)
        return CellCodes(lo, hi, bits, numbers, bad)

    def _plain(self, lo: np.ndarray, hi: np.ndarray, bits: np.ndarray) -> Iterable[str]:
        """Return the published texts of what was read; ``""`` of a run that covers nothing."""
        domain = self.domain
        if self.codes is not None:
            return coded_texts(domain, self.codes, lo, hi, bits)
        if domain.shape == "set":
            return domain.set_texts(bits)
        covering = lo <= hi
        texts = iter(domain.run_texts(lo[covering], hi[covering]))
        return [next(texts) if covers else "" for covers in covering.tolist()]

    def _is_within(self, text: str, codes: list[int] | None) -> bool:
        """Return whether a text is a range in the domain that no method here publishes, see :meth:`Domain.is_within`."""
        if self.codes is None:
            return self.domain.is_within(str(self._part(text)))
        run, _ = coded_parts(text)
        return run is not None and codes == sorted(codes or ()) and self.domain.is_within(run)

    def _part(self, text: str) -> str | None:
        """Return the part of a text that is about this domain: of a code, the character at its position."""
        if self.domain.position is None or text == WHOLE:
            return text
        return text[self.domain.position] if len(text) == self.positions else None

    def hides(self, text: str) -> bool:
        """Return whether a cell is hidden."""
        return text == WHOLE

    def run(self, text: str, cells: int = 1) -> tuple[int, int] | None:
        """Return the run of codes that a cell covers, ``(D, -1)`` where it covers none; None if it cannot be read.

        Parameters
        ----------
        text : str
        cells : int
            How many cells read so.
        """
        part = self._part(text)
        return None if part is None else self.domain.read_run(part)

    def coded(self, text: str, cells: int = 1) -> tuple[str | None, list[int]] | None:
        """Return the parts of a cell of a numeric column with codes, as :func:`read_coded` gives them.

        Parameters
        ----------
        text : str
        cells : int
            How many cells read so.
        """
        assert self.codes is not None
        return read_coded(self.codes, text)

    def sets(self, texts: Sequence[str], cells: Sequence[int]) -> tuple[np.ndarray, np.ndarray]:
        """Return sets as :meth:`Domain.read_sets` does.

        Parameters
        ----------
        texts : sequence of str, u texts
        cells : sequence of int
            How many cells read so.
        """
        return self.domain.read_sets(texts)

    def remarks(self) -> list[str]:
        """Return remarks on how the column was read: counts, never a value."""
        return []


class ForeignReader(ColumnReader):
    """Read one column of another tool's release, and report its interpretation.

    Parameters
    ----------
    domain : Domain
    positions : int
        Of a code: how many positions it has.
    codes : Domain, optional
        Of a numeric column with codes: these.
    notation : Notation, optional
        The schema's declaration; the rest is guessed.
    """

    def __init__(
        self,
        domain: Domain,
        positions: int = 1,
        codes: Domain | None = None,
        notation: Notation | None = None,
    ) -> None:
        super().__init__(domain, positions, codes)
        self.notation = notation or Notation()
        self._labels = {*domain.labels, *(codes.labels[1:] if codes is not None else ())}
        self._forms: dict[str, int] = {}
        self._ends: tuple[set[float], set[float]] = (set(), set())

    def hides(self, text: str) -> bool:
        """Return whether a cell is hidden."""
        return (
            text == WHOLE
            or text in self.notation.hidden
            or (text in ("", *HIDDEN) and not self._is_value(text))
        )

    def _is_value(self, text: str) -> bool:
        if text in self._labels or (self.positions > 1 and len(text) == self.positions):
            return True
        tree = self.domain.hierarchy if self.domain.kind == "hierarchy" else None
        return tree is not None and text in tree.labels

    def run(self, text: str, cells: int = 1) -> tuple[int, int] | None:
        """Return the run of codes that a cell covers, see :meth:`ColumnReader.run`."""
        domain = self.domain
        if self.hides(text):
            self._count("hidden", 0 if text == WHOLE else cells)
            return 0, domain.size - 1
        if domain.kind != "numeric":
            run = super().run(text)
            return run if run is not None or domain.position is not None else super().run(text.strip())
        interval = read_interval(text, self.notation.ranges or "closed")
        if interval is None:
            return self._listed(text, cells)
        self._count(interval.form, cells)
        if interval.form == "range":
            self._ends[0].add(interval.low)
            self._ends[1].add(interval.high)
        first, last = interval.run(domain.points)
        return (first, last) if first <= last else (domain.size, -1)

    def coded(self, text: str, cells: int = 1) -> tuple[str | None, list[int]] | None:
        """Return the parts of a cell of a numeric column with codes, see :meth:`ColumnReader.coded`."""
        assert self.codes is not None
        parts = super().coded(text.strip())
        if (parts is not None and parts[0] is None) or self.hides(text):
            if parts is None or parts[0] is not None:
                self._count("hidden", 0 if text == WHOLE else cells)
                return WHOLE, list(range(self.codes.size))
            return parts
        members = _listed_members(text) or []
        place = {label: code for code, label in enumerate(self.codes.labels) if code}
        places = [place[member] for member in members if member in place]
        if not places:
            return parts
        self._count("set", cells)
        rest = [member for member in members if member not in place]
        return (set_text(rest), [0, *places]) if rest else (None, places)

    def _listed(self, text: str, cells: int) -> tuple[int, int] | None:
        """Return a set of numbers that are neighbours in the domain: any other set is not a run."""
        members = _listed_members(text)
        numbers = [read_interval(member) for member in members or ()]
        if not numbers or any(number is None or number.form != "number" for number in numbers):
            return None
        codes = sorted({number.run(self.domain.points) for number in numbers if number is not None})
        if any(first != last for first, last in codes) or codes[-1][0] - codes[0][0] != len(codes) - 1:
            return None
        self._count("set", cells)
        return codes[0][0], codes[-1][1]

    def sets(self, texts: Sequence[str], cells: Sequence[int]) -> tuple[np.ndarray, np.ndarray]:
        """Return sets as :meth:`ColumnReader.sets` does, in more notations."""
        sets = [self._set(text, times) for text, times in zip(texts, cells, strict=True)]
        return set_bits(sets, self.domain.words), np.array([codes is None for codes in sets], bool)

    def _set(self, text: str, cells: int) -> list[int] | None:
        """Return the codes of a set, or None if it cannot be read."""
        if self.hides(text):
            self._count("hidden", 0 if text == WHOLE else cells)
            return list(range(self.domain.size))
        codes = self.domain.read_set(text)
        if codes is None:
            members = _listed_members(text) or [text.strip()]
            members_read = [self.domain.read_set(member) for member in members]
            if any(member is None for member in members_read):
                return None
            codes = [code for member in members_read if member is not None for code in member]
            self._count("set", cells)
        return codes

    def _count(self, form: str, cells: int) -> None:
        if cells:
            self._forms[form] = self._forms.get(form, 0) + cells

    def remarks(self) -> list[str]:
        """Return remarks on how the column was read, and what to declare if that is wrong: counts, never a value."""
        kinds = {
            "brackets": ("interval", " in brackets"),
            "one-sided": ("one-sided range", ""),
            "set": ("list", " of values"),
            "hidden": (
                "cell",
                f" that {verb_of(self._forms.get('hidden', 0), 'are')} blank or a word for what is hidden",
            ),
        }
        if self.domain.position or self.domain.kind == "codes":
            return []  # the remark of its first position, or of its numbers, says it
        sentences = [
            f"{plural(self._forms[form], noun)}{rest}"
            for form, (noun, rest) in kinds.items()
            if form in self._forms
        ]
        remarks = [f"column {self.domain.column!r}: read {', '.join(sentences)}"] if sentences else []
        if self.notation.ranges is None and self._ends[0] & self._ends[1]:
            remarks.append(
                f"column {self.domain.column!r}: {self._forms['range']:,} ranges without brackets share ends with their "
                "neighbours and are read with both ends; if that is wrong, say notation: right-open in the schema"
            )
        return remarks


def _listed_members(text: str) -> list[str] | None:
    """Return the members of a list in braces or brackets, None if the cell has another form."""
    text = text.strip()
    if len(text) < 2 or text[0] + text[-1] not in ("{}", "[]"):
        return None
    return [member.strip().strip("\"'") for member in re.split(r"[,;|]", text[1:-1])]


def readers_of(
    domains: Sequence[Domain], notations: Mapping[str, Notation | None] | None, canonical: bool = False
) -> list[ColumnReader]:
    """Return a reader for each domain.

    Parameters
    ----------
    domains : sequence of Domain
    notations : mapping or None
        Column -> what the schema says of it, of another tool's release; None for one in the published notation.
    canonical : bool
        As :class:`ColumnReader` takes it.
    """
    positions = {domain.column: 1 + (domain.position or 0) for domain in domains}
    codes = {domain.column: domain for domain in domains if domain.kind == "codes"}
    readers: list[ColumnReader] = []
    for domain in domains:
        common = domain, positions[domain.column], codes.get(domain.column) if domain.has_codes else None
        if notations is None:
            readers.append(ColumnReader(*common, canonical))
        else:
            readers.append(ForeignReader(*common, notations.get(domain.column)))
    return readers


def hidden_rows(frame: pd.DataFrame, readers: Sequence[ColumnReader]) -> np.ndarray:
    """Return which rows of another tool's release hide every quasi-identifier, shape (rows,), bool."""
    hidden = np.ones(len(frame), bool)
    for reader in readers:
        if reader.domain.position or reader.domain.kind == "codes":
            continue
        published = PublishedCells.of(frame[reader.domain.column])
        coded = reader.domain.position is not None
        flags = [reader.hides(text) or (coded and not text.strip(WHOLE)) for text in published.texts]
        hidden &= np.array(flags, bool)[published.rows]
    return hidden
