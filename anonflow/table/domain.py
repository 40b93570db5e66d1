"""One coded quasi-identifier: its values in code order, and the text of a run or set of them."""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass
from functools import cached_property
from typing import Literal

import numpy as np
import pandas as pd
import pyarrow as pa
import pyarrow.compute as pc

from anonflow.hierarchy import Hierarchy
from anonflow.table.published.published_cells import (
    WHOLE,
    Range,
    coded_parts,
    coded_text,
    members_of,
    plain_sets,
    read_number,
    set_text,
    set_texts,
)

Kind = Literal["numeric", "categorical", "hierarchy", "suppression", "positions", "codes"]

NUMBER_MEMBER = "{}"
"""The label of any number among the codes of a numeric column; no category is written so, and it is never published."""


@dataclass(frozen=True, eq=False)
class Domain:
    """The values of one coded quasi-identifier (QI), shared by every record of a table.

    A column of kind ``positions`` has a domain for each of its positions, a numeric column with codes one for its
    numbers and, after it, one for its codes; every other QI column has one.

    Parameters
    ----------
    column : str
        The published column the QI belongs to.
    kind : {"numeric", "categorical", "hierarchy", "suppression", "positions", "codes"}
        How its values may be generalized. A ``codes`` domain is the set beside a numeric one: a number (``NUMBER_MEMBER``,
        code 0), and each code that occurs.
    labels : tuple of str, length D
        The published text of each value, in code order. ``""`` is the missing value.
    points : numpy.ndarray, shape (D,), float64
        Numeric QIs: the values, ascending, in the column's unit (dates: days since 1970). Others: the codes.
    counts : numpy.ndarray, shape (D,), int64
        How often each value occurs in the whole table.
    weight : float
        The QI's weight in every information loss.
    hierarchy : Hierarchy, optional
        For the kinds hierarchy, suppression, positions: a tree whose leaf c is code c.
    position : int, optional
        Kind positions: which position of the code this is.
    bound : numpy.ndarray, shape (D, 2), int32, optional
        The first and last code of the largest run that each value may be generalized to (its boundary).
    floor : numpy.ndarray, shape (D, 2), int32, optional
        The first and last code of the smallest run that each value may be published as (``at-least``).
    limit : float, optional
        The greatest width (numeric, in the column's unit) or number of values (categorical) of one
        generalized record.
    has_missing : bool
        Numeric QIs: some records have no value, and only the whole domain covers them.
    has_codes : bool
        Numeric QIs: some records have a code instead of a number. Their run is the empty one, ``(D, -1)``: the identity of
        join, which every run covers; the ``codes`` domain that follows says which code it is.
    aggregate : {None, "mean", "median"}
        Numeric QIs: the mean or median that is published instead of a class's range.
    values_decide : bool
        Whether values that no published cell shows decide what a cell costs: it is a mean, has codes beside its numbers, or
        its hierarchy was made of the table's values. Its loss is not published.
    dates : {None, "date", "time", "utc"}
        Numeric QIs made of dates, of times, of times with a zone (published in UTC).

    Notes
    -----
    Invariant: codes of a ``range`` domain are in an order in which every allowed generalization is a run;
    ``hierarchy`` is given exactly for the kinds that publish its nodes.
    """

    column: str
    kind: Kind
    labels: tuple[str, ...]
    points: np.ndarray
    counts: np.ndarray
    weight: float = 1.0
    hierarchy: Hierarchy | None = None
    position: int | None = None
    bound: np.ndarray | None = None
    floor: np.ndarray | None = None
    limit: float | None = None
    has_missing: bool = False
    has_codes: bool = False
    aggregate: str | None = None
    dates: str | None = None
    values_decide: bool = False

    def __repr__(self) -> str:
        # without its values: messages and logs contain reprs
        return f"Domain({self.name!r}, {self.kind}, {self.has_value.sum()} values)"

    @property
    def size(self) -> int:
        """Number of values, D."""
        return len(self.labels)

    @cached_property
    def shape(self) -> Literal["range", "set"]:
        """Whether generalizations are runs of codes or sets of codes."""
        return "set" if self.kind in ("categorical", "codes") else "range"

    @cached_property
    def words(self) -> int:
        """Number of 64-bit words of a set of values; 0 for a range."""
        return -(-self.size // 64) if self.shape == "set" else 0

    @property
    def name(self) -> str:
        """The column, with the position where a column has several."""
        if self.kind == "codes":
            return f"{self.column}[code]"
        return self.column if self.position is None else f"{self.column}[{self.position}]"

    @property
    def width(self) -> float:
        """Largest minus smallest point; 0 where there is at most one value."""
        return float(self.points[-1] - self.points[0]) if self.size else 0.0

    @cached_property
    def exact_points(self) -> np.ndarray:
        """`points`, as Python's integers where whole numbers are too large for a float64: differences of them are exact."""
        if self.kind != "numeric" or self.dates is not None or not (np.abs(self.points) >= 2.0**53).any():
            return self.points
        try:
            return np.array([int(label) for label in self.labels], object)
        except ValueError:  # not whole numbers
            return self.points

    @cached_property
    def steps(self) -> int:
        """How many equal steps apart the ends of a numeric domain are, if all its values lie on a step; 0 if they lie on none.

        Steps are those of numbers with at most six decimals.
        """
        if self.size < 2:
            return 0
        for decimals in range(7):
            scaled = np.rint(self.points * 10.0**decimals)
            if np.abs(scaled).max() >= 2.0**53:
                break
            if np.array_equal(scaled / 10.0**decimals, self.points):
                apart = np.diff(scaled.astype(np.int64))
                step = int(np.gcd.reduce(apart))
                return int(apart.sum()) // step if step else 0
        return 0

    @cached_property
    def has_value(self) -> np.ndarray:
        """Which codes a value can have, shape (D,), bool: not a leaf that only marks a level of a hierarchy."""
        if self.kind != "hierarchy" or self.hierarchy is None:
            return np.ones(self.size, bool)
        return self.hierarchy.has_value

    @cached_property
    def _values_before(self) -> np.ndarray:
        return np.concatenate([[0], np.cumsum(self.has_value)]).astype(np.int64)

    def values_in(self, lo: np.ndarray, hi: np.ndarray) -> np.ndarray:
        """Return how many values runs of codes cover, of the shape of `lo`; at most 0 for an empty run."""
        return np.asarray(self._values_before[np.asarray(hi) + 1] - self._values_before[lo])

    @cached_property
    def _code_of(self) -> dict[str, int]:
        return {label: code for code, label in enumerate(self.labels)}

    @cached_property
    def _node_run(self) -> dict[str, tuple[int, int]]:
        tree = self.hierarchy
        assert tree is not None
        runs = zip(tree.labels, tree.first.tolist(), tree.last.tolist(), strict=True)
        return {label: (lo, hi) for label, lo, hi in runs}

    def is_whole(self, lo: np.ndarray, hi: np.ndarray) -> np.ndarray:
        """Return whether runs are published as the whole domain, ``*``.

        A domain of one value is published as that value: it reveals nothing.

        Parameters
        ----------
        lo, hi : numpy.ndarray, int32, equal shapes
            First and last codes of the runs.

        Returns
        -------
        numpy.ndarray, bool
            Of the shape of `lo`.
        """
        if self.size <= 1 and not self.has_missing:
            return np.zeros(np.shape(lo), dtype=bool)
        return (np.asarray(lo) <= 0) & (np.asarray(hi) >= self.size - 1)

    def run_texts(self, lo: np.ndarray, hi: np.ndarray) -> list[str]:
        """Return the published texts of closed runs of codes.

        Parameters
        ----------
        lo, hi : numpy.ndarray, shape (u,), int32
            First and last codes; of a hierarchy, the runs of nodes.

        Returns
        -------
        list of str, length u
        """
        whole = self.is_whole(lo, hi).tolist()
        texts = []
        nodes = self.hierarchy.lca(lo, hi).tolist() if self.kind == "hierarchy" and self.hierarchy else None
        for at, (first, last) in enumerate(zip(lo.tolist(), hi.tolist(), strict=True)):
            if whole[at]:
                texts.append(WHOLE)
            elif first == last:
                texts.append(self.labels[first])
            elif nodes is not None and self.hierarchy is not None:
                texts.append(self.hierarchy.labels[nodes[at]])
            else:
                texts.append(self._run_text(first, last))
        return texts

    def _run_text(self, first: int, last: int) -> str:
        return Range(self.labels[first], self.labels[last], bool(self.dates)).text

    def set_texts(self, words: np.ndarray) -> np.ndarray:
        """Return the published texts of sets of codes: members sorted by text, ``*`` for all of them.

        Parameters
        ----------
        words : numpy.ndarray, shape (words, u), uint64
            64 codes a word, lowest code in the lowest bit.

        Returns
        -------
        numpy.ndarray, shape (u,), object
            O(members) in all.
        """
        flags = np.unpackbits(np.ascontiguousarray(words.T).view(np.uint8), axis=1, bitorder="little")
        sizes = flags.sum(axis=1, dtype=np.int64)
        texts = set_texts(self.labels, np.nonzero(flags)[1], sizes)
        return np.where(sizes == self.size, WHOLE, texts) if self.size > 1 else texts

    def read_run(self, text: str) -> tuple[int, int] | None:
        """Return the run of codes that a published text covers, or None if the text is not a run.

        A range of numbers that lies between two values of the domain covers none: ``(D, -1)``. A node below the level
        that the column is published at least covers none either.
        """
        if text == WHOLE:
            return 0, self.size - 1
        if self.kind == "hierarchy":
            run = self._node_run.get(text)
            return run if run is None or self._is_high_enough(run) else (self.size, -1)
        code = self._code_of.get(text)
        if code is not None:
            return code, code
        return self._read_range(text) if self.kind == "numeric" else None

    def read_aggregate(self, text: str, canonical: bool) -> float | None:
        """Return the number of a cell that is the mean or median of a class; None if it is not a number, or outside the domain.

        Parameters
        ----------
        text : str
        canonical : bool
            Whether only the shortest spelling counts.
        """
        number = read_number(text, canonical)
        if number is None or not math.isfinite(number):
            return None
        return number if self.points[0] <= number <= self.points[-1] else None

    def _is_high_enough(self, run: tuple[int, int]) -> bool:
        """Return whether a node is not below the level that the column is published at least."""
        return self.floor is None or bool(self.floor[run[0], 0] == run[0] and self.floor[run[1], 1] == run[1])

    def _range(self, text: str) -> Range | None:
        ends = Range.read(text)
        return ends if ends is not None and ends.dates == bool(self.dates) else None

    def _read_range(self, text: str) -> tuple[int, int] | None:
        ends = self._range(text.replace(" ", "T"))  # files of other programs have a space before the time
        if ends is None:
            return None
        if ends.low in self._code_of and ends.high in self._code_of:
            # exact also for integers and times that float64 cannot tell apart
            first, last = self._code_of[ends.low], self._code_of[ends.high]
        else:
            low, high = ends.points
            if math.isnan(low) or math.isnan(high):
                return None
            first = int(self.points.searchsorted(low, side="left"))
            last = int(self.points.searchsorted(high, side="right")) - 1
        return (first, last) if first <= last else (self.size, -1)

    def is_within(self, text: str) -> bool:
        """Return whether a text is a range inside the domain, canonically written, with an end that no record has.

        Likewise a node that is too low to be published. No method here publishes one, but another tool's release may.
        Every other range has one spelling, that of :meth:`run_texts`: a second one would distinguish equal rows.
        """
        node = self._node_run.get(text) if self.kind == "hierarchy" else None
        if node is not None:
            return not self._is_high_enough(node)
        ends = self._range(text) if self.kind == "numeric" and self.size else None
        if ends is None or not ends.is_text(text):
            return False
        first, last = ends.points
        ordered = first < last or ends.low == ends.high
        strange = ends.low not in self._code_of or ends.high not in self._code_of
        return ordered and strange and bool(self.points[0] <= first and last <= self.points[-1])

    def read_set(self, text: str) -> list[int] | None:
        """Return the codes of a published set, or None if the text is not a set of known values."""
        if text == WHOLE:
            return list(range(self.size))
        codes = [self._code_of.get(member) for member in members_of(text)]
        return None if None in codes else [code for code in codes if code is not None]

    def read_sets(self, texts: Sequence[str]) -> tuple[np.ndarray, np.ndarray]:
        """Read published sets as :meth:`read_set` does, most of them at once.

        Parameters
        ----------
        texts : sequence of str, u texts

        Returns
        -------
        bits : numpy.ndarray, shape (words, u), uint64
        bad : numpy.ndarray, shape (u,), bool
            Texts that are no set of known values.
        """
        plain, members = plain_sets(texts)
        places = pc.index_in(members.flatten(), value_set=pa.array(self.labels, pa.large_string()))
        codes = places.fill_null(-1).to_numpy()
        rows = np.repeat(np.flatnonzero(plain), np.diff(members.offsets.to_numpy()))
        others = np.flatnonzero(~plain)
        sets = [self.read_set(texts[u]) for u in others.tolist()]
        bad = np.zeros(len(texts), bool)
        bad[rows[codes < 0]] = True
        bad[others] = [codes is None for codes in sets]
        good = ~bad[rows]
        bits = _bits(rows[good], codes[good], self.words, len(texts))
        bits[:, others] = set_bits(sets, self.words)
        return bits, bad


def set_bits(sets: Sequence[Sequence[int] | None], words: int) -> np.ndarray:
    """Return sets of codes as bits, shape (words, u), uint64: 64 codes a word, lowest code in the lowest bit.

    Parameters
    ----------
    sets : sequence of (sequence of int, or None), u sets
        None is the empty set.
    words : int
    """
    sizes = [len(codes or ()) for codes in sets]
    members = np.fromiter((code for codes in sets for code in codes or ()), np.int64, sum(sizes))
    return _bits(np.repeat(np.arange(len(sets)), sizes), members, words, len(sets))


def _bits(rows: np.ndarray, codes: np.ndarray, words: int, count: int) -> np.ndarray:
    """Return the bits of `count` sets: each has the codes that stand beside its row."""
    bits = np.zeros(words * count, np.uint64)
    np.bitwise_or.at(bits, (codes >> 6) * count + rows, np.uint64(1) << (codes & 63).astype(np.uint64))
    return bits.reshape(words, count)


def coded_texts(
    numbers: Domain, codes: Domain, lo: np.ndarray, hi: np.ndarray, words: np.ndarray
) -> list[str]:
    """Return the published texts of a numeric column's runs and sets of codes.

    Parameters
    ----------
    numbers, codes : Domain
        The two of the column.
    lo, hi : numpy.ndarray, shape (u,), int32
        Runs of numbers; ``(D, -1)`` is none.
    words : numpy.ndarray, shape (words, u), uint64
        Sets of codes.

    Returns
    -------
    list of str, u texts
        ``53-59`` a range of numbers, ``53-59|N`` these or the code N, ``N`` a code, ``{N|R}`` one of several, ``""`` a blank,
        ``*`` any number or code. All numbers without every code are a range, for ``*`` stands for codes, too.
    """
    flags = np.unpackbits(np.ascontiguousarray(words.T).view(np.uint8), axis=1, bitorder="little")
    whole = numbers.is_whole(lo, hi) | (numbers.size == 1)
    texts = []
    for at, (first, last) in enumerate(zip(lo.tolist(), hi.tolist(), strict=True)):
        members = [codes.labels[code] for code in np.flatnonzero(flags[at]).tolist() if code]
        if not flags[at, 0] or first > last:
            texts.append(set_text(members))
        elif whole[at] and len(members) == codes.size - 1:
            texts.append(WHOLE)
        else:
            texts.append(coded_text(numbers._run_text(first, last), members))
    return texts


def read_coded(codes: Domain, text: str) -> tuple[str | None, list[int]] | None:
    """Return the parts of a published cell of a numeric column with codes.

    Parameters
    ----------
    codes : Domain
    text : str

    Returns
    -------
    tuple or None
        The text of its numbers (None where it has none; ``*`` for all of them), and the codes of the set, the number's
        among them. None where the text names a code that the column does not have, or one twice.
    """
    if text == WHOLE:
        return WHOLE, list(range(codes.size))
    code_of = codes._code_of
    if text in code_of and text != NUMBER_MEMBER:
        return None, [code_of[text]]
    run, names = coded_parts(text)
    places = [code_of.get(name, 0) for name in names]
    if 0 in places or len(set(places)) < len(places):
        return None
    return run, places if run is None else [0, *places]


def missing_cells(cells: pd.Series) -> np.ndarray:
    """Return which cells of a column have no value, shape (n,), bool."""
    return cells.isna().to_numpy(dtype=bool)
