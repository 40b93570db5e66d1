"""What several releases of the same people leave of them together: for each person, whose rows may be theirs in all releases."""

from __future__ import annotations

import itertools
from collections.abc import Sequence
from dataclasses import dataclass
from functools import cached_property

import numpy as np
from scipy.sparse import csr_array
from scipy.sparse.csgraph import connected_components

from anonflow.errors import DataError
from anonflow.system import total_memory
from anonflow.table.identification.released_people import ReleasedPeople
from anonflow.table.records import equal_columns

_BYTES = 128
"""Bytes that a pair of a row and a person takes at the peak: positions, codes, their order, and the graph."""


@dataclass(frozen=True, eq=False)
class History:
    """Releases of the same people, in the order of their dates.

    Attributes
    ----------
    releases : tuple of ReleasedPeople
        Each with its tracks.
    before : History or None
        All releases but the last one, where what they leave is computed already.

    Notes
    -----
    The rows of one person in all releases are a track. The attacker knows everybody's quasi-identifiers, who is in which
    release, the lists of all rows, and which rows of two releases are one person's. So a world is a perfect matching of tracks and
    people: a track may be the track of a person who is in the same releases, and on the lists of all of its rows. A pair is left if it
    lies on such a matching. Everybody's own track is one, so these pairs are those within a strongly connected component.
    O(pairs of a row and a person).
    """

    releases: tuple[ReleasedPeople, ...]
    before: History | None = None

    @cached_property
    def marks(self) -> np.ndarray:
        """The marks of everybody who has a row with other columns in some release, ascending, shape (u,), uint64."""
        return np.unique(
            np.concatenate(
                [np.zeros(0, np.uint64), *(release.marks[_listed(release)] for release in self.releases)]
            )
        )

    @cached_property
    def pairs(self) -> tuple[np.ndarray, np.ndarray]:
        """The pairs of a track and a person that all releases leave: two arrays of positions in `marks`, shape (e,), int64.

        Raises
        ------
        DataError
            If there are more pairs than half of this machine's memory holds.
        """
        u, most = len(self.marks), total_memory() // 2 // _BYTES
        present = np.zeros((len(self.releases), u), bool)
        places = [np.searchsorted(self.marks, release.marks) for release in self.releases]
        for presence, release, at in zip(present, self.releases, places, strict=True):
            presence[at[_listed(release)]] = True
        # a track can only be that of a person who is in the same releases
        fate = equal_columns(present, u)
        past, codes, begin = np.zeros(u, bool), np.zeros(0, np.int64), 0
        if self.before is not None:
            # a matching of all releases is one of those before the last
            begin, at = len(self.before.releases), np.searchsorted(self.marks, self.before.marks)
            track, person = (at[ends] for ends in self.before.pairs)
            codes, past[at] = (track * u + person)[fate[track] == fate[person]], True
        for presence, release, at in zip(present[begin:], self.releases[begin:], places[begin:], strict=True):
            assert release.tracks is not None
            if release.tracks.sizes.sum() > most:
                raise DataError(
                    f"more than {most:,} pairs of a row and a person, which take half of this machine's memory; take smaller classes"
                )
            track, person = (at[ends] for ends in release.tracks.pairs())
            alike = fate[track] == fate[person]
            track, person = track[alike], person[alike]
            code = np.sort(track * u + person, kind="stable")  # of tracks in order
            # a pair stays if its track is not in this release, or its row there may be the person's
            codes = codes[~presence[codes // max(u, 1)] | among(codes, code)]
            track = code // max(u, 1)
            codes = np.concatenate([codes, code[~past[track]]])
            past |= presence
        track, person = codes // max(u, 1), codes % max(u, 1)
        graph = csr_array((np.ones(len(codes), np.int8), (track, person)), shape=(u, u))
        # with everybody's own track a complete matching, exactly the pairs inside a strong component lie on one
        label = connected_components(graph, connection="strong")[1] if u else np.zeros(0, np.int32)
        on_matching = label[track] == label[person]
        return track[on_matching], person[on_matching]

    @cached_property
    def people_left(self) -> np.ndarray:
        """For how many people's tracks each person's may be, shape (u,), int64."""
        return np.bincount(self.pairs[1], minlength=len(self.marks))

    @cached_property
    def cohorts(self) -> np.ndarray:
        """Labels of people whose tracks may be each other's, directly or through others, shape (u,), int64."""
        u = len(self.marks)
        graph = csr_array((np.ones(len(self.pairs[0]), np.int8), self.pairs), shape=(u, u))
        return connected_components(graph, directed=False)[1].astype(np.int64) if u else np.zeros(0, np.int64)

    def values_left(self, column: str) -> np.ndarray:
        """Return how many values of a sensitive column are left of each person, shape (u,), int64.

        A track's value is that of its last release with the column; 0 where none has it.
        """
        value = np.zeros(len(self.marks), np.uint64)
        has_value = np.zeros(len(self.marks), bool)
        for release in self.releases:
            if column in release.values:
                listed = _listed(release)
                at = np.searchsorted(self.marks, release.marks[listed])
                value[at], has_value[at] = release.values[column][listed], True
        track, person = self.pairs
        kind = np.unique(value, return_inverse=True)[1].astype(np.int64)
        usable = has_value[track]
        different = np.unique(person[usable] * max(len(value), 1) + kind[track[usable]])
        return np.bincount(different // max(len(value), 1), minlength=len(value))

    def sides(self, present: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
        """Return how many people of each cohort are in a later table, and how many are not, two arrays of shape (cohorts,), int64.

        Parameters
        ----------
        present : numpy.ndarray, shape (u,), bool
            Whether each person is in the table.
        """
        staying = np.bincount(self.cohorts, present).astype(np.int64)
        return staying, np.bincount(self.cohorts) - staying

    def of(self, marks: np.ndarray, flags: np.ndarray) -> np.ndarray:
        """Return the flags of some people by their marks, shape (m,), bool; False of those who are in no release."""
        at = np.minimum(np.searchsorted(self.marks, marks), max(0, len(self.marks) - 1))
        flagged: np.ndarray = flags[at] & (self.marks[at] == marks)
        return flagged

    def then(self, release: ReleasedPeople) -> History:
        """Return the same releases and one more; as it is if it has the release, by its seal."""
        if any(predecessor.seal == release.seal for predecessor in self.releases):
            return self
        return History((*self.releases, release), self)


def among(codes: np.ndarray, ascending: np.ndarray) -> np.ndarray:
    """Return which codes are among others, shape of `codes`, bool."""
    if not len(ascending):
        return np.zeros(len(codes), bool)
    at = np.minimum(np.searchsorted(ascending, codes), len(ascending) - 1)
    return np.asarray(ascending[at] == codes)


def _listed(people: ReleasedPeople) -> np.ndarray:
    assert people.tracks is not None
    return people.tracks.sizes > 0


def checked_order(releases: Sequence[ReleasedPeople]) -> None:
    """Refuse releases that are not in the order of their dates.

    Raises
    ------
    DataError
        If they are not.
    """
    if any(before.when > after.when for before, after in itertools.pairwise(releases)):
        raise DataError(
            "earlier releases are not in the order of their dates; name the oldest owner's folder first"
        )
