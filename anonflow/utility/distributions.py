"""The distribution of a quasi-identifier's values in a table and in its release."""

from __future__ import annotations

import itertools
from dataclasses import dataclass

import numpy as np

from anonflow.errors import ParameterError
from anonflow.generalization import Generalization
from anonflow.table.domain import NUMBER_MEMBER, Domain
from anonflow.table.records import Records
from anonflow.table.schema import did_you_mean

BINS = 30
"""Numbers with more distinct values than this are put into as many intervals of equal width."""

MOST = 40
"""The most categories that are shown one by one: the rarest others are summed up."""

MISSING = "(missing)"


@dataclass(frozen=True, eq=False)
class Distribution:
    """Shares of records, before and after.

    Attributes
    ----------
    name : str
        The quasi-identifier (QI).
    labels : tuple of str, length b
        The labels of the bars: they are values, so they belong to the owner.
    original, published : numpy.ndarray, shape (b,), float64
        Shares of all records; each adds up to 1.
    edges : numpy.ndarray, shape (b + 1,), float64, or None
        Where bars are intervals of numbers, their ends; without a bar for missing values.
    dates : bool
        Whether the numbers are days since 1970-01-01.
    ordered : bool
        Whether the labels are ordered, as numbers are, so that a line may connect them.
    beside : str
        The label, where there is one, of what has no place among numbers: missing values, or the codes of the column.
    """

    name: str
    labels: tuple[str, ...]
    original: np.ndarray
    published: np.ndarray
    edges: np.ndarray | None = None
    dates: bool = False
    ordered: bool = False
    beside: str = MISSING

    @property
    def distance(self) -> float:
        """The total variation distance: the share of records that would have to move, between 0 and 1."""
        return float(np.abs(self.original - self.published).sum() / 2)


def missing_of(records: Records) -> dict[str, np.ndarray]:
    """Return which originals have no value, for each column of QIs where some have none: bool, shape (n,); O(n q)."""
    missing: dict[str, np.ndarray] = {}
    for at, domain in enumerate(records.domains):
        # of numbers with codes, the domain of the codes says it
        if domain.kind == "positions" or domain.has_codes:
            continue
        codes = records.codes[:, at]
        without = codes < 0
        if domain.kind != "numeric" and "" in domain.labels:
            without = without | (codes == list(domain.labels).index(""))
        if without.any():
            missing[domain.column] = without
    return missing


def distribution(records: Records, generalization: Generalization, name: str) -> Distribution:
    """Return the values of one QI in the originals and in the generalized records, side by side.

    Parameters
    ----------
    records : Records
        n originals.
    generalization : Generalization
        n generalized records over the same domains, in any order.
    name : str
        Of a coded QI; of a code hidden by positions, ``column[position]``.

    Returns
    -------
    Distribution
        A generalized cell counts as one record, spread evenly: a run of numbers over its width, a run of other
        values and a set over its members. O(n log n + u b) for u distinct cells and b bars, and O(u D) for
        sets over D values.

    Raises
    ------
    ParameterError
        If there is no such QI, with the nearest one.
    """
    names = [domain.name for domain in records.domains]
    if name not in names:
        raise ParameterError(f"unknown quasi-identifier {name!r}{did_you_mean(name, tuple(names))}")
    a = names.index(name)
    domain = records.domains[a]
    codes = records.codes[:, a]
    original = np.bincount(codes[codes >= 0], minlength=domain.size).astype(np.float64)
    missing = float((codes < 0).sum())
    layout = generalization.layout
    edges = None
    if domain.shape == "set":
        published = _spread_sets(generalization.bits[layout.words[a]], domain)
        labels = list(domain.labels)
    else:
        t = layout.row_of_range[a]
        lo, hi, count = _distinct_runs(generalization.lo[t], generalization.hi[t], domain.size)
        if domain.kind == "numeric" and domain.size > BINS:
            edges = np.linspace(domain.points[0], domain.points[-1], BINS + 1)
            original = np.histogram(domain.points, edges, weights=original)[0]
            published = _spread_widths(domain.points[lo], domain.points[hi], count, edges)
            labels = _interval_texts(edges, domain)
        else:
            count_per_value = count / np.maximum(domain.values_in(lo, hi), 1)
            published = _spread_runs(lo, hi, count_per_value, domain.size)[domain.has_value]
            original = original[domain.has_value]
            labels = [label for label, value in zip(domain.labels, domain.has_value, strict=True) if value]
    beside = MISSING
    if missing:
        if domain.has_codes:  # the domain of the codes is the next one
            texts = (text for text in records.domains[a + 1].labels if text != NUMBER_MEMBER)
            beside = ", ".join(text or MISSING for text in texts)
        labels = [*labels, beside]
        # a record with a code may be published as one; a missing number is only ever covered by the whole domain
        coded = (generalization.lo[t] > generalization.hi[t]).sum() if domain.has_codes else 0.0
        original, published = np.append(original, missing), np.append(published, float(coded))
    if edges is None and len(labels) > MOST:
        labels, original, published = _summed_up(labels, original, published)
    # what a column that stands beside numbers calls a number is no value of anybody
    words = {"": MISSING} | ({NUMBER_MEMBER: "(number)"} if domain.kind == "codes" else {})
    return Distribution(
        name,
        tuple(words.get(label, label) for label in labels),
        original / max(1, records.n),
        published / max(1, generalization.n),
        edges,
        edges is not None and bool(domain.dates),
        domain.kind == "numeric",
        beside,
    )


