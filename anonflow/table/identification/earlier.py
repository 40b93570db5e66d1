"""Earlier releases of the same people: keyed marks of units, and whose each row may be, stored in the owner's folder."""

from __future__ import annotations

import hmac
import os
import re
import secrets
import stat
import struct
import unicodedata
import zipfile
from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass, replace
from datetime import UTC, datetime
from functools import partial
from os import PathLike
from pathlib import Path
from typing import TYPE_CHECKING, Any, Protocol
from weakref import WeakKeyDictionary

import numpy as np
import pandas as pd

from anonflow.candidate_lists import Candidates
from anonflow.errors import AnonflowError, DataError, ParameterError, VerificationError, setting
from anonflow.hierarchy.wording import plural, verb_of
from anonflow.table.identification.history import History, among, checked_order
from anonflow.table.identification.released_people import ReleasedPeople
from anonflow.table.records import places_in
from anonflow.table.row_marks import (
    KEY_LENGTH,
    UNIT_KEY_LENGTHS,
    Content,
    spelled_marks,
    unit_marks,
    unit_spellings,
)
from anonflow.whole_file import OWNER_ONLY, as_path, streamed, write_whole

if TYPE_CHECKING:
    from anonflow.table import Table

OWNER = "owner"
"""The name of the owner's folder beside a flow, or a table."""

MEMORY = ".releases"
"""The folder in an owner's folder that has the key and the releases."""

KEY_FILE = "units.key"
_MOST = 1_000_000_000
"""The largest file of marks that is read, in bytes."""

MOST_PEOPLE = 100_000_000
"""Records of which marks are kept, 8 bytes each; of larger tables none are."""


_MOST_LOOKED_AT, _MOST_SPELLED = 100_000, 10_000
"""The most people of a table who are looked for in earlier releases, and whose identifiers are tried in other spellings."""

_SPELLINGS: tuple[Callable[[str], str], ...] = (
    str,
    str.lower,
    str.upper,
    str.title,
    "{} ".format,
    " {}".format,
    partial(unicodedata.normalize, "NFD"),
)
"""The spellings of a text without outer and double spaces that an earlier release may have had."""

_marks: WeakKeyDictionary[Table, tuple[str, np.ndarray]] = WeakKeyDictionary()
"""The marks of the people of tables in memory, with the key that they were made with."""

_histories: WeakKeyDictionary[Table, History] = WeakKeyDictionary()
"""The earlier releases of people of tables in memory, with what they leave."""


class Drawn(Protocol):
    """The input that is kept: a release has it, and knows the truth as long as it is in memory."""

    @property
    def frame(self) -> pd.DataFrame | None:
        """The published rows."""

    @property
    def certificate(self) -> Any:
        """The owner's certificate, or None."""

    @property
    def truth(self) -> np.ndarray | None:
        """The original whose other columns each row has."""


MOST_LISTED = 20_000_000
"""The most people, and entries of their lists, that are kept beside marks; larger releases cannot be followed by others."""


