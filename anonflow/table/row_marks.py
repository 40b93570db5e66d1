"""A keyed number for each published row, which shows whether the row was changed."""

from __future__ import annotations

import hashlib
import math
import re
import threading
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from decimal import Decimal
from typing import Any

import numpy as np
import pandas as pd

from anonflow.hierarchy import number_text
from anonflow.table.forms.text_columns import check_characters, factorized, value_text
from anonflow.table.records import equal_columns, take_into
from anonflow.threads import by_column

KEY_LENGTH = 16
"""Characters of a key of row marks."""

UNIT_KEY_LENGTHS = (64, 32)
"""Characters of a key of unit marks, the first of new ones; those of the oldest versions have :data:`KEY_LENGTH`."""

_NUMERIC = frozenset("0123456789-.+")
_RANGE = re.compile(r"[+-]?[0-9.]+-|[{*\[]")
"""A text that begins so is no number: ``12-30``, ``{a|b}``, ``*``."""
_CONTENT = "anonflow content"
_TURN = 0x9E3779B97F4A7C15  # 2^64 / golden ratio; it is 5 modulo 8, so its powers repeat only after 2^62
_WORD = (1 << 64) - 1
_BLOCK = 1 << 18
"""Rows whose texts are hashed together."""


@dataclass(frozen=True)
class Content:
    """A number for the cells of a table in their order, the same for every division into pieces.

    Attributes
    ----------
    rows : int
    total : int
        ``sum of mark_i * r^i mod 2^64`` over rows i, r odd: what follows n rows is multiplied by r^n.
    """

    rows: int
    total: int

    @classmethod
    def of(cls, frame: pd.DataFrame, names: Sequence[str]) -> Content:
        """Return the marks of some columns of a frame; O(n) for each, and some memory for a block of rows."""
        whole = cls(0, 0)
        for start in range(0, len(frame), _BLOCK):
            block = frame.iloc[start : start + _BLOCK]
            turns = np.full(len(block), _TURN, np.uint64)
            turns[0] = 1
            marks = _sums(block, names, _CONTENT) | np.uint64(1)
            total = int((marks * np.cumprod(turns, dtype=np.uint64)).sum(dtype=np.uint64))
            whole = whole.then(cls(len(block), total))
        return whole

    def then(self, other: Content) -> Content:
        """Return the marks of these rows followed by others."""
        total = (self.total + pow(_TURN, self.rows, 1 << 64) * other.total) & _WORD
        return Content(self.rows + other.rows, total)

    def to_bytes(self) -> bytes:
        """16 bytes."""
        return self.rows.to_bytes(8, "big") + self.total.to_bytes(8, "big")


def row_marks(frame: pd.DataFrame, names: Sequence[str], key: str) -> np.ndarray:
    """Return a mark for each row, equal for rows whose cells read the same.

    Parameters
    ----------
    frame : pandas.DataFrame, n rows
    names : sequence of str
        Columns of the frame, in any order.
    key : str
        16 ASCII characters, secret.

    Returns
    -------
    numpy.ndarray, shape (n,), uint32
        Upper halves of sums over the columns of SipHash of a cell's text (:func:`cell_text`) times an odd number of
        the column's own: without the key neither a mark nor a second row that has it can be computed; another row
        has it once in 2^32. O(n) for each column.
    """
    return (_sums(frame, names, key) >> np.uint64(32)).astype(np.uint32)


