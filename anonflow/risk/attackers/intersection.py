"""An attacker who has several releases of the same people, and intersects them."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace
from typing import Any

import numpy as np
from scipy.sparse import csr_array

from anonflow.criteria import subject_of
from anonflow.errors import ParameterError
from anonflow.hierarchy.wording import plural, verb_of
from anonflow.risk.attack_context import AttackContext
from anonflow.risk.attacker import AttackerKind, Success, percent
from anonflow.risk.attackers.earlier_cells import prepared_release
from anonflow.risk.attackers.people import PeopleAtRisk
from anonflow.table.published.published_cells import WHOLE
from anonflow.table.row_marks import row_labels

_SURE = 0.95


@dataclass(frozen=True, eq=False)
class Intersection(
    AttackerKind,
    name="intersection",
    takes_releases=True,
    takes="needs earlier releases: risk.Intersection(earlier=[...]), or attack(..., earlier=[...])",
    does="has earlier releases",
    call="is for Python: af.attack(table, release, earlier=[...])",
    needs_truth=True,
    knows="everybody's quasi-identifiers, the method, and earlier releases of the same people",
):
    """Has earlier releases of the same people as well, knows everybody's quasi-identifiers, wants the sensitive value.

    With T releases the weight of a value y of a person's other columns is pi(y)^(1 - T) times the product of the shares
    of the person's rows that show y, where pi is the share in the whole table. So nearly unique values link rows directly.

    Parameters
    ----------
    earlier : release, DataFrame, path, or list of them
        Releases of the same table. Those that were made before its preparation steps are coded
        (:func:`prepared_release`). Or pairs ``(table, release)`` of another table; people with the same label in the
        frames' indices are the same.
    column : str, optional
        The sensitive column; the only one of the table without it.
    """

    earlier: Any
    column: str | None = None

    def attack(self, context: AttackContext) -> Success:
        """Attack the release. O(pairs of a person and a row), of each release.

        Raises
        ------
        ParameterError
            If there is no earlier release, or no sensitive column to choose.
        DataError
            If a release does not fit its table.
        """
        column = context.sensitive_column(self.column)
        releases = (
            self.earlier
            if isinstance(self.earlier, list | tuple) and not _is_pair(self.earlier)
            else [self.earlier]
        )
        if not releases:
            raise ParameterError(
                "intersection: name at least one earlier release, such as earlier=['2024.parquet']"
            )
        read = [_context_of(context, release) for release in releases]
        contexts, uncoded = [context, *(scene for scene, _ in read)], sum(cells for _, cells in read)
        names = [
            name
            for name in context.table.other_columns
            if all(name in scene.frame.columns for scene in contexts)
        ]
        if column not in names:
            raise ParameterError(f"intersection: column {column!r} is not in every release")
        codes = row_labels([*(scene.frame for scene in contexts), context.table.frame], names)
        values = int(max(code.max() for code in codes)) + 1
        prior = np.bincount(codes[0], minlength=values) / context.n
        counts = [
            _counts(scene, code, values, context.table)
            for scene, code in zip(contexts, codes[:-1], strict=True)
        ]
        of_value = row_labels([context.frame, context.table.frame], [column])
        kind = np.full(values, -1)
        kind[codes[0]] = of_value[0]
        truth = of_value[1]
        alone, _ = _best_guesses(counts[:1], prior, kind, truth)
        rate, is_sure = _best_guesses(counts, prior, kind, truth)
        risk, before, certain = (
            PeopleAtRisk.of(context.table, chance) for chance in (rate, alone, is_sure.astype(float))
        )
        sure = certain.above(0.0)
        lost = (
            f" After the table's steps {plural(uncoded, 'more cell')} of earlier releases {verb_of(uncoded, 'read')} *: it says nothing here, and the figures "
            "may be too low."
        )
        return risk.success(
            before.mean,
            f"An attacker who has {len(contexts)} releases of the same people names the right {column} for {percent(risk.mean)} "
            f"of them, from this release alone for {percent(before.mean)}; for {plural(sure, 'person')} it is "
            f"certain, and right.{lost if uncoded else ''}",
            at_risk=sure,
        )  # fmt: skip


def _is_pair(item: Any) -> bool:
    return isinstance(item, tuple) and len(item) == 2 and hasattr(item[0], "records")


def _context_of(context: AttackContext, item: Any) -> tuple[AttackContext, int]:
    """Return an earlier release, coded like the table, and how many more of its cells are ``*`` by that."""
    table, release = item if _is_pair(item) else (context.table, item)
    uncoded = 0
    if not _is_pair(item) and table.preparation:
        published = subject_of(release, table)
        if published.frame is not None:
            frame = prepared_release(table, published.frame)
            uncoded = max(0, int((frame == WHOLE).sum().sum()) - int((published.frame == WHOLE).sum().sum()))
            release = frame if published.certificate is None else replace(release, frame=frame)
    return type(context).of(table, release, context.k), uncoded


def _counts(context: AttackContext, code: np.ndarray, values: int, people: Any) -> csr_array:
    """Return how many of each person's rows show each value; a person who is not in the release has none."""
    original, row = context.pairs
    counts = csr_array((np.ones(len(row)), (original, code[row])), shape=(context.n, values))
    counts.sum_duplicates()
    if context.table is people:
        return counts
    place = context.table.frame.index.get_indexer(people.frame.index)
    present = np.flatnonzero(place >= 0)
    chosen = csr_array((np.ones(len(present)), (present, place[present])), shape=(len(place), context.n))
    return csr_array(chosen @ counts)


