"""Singling out, linkability, inference: each asked of people who are in a release, and of people held out of it."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING

import numpy as np

from anonflow.errors import ParameterError
from anonflow.generalization import Generalization
from anonflow.risk.attacker import Z, percent
from anonflow.table import Table
from anonflow.table.row_marks import row_labels

if TYPE_CHECKING:
    import pandas as pd

__all__ = ["QUESTIONS", "Answer", "three_questions"]

QUESTIONS = ("singling out", "linkability", "inference")
"""Those of the European Union's Article 29 Working Party, Opinion 05/2014 (WP 216)."""

_MOST = 2_000
"""People that are attacked on each side, at most."""


@dataclass(frozen=True)
class Answer:
    """How often an attacker is right about people of a release, and about people who are not in it.

    Attributes
    ----------
    question : {"singling out", "linkability", "inference"}
    targets, controls : int
        Guesses about people of the release, and about people who were held out.
    success, control : float
        Shares that are right: s and c.
    baseline : float
        What a guess without the release's rows is right in.
    how : str
        What the attacker does, a sentence.
    """

    question: str
    targets: int
    controls: int
    success: float
    control: float
    baseline: float
    how: str

    @property
    def excess(self) -> float:
        """(s - c) / (1 - c): what being in the release adds; at least 0."""
        return 0.0 if self.control >= 1 else max(0.0, (self.success - self.control) / (1 - self.control))

    @property
    def interval(self) -> tuple[float, float]:
        """Between which values the excess lies with confidence 95%, by the normal approximation."""
        if self.control >= 1 or not self.targets or not self.controls:
            return 0.0, 1.0
        s, c = _inside(self.success, self.targets), _inside(self.control, self.controls)
        left = 1 - c
        # the derivatives of (s - c) / (1 - c) are 1 / (1 - c) and (s - 1) / (1 - c)^2
        half = (
            Z
            * (s * (1 - s) / self.targets / left**2 + c * left / self.controls * (1 - s) ** 2 / left**4)
            ** 0.5
        )
        return max(0.0, self.excess - half), min(1.0, self.excess + half)

    def verdict(self, threshold: float) -> str:
        """``passed``, ``failed``, ``too weak`` or ``not decided``.

        Parameters
        ----------
        threshold : float
            The excess must be smaller.

        Notes
        -----
        An attack that is right no more often than its naive baseline shows nothing: too weak. It is passed if the whole
        interval lies below the threshold; not decided if only its middle does: too few people.
        """
        if self.success <= self.baseline:
            return "too weak"
        if self.excess >= threshold:
            return "failed"
        return "passed" if self.interval[1] < threshold else "not decided"

    def sentence(self) -> str:
        """The figures in plain words."""
        low, high = self.interval
        return (
            f"{self.how} Right for {percent(self.success)} of {self.targets:,} people of the release, for "
            f"{percent(self.control)} of {self.controls:,} held out, and for {percent(self.baseline)} by the naive guess; "
            f"the release adds {percent(self.excess)} ({percent(low)} to {percent(high)})."
        )


def three_questions(
    table: Table, frame: pd.DataFrame, controls: Table, rng: np.random.Generator
) -> tuple[Answer, ...]:
    """Attack people of a release and people held out of it in the same three ways.

    Parameters
    ----------
    table : Table
        The n people of the release.
    frame : pandas.DataFrame
        The release, n rows: one of its own, made without the controls, and not published.
    controls : Table
        People who were held out before anonymizing, over the same domains.
    rng : numpy.random.Generator
        Chooses whom is attacked, and which rows are used.

    Returns
    -------
    tuple of Answer
        Of :data:`QUESTIONS`, those that can be asked: without a column besides the quasi-identifiers nothing is inferred, and
        one quasi-identifier alone cannot be linked with another.

    Raises
    ------
    ParameterError
        If there is nobody to attack.

    Notes
    -----
    *Singling out*: the quasi-identifiers and all other cells of a random row are a predicate; it wins if exactly one person
    of a database fits. Naive: each column's cell from another row. *Linkability*: one database has a person's
    quasi-identifiers, another the other columns (or the second half of the quasi-identifiers, where nothing else is
    published); a row that fits the first picks somebody of the second who fits the row. Naive: anybody. *Inference*: the
    commonest value of a sensitive column on the rows that cover a person, ties shared; the column with the largest excess
    counts. Naive: the commonest value of all rows. Of linkability and inference the probabilities of the guess are added
    up. Both databases have the same size, so that success means the same. O(people x rows).
    """
    size = min(_MOST, table.n, controls.n)
    if size < 1 or len(frame) < 1:
        raise ParameterError("nobody to attack: the table has too few records to hold some out")
    sides = tuple(each.take(np.sort(rng.choice(each.n, size, replace=False))) for each in (table, controls))
    rows = Generalization.parse(frame, table.domains)
    others = [name for name in table.other_columns if name in frame.columns]
    labels = row_labels([frame, *(side.frame for side in sides)], others)
    covers = [_covers(rows, side) for side in sides]
    answers = [_singling_out(rows, labels, sides, rng)]
    if others:
        fits = [labels[0][:, None] == label[None, :] for label in labels[1:]]
        second = "the other columns"
    else:
        half = _halves(rows)
        fits = [_covers(half[1], side) for side in sides]
        covers_first = [_covers(half[0], side) for side in sides]
        second = "the second half of the quasi-identifiers"
    if others or len(table.qi_columns) > 1:
        answers.append(_linkability(covers if others else covers_first, fits, second, size))
    wanted = [name for name in others if table.schema[name].role == "sensitive"] or others
    if wanted:
        each = [_inference(frame, sides, covers, name) for name in wanted]
        answers.append(max(each, key=lambda one: (one.success > one.baseline, one.excess)))
    return tuple(answers)


