"""ZIP archives: made without a clock, and a stranger's read within bounds."""

from __future__ import annotations

import io
import zipfile
import zlib
from collections.abc import Callable, Iterator, Mapping
from pathlib import Path


def zipped(files: Mapping[str, bytes]) -> bytes:
    """Return files as one archive: the same files are the same bytes, and whoever unpacks them is their only reader."""
    held = io.BytesIO()
    with zipfile.ZipFile(held, "w", zipfile.ZIP_DEFLATED) as archive:
        for name, content in files.items():
            entry = zipfile.ZipInfo(name)
            entry.external_attr = (
                0o600 << 16
            )  # without it nobody may read what is unpacked, its owner neither
            archive.writestr(entry, content, zipfile.ZIP_DEFLATED)
    return held.getvalue()


def members(
    file: Path, most_files: int, most_bytes: Callable[[str], int | None]
) -> Iterator[tuple[str, bytes]]:
    """Yield name and content of the members of a stranger's archive; none is unpacked by its name.

    Parameters
    ----------
    file : pathlib.Path
    most_files : int
        So many members are taken: of more, OverflowError has their number.
    most_bytes : callable
        Takes the name of a member, and returns how many bytes it may have, whatever the archive says; None if it is not to be read.

    Raises
    ------
    ValueError
        If the file is damaged, or of another kind.
    OverflowError
        If there are too many members, or one is too large.
    """
    try:
        with zipfile.ZipFile(file) as archive:
            entries = archive.infolist()
            if len(entries) > most_files:
                raise OverflowError(len(entries))
            for entry in entries:
                most = most_bytes(entry.filename)
                if most is None:
                    continue
                # of the other compressions a few bytes are unpacked to any number at once
                if (
                    entry.compress_type not in (zipfile.ZIP_STORED, zipfile.ZIP_DEFLATED)
                    or entry.flag_bits & 1
                ):
                    raise ValueError("a member is encrypted, or compressed in another way")
                with archive.open(entry) as stream:
                    content = stream.read(most + 1)
                if len(content) > most:
                    raise OverflowError
                yield entry.filename, content
    except (
        zipfile.BadZipFile,  # a directory or a checksum that does not fit
        zlib.error,
        EOFError,
        RuntimeError,  # a kind of archive that Python does not read, or a password
        OSError,  # a place before the file's begin
    ) as error:
        raise ValueError("the archive is damaged") from error
