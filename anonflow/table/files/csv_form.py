"""The form of a CSV file, its delimiter and its encoding; they are detected if the caller does not give them."""

from __future__ import annotations

import codecs
import re
from collections import Counter
from dataclasses import dataclass
from typing import Any

from anonflow.errors import setting
from anonflow.table.files.csv_head import (
    DELIMITERS,
    PLAIN,
    CsvShape,
    body_of,
    cell_counts,
    likely_delimiter,
    usual_cells,
)

AUTO = "auto"
"""The value of a delimiter or encoding that is to be detected."""

SAMPLE = 1 << 16
"""Bytes in which a delimiter is detected."""

BEGINNING = 1 << 22
"""Bytes that are read at most until there are lines enough: a header may be longer than the sample."""

_LINES = 20
"""Lines that are enough."""

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


_MAC = re.compile(rb"(?<=[a-z])[\x81\x87-\x8a\x8c-\x90\x9d\x9f]|(?<=[A-Z])[\x87-\x8a\x8c\x8e\x9f](?=[a-z])")
"""After a small letter, or between a capital and a small one: letters in Mac Roman, and in Windows-1252 capitals, marks or nothing."""

_LETTERS = bytes(range(0xC0, 0x100))
"""Letters in Windows-1252, and mostly signs in Mac Roman."""

_PAIRS = re.compile(rb"[\xc3-\xdf][\x80-\xbf]|[\xe0-\xef][\x80-\xbf]{2}|[\xf0-\xf4][\x80-\xbf]{3}")
"""What is a letter in UTF-8, and nearly never stands together in another encoding."""

_BEYOND = bytes(byte if byte > 0x7F and byte != 0xA0 else 0x20 for byte in range(256))
"""Translates what is ASCII, or the no-break space, to a space: what is left stands in words."""

_LONG = 4
"""How many letters beyond ASCII in a row, of more than two kinds, are no word of western Europe."""

_OTHERS = {
    rb"\x89PNG": "is a picture (PNG); choose the file of the table",
    rb"\xff\xd8\xff": "is a picture (JPEG); choose the file of the table",
    rb"GIF8": "is a picture (GIF); choose the file of the table",
    rb"%PDF": "is a PDF document; save the table as CSV",
    rb"\x1f\x8b": "is packed by gzip; let its name end in .csv.gz",
    rb"PK\x03\x04": "is an Excel workbook or an archive; let its name end in .xlsx, or unpack it",
    rb"PAR1": "is a Parquet file; let its name end in .parquet",
    rb"\xd0\xcf\x11\xe0": "is an old Excel workbook or Word document; save it as .xlsx or CSV",
    # a writer of CSV puts a name with a quote into quotes
    rb"(\xef\xbb\xbf)?\s*(\{|\[\s*\{)\s*\"": "is JSON; save it as CSV or Parquet",
    rb"(?i)(\xef\xbb\xbf)?\s*<(!doctype|html|\?xml|table)\b": "is a page of the web or XML; save the table as CSV",
}
"""Beginnings of files that are no CSV, and what they are."""


class NoCsvError(ValueError):
    """A file is no CSV in an encoding that is looked for; the message says what it is."""


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
                f"{name}: has one column: none of {', '.join(DELIMITERS.values())} is in its header; "
                "if there are more columns, name the delimiter"
            )
        between = {**DELIMITERS, " ": "spaces"}.get(self.delimiter, repr(self.delimiter))
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

    Raises
    ------
    NoCsvError
        If it is another kind of file, or the encoding is asked for, and none that is looked for fits.

    Notes
    -----
    The encoding is what a byte order mark says; else UTF-8 if all bytes are; else UTF-16 if every second byte of the
    beginning is 0; else Mac Roman where bytes stand among letters that are no letters in Windows-1252; else Windows-1252,
    or Latin-1 where a byte stands for nothing there. Bytes of UTF-8 beside others are two encodings, and words of letters beyond ASCII alone are of
    another script: both are refused. The delimiter is the one that Excel's line ``sep=`` names; else the one that
    cuts most of the first rows into equally many cells, of several the one with more cells: a comma inside a
    cell, or a decimal comma, does not occur equally in every row. O(size) time, a block is held.
    """
    sample = _filled(stream, SAMPLE)
    while sample.count(b"\n") < _LINES and len(sample) < BEGINNING and (block := _filled(stream, SAMPLE)):
        sample += block
    refuse_others(sample)
    if encoding == AUTO:
        encoding = _encoding(sample, stream)
    try:
        text = complete_lines(sample, encoding, len(sample) % SAMPLE > 0)
    except (LookupError, TypeError, AttributeError):
        return CsvForm("," if delimiter == AUTO else delimiter, encoding, 0)  # the reader says what is wrong
    body, _, separator = body_of(text, shape)
    delimiter = separator or delimiter
    if delimiter == AUTO:
        delimiter = likely_delimiter(body)
    counts = cell_counts(body, delimiter)
    first = next(iter(counts), 0)
    return CsvForm(delimiter, encoding, first if first > 1 else max(first, usual_cells(counts)[1]))


def refuse_others(beginning: bytes) -> None:
    """Refuse a file that is no CSV by its first bytes: its content would be read as names of columns, and published.

    Raises
    ------
    NoCsvError
        If it is another kind of file.
    """
    for look, sentence in _OTHERS.items():
        if re.match(look, beginning):
            raise NoCsvError(sentence)


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
        # half of the bytes in Latin text; signs of other scripts may be among it
        if len(sample) > 3 and zeros > 0.4 * len(sample) and not sample[1 - first :: 2].count(0):
            return name
    decoder = codecs.getincrementaldecoder("utf-8")()
    is_utf8, windows = True, True
    mac = letters = pairs = strays = beyond = foreign = lines = bad = 0
    block = sample
    # the whole file: its first letter beyond ASCII may be in the last row
    while block:
        if is_utf8:
            try:
                # letters beyond ASCII have more bytes than one; the last may go on in the next block
                begun = len(decoder.getstate()[0])
                pairs += begun + len(block) - len(decoder.decode(block)) - len(decoder.getstate()[0])
            except UnicodeDecodeError as error:
                is_utf8, bad = False, lines + error.object[: error.start].count(b"\n") + 1
        lines += block.count(b"\n")
        # each different one is looked at once
        for letters_together, times in () if is_utf8 else Counter(block.translate(_BEYOND).split()).items():
            bytes_beyond = times * len(letters_together)
            beyond += bytes_beyond
            if len(letters_together) >= _LONG and len({*letters_together}) > 2:
                foreign += bytes_beyond
            if _PAIRS.sub(b"", letters_together):
                strays += times
            else:
                pairs += times
        windows = windows and not any(byte in block for byte in _UNUSED)
        mac += len(_MAC.findall(block))
        letters += len(block) - len(block.translate(None, _LETTERS))
        block = rest.read(1 << 20)
    if is_utf8:
        try:
            # that the last character is cut off shows only at the end
            decoder.decode(b"", True)
            return "utf-8"
        except UnicodeDecodeError:
            bad = lines + 1
    if pairs > strays:
        raise NoCsvError(
            f"is mostly UTF-8, and not so in line {bad}: two encodings are mixed in it; save it in one, or "
            + setting("encoding", "set encoding in the source")
        )
    if foreign > beyond / 2:
        raise NoCsvError(
            "is not UTF-8, and its letters are not those of western Europe; "
            + setting("encoding", "set encoding in the source, such as cp1251 (Cyrillic) or gbk")
        )
    # what Windows' encoding lacks would be control signs in Latin-1, and no text has them
    return "mac-roman" if mac > letters or not windows else "cp1252"
