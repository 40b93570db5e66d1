"""How well other published columns identify the person of a row: the posterior over a row's candidates."""

from __future__ import annotations

import hashlib
import math
import re
from collections.abc import Collection, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from datetime import datetime
from typing import Any, Protocol
from weakref import WeakKeyDictionary

import numpy as np
import pandas as pd

from anonflow.candidate_lists import Candidates
from anonflow.table.domain import Domain
from anonflow.table.forms.numbers import summable
from anonflow.table.records import Records, ranked_values
from anonflow.table.row_marks import joint_codes

TOGETHER = "all of them together"
"""The name of the result for all columns together."""

_FITTED = 5_000
"""Records on which the form of a dependence is chosen; its counts are of all records."""

_BINS = (64, 16, 4)
_LEVELS = 5
_LEAST_GAIN = 0.003
"""Nats a record that one more level of a context must explain."""

_EVIDENCE = math.log(1000)
"""Nats that it must explain in total: many forms are tried, and some form fits a small table by chance."""

_STRAY = 0.05
"""The share of values that a curve does not explain."""

_ZONED = re.compile(r"\d[T ]\d\d.*(Z|[+-]\d\d(:?\d\d){0,2})$", re.IGNORECASE | re.ASCII)
"""A time that says its distance from UTC."""


