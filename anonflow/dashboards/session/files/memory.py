"""The earlier releases that a session knows: in its own owner's folder, and in those that its user uploaded."""

from __future__ import annotations

import secrets
import shutil
from collections.abc import Callable
from dataclasses import dataclass, replace
from pathlib import Path
from typing import TYPE_CHECKING

from anonflow.algorithms.cohorts import Outlook, outlook
from anonflow.dashboards.session.files.paths import safe_name
from anonflow.dashboards.work.user_limits import Limits
from anonflow.errors import DataError, ParameterError
from anonflow.hierarchy.wording import plural, verb_of
from anonflow.release import Earlier, Release
from anonflow.table import Table
from anonflow.table.identification.earlier import MEMORY, Overlap, SharedPeople
from anonflow.table.identification.packed_releases import packed, unpack

if TYPE_CHECKING:
    from anonflow.algorithms import Anonymization
    from anonflow.table.identification.released_people import ReleasedPeople

PAIRS = 100
"""Pairs of a row and a person, of a release that is uploaded, for each record that a table may have."""


@dataclass(frozen=True, eq=False)
class KnownReleases:
    """The earlier releases of a table's people."""

    shared: tuple[SharedPeople, ...] = ()
    """How many are in each earlier release, in the order of their dates."""
    outlook: Outlook | None = None
    """What another release gives away and costs; None where nobody of them was released before."""
    problem: str = ""
    """Why the releases cannot be counted together, a sentence."""

    @property
    def has_people(self) -> bool:
        """Whether some of the table's people are in one of them."""
        return any(entry.people for entry in self.shared)