def _best_guesses(
    counts: Sequence[csr_array], prior: np.ndarray, kind: np.ndarray, truth: np.ndarray
) -> tuple[np.ndarray, np.ndarray]:
    """Return for each person the probability that the best guess is right, with ties shared, and whether it is certain and right."""
    whole = counts[0].copy()
    with np.errstate(divide="ignore"):
        whole.data = np.log(whole.data)
    for other in counts[1:]:
        absent = np.asarray(other.sum(axis=1)).ravel() == 0
        whole = _product(whole, other, absent, prior)
    n, kinds = len(truth), int(kind.max()) + 1
    row = np.repeat(np.arange(n), np.diff(whole.indptr))
    top = np.full(n, -np.inf)
    np.maximum.at(top, row, whole.data)
    # relative to each person's largest, so that not all weights underflow
    weight = np.exp(whole.data - top[row])
    in_release = kind[whole.indices] >= 0
    mass = csr_array(
        (weight[in_release], (row[in_release], kind[whole.indices[in_release]])), shape=(n, kinds)
    )
    mass.sum_duplicates()
    row = np.repeat(np.arange(n), np.diff(mass.indptr))
    best, total = np.zeros(n), np.zeros(n)
    np.maximum.at(best, row, mass.data)
    np.add.at(total, row, mass.data)
    # equal weights differ by rounding
    is_best = mass.data >= best[row] * (1 - 1e-9)
    ties = np.bincount(row[is_best], minlength=n)
    right = np.bincount(row[is_best & (mass.indices == truth[row])], minlength=n)
    rate = np.where(ties > 0, right / np.maximum(ties, 1), 1 / max(kinds, 1))
    sure = (best >= _SURE * np.maximum(total, 1e-300)) & (right > 0)
    return rate, sure


def _product(logs: csr_array, other: csr_array, absent: np.ndarray, prior: np.ndarray) -> csr_array:
    """Add one more release to the log weights: values that it does not allow are excluded, if it has the person."""
    n, values = logs.shape
    row = np.repeat(np.arange(n), np.diff(logs.indptr))
    key = row * values + logs.indices
    other.sort_indices()
    theirs = np.repeat(np.arange(n), np.diff(other.indptr)) * values + other.indices
    at = np.minimum(np.searchsorted(theirs, key), max(len(theirs) - 1, 0))
    both = theirs[at] == key if len(theirs) else np.zeros(len(key), bool)
    # people whose value has changed have no value in both releases: such a release is ignored for them
    changed = np.bincount(row[both], minlength=n) == 0
    silent = (absent | changed)[row]
    keep = both | silent
    count = other.data[at] if len(theirs) else np.ones(len(key))
    with np.errstate(divide="ignore"):
        log_ratio = np.where(silent, 0.0, np.log(np.where(both, count, 1.0)) - np.log(prior[logs.indices]))
    return csr_array((logs.data[keep] + log_ratio[keep], (row[keep], logs.indices[keep])), shape=(n, values))
