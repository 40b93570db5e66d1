"""The owner's certificate: the possible originals of each published row, without the true one."""

from __future__ import annotations

import json
import platform
import zipfile
from dataclasses import dataclass, field
from functools import cached_property
from os import PathLike, fspath
from pathlib import Path
from typing import Any

import numpy as np

from anonflow import __version__
from anonflow.candidate_lists import Candidates
from anonflow.errors import DataError
from anonflow.large_arrays import IN_MEMORY, Arrays
from anonflow.table.row_marks import KEY_LENGTH
from anonflow.whole_file import OWNER_ONLY, as_path, streamed, write_whole

FORMAT = 1
"""Version of the file format."""

_ARRAYS = {"row_list": np.int32, "list_offsets": np.int64, "list_originals": np.int32}
_MARKS = "row_marks"
_TEXTS = ("criterion", "algorithm")
_SHORT = 200
_BYTES = 1 << 24
"""Bytes of an array that are read at a time."""


@dataclass(frozen=True, eq=False)
class Certificate:
    """For every published row, the originals that match it, sorted: the owner's proof.

    Attributes
    ----------
    k : int
    criterion : str
        What the method guarantees.
    algorithm : str
    row_list : numpy.ndarray, shape (n,), int32
        The list of each published row; rows of one equivalence class share one.
    list_offsets : numpy.ndarray, shape (l + 1,), int64
        List t is ``list_originals[list_offsets[t] : list_offsets[t + 1]]``.
    list_originals : numpy.ndarray, shape (e,), int32
        Positions in the table, ascending within a list.
    versions : dict
        Of Python, numpy and anonflow.
    extra_covers : bool
        Whether rows were widened beyond their matches for the sake of diversity, as older versions did. It does not
        change any result: values are counted on the lists.
    row_marks : numpy.ndarray, shape (n,), uint32, or None
        Keyed marks of the published rows (:func:`anonflow.table.row_marks`): they reveal a row that was changed, moved,
        dropped or doubled later, even if it still covers its list.
    key : str
        The key of the marks, 16 characters, from a random stream of its own.

    Notes
    -----
    Holds neither the assignment nor the seed: a row's own original is one of its list, which is in the
    table's order. k-concealed releases, which have no k-regular matches, have empty lists.
    """

    k: int
    criterion: str
    algorithm: str
    row_list: np.ndarray
    list_offsets: np.ndarray
    list_originals: np.ndarray
    versions: dict[str, str] = field(default_factory=dict)
    extra_covers: bool = False
    row_marks: np.ndarray | None = None
    key: str = field(default="", repr=False)

    @classmethod
    def of_candidates(
        cls, k: int, criterion: str, algorithm: str, candidates: Candidates, **attributes: Any
    ) -> Certificate:
        """Return the certificate of rows whose candidates are known, ascending in each list; `attributes` are the others."""
        return cls(
            k,
            criterion,
            algorithm,
            candidates.row_list.astype(np.int32, copy=False),
            candidates.offsets,
            candidates.originals.astype(np.int32, copy=False),
            **attributes,
        )

    @cached_property
    def candidates(self) -> Candidates:
        """The candidate originals of each row."""
        return Candidates(self.row_list, self.list_offsets, self.list_originals)

    @property
    def n(self) -> int:
        """Number of published rows."""
        return len(self.row_list)

    @property
    def complete(self) -> bool:
        """Whether every row has a list."""
        return bool((self.candidates.sizes > 0).all())

    @cached_property
    def offsets(self) -> np.ndarray:
        """Row r has ``originals[offsets[r] : offsets[r + 1]]``; shape (n + 1,), int64."""
        return np.concatenate([[0], np.cumsum(self.candidates.sizes)]).astype(np.int64)

    @cached_property
    def originals(self) -> np.ndarray:
        """The lists row after row, int32; a class of c rows takes c * c entries."""
        return self.candidates.pairs()[1]

    def of(self, row: int) -> np.ndarray:
        """Return the originals of one published row, ascending, int32.

        Raises
        ------
        IndexError
            If there is no such row.
        """
        at = self.row_list[row]
        return self.list_originals[self.list_offsets[at] : self.list_offsets[at + 1]]

    def save(self, path: str | PathLike[str]) -> None:
        """Write the certificate, readable by its owner only.

        Raises
        ------
        DataError
            If the folder may not be written to.
        AnonflowError
            If the disk is full.
        """
        arrays = {name: getattr(self, name) for name in _ARRAYS}
        if self.row_marks is not None:
            arrays[_MARKS] = self.row_marks
        text = self._about(self.row_marks is not None)
        write_whole(
            path,
            streamed(lambda stream: np.savez(stream, about=text, **arrays)),
            OWNER_ONLY,
            make_folders=True,
        )

    def _about(self, marked: bool) -> np.ndarray:
        description = {
            "format": FORMAT,
            "k": self.k,
            "criterion": self.criterion,
            "algorithm": self.algorithm,
            "versions": self.versions,
            **({"extra-covers": True} if self.extra_covers else {}),
            **({"key": self.key} if marked else {}),
        }
        return np.frombuffer(json.dumps(description).encode(), np.uint8)

    @classmethod
    def load(cls, path: str | PathLike[str], arrays: Arrays = IN_MEMORY) -> Certificate:
        """Read a certificate; everything in the file is checked, and no code in it is executed.

        Parameters
        ----------
        path : path
        arrays : Arrays
            Where its arrays are.

        Raises
        ------
        ParameterError
            If it is no path.
        DataError
            If the file is missing, is not a certificate, has another format version, or is inconsistent.
        """
        file = as_path(path)
        name = fspath(file)
        if not file.is_file():
            raise DataError(f"{name}: does not exist; name the certificate in the owner's folder")
        try:
            description, read = _read_file(file, arrays)
        # a file that somebody sent may be anything: whatever a reader raises on it, it is no certificate
        except (OSError, ValueError, KeyError, TypeError, EOFError, MemoryError, SyntaxError, RecursionError):
            description = None
        except (zipfile.BadZipFile, NotImplementedError, RuntimeError, OverflowError):
            description = None
        if description is None:
            raise DataError(f"{name}: is not a certificate; name the one in the owner's folder")
        if description.get("format") != FORMAT:
            raise DataError(
                f"{name}: is a certificate of another version; read it with the one that wrote it"
            )
        if not _sound(description, read):
            raise DataError(f"{name}: is damaged; use the certificate that was made with the release")
        return cls(
            description["k"],
            description["criterion"],
            description["algorithm"],
            versions=description["versions"],
            extra_covers=description.get("extra-covers") is True,
            key=description.get("key", ""),
            **read,
        )

    def __repr__(self) -> str:
        return f"Certificate({self.criterion}, k={self.k}, {self.n} rows, {self.algorithm})"


