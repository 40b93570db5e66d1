"""ZIP archives: made without a clock, and a stranger's read within bounds."""

from __future__ import annotations

import io
import zipfile
import zlib
from collections.abc import Callable, Iterator, Mapping
from pathlib import Path

from anonflow.errors import DataError


def zipped(files: Mapping[str, bytes]) -> bytes:
    """Return files as one archive: the same files are the same bytes, and whoever unpacks them is their only reader."""
    buffer = io.BytesIO()
    with zipfile.ZipFile(buffer, "w", zipfile.ZIP_DEFLATED) as archive:
        for name, content in files.items():
            entry = zipfile.ZipInfo(name)
            # without it nobody may read what is unpacked, its owner neither
            entry.external_attr = 0o600 << 16
            archive.writestr(entry, content, zipfile.ZIP_DEFLATED)
    return buffer.getvalue()


def members(
    file: Path,
    name: str,
    most_files: int,
    most: int,
    most_of: Callable[[str], int | None],
    *,
    ending: str,
    damaged: str,
) -> Iterator[tuple[str, bytes]]:
    """Yield name and content of the members of a stranger's archive; none is unpacked by its name.

    Parameters
    ----------
    file : pathlib.Path
    name : str
        Words for the archive, with which a sentence begins.
    most_files : int
        Members that it may have.
    most : int
        Bytes that all members that are read may have together, whatever the archive says.
    most_of : callable
        Takes the name of a member, and returns how many bytes it may have; None if it is not to be read.
    ending : str
        How the sentence about too many members ends.
    damaged : str
        The sentence about a file that is damaged, or of another kind.

    Raises
    ------
    DataError
        If there are too many members, they are too large, or the file cannot be read.
    """
    room = most
    try:
        with zipfile.ZipFile(file) as archive:
            entries = archive.infolist()
            if len(entries) > most_files:
                raise DataError(f"{name} holds {len(entries):,} files{ending}")
            for entry in entries:
                limit = most_of(entry.filename)
                if limit is None:
                    continue
                # of the other compressions a few bytes are unpacked to any number at once
                if (
                    entry.compress_type not in (zipfile.ZIP_STORED, zipfile.ZIP_DEFLATED)
                    or entry.flag_bits & 1
                ):
                    raise DataError(damaged)
                limit = min(limit, room)
                with archive.open(entry) as stream:
                    content = stream.read(limit + 1)
                if len(content) > limit:
                    raise DataError(
                        f"{name} is larger than {most / 1e6:,.0f} MB when it is unpacked, the most that is taken here"
                    )
                room -= len(content)
                yield entry.filename, content
    except (
        zipfile.BadZipFile,  # a directory or a checksum that does not fit
        zlib.error,
        EOFError,
        ValueError,  # a name or a number that no archive has
        RuntimeError,  # a kind of archive that Python does not read, or a password
        OSError,  # a place before the file's begin
    ):
        raise DataError(damaged) from None
