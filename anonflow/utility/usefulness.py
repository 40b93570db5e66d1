"""Usefulness: how diverse the originals behind one published record are (Loukides and Shao)."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np

from anonflow.errors import ParameterError
from anonflow.generalization import Generalization
from anonflow.table import Domain, Records, equal_columns
from anonflow.table.forms.numbers import summable
from anonflow.table.records import first_places
from anonflow.table.schema import did_you_mean
from anonflow.utility.subject import Part

_WORDS = 4
"""Values of a class are bits in at most so many words; in a larger domain they are listed."""


@dataclass(frozen=True, eq=False)
class Attribute:
    """One published quasi-identifier column, in the form that usefulness needs.

    Attributes
    ----------
    name : str
    at : tuple of int
        Its coded QIs: one, or one for each position of a code.
    values : numpy.ndarray, shape (D,), float64, or None
        The number that each code stands for, if the attribute counts as numeric; NaN for a missing value.
    numbers : numpy.ndarray, shape (v,), float64
        The distinct numbers in the table, ascending.
    least_place, greatest_place : numpy.ndarray, shape (D + 1,), the smallest signed integers
        Where among these the least and the greatest number stand that a value may be, for code -1 and then for the others: a missing
        number may be any, and a code beside numbers has none, which is written as v and -1.
    radix : numpy.ndarray, shape (positions,), uint64
        The factors that combine a code of several positions into one number.
    present : numpy.ndarray, shape (u, positions), int32
        The distinct values that occur in the table.
    """

    name: str
    at: tuple[int, ...]
    values: np.ndarray | None
    numbers: np.ndarray
    least_place: np.ndarray
    greatest_place: np.ndarray
    radix: np.ndarray
    present: np.ndarray

    @property
    def size(self) -> int:
        """Distinct values in the table."""
        return len(self.present)

    @property
    def width(self) -> float:
        """Greatest minus least number in the table."""
        return float(self.numbers[-1] - self.numbers[0]) if len(self.numbers) else 0.0

    def codes(self, records: Records) -> np.ndarray:
        """Return one number for each value, equal for equal values in every partition, shape (n,), int64."""
        if len(self.at) == 1:
            return records.codes[:, self.at[0]].astype(np.int64)
        parts = records.codes[:, list(self.at)].astype(np.uint64)
        return (parts * self.radix).sum(axis=1, dtype=np.uint64).view(np.int64)


def attributes(records: Records, numeric: Sequence[str] | None = None) -> tuple[Attribute, ...]:
    """Return the attributes of a table.

    Parameters
    ----------
    records : Records
        All originals.
    numeric : sequence of str, optional
        The QI columns that count as numeric; those of kind numeric without it.

    Returns
    -------
    tuple of Attribute, in schema order

    Raises
    ------
    ParameterError
        If a column named as numeric is no QI, is of kind positions, or has values that are no numbers.
    """
    columns: dict[str, list[int]] = {}
    for a, domain in enumerate(records.domains):
        # codes beside numbers are an attribute of their own
        columns.setdefault(domain.name if domain.kind == "codes" else domain.column, []).append(a)
    if isinstance(numeric, str):
        numeric = [numeric]
    if numeric is not None and not isinstance(numeric, Iterable):
        raise ParameterError("usefulness: numeric is a list of column names, such as ['age']")
    for name in numeric or ():
        if name not in columns:
            raise ParameterError(
                f"usefulness: {name!r} is not a quasi-identifier{did_you_mean(name, tuple(columns))}"
            )
    result = []
    for name, at in columns.items():
        kind = records.domains[at[0]].kind
        counts = kind == "numeric" if numeric is None else name in numeric
        if len(at) > 1 and counts:
            raise ParameterError(f"usefulness: column {name!r} is a code with positions, which is no number")
        result.append(_attribute(records, name, tuple(at), counts))
    return tuple(result)


def chunk(attributes: tuple[Attribute, ...], part: Part) -> dict[str, Any]:
    """Return the part of a partition for usefulness: each class's distinct values, or their ends.

    Parameters
    ----------
    attributes : tuple of Attribute
    part : Part

    Returns
    -------
    dict
        ``keys`` (2, m) identifies m classes; ``found`` has for each attribute the places of its least and greatest number
        (2, m) if it is numeric, else the bits (words, m) of its values, or, where there are many values,
        ``(class, value)`` (E,), each pair once. Or ``spread`` (m,) where only what is covered is known.
        O(E q) for E matches, O(E q log E) with many values.
    """
    if part.candidates is None:
        return {"keys": part.keys, "spread": _extent(attributes, part)}
    rows = np.argsort(part.labels, kind="stable")
    original = part.candidates.take(rows).pairs()[1]
    edges = np.bincount(part.labels, part.candidates.sizes).astype(np.int64)
    starts = np.cumsum(edges) - edges
    covered: list[Any] = []
    for attribute in attributes:
        if attribute.values is not None:
            codes = part.records.codes[:, attribute.at[0]][original] + 1
            least, greatest = attribute.least_place[codes], attribute.greatest_place[codes]
            covered.append(
                np.stack([np.minimum.reduceat(least, starts), np.maximum.reduceat(greatest, starts)])
            )
        elif len(attribute.at) == 1 and part.records.domains[attribute.at[0]].size < 64 * _WORDS:
            covered.append(_bits(attribute, part.records, original, starts))
        else:
            owner = np.repeat(np.arange(len(edges)), edges)
            covered.append(_distinct_pairs(owner, attribute.codes(part.records)[original]))
    return {"keys": part.keys, "found": covered}


def _bits(attribute: Attribute, records: Records, original: np.ndarray, starts: np.ndarray) -> np.ndarray:
    """Return the values of each class as bits, a missing one first, shape (words, m), uint64."""
    code = attribute.codes(records) + 1
    words = []
    for word in range(records.domains[attribute.at[0]].size // 64 + 1):
        bit = np.where(code >> 6 == word, np.uint64(1) << (code & 63).astype(np.uint64), np.uint64(0))
        words.append(np.bitwise_or.reduceat(bit[original], starts))
    return np.stack(words)


def taken(chunk: dict[str, Any], at: np.ndarray) -> dict[str, Any]:
    """Return a chunk of some of its classes, (m,) bool."""
    keys = chunk["keys"][:, at]
    if "spread" in chunk:
        return {"keys": keys, "spread": chunk["spread"][at]}
    place = np.cumsum(at) - 1
    covered: list[Any] = []
    for part in chunk["found"]:
        if isinstance(part, np.ndarray):
            covered.append(part[:, at])
        else:
            pairs = at[part[0]]
            covered.append((place[part[0][pairs]], part[1][pairs]))
    return {"keys": keys, "found": covered}


def sums(attributes: tuple[Attribute, ...], chunks: Sequence[dict[str, Any]]) -> tuple[float, int]:
    """Return the tuple diversities of all classes, added up, and their number; usefulness is the mean.

    Equal classes of different partitions are one.
    """
    keys = np.concatenate([chunk["keys"] for chunk in chunks], axis=1)
    total = keys.shape[1]
    label = equal_columns(keys, total) if len(chunks) > 1 else np.arange(total)
    classes = int(label.max(initial=-1)) + 1
    if not classes:
        return 0.0, 0
    if any("spread" in chunk for chunk in chunks):
        spread = np.concatenate([chunk["spread"] for chunk in chunks])
        return float(spread[first_places(label, classes)].sum()), classes
    begin = np.cumsum([0, *(chunk["keys"].shape[1] for chunk in chunks)])
    sum_of = 0.0
    for a, attribute in enumerate(attributes):
        covered = [chunk["found"][a] for chunk in chunks]
        if attribute.values is not None:
            sum_of += _widths(attribute, covered, label, classes)
        elif isinstance(covered[0], np.ndarray):
            bits = np.concatenate(covered, axis=1)
            if len(chunks) > 1:
                together = np.zeros((len(bits), classes), np.uint64)
                for word, part_bits in zip(together, bits, strict=True):
                    np.bitwise_or.at(word, label, part_bits)
                bits = together
            sum_of += float(np.bitwise_count(bits).sum()) / attribute.size
        else:
            owner = np.concatenate([label[start + pair[0]] for start, pair in zip(begin, covered)])
            value = np.concatenate([pair[1] for pair in covered])
            pairs = len(value) if len(chunks) == 1 else len(_distinct_pairs(owner, value)[0])
            sum_of += pairs / attribute.size
    return sum_of, classes


def _widths(attribute: Attribute, covered: Sequence[np.ndarray], label: np.ndarray, classes: int) -> float:
    """Return greatest minus least number of each class, added up, as parts of the table's."""
    if not attribute.width:
        return 0.0
    places = np.concatenate(covered, axis=1)
    least = np.full(classes, len(attribute.numbers), places.dtype)
    greatest = np.full(classes, -1, places.dtype)
    np.minimum.at(least, label, places[0])
    np.maximum.at(greatest, label, places[1])
    # a class of codes alone has no number, and no width: both places are the last
    number = np.append(attribute.numbers, 0.0)
    return float((number[greatest] - number[least]).sum()) / attribute.width