def unit_marks(frame: pd.DataFrame, names: Sequence[str], key: str) -> np.ndarray:
    """Return a mark for each row, equal for rows whose cells read the same.

    Parameters
    ----------
    frame : pandas.DataFrame, n rows
    names : sequence of str
        Columns of the frame, in any order.
    key : str
        64 hexadecimal digits, secret. Of older versions: 32, with which rows are hashed one by one; or 16 characters, whose marks are sums.

    Returns
    -------
    numpy.ndarray, shape (n,), uint64
        SipHash, keyed, of the keyed BLAKE2b values of a row's cells: without the key no mark follows from others.
    """
    if len(key) not in UNIT_KEY_LENGTHS:
        return _sums(frame, names, key)
    if not names:
        return np.zeros(len(frame), np.uint64)
    secret = bytes.fromhex(key)
    marks = np.empty(len(frame), np.uint64)
    for start in range(0, len(frame), _BLOCK):
        block = slice(start, start + _BLOCK)
        marks[block] = _marks_of_units(frame[block], sorted(names), secret)
    return marks


def unit_spellings(frame: pd.DataFrame, names: Sequence[str], key: str) -> np.ndarray:
    """Return how each row's texts that read as numbers are written, which :func:`unit_marks` does not tell.

    Parameters
    ----------
    frame, names, key
        As :func:`unit_marks` takes them.

    Returns
    -------
    numpy.ndarray, shape (n,), uint8
        0 for numbers, texts and shortest spellings of numbers; another spelling, as ``007`` of 7, has a keyed byte that 1 in 255 others share.
        A byte, so that the file of the largest release can be read.
    """
    spellings = np.zeros(len(frame), np.uint8)
    for name in sorted(names):
        if pd.api.types.is_numeric_dtype(frame[name].dtype):
            continue
        at, distinct = _distinct_values(frame[name])
        spellings = (
            3 * spellings + np.array([_spelling(value, key.encode()) for value in distinct], np.uint8)[at]
        )
    return spellings


def spelled_marks(marks: np.ndarray, spellings: np.ndarray) -> np.ndarray:
    """Return marks that are the same where the units are written the same, too, uint64."""
    coded: np.ndarray = marks ^ spellings.astype(np.uint64) * np.uint64(_TURN)
    return coded


def _spelling(value: Any, secret: bytes) -> int:
    if not isinstance(value, str) or value[:1] not in _NUMERIC:
        return 0
    # what most identifiers look like needs no look at its number
    if (value.isascii() and value.isdecimal() and value[0] != "0" and len(value) < 16) or cell_text(
        value, numeric=True
    ) == value:
        return 0
    return 1 + _digest(value.encode("utf-8", "surrogatepass"), secret)[0] % 255


def _marks_of_units(frame: pd.DataFrame, names: Sequence[str], secret: bytes) -> np.ndarray:
    cells = np.empty((len(frame), len(names)), np.uint64)
    of_cells, of_rows = secret[:16], secret[16:]
    for number, name in enumerate(names):
        at, texts = _marked_texts(frame[name])
        head = f"{len(name)}:{name}"
        cells[:, number] = np.array(
            [
                int.from_bytes(_digest((head + text).encode("utf-8", "surrogatepass"), of_cells), "little")
                for text in texts
            ],
            np.uint64,
        )[at]
    rows = cells.astype("<u8").view(f"V{cells.itemsize * cells.shape[1]}").ravel().astype(object)
    if not of_rows:
        return np.frombuffer(b"".join(_digest(row, of_cells) for row in rows), "<u8").astype(np.uint64)
    # without a loop over rows; they are bytes, so that the encoding is that of the key alone
    return pd.util.hash_array(rows, "latin-1", of_rows.decode("latin-1"), categorize=False)


def _digest(content: bytes, secret: bytes) -> bytes:
    return hashlib.blake2b(content, digest_size=8, key=secret).digest()


def _marked_texts(cells: pd.Series) -> tuple[np.ndarray, list[str]]:
    """Return a column's distinct texts, and which each cell has."""
    at, distinct = _distinct_values(cells)
    return at, [cell_text(value, str(value)[:1] in _NUMERIC) for value in distinct]


