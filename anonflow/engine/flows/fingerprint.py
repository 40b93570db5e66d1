"""The content of a run's files: every file that its flow names, as it was when the run first read it."""

from __future__ import annotations

import hashlib
import io
import os
from collections.abc import Iterator, Mapping, Sequence
from contextlib import AbstractContextManager, contextmanager
from dataclasses import dataclass, field
from pathlib import Path
from typing import TYPE_CHECKING, Any

from anonflow.engine.flows.flow import Flow
from anonflow.engine.flows.registers import register_holders
from anonflow.errors import DataError
from anonflow.table.files.parquet_reading import parquet_files
from anonflow.table.schema import Schema

if TYPE_CHECKING:
    from _typeshed import WriteableBuffer

BLOCK = 1 << 18
"""Bytes that are hashed together: what is read at the least. 32 bytes of hash for each."""


@dataclass(frozen=True)
class FileFingerprint:
    """A file as it was when it was first read, from its first byte to its last.

    Attributes
    ----------
    path : str
    inode, size : int
        The size is in bytes.
    modified, changed : int
        Times of its content and of its entry, nanoseconds since 1970. The second one cannot be set back.
    blocks : bytes
        The SHA-256 hash of each block. It is not keyed, so it is never written down: :attr:`digest` is, keyed
        (:meth:`anonflow.engine.owner.folder.OwnerFolder.keyed`).
    """

    path: str
    inode: int
    size: int
    modified: int
    changed: int
    blocks: bytes = field(repr=False)

    @classmethod
    def of(cls, path: str | Path) -> FileFingerprint:
        """Read a file from its beginning to its end; O(size), a block is held at a time.

        Raises
        ------
        DataError
            If it cannot be read, or is written to meanwhile.
        """
        blocks = bytearray()
        try:
            with Path(path).open("rb", buffering=0) as stream:
                before = os.fstat(stream.fileno())
                buffer = memoryview(bytearray(BLOCK))
                for start in range(0, before.st_size, BLOCK):  # a file that grows has no end to wait for
                    count = _fill(stream, buffer[: before.st_size - start])
                    blocks += hashlib.sha256(buffer[:count]).digest()
                after = os.fstat(stream.fileno())
        except OSError as error:
            raise DataError(f"{path}: cannot be read ({type(error).__name__})") from None
        if _stamp(before) != _stamp(after):
            raise _changed(path)
        return cls(str(path), *_stamp(before), bytes(blocks))

    @property
    def digest(self) -> bytes:
        """The hash of the whole file."""
        return hashlib.sha256(self.size.to_bytes(8, "big") + self.blocks).digest()

    @property
    def touched(self) -> bool:
        """Whether the file is another one by its inode, size or times; its content may still be the same."""
        try:
            return _stamp(os.stat(self.path)) != (self.inode, self.size, self.modified, self.changed)
        except OSError:
            return True

    def open(self) -> io.RawIOBase:
        """Return the file, opened for reading: it yields only the bytes of the first read.

        Raises
        ------
        DataError
            If it has changed; reading from the returned file raises it, too.
        """
        return _Unchanged(self)

    def check(self) -> None:
        """See that the file still has the content that it had.

        Raises
        ------
        DataError
            If it has not.
        """
        with self.open() as stream:
            while stream.read(BLOCK):
                pass