def _attribute(records: Records, name: str, at: tuple[int, ...], numeric: bool) -> Attribute:
    present = _present(records, at)
    # odd multipliers of 64 bits: different codes collide with a chance of 1 in 2^64, or never if they fit
    sizes = [records.domains[a].size for a in at]
    radix = np.cumprod([1, *sizes[:-1]], dtype=np.float64)
    if radix[-1] * sizes[-1] < 2.0**62:
        multipliers = radix.astype(np.uint64)
    else:
        multipliers = np.random.default_rng(0).integers(1, 2**63, len(at), dtype=np.uint64) * np.uint64(
            2
        ) + np.uint64(1)
    values, numbers, places = None, np.zeros(0), (np.zeros(0, np.int8),) * 2
    if numeric:
        domain = records.domains[at[0]]
        values = summable(_numbers_of_codes(name, domain, present[:, 0]))
        occurring = values[present[:, 0][present[:, 0] >= 0]]
        numbers = np.unique(occurring[~np.isnan(occurring)])
        places = _places_of_codes(values, numbers, domain.has_codes)
    return Attribute(name, at, values, numbers, *places, multipliers, present)


def _present(records: Records, at: tuple[int, ...]) -> np.ndarray:
    """Return the distinct values of an attribute that occur, shape (u, positions), int32."""
    if len(at) > 1:
        codes = records.codes[:, list(at)]
        label = equal_columns(codes.T, len(codes))
        return codes[first_places(label, int(label.max(initial=-1)) + 1)]
    occurs = np.zeros(records.domains[at[0]].size + 1, bool)
    occurs[records.codes[:, at[0]] + 1] = True
    return (np.flatnonzero(occurs) - 1).astype(np.int32)[:, None]


