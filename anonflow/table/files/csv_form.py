"""The form of a CSV file, its delimiter and its encoding; they are detected if the caller does not give them."""

from __future__ import annotations

import codecs
import csv
import io
import re
from collections import Counter
from dataclasses import dataclass
from typing import Any

from anonflow.table.files.csv_head import PLAIN, CsvShape, body_of

AUTO = "auto"
"""The value of a delimiter or encoding that is to be detected."""

DELIMITERS = (",", ";", "\t", "|")
"""The delimiters that are tried, the usual one first."""

_NAMES = {",": "commas", ";": "semicolons", "\t": "tabs", "|": "bars", " ": "spaces"}

SAMPLE = 1 << 16
"""Bytes in which a delimiter is detected."""

BEGINNING = 1 << 22
"""Bytes that are read at most until there are lines enough: a header may be longer than the sample."""

_LINES = 20
"""Lines that are enough."""

_ROWS = 100
"""Rows of them that are compared."""

_MARKS = (
    (codecs.BOM_UTF8, "utf-8"),
    (codecs.BOM_UTF32_LE, "utf-32"),
    (codecs.BOM_UTF32_BE, "utf-32"),
    (codecs.BOM_UTF16_LE, "utf-16"),
    (codecs.BOM_UTF16_BE, "utf-16"),
)
"""Byte order marks, the longer ones first."""

_UNUSED = frozenset(b"\x81\x8d\x8f\x90\x9d")
"""Bytes without a meaning in Windows' encoding of western Europe."""


_MAC = re.compile(rb"(?<=[a-z])[\x81\x87-\x8a\x8c-\x90\x9d\x9f]")
"""After a small letter: letters in Mac Roman, and in Windows-1252 capitals, marks or nothing."""

_LETTERS = re.compile(rb"[\xc0-\xff]")
"""Letters in Windows-1252, and mostly signs in Mac Roman."""


@dataclass(frozen=True)
class CsvForm:
    """The form of a CSV file.

    Attributes
    ----------
    delimiter, encoding : str
    columns : int
        Of its header, or of the rows if the first line is no header.
    """

    delimiter: str
    encoding: str
    columns: int

    @property
    def unusual(self) -> bool:
        """Whether the form is another one than commas and UTF-8 in several columns."""
        plain = self.encoding == "utf-8" and self.delimiter == ","
        return not plain or self.columns < 2

    def sentence(self, name: object) -> str:
        """Return the message about a file of this form."""
        if self.columns < 2:
            return (
                f"{name}: has one column: none of {', '.join(_NAMES[mark] for mark in DELIMITERS)} is in its header; "
                "if there are more columns, name the delimiter"
            )
        between = _NAMES.get(self.delimiter, repr(self.delimiter))
        return f"{name}: {self.columns} columns between {between}, encoding {self.encoding}"


def form_of(stream: Any, delimiter: str = AUTO, encoding: str = AUTO, shape: CsvShape = PLAIN) -> CsvForm:
    """Detect the form of a CSV file, as far as it is ``auto``.

    Parameters
    ----------
    stream : binary file
        Unpacked. It is read to its end where the encoding is asked for, else for :data:`SAMPLE` bytes.
    delimiter, encoding : str
        ``auto`` is found out; anything else is taken as it is.
    shape : CsvShape
        What is said about its header and the lines above it.

    Returns
    -------
    CsvForm

    Notes
    -----
    The encoding is what a byte order mark says; else UTF-8 if all bytes are; else UTF-16 if every second byte of the
    beginning is 0; else Mac Roman where bytes stand among letters that are no letters in Windows-1252; else Windows-1252,
    or Latin-1 where a byte stands for nothing there. The delimiter is the one that Excel's line ``sep=`` names; else the one that
    cuts most of the first rows into equally many cells, of several the one with more cells: a comma inside a
    cell, or a decimal comma, does not occur equally in every row. O(size) time, a block is held.
    """
    sample = _filled(stream, SAMPLE)
    while sample.count(b"\n") < _LINES and len(sample) < BEGINNING and (block := _filled(stream, SAMPLE)):
        sample += block
    if encoding == AUTO:
        encoding = _encoding(sample, stream)
    try:
        text = complete_lines(sample, encoding, len(sample) % SAMPLE > 0)
    except (LookupError, TypeError, AttributeError):
        return CsvForm("," if delimiter == AUTO else delimiter, encoding, 0)  # the reader says what is wrong
    body, _, separator = body_of(text, shape)
    delimiter = separator or delimiter
    if delimiter == AUTO:
        fits = {mark: _fits(_counts(body, mark)) for mark in DELIMITERS}
        delimiter = max(DELIMITERS, key=lambda mark: fits[mark])
    counts = _counts(body, delimiter)
    first = next(iter(counts), 0)
    return CsvForm(delimiter, encoding, first if first > 1 else max(first, _fits(counts)[1]))


def complete_lines(sample: bytes, encoding: str, ended: bool) -> str:
    """Return the text of the beginning of a file, to the end of its last complete line if the file goes on."""
    text = codecs.getincrementaldecoder(encoding)("replace").decode(sample)
    return text if ended else text[: text.rfind("\n") + 1] or text


def _filled(stream: Any, size: int) -> bytes:
    """So many bytes, fewer only at the end of the stream."""
    blocks, length = [], 0
    while length < size and (block := stream.read(size - length)):
        blocks.append(bytes(block))
        length += len(block)
    return b"".join(blocks)


def _encoding(sample: bytes, rest: Any) -> str:
    for mark, name in _MARKS:
        if sample.startswith(mark):
            return name
    for first, name in ((1, "utf-16-le"), (0, "utf-16-be")):
        zeros = sample[first::2].count(0)
        if len(sample) > 3 and zeros > 0.4 * len(sample) and not sample[1 - first :: 2].count(0):
            return name
    decoder = codecs.getincrementaldecoder("utf-8")()
    is_utf8, windows = True, True
    mac = letters = 0
    block = sample
    while block:
        if is_utf8:
            try:
                decoder.decode(block)
            except UnicodeDecodeError:
                is_utf8 = False
        windows = windows and not any(byte in block for byte in _UNUSED)
        mac += len(_MAC.findall(block))
        letters += len(_LETTERS.findall(block))
        block = rest.read(1 << 20)
    if is_utf8:
        try:
            decoder.decode(b"", True)
            return "utf-8"
        except UnicodeDecodeError:
            pass
    # what Windows' encoding lacks would be control signs in Latin-1, and no text has them
    return "mac-roman" if mac > letters or not windows else "cp1252"


def _counts(text: str, delimiter: str) -> list[int]:
    """Return cells of the first rows."""
    counts = []
    try:
        for row in csv.reader(io.StringIO(text, newline=""), delimiter=delimiter):
            if row:
                counts.append(len(row))
            if len(counts) == _ROWS:
                break
    except (csv.Error, TypeError):  # the reader says what is wrong
        pass
    return counts


def _fits(counts: list[int]) -> tuple[float, int]:
    """Return how well a delimiter cuts rows: the share of them with the usual number of cells, and how many cells those are.

    The first line may be a title or a comment, so that the rows decide.
    """
    cells, times = Counter(counts).most_common(1)[0] if counts else (0, 0)
    return (times / len(counts), cells) if cells > 1 else (0.0, 0)