@dataclass(frozen=True)
class Overlap:
    """How many people of a table were released before.

    Attributes
    ----------
    people : int
        Of the table.
    again : int
        Those who are in an earlier release; the most of any one.
    releases : int
        Earlier releases that have some of them.
    by : str
        The columns that identify people.
    few : int or None
        People of the table who have fewer than k people left whose rows may be theirs, in all releases together. None where it is not
        known.
    alone : int or None
        Those of them who have themselves only.
    alike : int
        Further people of the table whose identifiers are in an earlier release but for spaces and capitals; at least.
    rewritten : int
        Those of `again` whose identifiers were written differently and read as the same number, as ``007`` and ``7``; at least.
    by_values : bool
        Whether quasi-identifiers identify people, so that those with other values are not recognized.
    """

    people: int
    again: int
    releases: int
    by: str
    few: int | None = None
    alone: int = 0
    alike: int = 0
    rewritten: int = 0
    by_values: bool = False

    def __bool__(self) -> bool:
        return self.again + self.alike > 0

    def sentence(self) -> str:
        """Return a sentence for the owner, with its meaning."""
        alike = (
            f"{plural(self.alike, 'person', 'are')} in an earlier release from this owner's folder if spaces and capitals of {self.by} do not count: write it as it was, "
            "or nobody recognizes them"
        )
        if not self.again:
            return alike
        times = "an earlier release" if self.releases == 1 else f"{self.releases} earlier releases"
        people_left = (
            ""
            if self.few is None
            else f"; here all releases together leave {plural(self.few, 'person')} fewer than k, and {self.alone:,} nobody else"
        )
        least = (
            f" (at least, because people with other values of {self.by} in that release are not recognized; give a column that "
            "identifies people the role identifier)"
            if self.by_values and self.again < self.people
            else ""
        )
        return (
            f"{self.again:,} of {plural(self.people, 'person')} {verb_of(self.again, 'are')} in {times} from this owner's folder, by {self.by}{least}: an attacker "
            "with all of them can intersect them, and then k no longer holds (a sensitive value was named right for 0.39 of the "
            f"people from one draw, 0.48 from two, 0.53 from three, 0.62 from five, 0.75 from ten{people_left}); publish one of them only, "
            + setting(
                "earlier",
                "or go on from the earlier one (earlier= in Python, earlier: in a flow), or measure it with af.attack(..., earlier=[...]); "
                "anonflow risk --earlier lists them for the owner; where the same number means another person, give its column a scope",
            )
            + (f"; {alike}" if self.alike else "")
            + (f"; {written_differently(self.rewritten, self.by)}" if self.rewritten else "")
        )


@dataclass(frozen=True)
class SharedPeople:
    """How many of a table's people are in an earlier release.

    Attributes
    ----------
    when : str
        The time of the release, in ISO 8601; empty where an older version kept it.
    released : int
        The people of the release.
    people : int
        Those of the table who are in it.
    """

    when: str
    released: int
    people: int


