"""What a published cell may stand for, read straight from its notation: a predicate on values as text."""

from __future__ import annotations

import json
import re
from collections.abc import Callable, Mapping, Sequence
from datetime import datetime


def stands_for(
    notation: str, cell: str, below: Mapping[str, Sequence[str]] | None = None
) -> Callable[[object], bool]:
    """Whether a value may be behind a cell. Numbers are given as numbers, dates as ISO texts, a missing one as None."""
    if notation == "positions":
        return lambda value: (
            cell == "*"
            or (
                len(str(value)) == len(cell)
                and all(a in ("*", b) for a, b in zip(cell, str(value), strict=True))
            )
        )
    if cell == "*":
        return lambda value: True
    if notation == "range":
        if "/" in cell or re.match(r"\d{4}-\d\d-\d\d", cell):
            low, _, high = cell.partition("/")
            first, last = datetime.fromisoformat(low), datetime.fromisoformat(high or low)
            return lambda value: value is not None and first <= datetime.fromisoformat(str(value)) <= last
        for at in range(1, len(cell)):
            if cell[at] == "-" and cell[at - 1] != "e":
                start, end = float(cell[:at]), float(cell[at + 1 :])
                return lambda value: value is not None and start <= float(str(value)) <= end
        return lambda value: value is not None and float(str(value)) == float(cell)
    if notation == "node":
        assert below is not None
        return lambda value: ("" if value is None else value) in below.get(cell, [cell])
    named = members(cell)
    return lambda value: value in named


def members(cell: str) -> list[str | None]:
    """The values that a set names, character by character."""
    if cell[:1] != "{":
        return [_plain(cell)]
    texts, quoted, escaped = [""], False, False
    for character in cell[1:-1]:
        if character == "|" and not quoted:
            texts.append("")
            continue
        if character == '"' and not escaped and (quoted or not texts[-1]):
            quoted = not quoted
        escaped = character == "\\" and not escaped
        texts[-1] += character
    return [_plain(text) for text in texts]


def _plain(text: str) -> str | None:
    if text == "":
        return None
    return str(json.loads(text)) if text[0] == '"' else text
