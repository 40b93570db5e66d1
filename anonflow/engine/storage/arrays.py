"""Arrays of a table and its orders: in memory, or in files of the run that every task maps into memory.

An order is a permutation of the table's positions; a partition is a slice of it. Rows of it are taken out of the codes when
a task loads them, so that a table has one copy of its codes for all its orders.
"""

from __future__ import annotations

import errno
import os
import re
from contextlib import suppress
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np

from anonflow.algorithms.solve import partition_rng
from anonflow.partition import ordered, unbounded
from anonflow.system import open_descriptor, take_space
from anonflow.table import Domain, Records

_HEADER = re.compile(
    rb"\x93NUMPY\x01\x00..\{'descr': '([^']+)', 'fortran_order': False, 'shape': \(([0-9, ]*)\), \} *\n",
    re.DOTALL,
)
"""The header of an array, as numpy writes it. numpy reads it as Python, which is slower, and not safe in threads."""

_HEADER_BYTES = 256

_NO_MAPS = (errno.ENODEV, errno.EACCES, errno.EINVAL, errno.ENOSYS, errno.EOPNOTSUPP)
"""What ``mmap`` says of a file system without it, as some that are shared over a network or with a virtual machine are."""

TOGETHER = 2_048
"""Rows that are taken out of a mapped array together: at the first look at a row the system maps up to 64 KiB around it."""


def create_array(path: str, shape: tuple[int, ...], dtype: type) -> np.memmap:
    """Create a file for an array, readable by the owner only, and map it to be read.

    Its space is taken at once: a disk that is full is an error here or in :func:`write_rows`, and never ends the process.

    Raises
    ------
    OSError
        If there is no room for it.
    """
    kind = np.dtype(dtype)
    with os.fdopen(open_descriptor(path, os.O_RDWR | os.O_CREAT | os.O_TRUNC), "wb") as stream:
        header = {"descr": kind.str, "fortran_order": False, "shape": shape}
        np.lib.format.write_array_header_1_0(stream, header)
        size = stream.tell() + int(np.prod(shape, dtype=np.int64)) * kind.itemsize
        stream.truncate(size)
        # a full disk is an error here, and no signal later, when a page that has no space is written
        take_space(stream.fileno(), size)
    return mapped(path)


def new_array(path: str, shape: tuple[int, ...], dtype: Any) -> np.ndarray:
    """Return an array that is mapped from a new file, to be written and read. The file has no name any more where a system allows it.

    Raises
    ------
    OSError
        If there is no room for it.
    """
    readable = create_array(path, shape, dtype)
    array = np.memmap(path, readable.dtype, "r+", offset=readable.offset, shape=shape)
    with suppress(OSError):
        # without a name the space is free as soon as nobody maps it, even if the process is killed
        os.unlink(path)
    return array.view(np.ndarray)


def can_map(folder: Path) -> bool:
    """Return whether files of a folder can be mapped to be written; false only where the system says that they cannot be."""
    try:
        new_array(str(folder / "probe.npy"), (1,), np.uint8)
    except OSError as error:
        (folder / "probe.npy").unlink(missing_ok=True)
        return error.errno not in _NO_MAPS
    return True


def write_array(path: str, values: np.ndarray) -> np.memmap:
    """Write a whole array to a file, as :func:`create_array` makes it, and map it to be read.

    Raises
    ------
    OSError
        If it cannot be written.
    """
    create_array(path, values.shape, values.dtype.type)
    write_rows(path, 0, values)
    return mapped(path)