def _distinct_values(cells: pd.Series) -> tuple[np.ndarray, Iterable[Any]]:
    """Return a column's distinct values, and which each cell has."""
    at, distinct = factorized(cells, str(cells.name), with_missing=True)
    if isinstance(distinct, pd.CategoricalIndex):
        distinct = distinct.astype(distinct.categories.dtype)
    # an Arrow array makes an object for each text as it is walked through: eight times as slow
    return at, distinct.to_numpy(object) if pd.api.types.is_string_dtype(distinct.dtype) else distinct


def _sums(frame: pd.DataFrame, names: Sequence[str], key: str) -> np.ndarray:
    """Return the sums that marks are the upper halves of, shape (n,), uint64."""
    marks = np.zeros(len(frame), np.uint64)
    adding = threading.Lock()

    def add(name: str) -> None:
        at, texts = _marked_texts(frame[name])
        check_characters(texts, name)
        hashes = pd.util.hash_array(np.array(texts, object), hash_key=key, categorize=False)
        digest = hashlib.sha256((key + name).encode()).digest()
        hashes *= np.uint64(int.from_bytes(digest[:8], "little") | 1)
        of_rows = np.empty(len(at), np.uint64)
        take_into(of_rows, hashes, at)
        with adding:
            np.add(marks, of_rows, out=marks)

    by_column(add, names, len(frame))
    return marks


def joint_codes(original: pd.Series, published: pd.Series) -> tuple[dict[str, int], np.ndarray, np.ndarray]:
    """Return codes of the values of a column, the same for originals and published rows.

    Numbers are compared as numbers also where one of the two is text, as in a CSV file.

    Returns
    -------
    texts : dict
        Text -> code.
    original, published : numpy.ndarray, int64
    """
    texts: dict[str, int] = {}
    of_original, of_shown = _shared_codes((original, published), texts)
    return texts, of_original, of_shown


def _shared_codes(columns: Sequence[pd.Series], texts: dict[str, int]) -> list[np.ndarray]:
    """Return the codes of several columns' cells, as numbers where a column has numbers; unknown texts are added."""
    numeric = any(
        pd.api.types.is_numeric_dtype(cells.dtype) and not pd.api.types.is_bool_dtype(cells.dtype)
        for cells in columns
    )
    return [coded_texts(cells, texts, numeric) for cells in columns]


def row_labels(frames: Sequence[pd.DataFrame], names: Sequence[str]) -> list[np.ndarray]:
    """Return a label for each row of each frame, equal where the cells of all these columns read the same.

    Returns
    -------
    list of numpy.ndarray, int64
        One for each frame. Numbers are compared as numbers also where a frame has them as text.
    """
    columns = [np.concatenate(_shared_codes([frame[name] for frame in frames], {})) for name in names]
    ends = np.cumsum([len(frame) for frame in frames])
    return np.split(equal_columns(columns, int(ends[-1])), ends[:-1])


def coded_texts(cells: pd.Series, texts: dict[str, int], numeric: bool) -> np.ndarray:
    """Return the code of each cell's text; texts that are not known yet are added."""
    at, distinct = _distinct_values(cells)
    codes = [texts.setdefault(cell_text(value, numeric), len(texts)) for value in distinct]
    return np.array(codes, np.int64)[at]


def cell_text(value: Any, numeric: bool) -> str:
    """Return one text for all spellings of a value, the same for every file format.

    Parameters
    ----------
    value : object
        A plain value, or text.
    numeric : bool
        Whether text may be a number; then ``1.0`` and ``1`` are one.
    """
    if isinstance(value, str):
        return _shortest_number(value) if numeric else value
    if pd.isna(value):
        return ""
    text = value_text(value)
    # decimals are texts in a release
    return _shortest_number(text) if numeric and isinstance(value, Decimal) else text


def _shortest_number(text: str) -> str:
    # the usual published cell; without this, two errors are raised and caught for each
    if _RANGE.match(text):
        return text
    try:
        return number_text(int(text))
    except ValueError:
        pass
    try:
        number = float(text)
    except ValueError:
        return text
    return number_text(number) if math.isfinite(number) else text
