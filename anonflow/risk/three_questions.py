"""Singling out, linkability, inference: each attack runs on people of a release and on people held out of it."""

from __future__ import annotations

from collections.abc import Collection, Sequence
from dataclasses import dataclass

import numpy as np
import pandas as pd

from anonflow.errors import ParameterError
from anonflow.generalization import Generalization
from anonflow.hierarchy.wording import plural
from anonflow.risk.attacker import Z, percent
from anonflow.risk.singling_out import fits_rows, one_end, plausible_points, same_cells, unique_conditions
from anonflow.table import Table
from anonflow.table.row_marks import row_labels

QUESTIONS = ("singling out", "linkability", "inference")
"""Those of the European Union's Article 29 Working Party, Opinion 05/2014 (WP 216)."""

_MOST = 2_000
"""The most people that are attacked on each side, and the most conditions that should describe one person."""

_PEOPLE = 20_000
"""The most people of each side among whom one is singled out."""

_FEWEST = 30
"""The least number of conditions on a plausible table: with fewer, the rate has no meaning."""


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
        The share in which a guess without the release's rows is right.
    how : str
        A sentence about the attack.
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
        """(s - c) / (1 - c): the excess risk of being in the release; at least 0."""
        return 0.0 if self.control >= 1 else max(0.0, (self.success - self.control) / (1 - self.control))

    @property
    def interval(self) -> tuple[float, float]:
        """Between which values the excess lies with confidence 95%, by the normal approximation."""
        if self.control >= 1 or not self.targets or not self.controls:
            return 0.0, 1.0
        s, c = _inside(self.success, self.targets), _inside(self.control, self.controls)
        complement = 1 - c
        # the derivatives of (s - c) / (1 - c) are 1 / (1 - c) and (s - 1) / (1 - c)^2
        half = (
            Z
            * (
                s * (1 - s) / self.targets / complement**2
                + c * complement / self.controls * (1 - s) ** 2 / complement**4
            )
            ** 0.5
        )
        return max(0.0, self.excess - half), min(1.0, self.excess + half)

    def verdict(self, threshold: float) -> str:
        """Return ``passed``, ``failed``, ``too weak`` or ``not decided``.

        Parameters
        ----------
        threshold : float
            The excess must be smaller.

        Notes
        -----
        An attack that is not better than its naive baseline is too weak for a conclusion. The question is passed if the
        complete interval is below the threshold; it is not decided if only the middle is, with too few people.
        """
        if self.success <= self.baseline:
            return "too weak"
        if self.excess >= threshold:
            return "failed"
        return "passed" if self.interval[1] < threshold else "not decided"

    def sentence(self) -> str:
        """Return the figures in plain words."""
        low, high = self.interval
        return (
            f"{self.how} Right for {percent(self.success)} of {plural(self.targets, 'person')} of the release, for "
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
    *Singling out*: a condition wins if exactly one person of a database fits it. Conditions are all cells of a random row, the
    other columns' too; its quasi-identifiers, one of them narrowed to a value that somebody has (:func:`one_end`); and values of
    three columns that exactly one row of a plausible table has (:func:`unique_conditions`). Naive: each column's cell, or value,
    from another row. The strongest way counts. *Linkability*: two databases have some of a person's
    columns each: the quasi-identifiers and the other columns; the first half of the quasi-identifiers and all the rest;
    every second quasi-identifier and all the rest. A row that fits the first picks somebody of the second who fits the row
    (naive: anybody); or each database picks the tightest row that fits its columns, that with the fewest values in their
    cells, and they are linked if it is the same row (naive: any two rows). Ties are shared, and the strongest way
    (:func:`strongest`) counts. *Inference*: the commonest value of a sensitive column on the rows that cover a person, ties
    shared; the strongest column counts. Naive: the commonest value of all rows. Of linkability and inference the
    probabilities of the guess are added up. Both databases have the same size, so that success means the same.
    O(people x rows).

    Two neighbours that are one row are the attack of Giomi, Boenisch, Wehmeyer and Tasnadi (2023) on synthetic tables. A
    release has cells: what its tightest rows link, nearest rows of plausible tables link less often.

    Where the schema has units, people are attacked: by one of their rows, drawn at random.
    """
    inside, theirs = (_row_of_each(side, rng) for side in (table, controls))
    size = min(_MOST, len(inside), len(theirs))
    if size < 1 or len(frame) < 1:
        raise ParameterError("nobody to attack: the table has too few records to hold some out")

    def people(count: int) -> tuple[Table, ...]:
        return tuple(
            side.take(np.sort(rng.choice(at, count, replace=False)))
            for side, at in ((table, inside), (controls, theirs))
        )

    sides = people(size)
    rows = Generalization.parse(frame, table.domains)
    others = [name for name in table.other_columns if name in frame.columns]
    labels = row_labels([frame, *(side.frame for side in sides)], others)
    everybody = min(_PEOPLE, len(inside), len(theirs))
    answers = [
        strongest(_singling_out(rows, frame, others, people(everybody) if everybody > size else sides, rng))
    ]
    linked = _linkability(rows, labels if others else None, sides)
    if linked:
        answers.append(strongest(linked))
    columns_to_guess = [name for name in others if table.schema[name].role == "sensitive"] or others
    if columns_to_guess:
        covers = [fits_rows(rows, side) for side in sides]
        answers.append(strongest([_inference(frame, sides, covers, name) for name in columns_to_guess]))
    return tuple(answers)


def strongest(answers: Sequence[Answer]) -> Answer:
    """Return, of several attacks that beat their naive baseline, the one with the largest excess."""
    return max(answers, key=lambda answer: (answer.success > answer.baseline, answer.excess))


def _row_of_each(table: Table, rng: np.random.Generator) -> np.ndarray:
    """Return a random row of each person, shape (people,), int64; of all rows, without units."""
    if table.unit is None:
        return np.arange(table.n)
    order = rng.permutation(table.n)
    return order[np.unique(table.unit[order], return_index=True)[1]]


def _inside(rate: float, trials: int) -> float:
    """Return a rate that is not 0 or 1: one success and one failure more (Agresti and Coull, 1998, halved)."""
    return (rate * trials + 1) / (trials + 2)


def _log_combinations(rows: Generalization, columns: Collection[str]) -> np.ndarray:
    """Return how many combinations of values each row's cells in some columns stand for, shape (rows,), float64, as logarithms."""
    layout, counts = rows.layout, rows.counts()
    sizes = np.zeros(rows.n)
    for t, a in enumerate(layout.ranges.tolist()):
        if rows.domains[a].column in columns:
            sizes += np.log(np.maximum(rows.domains[a].values_in(rows.lo[t], rows.hi[t]), 1))
    for t, a in enumerate(layout.sets.tolist()):
        if rows.domains[a].column in columns:
            sizes += np.log(np.maximum(counts[t], 1))
    return sizes


def _singling_out(
    rows: Generalization,
    frame: pd.DataFrame,
    others: Sequence[str],
    sides: Sequence[Table],
    rng: np.random.Generator,
) -> list[Answer]:
    """Return every way to describe exactly one person by what a release says.

    Parameters
    ----------
    rows : Generalization
    frame : pandas.DataFrame
        The release.
    others : sequence of str
        Published columns besides the quasi-identifiers.
    sides : sequence of Table
        People of the release, and as many controls.
    rng : numpy.random.Generator
    """
    size = sides[0].n
    most = min(_MOST, size)
    guesses = rng.choice(rows.n, most, replace=rows.n < most)
    labels = row_labels([frame, *(side.frame for side in sides)], others)
    label, other = labels[0][guesses], labels[0][rng.integers(0, rows.n, most)]
    guessed_rows = rows.take(guesses)

    def alone(cells: Generalization, side: int, value: np.ndarray | None = None) -> float:
        fits = fits_rows(cells, sides[side])
        if value is not None:
            fits &= value[:, None] == labels[side + 1][None, :]
        return float((fits.sum(axis=1) == 1).mean())

    ends, naive = one_end(guessed_rows, rng), one_end(same_cells(guessed_rows, rng), rng)
    ways = [
        Answer(
            "singling out", most, most, alone(guessed_rows, 0, label), alone(guessed_rows, 1, label),
            alone(same_cells(guessed_rows, rng), 0, other), "A row's cells, all together, describe exactly one person.",
        ),
        Answer(
            "singling out", most, most, alone(ends, 0), alone(ends, 1), alone(naive, 0),
            "A row's cells, one of them narrowed to an end of its range or to one of its values, describe exactly one person.",
        ),
    ]  # fmt: skip
    plausible, *points = plausible_points(rows, frame, sides, others, rng)
    plausible = plausible.take(rng.choice(rows.n, size, replace=rows.n < size))
    conditions, mixed = unique_conditions(plausible, most, rng)
    if conditions.m >= _FEWEST:
        success, control, naive_rate = (
            float((predicates.counts(people) == 1).mean())
            for predicates, people in ((conditions, points[0]), (conditions, points[1]), (mixed, points[0]))
        )
        ways.append(
            Answer(
                "singling out", conditions.m, conditions.m, success, control, naive_rate,
                f"Values of {plural(conditions.columns.shape[1], 'column')} that one row of a plausible table has describe exactly one "
                "person.",
            )
        )  # fmt: skip
    return ways


def _linkability(
    rows: Generalization, labels: Sequence[np.ndarray] | None, sides: Sequence[Table]
) -> list[Answer]:
    """Return every way to link two databases by the rows: each split of the columns, and how rows are picked.

    Parameters
    ----------
    rows : Generalization
    labels : sequence of numpy.ndarray, or None
        Of the other cells of the rows and of both sides; None where none are published.
    sides : sequence of Table
    """
    names = list(sides[0].qi_columns)
    half = len(names) // 2
    splits = {
        "the first half of the quasi-identifiers": (names[:half], names[half:]),
        "every second quasi-identifier": (names[::2], names[1::2]),
    }
    if labels is not None:
        splits = {"the quasi-identifiers": (names, []), **splits}
    answers = []
    for first, (columns, rest) in splits.items():
        if not columns or (labels is None and not rest):
            continue
        second = "the other columns" if not rest else "all the rest"
        left, right = (_log_combinations(rows, some) for some in (columns, rest))
        joined, met = [], []
        for side, people in enumerate(sides):
            covers, fits = fits_rows(rows, people, columns), fits_rows(rows, people, rest)
            if labels is not None:
                fits &= labels[0][:, None] == labels[side + 1][None, :]
            joined.append(_chance_to_join(covers, fits))
            met.append(_met(_tightest(covers, left), _tightest(fits, right)))
        size = sides[0].n
        answers += [
            Answer(
                "linkability", size, size, joined[0], joined[1], 1 / size,
                f"A row joins a database with {first} and one with {second}: the same person in both.",
            ),
            Answer(
                "linkability", size, size, met[0], met[1], 1 / rows.n,
                f"A database with {first} and one with {second} lead to the same row, the tightest that fits.",
            ),
        ]  # fmt: skip
    return answers


def _chance_to_join(covers: np.ndarray, fits: np.ndarray) -> float:
    """Return the mean chance that a row that covers a person picks the person of those who fit the row."""
    chance = (covers & fits) / np.maximum(fits.sum(axis=1), 1)[:, None]
    right = chance.sum(axis=0) / np.maximum(covers.sum(axis=0), 1)
    return float(right.mean())


def _met(left: np.ndarray, right: np.ndarray) -> float:
    """Return the mean chance that a random row of a person's first ones is a random one of its second ones."""
    pairs = left.sum(axis=0, dtype=np.int64) * right.sum(axis=0, dtype=np.int64)
    return float(((left & right).sum(axis=0) / np.maximum(pairs, 1)).mean())


def _tightest(possible: np.ndarray, sizes: np.ndarray) -> np.ndarray:
    """Return which of the rows that are possible for each person have the smallest cells, shape (rows, people), bool."""
    possible_sizes = np.where(possible, sizes[:, None], np.inf)
    return possible & (possible_sizes <= possible_sizes.min(axis=0) + 1e-9)


def _inference(
    frame: pd.DataFrame, sides: Sequence[Table], covers: Sequence[np.ndarray], name: str
) -> Answer:
    code, *truth = row_labels([frame, *(side.frame for side in sides)], [name])
    kinds, value = np.unique(code, return_inverse=True)
    indicators = np.zeros((len(code), len(kinds)))
    indicators[np.arange(len(code)), value] = 1.0
    overall = indicators.sum(axis=0)

    def named(side: int) -> float:
        counts = covers[side].T.astype(float) @ indicators
        counts[counts.sum(axis=1) == 0] = overall
        best = counts == counts.max(axis=1, keepdims=True)
        right = (best & (kinds[None, :] == truth[side][:, None])).any(axis=1) / best.sum(axis=1)
        return float(right.mean())

    best = kinds[overall == overall.max()]
    baseline = float(np.isin(truth[0], best).mean() / len(best))
    size = sides[0].n
    return Answer(
        "inference", size, size, named(0), named(1), baseline,
        f"The commonest {name} on the rows that cover a person is the person's.",
    )  # fmt: skip
