"""An owner's folder of releases as one ZIP file, to be handed from a machine to another."""

from __future__ import annotations

import re
import shutil
import tempfile
from functools import partial
from pathlib import Path, PurePosixPath

from anonflow.archive import members, zipped
from anonflow.errors import AnonflowError, DataError
from anonflow.table.identification.earlier import KEY_FILE, MEMORY, OWNER, Earlier
from anonflow.table.identification.released_people import ReleasedPeople
from anonflow.whole_file import OWNER_ONLY, write_whole

_NAMES = re.compile(r"\d{8}-\d{6}-[0-9a-f]{8}\.npz")
_MOST_ENTRIES = 10_000
_MOST_KEY = 1_000
_MOST_BYTES = 1 << 30
"""Bytes of all releases of a file together, unpacked, where nobody names a cap."""


def packed(place: Earlier) -> bytes:
    """Return the key and the releases of an owner's folder as a ZIP file: whoever has it can undo the releases, as with the folder."""
    home = place.path / MEMORY
    files = [home / KEY_FILE, *sorted(home.glob("[0-9]*.npz"))] if place.kept else []
    return zipped({f"{OWNER}/{MEMORY}/{file.name}": file.read_bytes() for file in files})


def unpack(file: Path, name: str, place: Earlier, most: int | None = None) -> list[ReleasedPeople]:
    """Add the releases of a packed owner's folder to another folder, which takes their key if it has none.

    Parameters
    ----------
    file : pathlib.Path
        A stranger's: nothing of it is unpacked by its name, and nothing but a key and releases is read.
    name : str
        As its user calls it.
    place : Earlier
    most : int, optional
        Bytes of all releases together.

    Returns
    -------
    list of ReleasedPeople
        Those of the file.

    Raises
    ------
    DataError
        If the file is no packed owner's folder, is damaged or too large, has several keys, or another one than the folder.
    """
    key, releases = _parts(file, name, _MOST_BYTES if most is None else most)
    with tempfile.TemporaryDirectory(prefix="anonflow-") as folder:
        draft = Earlier(Path(folder) / OWNER)
        home = draft.path / MEMORY
        home.mkdir(mode=0o700, parents=True)
        for part, content in {KEY_FILE: key, **releases}.items():
            (home / part).write_bytes(content)
        try:
            text, people = draft.key(), draft.releases()
        except AnonflowError as error:
            raise DataError(error.renamed(str(home), name).problems[0]) from None
        if place.key(draft) != text:
            raise DataError(
                f"{name}: has another key than the releases that are here, so people cannot be recognized; pack the owner's folder that has all of "
                "them, or remove those"
            )
        for part in releases:
            target = place.path / MEMORY / part
            # a name has random digits: of the same name is the same release
            if not target.exists():
                write_whole(target, partial(shutil.copyfile, home / part), OWNER_ONLY)
    return people


def _parts(file: Path, name: str, most: int) -> tuple[bytes, dict[str, bytes]]:
    """Return the key of a packed folder, and its releases by name; nothing is larger than it may be, whatever the file says."""
    keys: set[bytes] = set()
    releases: dict[str, bytes] = {}

    def most_of(member: str) -> int | None:
        part = PurePosixPath(member).name
        if part == KEY_FILE:
            return _MOST_KEY
        # certificates and seeds are not read
        return most if _NAMES.fullmatch(part) else None

    for member, content in members(
        file, f"{name}:", _MOST_ENTRIES, most, most_of,
        ending=f"; pack the folder {MEMORY} of the owner's folder alone",
        damaged=f"{name}: is damaged, or no ZIP file; pack the owner's folder as a .zip",
    ):  # fmt: skip
        part = PurePosixPath(member).name
        if part == KEY_FILE:
            keys.add(content.strip())
        elif releases.setdefault(part, content) != content:
            raise DataError(f"{name}: has two releases of one name; pack one owner's folder at a time")
    if not releases:
        raise DataError(
            f"{name}: has no releases; pack the whole owner's folder, with the hidden folder {MEMORY} in it"
        )
    if len(keys) != 1:
        raise DataError(
            f"{name}: has {len(keys)} keys ({KEY_FILE}), and the releases need their own; pack one owner's folder at a time"
        )
    return keys.pop(), releases