def versions() -> dict[str, str]:
    """Return the versions of Python and packages of a release."""
    return {"anonflow": __version__, "numpy": np.__version__, "python": platform.python_version()}


def _read_file(path: Path, arrays: Arrays) -> tuple[dict[str, Any], dict[str, np.ndarray]]:
    with zipfile.ZipFile(path) as archive:
        items = {item.filename.removesuffix(".npy"): item for item in archive.infolist()}
        kinds = {**_ARRAYS, "about": np.uint8, **({_MARKS: np.uint32} if _MARKS in items else {})}
        # our files are stored plainly: nothing in them can be larger than the file itself
        stored = all(item.compress_type == zipfile.ZIP_STORED for item in items.values())
        if not stored or sorted(items) != sorted(kinds) or len(items) != len(archive.infolist()):
            raise ValueError
        content = {name: _array(archive, items[name], np.dtype(kind), arrays) for name, kind in kinds.items()}
    description = json.loads(content.pop("about").tobytes())
    if not isinstance(description, dict):
        raise ValueError
    return description, content


def _array(archive: zipfile.ZipFile, item: zipfile.ZipInfo, kind: np.dtype, arrays: Arrays) -> np.ndarray:
    """Return an array of a file that is stored plainly, as numpy writes it; some bytes at a time."""
    with archive.open(item) as stream:
        if np.lib.format.read_magic(stream) != (1, 0):
            raise ValueError
        shape, _, stored = np.lib.format.read_array_header_1_0(stream)
        # the header may claim any size: only as much is taken as the file has
        if len(shape) != 1 or stored != kind or shape[0] * kind.itemsize != item.file_size - stream.tell():
            raise ValueError
        array = arrays.empty(shape, kind)
        content = array.view(np.uint8)
        for start in range(0, len(content), _BYTES):
            part = stream.read(min(_BYTES, len(content) - start))
            content[start : start + _BYTES] = np.frombuffer(part, np.uint8)
        if stream.read(1):
            raise ValueError  # reading to the end compares the checksum
    return array


def _sound(description: dict[str, Any], arrays: dict[str, np.ndarray]) -> bool:
    version_of = description.get("versions")
    if type(description.get("k")) is not int or description["k"] < 1 or not isinstance(version_of, dict):
        return False
    texts = [description.get(name) for name in _TEXTS] + [
        item for pair in version_of.items() for item in pair
    ]
    if not all(isinstance(text, str) and len(text) <= _SHORT and text.isprintable() for text in texts):
        return False
    lists = Candidates(*(arrays[name] for name in _ARRAYS))
    if _MARKS in arrays:
        key = description.get("key")
        # marks are of no use without the key that they were made with
        if not isinstance(key, str) or len(key) != KEY_LENGTH or not key.isascii():
            return False
        if len(arrays[_MARKS]) != lists.rows:
            return False
    return lists.is_sound and lists.is_ascending(lists.rows)