class ReleaseMemory:
    """The earlier releases that a session knows.

    People are recognized by the key of a folder. What was uploaded has one key. If it is that of `session`, or `session` has none yet, the
    uploaded folder has all releases of both. Else both are searched for a table's people, and a run goes on from the uploaded ones. A release
    that is drawn is kept in both.

    Parameters
    ----------
    session : pathlib.Path
        The owner's folder of the session.
    uploaded : pathlib.Path
        Where the releases lie that its user uploaded; it ends with the session.
    lasts : bool
        Whether `session` stays when the session ends.
    shared : bool
        Whether strangers' releases are in `session`, too: then it is compared with, and neither handed out nor given a key from outside.
    """

    def __init__(
        self, session: Path, uploaded: Path, lasts: bool, limits: Limits, *, shared: bool = False
    ) -> None:
        self.lasts, self._shared = lasts, shared
        self._session, self._uploaded, self._limits = Earlier(session), Earlier(uploaded), limits

    @property
    def uploads(self) -> bool:
        """Whether its user uploaded releases."""
        return bool(self._uploaded.kept)

    @property
    def folder(self) -> Path:
        """The owner's folder that a run goes on from."""
        return self._first.path

    @property
    def kept(self) -> tuple[int, int]:
        """How many releases were uploaded, and how many are in the session's own folder."""
        return self._uploaded.kept, self._session.kept

    def take(self, name: str, file: Path, tell: Callable[[str], None] = lambda words: None) -> None:
        """Add a packed owner's folder that was uploaded; `tell` is called before anything is added.

        Raises
        ------
        DataError
            As :func:`anonflow.table.identification.packed_releases.unpack`; and if a release in it is larger than a table may be here.
        """
        limits, name = self._limits, safe_name(name)
        limits.check_upload(file.stat().st_size)
        draft = Earlier(self._uploaded.path.with_name(f"unpacked-{secrets.token_hex(8)}"))
        try:
            for people in unpack(file, name, draft, limits.upload_bytes):
                limits.check_rows(len(people.marks))
                pairs = 0 if people.tracks is None else int(people.tracks.sizes.sum())
                if limits.rows is not None and pairs > PAIRS * limits.rows:
                    raise DataError(
                        f"{name}: a release has {pairs:,} pairs of a row and a person, and this server takes at most {PAIRS * limits.rows:,}; "
                        f"{limits.elsewhere}"
                    )
            tell("adding the releases")
            unpack(file, name, self._uploaded, limits.upload_bytes)
        finally:
            shutil.rmtree(draft.path, ignore_errors=True)
        if not self._shared:
            self._session.key(self._uploaded)
        self._gather()

    def forget(self) -> None:
        """Delete what was uploaded."""
        shutil.rmtree(self._uploaded.path, ignore_errors=True)

    def known(self, table: Table, release: Release | None = None) -> KnownReleases:
        """Return the earlier releases of a table's people, without `release`, and what another one gives away and costs."""
        first = self._first
        counted = first.shared(table, release)
        shared = tuple(sorted([*counted, *self._elsewhere(table, release)], key=lambda entry: entry.when))
        if not any(entry.people for entry in counted):
            return KnownReleases(shared)
        try:
            return KnownReleases(shared, outlook(table, first.path))
        except (DataError, ParameterError) as error:
            return KnownReleases(
                shared, problem=error.renamed(str(first.path), "the owner's folder").problems[0]
            )

    def overlap(self, table: Table, release: Release) -> Overlap:
        """Return how many of a table's people are in earlier releases, by the folder that has most of them."""
        places = [self._first, *([self._session] if self._has_another_key else [])]
        return max(
            (place.overlap(table, release) for place in places),
            key=lambda overlap: (overlap.again, overlap.alike),
        )

    def checked(self, anonymization: Anonymization, release: Release) -> tuple[ReleasedPeople, str]:
        """Return the people of a release that goes on from earlier ones, as :meth:`Earlier.check_left`, and what this does not count."""
        table = anonymization.table
        people = self._first.check_left(table, release, anonymization.earlier)
        again = max((entry.people for entry in self._elsewhere(table, release)), default=0)
        return people, "" if not again else (
            f"{again:,} of {plural(table.n, 'person')} {verb_of(again, 'are')} in a release of this session's own folder, too, which has another key than the uploaded ones: nobody "
            "counts these releases together; publish one of them only"
        )

    def keep(
        self, table: Table, release: Release, people: ReleasedPeople | None, count: int
    ) -> Overlap | None:
        """Keep a release in each folder: with its people by the first one's key, where they are known.

        Returns
        -------
        Overlap or None
            With what another session kept meanwhile, since the session's folder had `count` releases.

        Raises
        ------
        VerificationError
            If it goes on from earlier releases, and what another session kept meanwhile and it leave somebody too few people.
        """
        folders = None
        if self._has_another_key:
            people = people or self._uploaded.people_of(table, release)
            self._uploaded.keep(table, release, people)
            people = replace(self._session.people_of(table, release), when=people.when)
        elif people is not None:
            folders = self.folder
        return self._session.keep_and_check(table, release, count, people, folders)[1]

    def packed(self) -> bytes:
        """Return the folder that the next run goes on from as a ZIP file; nothing of a folder with strangers' releases."""
        return b"" if self._shared and not self.uploads else packed(self._first)

    @property
    def _first(self) -> Earlier:
        if not self.uploads:
            return self._session
        self._gather()
        return self._uploaded

    @property
    def _has_another_key(self) -> bool:
        """Whether people of the session's own folder are not recognized among the uploaded ones."""
        return self.uploads and self._session.key() != self._uploaded.key()

    def _elsewhere(self, table: Table, release: Release | None) -> list[SharedPeople]:
        """Return what the session's own folder has besides the uploaded releases, if it has another key."""
        if not self._has_another_key:
            return []
        uploads = {entry.when for entry in self._uploaded.releases()}
        return [entry for entry in self._session.shared(table, release) if entry.when not in uploads]

    def _gather(self) -> None:
        """Copy the releases of the session's own folder to the uploaded ones, if they have one key."""
        if self._shared or not self._session.kept or self._has_another_key:
            return
        for file in sorted((self._session.path / MEMORY).glob("[0-9]*.npz")):
            target = self._uploaded.path / MEMORY / file.name
            if not target.exists():
                shutil.copy2(file, target)
