"""A table that was published before: its people stay in their cohorts, and newcomers are generalized among themselves."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass, replace
from typing import Any

import numpy as np

from anonflow.algorithms.anonymization import Anonymization
from anonflow.algorithms.assembly import gathered
from anonflow.algorithms.method import Algorithm, Outcome
from anonflow.candidate_lists import Candidates
from anonflow.criteria.boundaries import beyond_cells
from anonflow.criteria.guarantee import promises_classes, promises_matches
from anonflow.errors import BUG, AnonflowError, InfeasibleError, ParameterError
from anonflow.hierarchy.wording import plural, verb_of
from anonflow.loss import record_costs
from anonflow.option import check_whole
from anonflow.partition import bounded, limited
from anonflow.table import Records, Table
from anonflow.table.identification.earlier import history_of, written_differently
from anonflow.table.identification.history import History
from anonflow.table.records import matches_among, places_in

_OFFERED = (2, 3, 5, 10)
"""How many people may be left, for which a screen says how many are held back."""


def anonymized_again(
    table: Table,
    earlier: Any,
    people: int | None,
    method: Algorithm,
    k: int,
    boundaries: bool,
    measure: str,
    run: Callable[[Table], Anonymization],
) -> Anonymization:
    """Generalize a table some of whose people were published before, so that all releases together leave each person enough people.

    Parameters
    ----------
    table : Table
    earlier : path or list of paths
        The owner's folders of the earlier releases.
    people : int, optional
        How many people's rows may be a person's, in all releases together; k without it.
    method : Algorithm
        Of classes, or k-regular; that of the earlier releases must be of the same kind.
    k : int
        Of newcomers.
    boundaries : bool
        Whether the method works inside boundaries.
    measure : str
        The information loss: who is held back when a class is divided is chosen by it.
    run : callable
        Table -> its anonymization, for newcomers.

    Returns
    -------
    Anonymization
        Of the people who are published: its table lacks those who are held back. Facts: ``persisting``, ``newcomers``,
        ``held_back``, and ``promise``, a sentence.

    Raises
    ------
    ParameterError
        If the method makes neither classes nor matches, earlier releases are of the other kind or have another k, or `people` is
        outside its domain; or as :func:`anonflow.table.identification.earlier.history_of`.
    DataError
        As there.
    InfeasibleError
        If earlier releases leave somebody fewer people already, or nobody can be published.

    Notes
    -----
    The page *A table that is published every year* has the rule and its proof. A cohort, people of one fate in one class or one
    closed component, is published again as a whole, or not at all; a class may be divided into two of at least `people` each: those who are published, and the
    rest. Those who are held back for this are chosen by quasi-identifiers, so that the others lose little. One that has grown apart beyond boundaries or limits is held back. Nothing looks at values besides quasi-identifiers. O(pairs of a row and a person), besides the method on newcomers.
    """
    classes = _is_of_classes(method)
    least = _checked_people(people, k, classes)
    place, history, marks = history_of(earlier, table)
    _check_kind(history, method, classes, k)
    few = int((history.people_left < least).sum())
    if few:
        raise InfeasibleError(
            f"the earlier releases leave {plural(few, 'person')} fewer than {least} people whose rows may be theirs, and no further release "
            f"mends that; lower {'people' if classes else 'k'}, or publish one of them only"
        )
    at = np.minimum(np.searchsorted(history.marks, marks), len(history.marks) - 1)
    is_persisting = history.marks[at] == marks
    position = np.full(len(history.marks), -1, np.int64)
    position[at[is_persisting]] = np.flatnonzero(is_persisting)
    again = _published_again(
        history,
        position >= 0,
        least,
        divides=classes,
        records=table.records.take(position[position >= 0]),
        measure=measure,
    )
    if not classes:  # of suppressed people, who were one class
        again = again[history.people_left[again] <= k + 1]
    if boundaries and len(again) and (bounded(table.records) or limited(table.records)):
        again = again[_within_limits(table.take(position[again]), history, again, classes)]
    new = np.flatnonzero(~is_persisting)
    fresh = None
    if len(new) >= k:
        try:
            fresh = run(table.take(new))
        except InfeasibleError:  # newcomers alone may have no place within boundaries
            if not len(again):
                raise
    joining = np.flatnonzero(~fresh.suppressed) if fresh is not None else np.zeros(0, np.int64)
    chosen = np.sort(np.concatenate([position[again], new[joining]]))
    if not len(chosen):
        raise InfeasibleError(
            f"nobody of this table can be published: all {table.n:,} people are of cohorts that somebody left, or fewer than {k} newcomers; "
            "make larger classes in the first year, or lower people"
        )
    part = table.take(chosen)
    place.note(part, marks[chosen], history)
    outcomes, index = [], []
    if len(again):
        index.append(np.searchsorted(chosen, position[again]))
        outcomes.append(_outcome_again(part.records.take(index[0]), history, again, classes))
    if fresh is not None and len(joining):
        index.append(np.searchsorted(chosen, new[joining]))
        outcomes.append(_outcome_of(fresh, joining))
    whole = gathered(table.domains, outcomes, index, part.n)
    frozen = np.zeros(part.n, bool)
    frozen[np.searchsorted(chosen, position[again])] = True
    _check_people_left(history, marks[chosen], whole, least)
    held = table.n - part.n
    facts = {
        "persisting": len(again),
        "newcomers": len(joining),
        "held_back": held,
        "promise": (
            f"{plural(len(again), 'person', 'are')} published again and {len(joining):,} for the first time, {held:,} "
            f"{verb_of(held, 'are')} held back; all releases leave "
            f"each person at least {least} people whose rows may be theirs"
        ),
    }
    parameters = {} if fresh is None else dict(fresh.parameters)
    warned = [] if fresh is None or "warning" not in fresh.facts else [fresh.facts["warning"]]
    alike = len(place.alike(table, history.marks))
    if alike:
        warned.append(
            f"{plural(alike, 'newcomer', 'are')} in an earlier release if spaces and capitals of {history.releases[0].by} do not count: write it alike in "
            "all years, or the promise does not hold for them"
        )
    rewritten = place.rewritten(part, history.releases)
    if rewritten:
        warned.append(written_differently(rewritten, history.releases[0].by))
    if warned:
        facts["warning"] = "; ".join(warned)
    return Anonymization(
        part,
        method if fresh is None else fresh.algorithm,
        least,
        whole.generalization,
        matches=whole.matches,
        classes=whole.classes,
        suppressed=whole.suppressed,
        facts=facts,
        parameters=parameters,
        frozen=frozen,
        earlier=earlier,
    )


@dataclass(frozen=True)
class Outlook:
    """What another release of a table's people gives away, whatever its method, and what it costs to go on from the earlier ones.

    Attributes
    ----------
    k : int
        Of the latest release.
    few, alone : int
        People whom any plain release of the table leaves fewer than k people, and nobody else, at least: those who are in the table, or
        left, with so few of their cohort.
    held_back : mapping of int to int
        People that all releases leave everybody -> how many are held back at least.
    newcomers : int
        People of the table who are in no earlier release; fewer than k are held back, too.
    """

    k: int
    few: int
    alone: int
    held_back: Mapping[int, int]
    newcomers: int


def outlook(table: Table, earlier: Any) -> Outlook:
    """Return what another release of a table's people gives away, and what it costs to go on from the earlier ones.

    Parameters
    ----------
    table : Table
    earlier : path or list of paths
        The owner's folders of the earlier releases.

    Raises
    ------
    ParameterError, DataError
        As :func:`anonflow.table.identification.earlier.history_of`.
    """
    _, history, marks = history_of(earlier, table)
    last = history.releases[-1]
    divides = promises_classes(last.criterion)
    staying, leaving = history.sides(np.isin(history.marks, marks))
    apart = np.stack([staying, leaving])[:, (staying > 0) & (leaving > 0)]
    fewest = int(history.people_left.min(initial=last.k))
    numbers = (
        sorted({least for least in (*_OFFERED, fewest) if 2 <= least <= fewest}) if divides else [last.k]
    )
    return Outlook(
        last.k,
        int(apart[apart < last.k].sum()),
        int((apart == 1).sum()),
        {least: int(_held_back(staying, leaving, least, divides=divides).sum()) for least in numbers},
        int((~np.isin(marks, history.marks)).sum()),
    )


def _is_of_classes(method: Algorithm) -> bool:
    """Return whether a method makes classes; False of a k-regular one.

    Raises
    ------
    ParameterError
        If it makes neither.
    """
    classes = promises_classes(method.guarantee)
    if method.hides or not (classes or promises_matches(method.guarantee)):
        raise ParameterError(
            f"{method.name} makes neither classes nor matches that could stay for a second release; take greedy, mondrian or "
            "another method of classes or matches, or leave out earlier"
        )
    return classes


def _checked_people(people: Any, k: int, classes: bool) -> int:
    if people is None:
        return k
    people = check_whole(
        people, 2, f"people must be a whole number of at least 2 and at most k = {k}", most=k
    )
    if not classes and people != k:
        raise ParameterError(
            "people is k with a method of matches: their components are not divided; leave it out"
        )
    return people


def _check_kind(history: History, method: Algorithm, classes: bool, k: int) -> None:
    for release in history.releases:
        if promises_classes(release.criterion) != classes or promises_matches(release.criterion) == classes:
            raise ParameterError(
                f"{method.name} promises {method.guarantee}, and the release of {release.when} {release.criterion}: cohorts cannot be "
                "carried over; take a method of the same kind"
            )
        if not classes and release.k != k:
            raise ParameterError(
                f"the release of {release.when} has k = {release.k}; its components stay only with the same k"
            )


def _published_again(
    history: History, present: np.ndarray, least: int, *, divides: bool, records: Records, measure: str
) -> np.ndarray:
    """Return who of the people of cohorts is published again, positions ascending by cohort.

    Parameters
    ----------
    history : History
        Its people are in the order of their marks, which is random.
    present : numpy.ndarray, shape (u,), bool
        Whether they are in the table.
    least : int
    divides : bool
        Whether a cohort may be divided. Those who are then held back are the ones without whom the others lose least.
    records : Records
        Of the people who are present, in their order.
    measure : str
        The information loss.
    """
    staying, leaving = history.sides(present)
    back, cohort = _held_back(staying, leaving, least, divides=divides), history.cohorts
    row = np.flatnonzero(back[cohort[present]] < staying[cohort[present]])
    label = cohort[present][row]
    row, label = (array[np.argsort(label, kind="stable")] for array in (row, label))
    for turn in range(1, least):
        in_turn = back[label] >= turn
        if not in_turn.any():
            break
        dropped = _outlying(records.take(row[in_turn]), label[in_turn], measure)
        stays = np.ones(len(row), bool)
        stays[np.flatnonzero(in_turn)[dropped]] = False
        row, label = row[stays], label[stays]
    return np.flatnonzero(present)[row]


def _held_back(staying: np.ndarray, leaving: np.ndarray, least: int, *, divides: bool) -> np.ndarray:
    """Return how many people of each cohort are held back, shape (cohorts,), int64.

    Parameters
    ----------
    staying, leaving : numpy.ndarray, shape (cohorts,), int64
        As :meth:`anonflow.table.identification.history.History.sides` has them.
    least, divides
        As :func:`_published_again` takes them.
    """
    # two releases divide a class into those who are in both and the others: each part has to hide its people
    back = np.where(leaving > 0, np.maximum(0, least - leaving), 0)
    return np.where((leaving == 0) | (divides & (staying - back >= least)), back, staying)


def _outlying(records: Records, label: np.ndarray, measure: str) -> np.ndarray:
    """Return for each class the record without which the others lose least, positions.

    Tried are those at both ends of a quasi-identifier and with its rarest value; without another no cell gets narrower. O(q n) cells.

    Parameters
    ----------
    records : Records
    label : numpy.ndarray, shape (m,), int64
        Classes of two or more, ascending.
    measure : str
    """
    label = np.unique(label, return_inverse=True)[1]
    size = np.bincount(label)
    begin = np.cumsum(size) - size
    ends = []
    for codes in records.codes.T:
        value = np.unique(np.stack([label, codes]), axis=1, return_inverse=True)[1].ravel()
        by_code, by_count = (np.lexsort((key, label)) for key in (codes, np.bincount(value)[value]))
        ends += [by_code[begin], by_code[begin + size - 1], by_count[begin]]
    extremes = np.unique(np.concatenate(ends))
    few = size[label[extremes]] - 1
    row = np.arange(few.sum()) - np.repeat(np.cumsum(few) - few, few) + np.repeat(begin[label[extremes]], few)
    row += row >= np.repeat(extremes, few)  # all others of the class
    without = Outcome.of_classes(records.take(row), np.repeat(np.arange(len(extremes)), few))
    loss = record_costs(without.generalization, measure)[np.cumsum(few) - few]
    order = np.lexsort((loss, label[extremes]))
    _, first = np.unique(label[extremes][order], return_index=True)
    return extremes[order[first]]


def _outcome_again(records: Records, history: History, people: np.ndarray, classes: bool) -> Outcome:
    """Return the outcome of cohorts: their classes, or the lists of their tracks, each the row of its own person."""
    if classes:
        return Outcome.of_classes(records, history.cohorts[people])
    place = places_in(people, len(history.marks))
    track, person = history.pairs
    published = place[track] >= 0
    track, person = place[track[published]], place[person[published]]
    order = np.lexsort((person, person != track, track))  # a track's own person is the first
    track, person = track[order], person[order]
    degree = np.bincount(track, minlength=len(people))
    matches = np.full((len(people), int(degree.max())), -1, np.int64)
    matches[track, np.arange(len(track)) - (np.cumsum(degree) - degree)[track]] = person
    return Outcome.of_matches(records, matches)


def _within_limits(part: Table, history: History, people: np.ndarray, classes: bool) -> np.ndarray:
    """Return whose whole cohort keeps boundaries and limits, shape (people,), bool."""
    cells = _outcome_again(part.records, history, people, classes).generalization
    beyond = beyond_cells(part.records, cells, np.zeros(part.n, bool)).any(axis=0)
    return ~np.isin(history.cohorts[people], history.cohorts[people[beyond]])


def _outcome_of(fresh: Anonymization, joining: np.ndarray) -> Outcome:
    """Return the outcome of the newcomers who are not suppressed."""
    return Outcome(
        fresh.generalization.take(joining),
        matches=None if fresh.matches is None else matches_among(fresh.matches, joining),
        classes=None if fresh.classes is None else fresh.classes[joining],
    )


def _check_people_left(history: History, marks: np.ndarray, whole: Outcome, least: int) -> None:
    """Refuse a result that leaves somebody too few people, which only a bug makes.

    Raises
    ------
    AnonflowError
        If it does.
    """
    order = np.argsort(marks)
    if whole.matches is not None:
        tracks = Candidates.of_matches(matches_among(whole.matches, order))
    else:
        assert whole.classes is not None
        tracks = Candidates.of_classes(whole.classes[order])
    after = history.then(replace(history.releases[-1], marks=marks[order], seal="", tracks=tracks))
    few = int((after.people_left < least).sum())
    if few:
        raise AnonflowError(
            f"{few:,} people would have fewer than {least} people left in all releases; {BUG}"
        )
