"""Earlier releases of the same people: keyed marks of units, stored in the owner's folder."""

from __future__ import annotations

import hmac
import json
import os
import re
import secrets
import stat
import zipfile
from collections.abc import Sequence
from dataclasses import dataclass
from datetime import UTC, datetime
from os import PathLike
from pathlib import Path
from typing import TYPE_CHECKING

import numpy as np

from anonflow.errors import DataError
from anonflow.table.row_marks import KEY_LENGTH, UNIT_KEY_LENGTH, Content, unit_marks
from anonflow.whole_file import OWNER_ONLY, as_path, streamed, write_whole

if TYPE_CHECKING:
    import pandas as pd

    from anonflow.release.published import Release
    from anonflow.table import Table

__all__ = ["MOST_PEOPLE", "Earlier", "Overlap"]

_FOLDER = ".releases"
_KEY = "units.key"
_MOST = 1_000_000_000
"""The largest file of marks that is read, in bytes."""

MOST_PEOPLE = 100_000_000
"""Records of which marks are kept, 8 bytes each; of larger tables none are."""


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
    """

    people: int
    again: int
    releases: int
    by: str

    def __bool__(self) -> bool:
        return self.again > 0

    def sentence(self) -> str:
        """Return a sentence for the owner, with its meaning."""
        times = "an earlier release" if self.releases == 1 else f"{self.releases} earlier releases"
        return (
            f"{self.again:,} of {self.people:,} people are in {times} from this owner's folder, by {self.by}: an attacker "
            "with all of them can intersect them, and then k no longer holds (a sensitive value was named right for 0.39 of the "
            "people from one draw, 0.48 from two, 0.53 from three, 0.62 from five, 0.75 from ten); publish one of them "
            "only, or measure it with af.attack(..., earlier=[...]); anonflow risk --earlier lists them for the owner; where the same "
            "number means another person, give its column a scope"
        )


class Earlier:
    """The marks of the units that were released from an owner's folder.

    Parameters
    ----------
    path : path
        The owner's folder; made, 0700, when the first release is kept.

    Notes
    -----
    A mark is a keyed hash of a unit's identifiers, or of its quasi-identifiers where the table has none, with a key of
    the folder's own: without the key no guess can be confirmed. A folder of an older version goes on with its key of 64
    bits and the sums of hashes that it holds. Each release has a file, 0600, which is
    written completely and never changed: parallel releases lose no marks.
    """

    def __init__(self, path: str | PathLike[str]) -> None:
        self.path = as_path(path)

    def overlap(self, table: Table, release: Release | None = None) -> Overlap:
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
        by = table.unit_columns
        if not self._files():
            return Overlap(table.n, 0, 0, _named(by))
        key = self._key()
        content = None
        if release is not None:
            content = Content.of(release.frame, [str(name) for name in release.frame.columns])
        mine, count = np.unique(unit_marks(table.units, by, key), return_counts=True)
        same = None if content is None else _seal(key, content)
        most = times = 0
        for file in self._files():
            marks_then, seal = self._read(file)
            if seal == same:
                continue
            theirs, often = np.unique(marks_then, return_counts=True)
            _, at, where = np.intersect1d(mine, theirs, assume_unique=True, return_indices=True)
            shared = int(np.minimum(count[at], often[where]).sum())
            times += shared > 0
            most = max(most, shared)
        return Overlap(table.n, most, times, _named(by))

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
        import pandas as pd

        times = np.zeros(table.n, np.int64)
        if self._files():
            marks = unit_marks(table.units, table.unit_columns, self._key())
            for file in self._files():
                times += np.isin(marks, self._read(file)[0])
        at = np.flatnonzero(times)
        return pd.DataFrame({"position": at, "releases": times[at]})

    def keep(self, table: Table, release: Release) -> Path | None:
        """Keep the marks of a release's people, once for the same release.

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
        home = self.path / _FOLDER
        seal = _seal(self.key(), Content.of(release.frame, [str(name) for name in release.frame.columns]))
        if any(self._read(file)[1] == seal for file in self._files()):
            return None
        about = {"version": 1, "when": datetime.now(UTC).isoformat(timespec="seconds"), "seal": seal}
        units = np.sort(unit_marks(table.units, table.unit_columns, self.key()))
        name = home / f"{datetime.now(UTC):%Y%m%d-%H%M%S}-{secrets.token_hex(4)}.npz"
        write_whole(
            name,
            streamed(lambda stream: np.savez(stream, about=np.array(json.dumps(about)), units=units)),
            OWNER_ONLY,
        )
        return name

    def key(self) -> str:
        """Return the folder's key, with which marks are made; folder and key are made if they are not there.

        Raises
        ------
        DataError
            If the folder is a link or cannot be written to, or the key cannot be read.
        AnonflowError
            If the disk is full.
        """
        home = self.path / _FOLDER
        try:
            for folder in (self.path, home):
                folder.mkdir(mode=0o700, parents=True, exist_ok=True)
                if folder.is_symlink():
                    raise DataError(f"{folder}: the owner's folder is a link; put a folder there")
                if stat.S_IMODE(folder.stat().st_mode) & 0o077:
                    folder.chmod(0o700)
        except OSError as error:
            raise DataError(f"{self.path}: the owner's folder cannot be made: {error.strerror}") from None
        return self._key()

    def _files(self) -> list[Path]:
        home = self.path / _FOLDER
        return sorted(home.glob("[0-9]*.npz")) if home.is_dir() else []

    def _key(self) -> str:
        """Return the folder's key; a new key is written completely, and if two processes write one, the first counts."""
        place = self.path / _FOLDER / _KEY
        if not os.path.exists(place):  # a folder that cannot be read cannot be written either
            draft = place.with_name(f".{secrets.token_hex(8)}.key")
            text = secrets.token_hex(UNIT_KEY_LENGTH // 2)
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
        if len(key) != KEY_LENGTH and not re.fullmatch(f"[0-9a-f]{{{UNIT_KEY_LENGTH}}}", key):
            raise DataError(
                f"{place}: is no key; restore it, or delete the folder and its memory of releases"
            )
        return key

    def _read(self, file: Path) -> tuple[np.ndarray, str]:
        try:
            if file.stat().st_size > _MOST:
                raise DataError(f"{file}: is too large for marks of people; restore it")
            with zipfile.ZipFile(file) as archive:  # ours are stored plainly: nothing in them unpacks to more
                if any(item.compress_type != zipfile.ZIP_STORED for item in archive.infolist()):
                    raise ValueError
            with np.load(file, allow_pickle=False) as arrays:
                marks, about = arrays["units"], json.loads(str(arrays["about"]))
                if marks.dtype != np.uint64 or marks.ndim != 1:
                    raise ValueError
                return marks, str(about["seal"])
        except (OSError, ValueError, KeyError, TypeError, zipfile.BadZipFile):
            raise DataError(
                f"{file}: cannot be read; restore it, or delete it and its memory of a release"
            ) from None


def _seal(key: str, content: Content) -> str:
    """Return a keyed hash of a release's cells in their order."""
    return hmac.new(key.encode(), content.to_bytes(), "sha256").hexdigest()


def _named(columns: Sequence[str]) -> str:
    return ", ".join(map(repr, columns))
