"""Archives: the same files are the same bytes, and what is unpacked is its owner's alone to read."""

from __future__ import annotations

import io
import zipfile

from anonflow.archive import zipped

FILES = {"owner/.releases/units.key": b"0f" * 16, "figure.svg": b"<svg/>"}


def test_what_is_unpacked_can_be_read_by_its_owner_alone() -> None:
    """Fault: an entry without permissions is unpacked as a file that its owner cannot open either."""
    with zipfile.ZipFile(io.BytesIO(zipped(FILES))) as archive:
        assert {name: archive.read(name) for name in archive.namelist()} == FILES
        assert {entry.external_attr >> 16 for entry in archive.infolist()} == {0o600}


def test_the_same_files_are_the_same_bytes() -> None:
    assert zipped(FILES) == zipped(dict(FILES))