def write_rows(path: str, start: int, rows: np.ndarray) -> None:
    """Write consecutive rows of an array in a file.

    Parameters
    ----------
    path : str
        As :func:`create_array` made it.
    start : int
        The first row.
    rows : numpy.ndarray
        Of the array's type.

    Raises
    ------
    OSError
        If they cannot be written.
    ValueError
        If they are none of the array's.
    """
    whole = mapped(path)
    if rows.dtype != whole.dtype or rows.shape[1:] != whole.shape[1:] or start + len(rows) > len(whole):
        raise ValueError(
            f"rows of {rows.dtype} and shape {rows.shape} are none of an array of {whole.dtype}, {whole.shape}"
        )
    with os.fdopen(open_descriptor(path, os.O_WRONLY), "wb") as stream:
        stream.seek(whole.offset + start * (whole.nbytes // max(len(whole), 1)))
        stream.write(np.ascontiguousarray(rows).reshape(-1).view(np.uint8).data)


def mapped(path: str) -> np.memmap:
    """Return the array of a file, mapped to be read: only what is used is read.

    Raises
    ------
    OSError
        If it cannot be read.
    """
    with open(path, "rb") as stream:
        header = _HEADER.match(stream.read(_HEADER_BYTES))
    if header is None:
        raise OSError(f"{path} is no array of this run")
    shape = tuple(int(number) for number in header[2].split(b",") if number.strip())
    return np.memmap(path, header[1].decode("ascii"), "r", offset=header.end(), shape=shape)


def taken(array: np.ndarray, positions: np.ndarray) -> np.ndarray:
    """Return the rows of an array at some positions.

    A mapped array is read from its beginning to its end, and mapped anew after a few rows: pages that were looked at count as
    memory of the process until then, and rows in another order would be on all pages.

    Raises
    ------
    OSError
        If its file cannot be read.
    """
    if not isinstance(array, np.memmap):
        return np.take(array, positions, axis=0)
    rows = np.empty((len(positions), *array.shape[1:]), array.dtype)
    # in the order of the file: a page is looked at once
    order = np.argsort(positions)
    for start in range(0, len(order), TOGETHER):
        batch = order[start : start + TOGETHER]
        rows[batch] = _mapped_anew(array)[positions[batch]]
    return rows


def _mapped_anew(array: np.memmap) -> np.ndarray:
    """Return a mapped array without the pages that were looked at; as it is where its run has ended, and its file is gone."""
    try:
        return mapped(str(array.filename))
    except FileNotFoundError:
        return array


@dataclass(frozen=True, eq=False)
class TableOrder:
    """A table in an order along which partitions are cut.

    Attributes
    ----------
    codes : numpy.ndarray, shape (n, q), int32
        In the table's order.
    positions : numpy.ndarray, shape (n,), int64
        Of the records in this order.
    values : numpy.ndarray, shape (n, c), int64, or None
        The values that must be diverse, in the table's order. All are in memory, or all are mapped.
    """

    codes: np.ndarray
    positions: np.ndarray
    values: np.ndarray | None = None

    @classmethod
    def of(
        cls,
        records: Records,
        name: str,
        seed: int,
        bounded: bool,
        values: np.ndarray | None = None,
        path: str | None = None,
    ) -> TableOrder:
        """Order a table, as its partitions are cut.

        Parameters
        ----------
        records : Records
        name : str
            As :func:`anonflow.partition.ordered` takes it.
        seed : int
            The run's.
        bounded : bool
            Whether boundary classes follow one another.
        values : numpy.ndarray, shape (n, c), int64, optional
            That must be diverse.
        path : str, optional
            The file that the positions are written to, where the codes are mapped.

        Raises
        ------
        OSError
            If it cannot be written.
        """
        codes = records.codes
        if records.units is not None and not bounded:  # layers are separate with and without boundaries
            records, bounded = unbounded(records), True
        positions = ordered(records, name, partition_rng(seed, -1), boundaries=bounded)
        return cls(codes, positions if path is None else write_array(path, positions), values)

    def rows(self, start: int, stop: int) -> OrderedRows:
        """Return the rows of some consecutive places."""
        return OrderedRows(self, start, stop)


@dataclass(frozen=True, eq=False)
class OrderedRows:
    """Consecutive rows of an order. Of a table in memory they alone are sent to another process, not the table.

    Attributes
    ----------
    order : TableOrder
    start, stop : int
    """

    order: TableOrder
    start: int
    stop: int

    @property
    def positions(self) -> np.ndarray:
        """Their positions in the table, shape (m,), int64."""
        return np.array(self.order.positions[self.start : self.stop])

    def load(self, domains: tuple[Domain, ...]) -> tuple[np.ndarray, Records, np.ndarray | None]:
        """Return their positions in the table, the records, and their values that must be diverse, if any must."""
        rows = self._taken()
        return rows.load(domains)

    def _taken(self) -> TakenRows:
        positions, values = self.positions, self.order.values
        return TakenRows(
            positions,
            taken(self.order.codes, positions),
            None if values is None else taken(values, positions),
        )

    def __reduce__(self) -> tuple[Any, ...]:
        arrays = [self.order.codes, self.order.positions]
        arrays += [] if self.order.values is None else [self.order.values]
        files = [str(array.filename) for array in arrays if isinstance(array, np.memmap)]
        if len(files) == len(arrays):
            return StoredRows, (tuple(files), self.start, self.stop)
        rows = self._taken()
        return TakenRows, (rows.positions, rows.codes, rows.values)


@dataclass(frozen=True)
class StoredRows:
    """Rows of an order in files. They are mapped by the task that loads them: a file that is gone is an error of the task.

    Attributes
    ----------
    files : tuple of str
        Of the codes, the positions, and the values if there are any.
    start, stop : int
    """

    files: tuple[str, ...]
    start: int
    stop: int

    def load(self, domains: tuple[Domain, ...]) -> tuple[np.ndarray, Records, np.ndarray | None]:
        """Return their positions in the table, the records, and their values that must be diverse, if any must.

        Raises
        ------
        OSError
            If a file cannot be read.
        """
        return TableOrder(*map(mapped, self.files)).rows(self.start, self.stop).load(domains)


@dataclass(frozen=True, eq=False)
class TakenRows:
    """Rows that were taken out of a table in memory.

    Attributes
    ----------
    positions : numpy.ndarray, shape (m,), int64
    codes : numpy.ndarray, shape (m, q), int32
    values : numpy.ndarray, shape (m, c), int64, or None
    """

    positions: np.ndarray
    codes: np.ndarray
    values: np.ndarray | None

    def load(self, domains: tuple[Domain, ...]) -> tuple[np.ndarray, Records, np.ndarray | None]:
        """Return their positions in the table, the records, and their values that must be diverse, if any must."""
        return self.positions, Records(domains, self.codes), self.values