@dataclass(frozen=True, eq=False)
class Fingerprint:
    """The files of a flow as they were when its run first read them.

    Attributes
    ----------
    source : tuple of FileFingerprint
        The file of the table, or the Parquet files of its folder by name; none for a data set.
    others : tuple of FileFingerprint
        Files of hierarchies, and of attackers' registers.
    folder : str or None
        The folder of the Parquet files.

    Notes
    -----
    Invariant: whatever is parsed of a source, by whichever process on whichever machine, was compared block by block
    with this before the parser got it. So all of it is of one content, whose digest is in the run record, even where
    inode, size and time are the same, or where a file is changed and changed back.
    """

    source: tuple[FileFingerprint, ...]
    others: tuple[FileFingerprint, ...] = ()
    folder: str | None = None

    @classmethod
    def of(cls, flow: Flow) -> Fingerprint:
        """Read the files of a flow; O(their size). Of a table in memory and a flow that is no file, none is read.

        A file that does not exist has no fingerprint: its reader reports the error.

        Raises
        ------
        DataError
            If one cannot be read, or a folder has no Parquet files.
        """
        path = flow.source_path
        if flow.table is not None and flow.path is None:
            return cls(())
        files: list[Path] = []
        if path is not None and flow.spec.table.source.parquet is not None:
            files = parquet_files(path)
        elif path is not None and path.is_file():
            files = [path]
        named = files_beside_source(flow.schema, flow.folder, flow.spec.steps.attack)
        others = [file for file in named if file.is_file()]
        return cls(
            tuple(FileFingerprint.of(file) for file in files),
            tuple(FileFingerprint.of(file) for file in others),
            str(path) if path is not None and path.is_dir() else None,
        )

    @property
    def digest(self) -> bytes | None:
        """The hash of the source: of its file, or of names and content of all files of its folder."""
        if not self.source:
            return None
        if self.folder is None:
            return self.source[0].digest
        whole = hashlib.sha256()
        for file in self.source:
            whole.update(hashlib.sha256(Path(file.path).name.encode()).digest() + file.digest)
        return whole.digest()

    @property
    def named(self) -> dict[str, bytes]:
        """The hash of each path that the flow names, the source's first."""
        path = self.folder or next((file.path for file in self.source), None)
        digest = self.digest
        source_hash = {} if path is None or digest is None else {path: digest}
        return source_hash | {file.path: file.digest for file in self.others}

    def open(self, path: str | Path) -> io.RawIOBase:
        """Return one of the files, as :meth:`FileFingerprint.open` gives it.

        Raises
        ------
        DataError
            If it has changed, or was not there when the others were read.
        """
        for file in (*self.source, *self.others):
            if file.path == str(path):
                return file.open()
        raise _changed(path)

    def check(self, *, content: bool = False) -> None:
        """Refuse files that have changed.

        Parameters
        ----------
        content : bool
            Whether they are all read; without it, only those with another inode, size or time: a copy of the same
            content is the same file.

        Raises
        ------
        DataError
            If one has changed.
        """
        if self.folder is not None:
            names = [file.path for file in self.source]
            if not Path(self.folder).is_dir() or [str(file) for file in parquet_files(self.folder)] != names:
                raise _changed(self.folder)
        for file in (*self.source, *self.others):
            if content or file.touched:
                file.check()

    def others_read(self) -> AbstractContextManager[None]:
        """Check before and after readers open hierarchies or a register by their paths.

        Raises
        ------
        DataError
            If one of these files was exchanged or written to meanwhile.
        """
        return _read_by_path(self.others)

    def source_read(self) -> AbstractContextManager[None]:
        """Check before and after a reader opens the source by its path.

        Raises
        ------
        DataError
            If it was exchanged or written to meanwhile.
        """
        return _read_by_path(self.source)


@contextmanager
def _read_by_path(files: Sequence[FileFingerprint]) -> Iterator[None]:
    """Check files before and after they are opened by their paths."""
    before = []
    for file in files:
        file.check()
        before.append(_now(file.path))
    yield
    for file, stamp in zip(files, before, strict=True):
        if _now(file.path) != stamp:
            raise _changed(file.path)
        file.check()


def _changed(path: str | Path) -> DataError:
    """Return the error for a file that has changed since the run began."""
    return DataError(
        f"{path}: has changed since the run began to read it; leave it alone, and run the flow again"
    )