class Earlier:
    """The marks of the units that were released from an owner's folder.

    Parameters
    ----------
    path : path
        The owner's folder; made, 0700, when the first release is kept.

    Notes
    -----
    A mark is a keyed hash of a unit's identifiers, or of its quasi-identifiers where the table has none, with a key of
    the folder's own: without the key no guess can be confirmed. Beside the marks stands which published row has whose other columns:
    whoever has the folder can undo the releases. A folder of an older version goes on with its key of 64
    bits and the sums of hashes that it holds. Each release has a file, 0600, which is
    written completely and never changed: parallel releases lose no marks.
    """

    def __init__(self, path: str | PathLike[str]) -> None:
        self.path = as_path(path)

    @classmethod
    def of(cls, path: str | PathLike[str]) -> Earlier:
        """Return the marks of a folder, or, of a flow's own folder, those of the owner's folder that it lies in."""
        place = as_path(path)
        return cls(
            place if (place / MEMORY).is_dir() or not (place.parent / MEMORY).is_dir() else place.parent
        )

    @property
    def kept(self) -> int:
        """How many releases were kept in it."""
        return len(self._files())

    def has(self, release: Drawn) -> bool:
        """Return whether a release with the same cells was kept in it.

        Raises
        ------
        DataError
            If what is kept cannot be read.
        """
        if release.frame is None or not self.kept:
            return False
        seal = self.seal_of(release.frame)
        return any(self._read(file).seal == seal for file in self._files())

    def overlap(self, table: Table, release: Drawn | None = None) -> Overlap:
        """Return how many of a table's people are in earlier releases.

        Parameters
        ----------
        table : Table
        release : Release, optional
            An earlier one with the same cells is this one, made again.

        Raises
        ------
        DataError
            If what is kept cannot be read.
        """
        shared = [
            shared_people.people for shared_people in self.shared(table, release) if shared_people.people
        ]
        most, times = max(shared, default=0), len(shared)
        few, alone = self._left(table, release) if times and release is not None else (None, 0)
        people = table.n if table.unit is None else len(np.unique(table.unit))
        alike, before = 0, self.releases()
        if most < people and before:
            alike = len(self.alike(table, np.concatenate([then.marks for then in before])))
        rewritten = self.rewritten(table, before) if most else 0
        by = _column_list(table.unit_columns)
        return Overlap(people, most, times, by, few, alone, alike, rewritten, _by_values(table))

    def has_others_alone(self, table: Table) -> bool:
        """Return whether all releases kept here are of other people than a table's, each known by the same identifiers.

        False also where the table has no identifiers: the same people may have other quasi-identifiers by now.

        Raises
        ------
        DataError
            If what is kept cannot be read.
        """
        if not self.kept or table.n > MOST_PEOPLE or _by_values(table):
            return False
        by = _column_list(table.unit_columns)
        return all(release.by == by for release in self.releases()) and not self.overlap(table)

    def shared(self, table: Table, release: Drawn | None = None) -> list[SharedPeople]:
        """Return how many of a table's people are in each earlier release, in the order of their dates.

        Parameters
        ----------
        table : Table
        release : Release, optional
            As :meth:`overlap` takes it.

        Raises
        ------
        DataError
            If what is kept cannot be read.
        """
        if not self.kept:
            return []
        marks, count = np.unique(self.marks_of(table), return_counts=True)
        if table.unit is not None:  # a person with several rows is one
            count = np.ones_like(count)
        same = None if release is None or release.frame is None else self.seal_of(release.frame)
        shared = []
        for then in self.releases():
            if then.seal == same:
                continue
            earlier_marks, often = np.unique(then.marks, return_counts=True)
            _, at, where = np.intersect1d(marks, earlier_marks, assume_unique=True, return_indices=True)
            again = int(np.minimum(count[at], often[where]).sum())
            released = len(then.marks) if table.unit is None else len(earlier_marks)
            shared.append(SharedPeople(then.when, released, again))
        return shared

    def _left(self, table: Table, release: Drawn) -> tuple[int | None, int]:
        """Return how many of a table's people all releases leave fewer than k people, and nobody else; None where it is not known."""
        try:
            history, marks = history_with(self.path, table, release)
            if history is None or release.certificate is None:
                return None, 0
            people_left = history.people_left
        except (DataError, ParameterError):
            return None, 0
        few, alone = (history.of(marks, people_left < least) for least in (release.certificate.k, 2))
        return int(few.sum()), int(alone.sum())

    def check_left(self, table: Table, release: Drawn, folders: Any) -> ReleasedPeople:
        """Refuse a release that was made for its people to be published again, if all releases leave somebody fewer than k people.

        Parameters
        ----------
        table : Table
        release : Release
        folders : path, or list of them
            The owner's folders that it goes on from. This one takes their key if it has none.

        Returns
        -------
        ReleasedPeople
            Its people, for :meth:`keep`.

        Raises
        ------
        VerificationError
            If they do, or it is not known; or this folder has another key.
        DataError
            If what is kept cannot be read.
        """
        places = _owner_folders(folders)
        if self.key(places[0]) != places[0].key():
            raise VerificationError(
                f"{self.path}: has another key than {places[0].path}, so next year people are not recognized; keep the release in that folder, or in a new one"
            )
        named = {place.path: place for place in (*places, self)}  # which is one of them, most often
        before = _distinct_releases(place.releases() for place in named.values())
        people = replace(
            self.people_of(table, release), after=tuple(publication.seal for publication in before)
        )
        if not any(
            publication.tracks is None or publication.by != people.by for publication in [*before, people]
        ):
            noted = _histories.get(table)
            if noted is None or {publication.seal for publication in noted.releases} != {
                publication.seal for publication in before
            }:
                noted = History(tuple(before))
            few = int((noted.then(people).people_left < people.k).sum())
            if not few:
                return people
        raise VerificationError(
            f"{self.path}: the releases there and this one may leave people fewer than k = {people.k} people whose rows may be theirs; anonymize "
            "again with earlier= and this folder"
        )

    def matched(self, table: Table) -> pd.DataFrame:
        """Return who of a table's people is in earlier releases, for the owner only.

        Parameters
        ----------
        table : Table

        Returns
        -------
        pandas.DataFrame
            A row for each record that is: its position, and in how many earlier releases somebody with the same mark is.

        Raises
        ------
        DataError
            If what is kept cannot be read.
        """
        times = np.zeros(table.n, np.int64)
        if self._files():
            marks = unit_marks(table.units, table.unit_columns, self._key())
            for file in self._files():
                times += np.isin(marks, self._read(file).marks)
        at = np.flatnonzero(times)
        return pd.DataFrame({"position": at, "releases": times[at]})

    def keep(self, table: Table, release: Drawn, people: ReleasedPeople | None = None) -> Path | None:
        """Keep the marks of a release's people, once for the same release.

        Parameters
        ----------
        table : Table
        release : Release
        people : ReleasedPeople, optional
            Those of the release, where they are known.

        Returns
        -------
        pathlib.Path or None
            The new file: if the release is not published after all, it must be deleted. None if the release has a file, or the
            table more than `MOST_PEOPLE` records.

        Raises
        ------
        DataError
            If the folder is a link or cannot be written to, or what is kept cannot be read.
        AnonflowError
            If the disk is full.
        """
        if table.n > MOST_PEOPLE:
            return None
        people = people or self.people_of(table, release)
        if any(self._read(file).seal == people.seal for file in self._files()):
            return None
        name = self.path / MEMORY / f"{datetime.now(UTC):%Y%m%d-%H%M%S}-{secrets.token_hex(4)}.npz"
        arrays: dict[str, Any] = people.arrays
        write_whole(name, streamed(lambda stream: np.savez(stream, **arrays)), OWNER_ONLY)
        return name

    def keep_and_check(
        self,
        table: Table,
        release: Drawn,
        count: int,
        people: ReleasedPeople | None = None,
        folders: Any = None,
    ) -> tuple[Path | None, Overlap | None]:
        """Keep a release, and look once more whom it shares people with.

        Two releases at the same time do not see each other before they are kept; afterwards at least the later one does.

        Parameters
        ----------
        table, release, people
            As :meth:`keep` takes them.
        count : int
            How many releases were here when it was looked for the first time.
        folders : path, or list of them, optional
            Of a release that goes on from earlier ones, as :meth:`check_left` takes them: it is checked, not compared.

        Returns
        -------
        file : pathlib.Path or None
            As :meth:`keep`.
        missed : Overlap or None
            With all releases here, if there are others than `count` by now.

        Raises
        ------
        VerificationError
            As :meth:`check_left`; then the release is not kept.
        DataError, AnonflowError
            As :meth:`keep`.
        """
        file = self.keep(table, release, people)
        if self.kept <= count + (file is not None):
            return file, None
        if folders is None:
            return file, self.overlap(table, release) or None
        try:
            self.check_left(table, release, folders)
        except AnonflowError:
            if file is not None:
                file.unlink(missing_ok=True)
            raise
        return file, None

    def people_of(self, table: Table, release: Drawn) -> ReleasedPeople:
        """Return the people of a release of a table, with whose each one's row may be, where the release knows it.

        Raises
        ------
        DataError
            If the folder is a link or cannot be written to, or the key cannot be read.
        AnonflowError
            If the disk is full.
        """
        key, marks = self.key(), self.marks_of(table)
        order = np.argsort(marks, kind="stable")
        people = ReleasedPeople(
            marks[order],
            self.seal_of(release.frame) if release.frame is not None else "",
            datetime.now(UTC).isoformat(timespec="microseconds"),
            unit_spellings(table.units, table.unit_columns, key)[order],
            _column_list(table.unit_columns),
        )
        proof, truth = release.certificate, release.truth
        if (
            proof is None
            or max(table.n, len(proof.list_originals)) > MOST_LISTED
            or truth is None
            or not proof.complete
            or (people.marks[1:] == people.marks[:-1]).any()
            or _nameless(table).any()
        ):
            return people
        rank = places_in(order, table.n)
        listed = proof.candidates
        # fewer than k rows are listed together only where their other columns are hidden
        listed = listed.without(listed.sizes < proof.k)
        row_list = np.empty(table.n, np.int64)
        row_list[rank[truth]] = listed.row_list
        values = {name: unit_marks(table.frame[[name]], [name], key)[order] for name in table.sensitive}
        return replace(
            people,
            k=proof.k,
            criterion=proof.criterion,
            tracks=Candidates(
                row_list.astype(np.int32), listed.offsets, rank[listed.originals].astype(np.int32)
            ),
            values=values,
            columns=_published_columns(table),
        )

    def marks_of(self, table: Table) -> np.ndarray:
        """Return the marks of a table's people, shape (n,), uint64.

        Raises
        ------
        DataError
            If the folder is a link or cannot be written to, or the key cannot be read.
        AnonflowError
            If the disk is full.
        """
        key = self.key()
        if table not in _marks or _marks[table][0] != key:
            _marks[table] = key, unit_marks(table.units, table.unit_columns, key)
        return _marks[table][1]

    def alike(self, table: Table, before: np.ndarray) -> np.ndarray:
        """Return the people of a table who are not in earlier releases, but are if spaces and capitals of their identifiers do not count.

        Parameters
        ----------
        table : Table
        before : numpy.ndarray, uint64
            The marks of the people of the releases.

        Returns
        -------
        numpy.ndarray, uint64
            Their marks. Of many people some are looked at.

        Raises
        ------
        DataError, AnonflowError
            As :meth:`marks_of`.
        """
        marks, before = self.marks_of(table), np.sort(before, kind="stable")
        at = np.flatnonzero(~among(marks[:_MOST_LOOKED_AT], before))[:_MOST_SPELLED]
        units = table.units.iloc[at]
        is_alike = np.zeros(len(at), bool)
        if len(at) and not all(map(pd.api.types.is_numeric_dtype, units.dtypes)):
            for spelled in _SPELLINGS:
                texts = {name: cells.map(partial(_respelled, spelled)) for name, cells in units.items()}
                others = unit_marks(pd.DataFrame(texts), table.unit_columns, self.key())
                in_earlier = among(others, before)
                # who is in the table as well, is somebody else
                in_earlier[in_earlier] = ~np.isin(others[in_earlier], marks)
                is_alike |= in_earlier
        return np.unique(marks[at[is_alike]])

    def rewritten(self, table: Table, before: Sequence[ReleasedPeople]) -> int:
        """Return how many people of a table are recognized by identifiers that were written differently, and read as the same number.

        Parameters
        ----------
        table : Table
        before : sequence of ReleasedPeople
            With this folder's key.

        Raises
        ------
        DataError, AnonflowError
            As :meth:`marks_of`.
        """
        marks = self.marks_of(table)
        written = spelled_marks(marks, unit_spellings(table.units, table.unit_columns, self.key()))
        differ = np.zeros(table.n, bool)
        for release in before:
            if release.written is not None:
                same = np.isin(written, spelled_marks(release.marks, release.written))
                differ |= among(marks, release.marks) & ~same
        return len(np.unique(marks[differ]))

    def note(self, table: Table, marks: np.ndarray, history: History) -> None:
        """Keep the marks and earlier releases of a table's people in memory, which are known from a larger table: they need not be made again.

        Raises
        ------
        DataError, AnonflowError
            As :meth:`key`.
        """
        _marks[table], _histories[table] = (self.key(), marks), history

    def seal_of(self, frame: pd.DataFrame) -> str:
        """Return a keyed hash of a release's cells in their order.

        Raises
        ------
        DataError
            If the folder is a link or cannot be written to, or the key cannot be read.
        AnonflowError
            If the disk is full.
        """
        content = Content.of(frame, [str(name) for name in frame.columns])
        return hmac.new(self.key().encode(), content.to_bytes(), "sha256").hexdigest()

    def releases(self) -> list[ReleasedPeople]:
        """Return the releases of this folder in the order of their dates.

        Raises
        ------
        DataError
            If one cannot be read.
        """
        return sorted((self._read(file) for file in self._files()), key=lambda release: release.when)

    def history(self) -> History:
        """Return the releases of this folder with whose each row may be, in the order of their dates.

        Raises
        ------
        DataError
            If there is no release, one cannot be read, or one does not say whose its rows may be.
        """
        releases = self.releases()
        if not releases:
            raise DataError(
                f"{self.path}: has no earlier release; name the owner's folder in which releases were kept; a first release is made without earlier"
            )
        for release in releases:
            if release.tracks is None:
                raise DataError(
                    f"{self.path}: the release of {release.when} does not say whose its rows may be: it was kept by an older version, "
                    "without a certificate, is too large, or its people have no number of their own; only later releases can be counted together"
                )
        return History(tuple(releases))

    def key(self, before: Earlier | None = None) -> str:
        """Return the folder's key, with which marks are made; folder and key are made if they are not there, with the key of a folder before it.

        Raises
        ------
        DataError
            If the folder is a link or cannot be written to, or the key cannot be read.
        AnonflowError
            If the disk is full.
        """
        home = self.path / MEMORY
        try:
            for folder in (self.path, home):
                folder.mkdir(mode=0o700, parents=True, exist_ok=True)
                if folder.is_symlink():
                    raise DataError(f"{folder}: the owner's folder is a link; put a folder there")
                # whoever reads the key can look for people among the marks
                if stat.S_IMODE(folder.stat().st_mode) & 0o077:
                    folder.chmod(0o700)
        except OSError as error:
            raise DataError(f"{self.path}: the owner's folder cannot be made: {error.strerror}") from None
        return self._key(before)

    def _files(self) -> list[Path]:
        home = self.path / MEMORY
        return sorted(home.glob("[0-9]*.npz")) if home.is_dir() else []

    def _key(self, before: Earlier | None = None) -> str:
        """Return the folder's key; a new key is written completely, and if two processes write one, the first counts."""
        place = self.path / MEMORY / KEY_FILE
        files = self._files()  # before the key is looked for, which another process may be writing
        if not os.path.exists(place):  # a folder that cannot be read cannot be written either
            if files:
                raise DataError(
                    f"{place}: is missing; restore it, or delete the folder and its memory of releases"
                )
            draft = place.with_name(f".{secrets.token_hex(8)}.key")
            text = secrets.token_hex(UNIT_KEY_LENGTHS[0] // 2) if before is None else before.key()
            write_whole(draft, lambda path: path.write_text(text, encoding="ascii", newline="\n"), OWNER_ONLY)
            try:
                os.link(draft, place)
            except FileExistsError:
                pass
            except OSError:  # a file system without links
                os.replace(draft, place)
            finally:
                draft.unlink(missing_ok=True)
        try:
            key = place.read_text(encoding="ascii").strip()
        except (OSError, ValueError):
            key = ""
        hexadecimal = re.fullmatch("[0-9a-f]*", key) is not None and len(key) in UNIT_KEY_LENGTHS
        if len(key) != KEY_LENGTH and not hexadecimal:
            raise DataError(
                f"{place}: is no key; restore it, or delete the folder and its memory of releases"
            )
        return key

    def _read(self, file: Path) -> ReleasedPeople:
        try:
            if file.stat().st_size > _MOST:
                raise DataError(f"{file}: is too large for marks of people; restore it")
            with zipfile.ZipFile(file) as archive:  # ours are stored plainly: nothing in them unpacks to more
                if any(item.compress_type != zipfile.ZIP_STORED for item in archive.infolist()):
                    raise ValueError
            with np.load(file, allow_pickle=False) as arrays:
                return ReleasedPeople.of_arrays(arrays)
        except (
            ArithmeticError,
            EOFError,
            LookupError,
            MemoryError,  # a length that no file has
            OSError,
            RuntimeError,  # JSON that is nested without end
            TypeError,
            ValueError,
            struct.error,
            zipfile.BadZipFile,
        ):
            raise DataError(
                f"{file}: cannot be read; restore it, or delete it and its memory of a release"
            ) from None


def history_of(folders: Any, table: Table) -> tuple[Earlier, History, np.ndarray]:
    """Return the folder with the key of the marks of a table's people, their earlier releases, and their marks.

    Parameters
    ----------
    folders : path, or list of them
        Owner's folders, the oldest first: those in which releases were kept, or a flow's own folder in one.
    table : Table

    Raises
    ------
    ParameterError
        If no folder is named, or people of the table have no identifier, or several rows.
    DataError
        If a folder has no releases, or releases of other people; if folders have different keys, or are not in the order of their
        dates; if two rows have the same identifier, or a row has none; if a quasi-identifier is published as it is in another year.
    """
    places = _owner_folders(folders)
    if table.unit_rows > 1:
        raise ParameterError(
            "earlier releases are counted together only where each person has one row; make one row of each person first"
        )
    if not set(table.unit_columns) - set(table.qi_columns):
        raise ParameterError(
            "earlier releases need a column that identifies people in every year: give one the role identifier; quasi-identifiers change"
        )
    several = []
    for place in places:
        several.append(place.history())
        if place.key() != places[0].key():
            raise DataError(
                f"{place.path}: has another key than {places[0].path}, so people cannot be recognized; keep all releases in one owner's folder"
            )
    releases = _distinct_releases(folder_history.releases for folder_history in several)
    checked_order(releases)
    absent = {seal for release in releases for seal in release.after} - {release.seal for release in releases}
    if absent:
        raise DataError(
            f"{places[-1].path}: its releases go on from {len(absent):,} earlier releases that are in none of the folders named; name their owner's "
            "folder as well, the oldest first"
        )
    by = _column_list(table.unit_columns)
    for release in releases:
        if release.by != by:
            raise DataError(
                f"{places[0].path}: people of the release of {release.when} are recognized by {release.by}, those of this table by {by}; give both "
                "the same identifier, or keep releases of other people in another folder"
            )
        for name, generalized in _published_columns(table).items():
            if generalized != release.columns.get(name, generalized):
                roles = "published as it is", "a quasi-identifier"
                raise DataError(
                    f"{name!r} is {roles[not generalized]} in the release of {release.when}, and {roles[generalized]} in this table; "
                    "give it the same role, or leave it out"
                )
    nameless = int(_nameless(table).sum())
    if nameless:
        raise DataError(f"{plural(nameless, 'row', 'have')} no {by}; each person needs a number of their own")
    history = History(tuple(releases))
    marks = places[0].marks_of(table)
    if len(np.unique(marks)) < table.n:
        if not table.units.duplicated().any():
            raise DataError(
                f"two rows have texts in {by} that read as the same number, as 007 and 7 do, or 1.10 and 1.1; put a letter before each, in the tables "
                "of all years"
            )
        raise DataError(f"two rows have the same {by}; each person needs one row, and a number of their own")
    if not np.isin(marks, history.marks).any():
        raise DataError(
            f"{places[0].path}: nobody of this table is in an earlier release there; name the owner's folder of the same people"
        )
    return places[0], history, marks


def history_with(folders: Any, table: Table, release: Drawn) -> tuple[History | None, np.ndarray]:
    """Return the earlier releases of a table's people with one more, and the marks of the table's people.

    Parameters
    ----------
    folders, table
        As :func:`history_of` takes them.
    release : Release
        It may be in a folder already.

    Returns
    -------
    history : History or None
        None if neither the release nor a folder says whose columns each row has.
    marks : numpy.ndarray, shape (n,), uint64

    Raises
    ------
    ParameterError, DataError
        As :func:`history_of`.
    """
    place, history, marks = history_of(folders, table)
    people = place.people_of(table, release)
    if all(people.seal != publication.seal for publication in history.releases):
        return (None if people.tracks is None else history.then(people)), marks
    return history, marks


def _owner_folders(folders: Any) -> list[Earlier]:
    paths = list(folders) if isinstance(folders, list | tuple) else [folders]
    if not paths:
        raise ParameterError("earlier names no owner's folder; name the one in which releases were kept")
    return [Earlier.of(path) for path in paths]


def _distinct_releases(folders: Iterable[Iterable[ReleasedPeople]]) -> list[ReleasedPeople]:
    """Return the releases of several folders, each once, in the order of their dates in each folder."""
    by_seal: dict[str, ReleasedPeople] = {}
    for releases in folders:
        for release in releases:
            by_seal.setdefault(release.seal, release)
    return list(by_seal.values())


def _published_columns(table: Table) -> dict[str, bool]:
    """Return the published columns, and whether each is a quasi-identifier: the attacker knows it of everybody, in any year."""
    return dict.fromkeys(table.other_columns, False) | dict.fromkeys(table.qi_columns, True)


def written_differently(people: int, by: str) -> str:
    """Return a sentence on people who are recognized by identifiers that only read as the same number."""
    return (
        f"of {plural(people, 'person')} only the number is the same, and {by} was written differently, as 007 and 7: if they are other people, put a "
        f"letter before each {by}, in the tables of all years"
    )


def _respelled(spelled: Callable[[str], str], cell: Any) -> Any:
    """Return a text in another spelling; anything else as it is."""
    return spelled(" ".join(unicodedata.normalize("NFC", cell).split())) if isinstance(cell, str) else cell


def _nameless(table: Table) -> np.ndarray:
    """Return which rows have no identifier: two of them may be two people, shape (n,), bool."""
    return table.units.isna().all(axis=1).to_numpy(bool)


def _by_values(table: Table) -> bool:
    """Return whether quasi-identifiers identify a table's people."""
    return not set(table.unit_columns).isdisjoint(table.qi_columns)


def _column_list(columns: Sequence[str]) -> str:
    return ", ".join(map(repr, columns))
