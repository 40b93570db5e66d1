"""Write YAML that reads back to equal data."""

from __future__ import annotations

import math
import re
from collections.abc import Mapping
from typing import Any

from anonflow.errors import CONTROLS, AnonflowError, FlowError
from anonflow.strict_yaml.reading import _BAD_CHARACTER, MAX_DEPTH

# Texts that every YAML reader, old or new, reads as this text; they need no quotes.
_PLAIN = re.compile(r"[^\W\d_][\w.+/()*%-]*( [\w.+/()*%-]+)*")
_COERCED_ELSEWHERE = frozenset(["true", "false", "null", "yes", "no", "on", "off", "y", "n", "nan", "inf"])
_ESCAPES = {"\\": "\\\\", '"': '\\"', "\n": "\\n", "\r": "\\r", "\t": "\\t"}
WIDTH = 100


def dumps(data: Any, error: type[AnonflowError] = FlowError) -> str:
    """Write data as YAML that reads back to equal data of equal types.

    Parameters
    ----------
    data : dict, list, tuple, str, int, float, bool or None
        Keys are text; tuples are written as lists.
    error : type of AnonflowError
        The class of every error.

    Returns
    -------
    str
        Block style; a collection of scalars that fits in a line is written in one line. Text is quoted if
        this or any other YAML reader would read it as something else.

    Raises
    ------
    AnonflowError
        Of class `error`: a key is not text, a value has another type, a number is not finite,
        text is not valid Unicode, or nesting is deeper than 100.
    """
    lines: list[str] = []
    _append_lines(data, 0, 0, lines, error)
    return "\n".join(lines) + "\n"


def _append_lines(data: Any, indent: int, depth: int, lines: list[str], error: type[AnonflowError]) -> None:
    """Append the lines of `data`, which is inside `depth` collections, each indented by `indent` spaces."""
    pad = " " * indent
    text = _inline(data, 0, depth, error)
    if text is not None:
        lines.append(pad + text)
        return
    if depth >= MAX_DEPTH:
        raise error(f"data nested more than {MAX_DEPTH} deep cannot be written as YAML")
    if isinstance(data, Mapping):
        for key, value in data.items():
            head = f"{pad}{_key(key, error)}:"
            text = _inline(value, WIDTH - len(head), depth + 1, error)
            if text is not None:
                lines.append(f"{head} {text}")
            else:
                lines.append(head)
                _append_lines(value, indent + 2, depth + 1, lines, error)
        return
    for value in data:
        alone = isinstance(value, Mapping) and len(value) == 1
        text = _inline(value, 0 if alone else WIDTH - indent, depth + 1, error)
        if text is not None:
            lines.append(f"{pad}- {text}")
        else:
            start = len(lines)
            _append_lines(value, indent + 2, depth + 1, lines, error)
            lines[start] = f"{pad}- {lines[start][indent + 2 :]}"


def _inline(data: Any, room: int, depth: int, error: type[AnonflowError], lists: bool = True) -> str | None:
    """Return `data` in one line: scalars and empty collections always, others where they fit, else None.

    Others are lists of scalars, and mappings of scalars and (if `lists`) of lists of scalars.
    """
    if not isinstance(data, (Mapping, list, tuple)):
        return _scalar(data, error)
    if depth >= MAX_DEPTH or len(data) > max(room, 0):
        return None
    mapping = isinstance(data, Mapping)
    parts = []
    for value in data.values() if isinstance(data, Mapping) else data:
        listed = isinstance(value, (list, tuple)) and mapping and lists
        if isinstance(value, (Mapping, list, tuple)) and value and not listed:
            return None
        part = _inline(value, room, depth + 1, error, lists=False)
        if part is None:
            return None
        parts.append(part)
    if mapping:
        parts = [f"{_key(key, error)}: {part}" for key, part in zip(data, parts, strict=True)]
    line = ("{%s}" if mapping else "[%s]") % ", ".join(parts)
    return line if not data or len(line) < room else None


def _key(key: Any, error: type[AnonflowError]) -> str:
    if not isinstance(key, str):
        raise error("a key that is no text cannot be written as YAML")
    text = _scalar(key, error)
    # A YAML reader searches only so many characters for the colon after a key.
    if len(text) > 1000:
        raise error("a key of more than 1,000 characters cannot be written as YAML")
    return text


def _scalar(value: Any, error: type[AnonflowError]) -> str:
    if value is None:
        return "null"
    if isinstance(value, bool):
        return "true" if value else "false"
    if isinstance(value, int):
        return _checked_number(int.__repr__(value), error)
    if isinstance(value, float):
        if not math.isfinite(value):
            raise error("a number that is not finite cannot be written as YAML")
        return float.__repr__(value)
    if not isinstance(value, str):
        raise error(f"a value of type {type(value).__name__} cannot be written as YAML")
    if len(value) <= WIDTH and _PLAIN.fullmatch(value) and value.casefold() not in _COERCED_ELSEWHERE:
        return str(value)
    return '"' + "".join(_escaped(character, error) for character in value) + '"'


def _checked_number(text: str, error: type[AnonflowError]) -> str:
    if len(text) > 400:
        raise error("a number of more than 400 digits cannot be written as YAML")
    return text


def _escaped(character: str, error: type[AnonflowError]) -> str:
    if character in _ESCAPES:
        return _ESCAPES[character]
    if "\ud800" <= character <= "\udfff":
        raise error("text that is no Unicode (half of a surrogate pair) cannot be written as YAML")
    if not _BAD_CHARACTER.match(character) and not CONTROLS.match(character):
        return character
    code = ord(character)
    return f"\\x{code:02x}" if code < 256 else f"\\u{code:04x}" if code < 65536 else f"\\U{code:08x}"
