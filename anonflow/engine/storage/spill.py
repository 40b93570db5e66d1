"""Temporary files of a run: Arrow files in a folder inside the owner's folder, deleted with the run."""

from __future__ import annotations

import os
import secrets
import shutil
from collections.abc import Sequence
from itertools import pairwise
from pathlib import Path
from tempfile import TemporaryDirectory
from types import TracebackType

import numpy as np
import pyarrow as pa

from anonflow.engine.owner.folder import OwnerFolder
from anonflow.engine.owner.lock import machine
from anonflow.errors import AnonflowError
from anonflow.system import READING_HEADERS, is_running, open_descriptor

__all__ = ["Spill", "as_numpy", "deal", "load", "read_batch", "save", "write_batches"]

PREFIX = "pieces-"


class Spill:
    """A folder of one run, 0700, in the owner's folder; always removed at the run's end.

    Parameters
    ----------
    home : pathlib.Path or None
        The owner's folder; it exists. None for a flow that is not a file: then it is in the system's temporary folder.

    Notes
    -----
    Its name has the process: the next run on that machine removes the folder of a killed process.
    """

    def __init__(self, home: Path | None) -> None:
        self._elsewhere = TemporaryDirectory(prefix="anonflow-") if home is None else None
        self._home = home = Path(self._elsewhere.name) if self._elsewhere is not None else Path(home or "")
        self.path = home / f"{PREFIX}{machine()}-{os.getpid()}-{secrets.token_hex(4)}"

    @classmethod
    def of(cls, owner: OwnerFolder | None) -> Spill:
        """Return the folder of a run; the owner's folder is made if it is not there.

        Raises
        ------
        DataError, AnonflowError
            If it cannot be made.
        """
        if owner is not None:
            owner.make()
        return cls(None if owner is None else owner.path)

    def __enter__(self) -> Spill:
        for left in self._home.glob(f"{PREFIX}{machine()}-*"):
            process = left.name.removeprefix(f"{PREFIX}{machine()}-").partition("-")[0]
            if process.isdigit() and not is_running(int(process)):
                shutil.rmtree(left, ignore_errors=True)
        try:
            self.path.mkdir(mode=0o700)
        except OSError as error:
            raise AnonflowError(f"{self.path}: cannot be made: {error.strerror}") from None
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        ended = self.path.with_name(f"{self.path.name}-ended")
        try:
            # a task that is still at work opens no file in it any more, which would keep the folder
            self.path.rename(ended)
        except OSError:
            ended = self.path
        shutil.rmtree(ended, ignore_errors=True)
        if self._elsewhere is not None:
            self._elsewhere.cleanup()

    def file(self, name: str) -> str:
        """Return the path of one of its files."""
        return str(self.path / name)


def write_batches(path: str, batches: Sequence[pa.RecordBatch]) -> None:
    """Write record batches of one schema as an Arrow file, readable by the owner only.

    Raises
    ------
    OSError
        If it cannot be written: the driver says so.
    """
    descriptor = open_descriptor(path, os.O_WRONLY | os.O_CREAT | os.O_TRUNC)
    with os.fdopen(descriptor, "wb") as stream, pa.ipc.new_file(stream, batches[0].schema) as writer:
        for batch in batches:
            writer.write_batch(batch)


def deal(rows: pa.Table, bucket: np.ndarray, buckets: int, into: str) -> None:
    """Distribute rows to shuffle buckets: a file with a record batch for each.

    Parameters
    ----------
    rows : pyarrow.Table, m rows
    bucket : numpy.ndarray, shape (m,), integer
    buckets : int
    into : str
        The file.

    Raises
    ------
    OSError
        If it cannot be written.
    """
    whole = rows.take(pa.array(np.argsort(bucket, kind="stable"))).combine_chunks().to_batches()[0]
    ends = np.cumsum(np.bincount(bucket, minlength=buckets)).tolist()
    write_batches(into, [whole.slice(start, end - start) for start, end in pairwise([0, *ends])])


def save(path: str, **arrays: np.ndarray) -> None:
    """Write arrays to a file, readable by the owner only.

    Raises
    ------
    OSError
        If they cannot be written.
    """
    with os.fdopen(open_descriptor(path, os.O_WRONLY | os.O_CREAT | os.O_TRUNC), "wb") as stream:
        np.savez(stream, **arrays)  # type: ignore[arg-type]


def load(path: str) -> dict[str, np.ndarray]:
    """Return the arrays of a file that :func:`save` wrote.

    Raises
    ------
    OSError
        If it cannot be read.
    """
    with READING_HEADERS, np.load(path) as content:
        return {name: content[name] for name in content.files}


def read_batch(path: str, number: int = 0) -> pa.RecordBatch:
    """Return one record batch of a file, mapped into memory: only used parts are read.

    Raises
    ------
    OSError
        If it cannot be read.
    """
    with pa.memory_map(os.fsencode(path)) as stream, pa.ipc.open_file(stream) as reader:
        return reader.get_batch(number)


def as_numpy(column: pa.Array) -> np.ndarray:
    """Return a column of numbers without missing ones as an array, not copied.

    Raises
    ------
    pyarrow.ArrowInvalid
        If it would have to be copied.
    """
    values: np.ndarray = column.to_numpy(zero_copy_only=True)
    return values
