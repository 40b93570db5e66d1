"""Temporary files of a run, in a folder inside the owner's folder that is deleted with the run."""

from __future__ import annotations

import os
import pickle
import secrets
import shutil
from collections.abc import Iterable, Iterator
from itertools import chain
from pathlib import Path
from tempfile import gettempdir
from types import TracebackType
from typing import Any

import numpy as np
import pandas as pd
import pyarrow as pa

from anonflow.engine.execution.schedulers import Call
from anonflow.engine.owner.folder import OwnerFolder, machine
from anonflow.engine.storage.arrays import can_map, new_array
from anonflow.engine.storage.mapped_columns import written_columns
from anonflow.errors import AnonflowError
from anonflow.system import is_running

PREFIX = "pieces-"

_ALIGNED = 64
"""Bytes that the place of an array in a file is a multiple of."""

_ROOM = 1 << 24
"""The least bytes of a file for copies: every file that is mapped counts as an open one."""


class Spill:
    """A folder of one run, 0700, in the owner's folder; always removed at the run's end.

    Parameters
    ----------
    home : pathlib.Path or None
        The owner's folder; it exists. None for a flow that is not a file: then it is in the system's temporary folder.

    Notes
    -----
    Its name has the process: the next run on that machine removes the folder of a killed process. Where files of the owner's
    folder cannot be mapped, it is in the system's temporary folder, and `is_elsewhere` says so.
    """

    rows: int | None = 1 << 18
    """Rows of a frame that are made at a time."""

    def __init__(self, home: Path | None) -> None:
        self._room = np.empty(0, np.uint8)
        self._owner = home
        self._process = f"{os.getpid()}-{secrets.token_hex(4)}"
        self.is_elsewhere = False

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
        self._make()
        # a folder on a network may store files and map none: then the system's temporary folder
        if self._owner is not None and not can_map(self.path):
            self.path.rmdir()
            self._owner, self.is_elsewhere = None, True
            self._make()
        return self

    @property
    def path(self) -> Path:
        """The folder."""
        return self._home / f"{self._prefix}{self._process}"

    @property
    def _home(self) -> Path:
        return self._owner or Path(gettempdir())

    @property
    def _prefix(self) -> str:
        """What the names of such folders on this machine begin with; in a folder of many programs the package's name comes first."""
        return f"{'' if self._owner else 'anonflow-'}{PREFIX}{machine()}-"

    def _make(self) -> None:
        """Make the folder, and remove those of processes that were killed."""
        for folder in self._home.glob(f"{self._prefix}*"):
            process = folder.name.removeprefix(self._prefix).partition("-")[0]
            # a killed process removes nothing: who comes next on this machine does
            if process.isdigit() and not is_running(int(process)):
                shutil.rmtree(folder, ignore_errors=True)
        try:
            self.path.mkdir(mode=0o700)
        except OSError as error:
            raise AnonflowError(f"{self.path}: cannot be made: {error.strerror}") from None

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

    def file(self, name: str) -> str:
        """Return the path of one of its files."""
        return str(self.path / name)

    def empty(self, shape: tuple[int, ...], dtype: Any) -> np.ndarray:
        """Return a new array that is mapped from a file; its space on the disk is free again when nobody has the array any more.

        Raises
        ------
        AnonflowError
            If there is no room for it.
        """
        if not all(shape):
            return np.empty(shape, dtype)
        file = self.file(f"{secrets.token_hex(8)}.npy")
        return Call(new_array, (file, shape, dtype), "results").done()

    def frame(self, blocks: Iterator[pd.DataFrame]) -> pd.DataFrame:
        """Return the rows of some frames, one after the other, in columns that are mapped from files; categories stay what they are.

        Raises
        ------
        AnonflowError
            If there is no room for them.
        """
        tables = (pa.Table.from_pandas(block, preserve_index=False) for block in blocks)
        first = next(tables)
        batches = (batch for table in chain([first], tables) for batch in table.combine_chunks().to_batches())
        return Call(self._mapped, (first.schema, batches), "draw").done()

    def columns(self, fields: pa.Schema, batches: Iterable[pa.RecordBatch]) -> pd.DataFrame:
        """Return the rows of some batches, one after the other, in columns that are mapped from files.

        Parameters
        ----------
        fields : pyarrow.Schema
            Of the batches: plain values, no dictionaries.
        batches : iterable of pyarrow.RecordBatch

        Raises
        ------
        AnonflowError
            If there is no room for them, or as the batches do.
        """
        return Call(self._mapped, (fields, batches), "load").done()

    def _mapped(self, fields: pa.Schema, batches: Iterable[pa.RecordBatch]) -> pd.DataFrame:
        columns = written_columns(self.file(f"columns-{secrets.token_hex(8)}"), fields, batches)
        # its files stay mapped without a name: their space is free when nobody has the frame any more
        whole = columns.frame()
        columns.delete()
        return whole

    def copy(self, content: Any) -> Any:
        """Return a copy of something whose arrays are in a file, which several copies share.

        Raises
        ------
        AnonflowError
            If there is no room for them.
        """
        buffers: list[pickle.PickleBuffer] = []
        rest = pickle.dumps(content, protocol=5, buffer_callback=buffers.append)
        views = [np.frombuffer(buffer.raw(), np.uint8) for buffer in buffers]
        ends = np.cumsum([0, *(-(-len(view) // _ALIGNED) * _ALIGNED for view in views)]).tolist()
        if len(self._room) < ends[-1]:
            self._room = self.empty((max(ends[-1], _ROOM),), np.uint8)
        # small copies share a file, as every mapped file counts as an open one
        room, self._room = np.split(self._room, [ends[-1]])
        for view, start in zip(views, ends, strict=False):
            room[start : start + len(view)] = view
        places = [room[start : start + len(view)] for view, start in zip(views, ends, strict=False)]
        return pickle.loads(rest, buffers=places)
