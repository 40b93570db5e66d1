"""A small writer of SAS tables (``.sas7bdat``): pyreadstat reads them and cannot write them.

32 bits, little endian, not compressed: a header, a page of what the columns are, and pages of rows, as in Shotwell (2013,
"SAS7BDAT Database Binary Format").
"""

from __future__ import annotations

import struct
from collections.abc import Sequence
from pathlib import Path

MAGIC = bytes.fromhex("000000000000000000000000c2ea8160b31411cfbd92080009c7318c181f1011")
HEADER, PAGE, PAGE_HEADER, POINTER = 1024, 4096, 24, 12
META_PAGE, DATA_PAGE = 0x0000, 0x0100
ROW_SIZE, COLUMN_COUNT, TEXTS, NAMES, ATTRIBUTES, FORMAT = (
    bytes.fromhex(text) for text in ("f7f7f7f7", "f6f6f6f6", "fdffffff", "ffffffff", "fcffffff", "fefbffff")
)
TEXT_START = 32
UTF_8 = 20


def write_sas(path: Path, columns: dict[str, Sequence[float | str | None]]) -> Path:
    """Write a table; of a column of numbers ``None`` is missing (``.``), and a capital letter a missing code (``.A`` to ``.Z``)."""
    rows = len(next(iter(columns.values())))
    numbers = {name: not all(isinstance(cell, str) for cell in cells) for name, cells in columns.items()}
    widths = {
        name: 8 if numbers[name] else max(1, *(len(str(cell).encode()) for cell in cells))
        for name, cells in columns.items()
    }
    order = sorted(columns, key=lambda name: not numbers[name])  # numbers come first in a row
    offsets = {name: sum(widths[before] for before in order[: order.index(name)]) for name in order}
    width = sum(widths.values())
    each = (PAGE - PAGE_HEADER) // width
    lines = [
        b"".join(_number(columns[name][row]) if numbers[name] else _text(columns[name][row], widths[name]) for name in order)
        for row in range(rows)
    ]  # fmt: skip
    data = [lines[first : first + each] for first in range(0, rows, each)]
    pages = [_columns_page(widths, offsets, numbers, rows, width)]
    pages += [_page(DATA_PAGE, len(part), 0, b"".join(part)) for part in data]
    path.write_bytes(_header(path.stem, len(pages)) + b"".join(pages))
    return path


def _number(cell: float | str | None) -> bytes:
    if isinstance(cell, str) or cell is None:
        return bytes([0, 0, 0, 0, 0, 0xFE if cell is None else 0xFF - (ord(cell) - ord("A") + 2), 0xFF, 0xFF])
    return struct.pack("<d", cell)


def _text(cell: float | str | None, width: int) -> bytes:
    return str(cell).encode().ljust(width)


def _header(name: str, pages: int) -> bytes:
    header = bytearray(HEADER)
    header[:32] = MAGIC
    header[32] = header[35] = 0x22  # 32 bits
    header[37] = 1  # little endian
    header[39] = ord("1")  # Unix
    header[70] = UTF_8
    header[84:92] = b"SAS FILE"
    header[92:124] = name.upper().encode().ljust(32)[:32]
    header[156:164] = b"DATA    "
    header[196:208] = struct.pack("<III", HEADER, PAGE, pages)
    header[216:224] = b"9.0401M6"
    return bytes(header)


def _page(kind: int, blocks: int, subheaders: int, content: bytes) -> bytes:
    return (bytes(16) + struct.pack("<HHHH", kind, blocks, subheaders, 0) + content).ljust(PAGE, b"\0")


def _columns_page(
    widths: dict[str, int], offsets: dict[str, int], numbers: dict[str, bool], rows: int, width: int
) -> bytes:
    n = len(widths)
    size = bytearray(480)
    size[:4] = ROW_SIZE
    for at, value in ((20, width), (24, rows), (36, n), (52, PAGE)):
        size[at : at + 4] = struct.pack("<I", value)
    texts, places = bytearray(TEXT_START), []
    for name in widths:
        places.append((len(texts), len(name.encode())))
        texts += name.encode()
    texts += bytes(8 + -len(texts) % 4)
    texts[:2] = struct.pack("<H", len(texts) - 8)
    named = b"".join(struct.pack("<HHHH", 0, *place, 0) for place in places)
    attributes = b"".join(
        struct.pack("<IIHBB", offsets[name], widths[name], 4, 1 if numbers[name] else 2, 0) for name in widths
    )
    parts = [
        bytes(size),
        COLUMN_COUNT + struct.pack("<II", n, 0),
        TEXTS + bytes(texts),
        NAMES + struct.pack("<H", 8 + len(named)) + bytes(6) + named + bytes(8),
        ATTRIBUTES + struct.pack("<H", 8 + len(attributes)) + bytes(6) + attributes + bytes(8),
        *(FORMAT + bytes(48) for _ in widths),
    ]
    at, pointers = PAGE, b""
    for part in parts:  # the first lies last in the page
        at -= len(part)
        pointers += struct.pack("<IIBBH", at, len(part), 0, 0, 0)
    page = bytearray(_page(META_PAGE, len(parts), len(parts), pointers))
    assert at >= PAGE_HEADER + POINTER * len(parts), "more columns than a page holds"
    page[at:] = b"".join(reversed(parts))
    return bytes(page)