def _distinct_runs(lo: np.ndarray, hi: np.ndarray, size: int) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
    """Return the distinct runs that cover something, and how often each occurs."""
    covering = hi >= lo
    key, count = np.unique(lo[covering].astype(np.int64) * size + hi[covering], return_counts=True)
    return key // size, key % size, count.astype(np.float64)


def _spread_runs(lo: np.ndarray, hi: np.ndarray, count_per_value: np.ndarray, size: int) -> np.ndarray:
    """Return the sum over the runs of what each adds to its codes, shape (size,)."""
    steps = np.bincount(lo, count_per_value, size + 1) - np.bincount(hi + 1, count_per_value, size + 1)
    return np.maximum(np.cumsum(steps)[:size], 0.0)


def _spread_widths(low: np.ndarray, high: np.ndarray, count: np.ndarray, edges: np.ndarray) -> np.ndarray:
    """Return each interval's count, evenly over its width, into bins; a single number falls into its bin."""
    single = high <= low
    bins = np.histogram(low[single], edges, weights=count[single])[0].astype(np.float64)
    low, high, count = low[~single], high[~single], count[~single]
    below = np.array([(count * np.clip((x - low) / (high - low), 0.0, 1.0)).sum() for x in edges])
    return bins + np.diff(below)


def _spread_sets(bits: np.ndarray, domain: Domain) -> np.ndarray:
    """Return each set's count, evenly over its members, shape (domain.size,)."""
    if len(bits) == 1:  # one word: sorting rows of numbers is many times slower than sorting numbers
        distinct, count = np.unique(bits[0], return_counts=True)
        distinct = distinct[np.newaxis]
    else:
        distinct, count = np.unique(bits, axis=1, return_counts=True)
    total = np.zeros(domain.size)
    # as many sets at a time as take 4 MiB, a byte for each value
    step = max(1, (1 << 22) // max(1, domain.size))
    for start in range(0, distinct.shape[1], step):
        words = np.ascontiguousarray(distinct[:, start : start + step].T).astype("<u8", copy=False)
        members = np.unpackbits(words.view(np.uint8), axis=1, bitorder="little", count=domain.size)
        total += (count[start : start + step] / np.maximum(members.sum(axis=1), 1)) @ members
    return total


def _interval_texts(edges: np.ndarray, domain: Domain) -> list[str]:
    if domain.dates:
        days = np.datetime_as_string(np.floor(edges).astype("int64").astype("datetime64[D]")).tolist()
        return [f"{first}/{last}" for first, last in itertools.pairwise(days)]
    ends = [f"{edge:.4g}" for edge in edges.tolist()]
    return [f"{first} to {last}" for first, last in itertools.pairwise(ends)]


def _summed_up(
    labels: list[str], original: np.ndarray, published: np.ndarray
) -> tuple[list[str], np.ndarray, np.ndarray]:
    """Return the most frequent originals one by one, in their order, and the rest as one bar."""
    top = np.sort(np.argsort(-original, kind="stable")[: MOST - 1])
    rest = np.setdiff1d(np.arange(len(labels)), top)
    return (
        [*(labels[at] for at in top), f"{len(rest)} other values"],
        np.append(original[top], original[rest].sum()),
        np.append(published[top], published[rest].sum()),
    )