def complete_components(matches: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
    """Return the component of each generalized record, and which components are complete.

    Parameters
    ----------
    matches : numpy.ndarray, shape (P, w), int32
        Padded with -1; regular.

    Returns
    -------
    label : numpy.ndarray, shape (P,), int64
    complete : numpy.ndarray, shape (components,), bool
        Every row lists every original: no draw changes which values the rows show.
    """
    label = Candidates.of_matches(matches).components(len(matches))
    size = np.bincount(label, minlength=1)
    least = np.full(len(size), len(matches), np.int64)
    np.minimum.at(least, label, (matches >= 0).sum(axis=1))
    return label, least == size


@dataclass(frozen=True, eq=False)
class Link:
    """How well a column identifies a row's own original among its candidates.

    Attributes
    ----------
    column : str
        ``TOGETHER`` for all columns at once.
    highest : numpy.ndarray, shape (m,), float64
        For each row the largest posterior probability of one of its candidates; NaN where it has none.
    uses : tuple of str
        The quasi-identifiers that the column was found to depend on.
    """

    column: str
    highest: np.ndarray
    uses: tuple[str, ...]

    @property
    def mean(self) -> float:
        """The mean over the rows: how often the likeliest candidate is correct, if the model holds."""
        looked_at = self.highest[~np.isnan(self.highest)]
        return float(looked_at.mean()) if len(looked_at) else 0.0

    @property
    def largest(self) -> float:
        """The largest of any row."""
        return float(np.nanmax(self.highest)) if (~np.isnan(self.highest)).any() else 0.0

    def above(self, threshold: float) -> float:
        """Share of the rows with a candidate more probable than a threshold."""
        looked_at = self.highest[~np.isnan(self.highest)]
        return float((looked_at > threshold + 1e-9).mean()) if len(looked_at) else 0.0


def linkage(
    records: Records,
    originals: Mapping[str, pd.Series],
    published_columns: Mapping[str, pd.Series],
    candidates: Candidates,
    declared: Collection[str] = (),
) -> list[Link]:
    """Return the probability of each row's likeliest candidate, given the row's other columns and everybody's QIs.

    Parameters
    ----------
    records : Records
        The n originals' quasi-identifiers (QIs).
    originals : mapping of str to pandas.Series, n values each
        Their other columns.
    published_columns : mapping of str to pandas.Series, m values each
        The same columns, as the rows show them.
    candidates : Candidates
        Of the m rows.
    declared : collection of str
        Columns that anyone can compute from the QIs.

    Returns
    -------
    list of Link
        One for each column that the rows show; where these are several, ``TOGETHER`` is the last.

    Notes
    -----
    ``w_ji = f(y_j | x_i) / sum over i' in N(j) of f(y_j | x_i')``, N(j) the candidates of row j. f is fitted to the
    originals without those of j's component (cross-fitting), so that no candidate pair supports itself. Where
    the records have units, candidates are people: the probabilities of a person's records are added up.
    Where a component has more than a tenth of the records, j's own candidates are left out instead: there would be
    nothing left to fit to. For each column the form of f is the one that explains most, record by record left out,

    - counts of values in ever finer contexts, first of one QI's ranges, then of its values and of other QIs; a value
      is discounted once in a context and the rest is shared as in the context before (absolute discounting; Ney,
      Essen and Kneser, 1994): so an exact dependence counts if at least two other records support it;
    - a curve through the values of a numeric QI with Laplace residuals;
    - of texts also their beginnings, numbers and words that are a QI's values.

    Columns that are declared have f = 1 for a candidate's own value and 0 else. Together, columns count as
    independent given the QIs. It is a row-wise approximation of the joint posterior, for this f only: a low number
    means only that this model finds no link. O(forms n log n + columns m k) time.
    """
    from anonflow.table.domain import missing_cells

    left_out = _LeftOut.of(candidates, records.n)
    contexts = list(_qi_contexts(records))
    fits: dict[str, tuple[_Form, np.ndarray]] = {}
    for name, cells in originals.items():
        if name not in published_columns:
            continue
        texts, codes, published = joint_codes(cells, published_columns[name])
        form: _Form = (
            _Declared(codes)
            if name in declared
            else _best_form(records, contexts, codes, list(texts), left_out, bool(missing_cells(cells).all()))
        )
        fits[name] = form, published
    highest = {name: np.full(len(candidates.row_list), np.nan) for name in fits}
    joint = np.full(len(candidates.row_list), np.nan)
    for rows, start, pairs in candidates.blocks():
        size = np.diff(np.append(start, len(pairs)))
        row = np.repeat(rows, size)
        people = None if records.units is None else _People.of(row, records.units[pairs])
        logs = np.zeros(len(pairs))
        for name, (form, published) in fits.items():
            f = form.at(published[row], pairs, row)
            highest[name][rows] = _largest_share(f, start, size, people)
            with np.errstate(divide="ignore"):
                logs += np.log(f)
        # over the largest: products of many small chances would all be 0 in floats
        top = np.maximum.reduceat(logs, start)
        # where all chances are 0: -inf - -inf is no number
        top = np.where(np.isfinite(top), top, 0.0)
        joint[rows] = _largest_share(np.exp(logs - np.repeat(top, size)), start, size, people)
    links = [Link(name, highest[name], form.uses) for name, (form, _) in fits.items()]
    if len(links) > 1:
        uses = tuple(dict.fromkeys(name for link in links for name in link.uses))
        links.append(Link(TOGETHER, joint, uses))
    return links


@dataclass(frozen=True, eq=False)
class _People:
    """The pairs of each row by person: in `order`, a person's pairs follow each other, from each of `start` on; a row's first person has the number `first`."""

    order: np.ndarray
    start: np.ndarray
    first: np.ndarray

    @classmethod
    def of(cls, row: np.ndarray, unit: np.ndarray) -> _People:
        order = np.lexsort((unit, row))
        ordered = row[order]
        other_row = np.diff(ordered, prepend=-1) != 0
        start = np.flatnonzero(other_row | (np.diff(unit[order], prepend=-1) != 0))
        return cls(order, start, np.flatnonzero(other_row[start]))

    def largest(self, f: np.ndarray) -> np.ndarray:
        """Return the largest sum of one person, for each row."""
        largest: np.ndarray = np.maximum.reduceat(np.add.reduceat(f[self.order], self.start), self.first)
        return largest


def _largest_share(
    f: np.ndarray, start: np.ndarray, size: np.ndarray, people: _People | None = None
) -> np.ndarray:
    whole = np.add.reduceat(f, start)
    if people is None:
        largest, most = np.maximum.reduceat(f, start), np.ones(len(start))
    else:
        largest, most = people.largest(f), people.largest(np.ones(len(f)))
    return np.where(whole > 0, largest / np.where(whole > 0, whole, 1.0), most / size)


# ------------------------------------------------------------------------------------- what is left out


@dataclass(frozen=True, eq=False)
class _LeftOut:
    """Which originals f is fitted without, for each pair of a row and a candidate.

    Attributes
    ----------
    component : numpy.ndarray, shape (n,), int64
    is_large : numpy.ndarray, bool
        Of each component: whether the candidates of a row are left out instead of it.
    candidates : Candidates
    """

    component: np.ndarray
    is_large: np.ndarray
    candidates: Candidates

    @classmethod
    def of(cls, candidates: Candidates, n: int) -> _LeftOut:
        component = candidates.components(n)
        return cls(component, np.bincount(component) > n / 10, candidates)

    def own_group(self) -> np.ndarray:
        """Return for each original the label of the originals that are left out of its fit: its component, or itself."""
        n = len(self.component)
        large = self.is_large[self.component]
        return np.where(large, len(self.is_large) + np.arange(n), self.component)

    def groups(self, pairs: np.ndarray, row: np.ndarray) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
        """Return a label of the left-out originals for each pair, and all of them: labels and originals."""
        first = len(self.is_large)
        large = self.is_large[self.component[pairs]]
        group = np.where(large, first + row, self.component[pairs])
        whole = np.flatnonzero(~self.is_large[self.component])
        labels = np.concatenate([self.component[whole], group[large]])
        return group, labels, np.concatenate([whole, pairs[large]])


# -------------------------------------------------------------------------------------------- forms of f


class _Form(Protocol):
    @property
    def uses(self) -> tuple[str, ...]: ...

    def at(self, published: np.ndarray, original: np.ndarray, row: np.ndarray) -> np.ndarray:
        """Return f for each pair of a published value (its code) and an original; the pair's row determines the left-out originals."""


@dataclass(frozen=True, eq=False)
class _Declared:
    codes: np.ndarray
    uses: tuple[str, ...] = ()

    def at(self, published: np.ndarray, original: np.ndarray, row: np.ndarray) -> np.ndarray:
        return (self.codes[original] == published).astype(float)


@dataclass(frozen=True, eq=False)
class _Contexts:
    """Counts of values in ever finer contexts.

    Attributes
    ----------
    bin : numpy.ndarray, shape (V,), int64
        The bin of each value's code.
    original_bins : numpy.ndarray, shape (n,), int64
        The bin of each original's value.
    levels : list of numpy.ndarray, shape (n,), int64
        The context of each original, each level finer than the one before.
    """

    bin: np.ndarray
    original_bins: np.ndarray
    levels: list[np.ndarray]
    left_out: _LeftOut
    uses: tuple[str, ...]

    def at(self, published: np.ndarray, original: np.ndarray, row: np.ndarray) -> np.ndarray:
        bins = int(self.bin.max()) + 1
        y = self.bin[published]
        f: np.ndarray = (np.bincount(self.original_bins, minlength=bins) / len(self.original_bins))[y]
        f = np.maximum(f, 0.1 / len(self.original_bins))  # values without an original
        group, label, member = self.left_out.groups(original, row)
        for context in self.levels:
            kinds, cell, count = ranked_values(context * bins + self.original_bins)
            of_context = np.bincount(context)
            distinct = np.bincount(kinds // bins, minlength=len(of_context))
            # what the left-out originals contribute to each cell, and to each context
            gone, _, gone_count = ranked_values(label * len(kinds) + cell[member])
            gone_cell = gone % len(kinds)
            gone_context = gone // len(kinds) * len(of_context) + kinds[gone_cell] // bins
            places, place, _ = ranked_values(gone_context)
            less = np.bincount(place, gone_count, len(places))
            no_more = np.bincount(place, gone_count == count[gone_cell], len(places))
            z = context[original]
            at_place, is_place = _find(places, group * len(of_context) + z)
            m = of_context[z] - np.where(is_place, less[at_place], 0)
            distinct_left = distinct[z] - np.where(is_place, no_more[at_place], 0)
            at_cell, is_cell = _find(kinds, z * bins + y)
            support = np.where(is_cell, count[at_cell], 0)
            at_gone, is_gone = _find(gone, group * len(kinds) + at_cell)
            support = support - np.where(is_cell & is_gone, gone_count[at_gone], 0)
            f = np.where(m > 0, (np.maximum(support - 1, 0) + distinct_left * f) / np.maximum(m, 1), f)
        return f


@dataclass(frozen=True, eq=False)
class _Curve:
    """A curve through the values of one numeric QI; residuals are Laplace.

    Attributes
    ----------
    ends : numpy.ndarray, shape (V + 1,), float64
        Half-way between neighbouring values.
    rank : numpy.ndarray, shape (values,), int64
        Place of each value's code among the V numbers.
    share : numpy.ndarray, shape (V,), float64
    middle : numpy.ndarray, shape (n,), float64
        The curve at each original, through others.
    scale : float
    """

    ends: np.ndarray
    rank: np.ndarray
    share: np.ndarray
    middle: np.ndarray
    scale: float
    uses: tuple[str, ...]

    def at(self, published: np.ndarray, original: np.ndarray, row: np.ndarray) -> np.ndarray:
        rank = self.rank[published]
        within = _laplace((self.ends[rank + 1] - self.middle[original]) / self.scale) - _laplace(
            (self.ends[rank] - self.middle[original]) / self.scale
        )
        return np.asarray((1 - _STRAY) * within + _STRAY * self.share[rank])


def _laplace(at: np.ndarray) -> np.ndarray:
    half = 0.5 * np.exp(-np.abs(at))
    return np.where(at < 0, half, 1 - half)


def _find(sorted_keys: np.ndarray, keys: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
    """Return where keys stand among sorted distinct ones, and whether they do."""
    at = np.minimum(np.searchsorted(sorted_keys, keys), len(sorted_keys) - 1)
    return at, sorted_keys[at] == keys


def _best_form(
    records: Records,
    contexts: Sequence[tuple[int, np.ndarray]],
    codes: np.ndarray,
    texts: Sequence[str],
    left_out: _LeftOut,
    is_empty: bool,
) -> _Form:
    """Return the form of f that explains most of a column."""
    code = np.zeros(len(texts), np.int64)
    if is_empty:
        return _Contexts(code, code[codes], [], left_out, ())
    gain, code, chosen = _best_contexts(records, contexts, codes, texts)
    best: tuple[float, _Form | None] = gain, None
    for explained, curve in _curves(records, codes, texts, left_out):
        if explained > best[0]:
            best = explained, curve
    if best[1] is not None:
        return best[1]
    level, levels = np.zeros(records.n, np.int64), []
    for at in chosen:
        level = _finer(level, contexts[at][1])
        levels.append(level)
    uses = tuple(dict.fromkeys(records.domains[contexts[at][0]].column for at in chosen))
    return _Contexts(code, code[codes], levels, left_out, uses)


_CHOSEN: WeakKeyDictionary[Records, dict[bytes, tuple[float, np.ndarray, list[int]]]] = WeakKeyDictionary()
"""What :func:`_best_contexts` found, as long as the table is there: who draws, attacks and checks its release ask for the same columns.

A number for each distinct value of a column.
"""


def _best_contexts(
    records: Records,
    contexts: Sequence[tuple[int, np.ndarray]],
    codes: np.ndarray,
    texts: Sequence[str],
) -> tuple[float, np.ndarray, list[int]]:
    """Return what counts in contexts explain of a column, in nats a record: for the best coding of its values, with the places of its contexts."""
    chosen_of = _CHOSEN.setdefault(records, {})
    column = hashlib.sha256(codes.tobytes() + repr(texts).encode()).digest()
    if column not in chosen_of:
        sample = np.arange(0, records.n, -(-records.n // _FITTED))
        parts = [part[sample] for _, part in contexts]
        best: tuple[float, np.ndarray, list[int]] = 0.0, np.zeros(len(texts), np.int64), []
        for code in _codings(texts, codes, records.domains):
            y = code[codes]
            share = np.bincount(y) / len(y)
            if len(share) == 1:
                continue
            gain, chosen = _chain(y[sample], share, parts)
            if gain > best[0]:
                best = gain, code, chosen
        chosen_of[column] = best
    return chosen_of[column]


def _finer(level: np.ndarray, part: np.ndarray) -> np.ndarray:
    """Return the contexts of a level divided by those of a QI."""
    return ranked_values(level * (int(part.max()) + 1) + part)[1]


def _chain(y: np.ndarray, share: np.ndarray, parts: Sequence[np.ndarray]) -> tuple[float, list[int]]:
    """Return contexts that are refined as long as that explains more: nats a record, and places in `parts`."""
    whole = share[y]
    f, gain = whole, 0.0
    least = max(_LEAST_GAIN, _EVIDENCE / len(y))
    level = np.zeros(len(y), np.int64)
    chosen: list[int] = []
    while len(chosen) < _LEVELS:
        best: tuple[float, Any] = gain + least, None
        for at, part in enumerate(parts):
            context = _finer(level, part)
            trial = _left_one_out(context, y, len(share), f)
            explained = float(np.log(trial / whole).mean())
            if explained > best[0]:
                best = explained, (at, context, trial)
        if best[1] is None:
            break
        gain, (at, level, f) = best
        chosen.append(at)
    return gain, chosen


def _left_one_out(context: np.ndarray, y: np.ndarray, bins: int, before: np.ndarray) -> np.ndarray:
    """f of each record's own value, from the others in its context."""
    kinds, cell, count = ranked_values(context * bins + y)
    of_context = np.bincount(context)
    distinct = np.bincount(kinds // bins)
    others = of_context[context] - 1
    support = count[cell] - 1
    distinct_left = distinct[context] - (support == 0)
    return np.where(
        others > 0, (np.maximum(support - 1, 0) + distinct_left * before) / np.maximum(others, 1), before
    )


def _qi_contexts(records: Records) -> Iterator[tuple[int, np.ndarray]]:
    """Yield codings of each QI: its values, and coarser ranges of them."""
    for a, domain in enumerate(records.domains):
        codes = records.codes[:, a].astype(np.int64) + 1  # 0: missing
        yield a, codes
        if domain.shape == "range" or domain.size > _BINS[-1]:
            for bins in _BINS:
                if bins < domain.size:
                    yield a, _even_bins(codes, np.bincount(codes, minlength=domain.size + 1), bins)


def _even_bins(codes: np.ndarray, counts: np.ndarray, bins: int) -> np.ndarray:
    """Return codes in runs of about equally many records."""
    before = np.cumsum(counts) - counts
    run = (before * bins) // max(int(counts.sum()), 1)
    return np.asarray(np.unique(run, return_inverse=True)[1], np.int64)[codes]


def _codings(texts: Sequence[str], codes: np.ndarray, domains: Sequence[Domain]) -> Iterator[np.ndarray]:
    """Yield codings of a column: a code for each of its values, shape (values,), int64."""
    n, counts = len(codes), np.bincount(codes, minlength=len(texts))
    if len(texts) < 0.9 * n or n < 50:
        yield np.arange(len(texts))
    numbers = _numbers_or_days(texts)
    if numbers is not None:
        yield from _coarser(numbers, counts)
        return
    if len(texts) <= _BINS[-1]:
        return
    for length in (1, 2, 3):
        yield _labelled([text[:length] for text in texts])
    digits = [re.search(r"\d+", text) for text in texts]
    if sum(match is not None for match in digits) > len(texts) / 2:
        # a float holds 15 digits exactly
        first = np.array([-1.0 if match is None else float(match[0][:15]) for match in digits])
        yield np.unique(first, return_inverse=True)[1].astype(np.int64)
        yield from _coarser(first, counts)
    words = [re.findall(r"[^\W_]+(?:[-.][^\W_]+)*", text.casefold()) for text in texts]
    for domain in domains:
        code_of = {label.casefold(): code for code, label in enumerate(domain.labels) if label}
        mentioned = [
            next((code_of[word] for word in spellings if word in code_of), -1) for spellings in words
        ]
        if sum(code >= 0 for code in mentioned) > len(texts) / 10:
            yield _labelled(mentioned)


def _coarser(numbers: np.ndarray, counts: np.ndarray) -> Iterator[np.ndarray]:
    values, rank = np.unique(numbers, return_inverse=True)
    of_value = np.bincount(rank, counts).astype(np.int64)
    for bins in _BINS:
        if bins < len(values):
            yield _even_bins(rank, of_value, bins)


def _labelled(values: Iterable[object]) -> np.ndarray:
    labels: dict[object, int] = {}
    return np.array([labels.setdefault(value, len(labels)) for value in values], np.int64)


def _numbers_or_days(texts: Sequence[str]) -> np.ndarray | None:
    """Return the values as numbers or as days, the missing ones at the middle; None if they are neither."""
    numbers = np.full(len(texts), np.nan)
    for at, text in enumerate(texts):
        if not text:
            continue
        try:
            number = float(text)
        except ValueError:
            try:
                number = _seconds(text)
            except ValueError:
                return None
        if not math.isfinite(number):
            return None
        numbers[at] = number
    numbers = summable(numbers)
    return None if np.isnan(numbers).all() else np.where(np.isnan(numbers), np.nanmedian(numbers), numbers)


def _seconds(text: str) -> float:
    """Return a day, or a time, in seconds since 1970.

    Raises
    ------
    ValueError
        If it is neither.
    """
    if _ZONED.search(text):
        return datetime.fromisoformat(text).timestamp()
    return float(np.datetime64(text, "s").astype(np.int64))


def _curves(
    records: Records, codes: np.ndarray, texts: Sequence[str], left_out: _LeftOut
) -> Iterator[tuple[float, _Curve]]:
    """Yield a curve for each numeric QI, and the nats a record that it explains."""
    numbers = _numbers_or_days(texts)
    if numbers is None or len(np.unique(numbers)) <= _BINS[-1]:
        return
    values, rank = np.unique(numbers, return_inverse=True)
    share = np.bincount(rank[codes], minlength=len(values)) / len(codes)
    ends = np.concatenate([[-np.inf], values[:-1] + np.diff(values) / 2, [np.inf]])
    # a curve through all values has residuals of 0, and the scale divides
    least = 1e-9 * float(values[-1] - values[0])
    y = numbers[codes]
    group = left_out.own_group()
    for a, domain in enumerate(records.domains):
        if domain.kind != "numeric" or domain.size <= _BINS[-1] or domain.has_missing or domain.has_codes:
            continue
        middle = _through_others(summable(domain.points), records.codes[:, a], y, group)
        residual = np.abs(y - middle)
        for scale in (*np.quantile(residual, [0.5, 0.75]).tolist(), float(residual.mean())):
            curve = _Curve(ends, rank, share, middle, max(scale, least), (domain.column,))
            f = curve.at(codes, np.arange(records.n), np.arange(records.n))
            yield float(np.log(f / share[rank[codes]]).mean()), curve


def _through_others(points: np.ndarray, codes: np.ndarray, y: np.ndarray, group: np.ndarray) -> np.ndarray:
    """For each record the mean of y at its own x, or between the nearest ones, of the records of other groups.

    O(n log n), and a round for each value in a row that one group has alone.
    """
    size = len(points)
    whole, total = np.bincount(codes, minlength=size), np.bincount(codes, y, size)
    keys, key, inside = ranked_values(group * size + codes)
    inside_total = np.bincount(key, y)

    def outside(of: np.ndarray, at: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
        place, is_inside = _find(keys, of * size + at)
        count = whole[at] - np.where(is_inside, inside[place], 0)
        return count, (total[at] - np.where(is_inside, inside_total[place], 0.0)) / np.maximum(count, 1)

    own_group, own_code = keys // size, keys % size
    pairs: list[tuple[np.ndarray, np.ndarray]] = []
    for step in (-1, 1):
        at = own_code.copy()
        mean = np.full(len(keys), np.nan)
        todo = np.arange(len(keys))
        while len(todo):
            count, value = outside(own_group[todo], at[todo])
            mean[todo[count > 0]] = value[count > 0]
            todo = todo[count == 0]
            at[todo] += step
            todo = todo[(at[todo] >= 0) & (at[todo] < size)]
        pairs.append((points[np.clip(at, 0, size - 1)], mean))
    (left, low), (right, high) = pairs
    low, high = np.where(np.isnan(low), high, low), np.where(np.isnan(high), low, high)
    gap = np.where(right > left, right - left, 1.0)
    part = np.clip((points[own_code] - left) / gap, 0.0, 1.0)
    middle = low + part * (high - low)
    return np.asarray(np.where(np.isnan(middle), y.mean(), middle)[key])