class _Unchanged(io.RawIOBase):
    """A file that yields only bytes whose blocks agree with its fingerprint."""

    def __init__(self, file: FileFingerprint) -> None:
        super().__init__()
        self._file = file
        self._at = 0
        self._held = (0, b"")  # keep the last block: small reads continue in it
        self._stream: io.FileIO | None = None
        try:
            self._stream = io.FileIO(os.open(file.path, os.O_RDONLY | getattr(os, "O_CLOEXEC", 0)))
            if os.fstat(self._stream.fileno()).st_size != file.size:
                self.close()
                raise _changed(file.path)
        except OSError as error:
            raise DataError(f"{file.path}: cannot be read any more ({type(error).__name__})") from None

    def close(self) -> None:
        if self._stream is not None:
            self._stream.close()
        super().close()

    def readable(self) -> bool:
        return True

    def seekable(self) -> bool:
        return True

    def tell(self) -> int:
        return self._at

    def size(self) -> int:
        return self._file.size

    def seek(self, offset: int, whence: int = os.SEEK_SET) -> int:
        start = {os.SEEK_SET: 0, os.SEEK_CUR: self._at, os.SEEK_END: self._file.size}[whence]
        self._at = max(0, start + offset)
        return self._at

    def read(self, size: int | None = -1, /) -> bytes:
        remainder = max(0, self._file.size - self._at)
        count = remainder if size is None or size < 0 else min(size, remainder)
        start, stop = self._at, self._at + count
        self._at = stop
        first, held = self._held
        if not first <= start <= stop <= first + len(held):
            first = start - start % BLOCK
            held = self._blocks(first, stop) if count else b""
            last = max(0, (len(held) - 1) // BLOCK * BLOCK)
            self._held = (first + last, held[last:])
        return held[start - first : stop - first]

    def readinto(self, buffer: WriteableBuffer, /) -> int:
        view = memoryview(buffer).cast("B")
        data = self.read(len(view))
        view[: len(data)] = data
        return len(data)

    def _blocks(self, start: int, stop: int) -> bytes:
        """Return the blocks that cover some bytes, read and compared."""
        assert self._stream is not None
        stop = min(self._file.size, -(-stop // BLOCK) * BLOCK)
        try:
            self._stream.seek(start)
            data = self._stream.read(stop - start) or b""
            while len(data) < stop - start and (chunk := self._stream.read(stop - start - len(data))):
                data += chunk
            longer = stop == self._file.size and bool(self._stream.read(1))
        except OSError as error:
            raise DataError(f"{self._file.path}: cannot be read any more ({type(error).__name__})") from None
        view, block_hashes = memoryview(data), memoryview(self._file.blocks)[start // BLOCK * 32 :]
        hashes = (hashlib.sha256(view[at : at + BLOCK]).digest() for at in range(0, len(data), BLOCK))
        if len(data) != stop - start or longer:
            raise _changed(self._file.path)
        if any(block_hashes[32 * at : 32 * (at + 1)] != digest for at, digest in enumerate(hashes)):
            raise _changed(self._file.path)
        return data


def _fill(stream: io.FileIO, buffer: memoryview) -> int:
    """Read until a buffer is full or the file ends; return the number of bytes."""
    count = 0
    while count < len(buffer):
        length = stream.readinto(buffer[count:])
        if not length:
            break
        count += length
    return count


def _stamp(status: os.stat_result) -> tuple[int, int, int, int]:
    return status.st_ino, status.st_size, status.st_mtime_ns, status.st_ctime_ns


def _now(path: str) -> tuple[int, int, int, int] | None:
    try:
        return _stamp(os.stat(path))
    except OSError:
        return None


def files_beside_source(schema: Schema, folder: Path, attackers: Sequence[Any] = ()) -> list[Path]:
    """Return the files that a flow reads besides its source.

    Parameters
    ----------
    schema : Schema
    folder : pathlib.Path
        The flow's.
    attackers : sequence, optional
        As they are written under ``attack``.
    """
    files = []
    for column in schema.values():
        hierarchy = column.hierarchy
        if isinstance(hierarchy, Mapping):
            hierarchy = hierarchy.get("csv")
        if isinstance(hierarchy, str):
            files.append(Path(schema.folder) / hierarchy)
    files += [Path(schema.folder) / file for file in schema.preparation.files]
    files += [
        folder / settings["population"]
        for _, settings, _ in register_holders(attackers)
        if isinstance(settings, Mapping) and isinstance(settings.get("population"), str)
    ]
    return list(dict.fromkeys(files))