def _places_of_codes(
    values: np.ndarray, numbers: np.ndarray, has_codes: bool
) -> tuple[np.ndarray, np.ndarray]:
    """Return where each code's least and greatest number stand among some, as :class:`Attribute` has them."""
    count = len(numbers)
    # signed, and wide enough for the number of places itself, which stands for none
    kind = np.min_scalar_type(-count - 1)
    place = np.searchsorted(numbers, values)
    missing = np.isnan(values)
    least, greatest = np.where(missing, 0, place), np.where(missing, count - 1, place)
    ends = (count, -1) if has_codes else (0, count - 1)
    return np.append(ends[0], least).astype(kind), np.append(ends[1], greatest).astype(kind)


def _numbers_of_codes(name: str, domain: Domain, present: np.ndarray) -> np.ndarray:
    """Return the number of each code; only those of values that occur need be numbers."""
    if domain.kind == "numeric":
        return domain.points
    values = np.full(domain.size, np.nan)
    for code in present.tolist():
        label = domain.labels[code]
        if not label:
            continue
        try:
            values[code] = float(label)
        except ValueError:
            raise ParameterError(
                f"usefulness: column {name!r} has values that are no numbers; leave it out of numeric"
            ) from None
    return values


def _distinct_pairs(owner: np.ndarray, value: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
    """Return the distinct pairs of two arrays of integers."""
    least = int(value.min())
    span = int(value.max()) - least + 1
    # then a pair is one int64, and one sort finds equal ones
    if (int(owner.max()) + 1) * span < 2**62:
        key = _distinct_keys(owner * span + (value - least))
        return key // span, key % span + least
    distinct, code = np.unique(value, return_inverse=True)
    key = _distinct_keys(owner * len(distinct) + code)
    return key // len(distinct), distinct[key % len(distinct)]


def _distinct_keys(keys: np.ndarray) -> np.ndarray:
    keys = np.sort(keys)
    return keys[np.flatnonzero(np.diff(keys, prepend=-1))]


def _extent(attributes: tuple[Attribute, ...], part: Part) -> np.ndarray:
    """Return tuple diversity of everything in the table that each class covers attribute by attribute, shape (m,)."""
    generalization = part.generalization.take(part.first)
    spread = np.zeros(generalization.n)
    for attribute in attributes:
        inside = _covered_values(attribute, generalization)
        if attribute.values is None:
            spread += inside[0] / attribute.size
        elif attribute.width:
            spread += inside[1] / attribute.width
    return spread


def _covered_values(attribute: Attribute, generalization: Generalization) -> tuple[np.ndarray, np.ndarray]:
    """Return how many of the table's values each generalized record covers, and how far apart they are."""
    a = attribute.at[0]
    at = np.flatnonzero(generalization.layout.ranges == a)
    if len(attribute.at) == 1 and len(at):
        domain = generalization.domains[a]
        lo, hi = generalization.lo[at[0]], generalization.hi[at[0]]
        if attribute.values is None:
            codes = attribute.present[:, 0]
            below = np.zeros(domain.size + 1)
            np.add.at(below, codes[codes >= 0] + 1, 1)
            below = np.cumsum(below)
            missing = (codes < 0).any() & (lo <= 0) & (hi >= domain.size - 1)
            return np.maximum(below[hi + 1] - below[lo], 0) + missing, np.zeros(generalization.n)
        if domain.kind == "numeric":
            last = domain.size - 1
            width = attribute.values[np.minimum(hi, last)] - attribute.values[np.minimum(lo, last)]
            return np.zeros(generalization.n), np.maximum(width, 0.0)
    return _covered_one_by_one(attribute, generalization)


def _covered_one_by_one(
    attribute: Attribute, generalization: Generalization
) -> tuple[np.ndarray, np.ndarray]:
    count = np.zeros(generalization.n)
    least, greatest = np.full(generalization.n, np.inf), np.full(generalization.n, -np.inf)
    for row in attribute.present:
        inside = np.ones(generalization.n, bool)
        for a, code in zip(attribute.at, row.tolist(), strict=True):
            inside &= _holds(generalization, a, code)
        count += inside
        if attribute.values is not None and len(attribute.numbers):
            number = np.nan if code < 0 else attribute.values[code]
            low, high = number, number
            if np.isnan(number):
                low, high = attribute.numbers[0], attribute.numbers[-1]
            np.minimum(least, low, out=least, where=inside)
            np.maximum(greatest, high, out=greatest, where=inside)
    return count, np.maximum(greatest - least, 0.0)


def _holds(generalization: Generalization, a: int, code: int) -> np.ndarray:
    """Return whether each generalized record covers a code of one coded QI, shape (m,), bool."""
    layout = generalization.layout
    t = layout.row_of_range.get(a)
    if t is not None:
        lo, hi = generalization.lo[t], generalization.hi[t]
        if code < 0:
            return np.asarray((lo <= 0) & (hi >= generalization.domains[a].size - 1))
        return np.asarray((lo <= code) & (code <= hi))
    word = generalization.bits[layout.words[a]][code >> 6]
    return np.asarray((word >> np.uint64(code & 63)) & np.uint64(1)).astype(bool)