def _inside(rate: float, trials: int) -> float:
    """A rate that is not 0 or 1: one success and one failure more (Agresti and Coull, 1998, halved)."""
    return (rate * trials + 1) / (trials + 2)


def _covers(rows: Generalization, people: Table) -> np.ndarray:
    """Which row covers which person, shape (rows, people), bool."""
    own = Generalization.of(people.records)
    possible = np.empty((rows.n, people.n), bool)
    for i in range(people.n):
        possible[:, i] = rows.covers(own.take(np.full(rows.n, i)))
    return possible


def _singling_out(
    rows: Generalization, labels: Sequence[np.ndarray], sides: Sequence[Table], rng: np.random.Generator
) -> Answer:
    size = sides[0].n
    guesses = rng.choice(rows.n, size, replace=rows.n < size)
    mixed = _mixed(rows.take(guesses), rng)
    label = labels[0][guesses]
    other = labels[0][rng.integers(0, rows.n, size)]

    def alone(predicate: Generalization, value: np.ndarray, side: int) -> float:
        fits = _covers(predicate, sides[side]) & (value[:, None] == labels[side + 1][None, :])
        return float((fits.sum(axis=1) == 1).mean())

    return Answer(
        "singling out", size, size, alone(rows.take(guesses), label, 0), alone(rows.take(guesses), label, 1),
        alone(mixed, other, 0), "A row's cells, all together, describe exactly one person.",
    )  # fmt: skip


def _mixed(rows: Generalization, rng: np.random.Generator) -> Generalization:
    """The same cells of each column, on other rows."""
    lo, hi, bits = rows.lo.copy(), rows.hi.copy(), rows.bits.copy()
    layout = rows.layout
    for t in range(len(layout.ranges)):
        order = rng.permutation(rows.n)
        lo[t], hi[t] = lo[t, order], hi[t, order]
    for t in range(len(layout.sets)):
        order = rng.permutation(rows.n)
        words = slice(int(layout.offset[t]), int(layout.offset[t + 1]))
        bits[words] = bits[words][:, order]
    return replace(rows, lo=lo, hi=hi, bits=bits)


def _halves(rows: Generalization) -> tuple[Generalization, Generalization]:
    """Two copies of the rows: one shows the first half of the quasi-identifiers alone, the other one the rest."""
    q = len(rows.domains)
    layout = rows.layout

    def shown(first: bool) -> Generalization:
        lo, hi, bits = rows.lo.copy(), rows.hi.copy(), rows.bits.copy()
        for t, a in enumerate(layout.ranges.tolist()):
            if (a < q // 2) != first:
                lo[t], hi[t] = 0, rows.domains[a].size - 1
        for t, a in enumerate(layout.sets.tolist()):
            if (a < q // 2) != first:
                bits[int(layout.offset[t]) : int(layout.offset[t + 1])] = ~np.uint64(0)
        return replace(rows, lo=lo, hi=hi, bits=bits)

    return shown(True), shown(False)


def _linkability(covers: Sequence[np.ndarray], fits: Sequence[np.ndarray], second: str, size: int) -> Answer:
    def linked(side: int) -> float:
        many = fits[side].sum(axis=1)
        chance = (covers[side] & fits[side]) / np.maximum(many, 1)[:, None]
        right = chance.sum(axis=0) / np.maximum(covers[side].sum(axis=0), 1)
        return float(right.mean())

    return Answer(
        "linkability", size, size, linked(0), linked(1), 1 / size,
        f"A row joins a database with quasi-identifiers and one with {second}: the same person in both.",
    )  # fmt: skip


def _inference(
    frame: pd.DataFrame, sides: Sequence[Table], covers: Sequence[np.ndarray], name: str
) -> Answer:
    code, *own = row_labels([frame, *(side.frame for side in sides)], [name])
    kinds, value = np.unique(code, return_inverse=True)
    shown = np.zeros((len(code), len(kinds)))
    shown[np.arange(len(code)), value] = 1.0
    overall = shown.sum(axis=0)

    def named(side: int) -> float:
        counts = covers[side].T.astype(float) @ shown
        counts[counts.sum(axis=1) == 0] = overall
        best = counts == counts.max(axis=1, keepdims=True)
        right = (best & (kinds[None, :] == own[side][:, None])).any(axis=1) / best.sum(axis=1)
        return float(right.mean())

    best = kinds[overall == overall.max()]
    baseline = float(np.isin(own[0], best).mean() / len(best))
    size = sides[0].n
    return Answer(
        "inference", size, size, named(0), named(1), baseline,
        f"The commonest {name} on the rows that cover a person is the person's.",
    )  # fmt: skip
