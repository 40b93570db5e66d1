"""Read strict YAML: turn the parser's events into plain data, and keep the place of every part."""

from __future__ import annotations

import hashlib
import math
import re
from collections.abc import Iterable, Iterator, Mapping, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any

from anonflow.errors import AnonflowError, FlowError, Problem
from anonflow.strict_yaml.names import shorten, unknown

if TYPE_CHECKING:
    from os import PathLike

MAX_BYTES = 2**20
MAX_DEPTH = 100
MAX_PROBLEMS = 20

Place = tuple[int, int]
KeyPath = tuple[str | int, ...]

_WORDS: dict[str, bool | None] = {"true": True, "false": False, "null": None, "": None}
_INTEGER = re.compile(r"0|-?[1-9][0-9]*")
_FLOAT = re.compile(r"-?(0|[1-9][0-9]*)(\.[0-9]+)?([eE][-+]?[0-9]+)?")
_BAD_CHARACTER = re.compile(
    "[^\t\n\r\x20-\x7e\xa0-\u2027\u202a-\ud7ff\ue000-\ufefe\uff00-\ufffd\U00010000-\U0010ffff]"
)
_TAB = re.compile(r"^ *\t", re.MULTILINE)


class Document:
    """A YAML document: its data, and the place of every part in the file.

    Attributes
    ----------
    data : dict, list, str, int, float, bool or None
        Plain Python data; every mapping is a dict with text keys, in the order of the file.
    name : str
        The file's name, for messages.
    error : type of AnonflowError
        The class of the errors of this document.
    digest : bytes or None
        The SHA-256 hash of the file, as it was when it was read.
    """

    def __init__(
        self,
        data: Any,
        name: str,
        error: type[AnonflowError] = FlowError,
        places: Mapping[KeyPath, tuple[Place, Place]] | None = None,
        digest: bytes | None = None,
    ) -> None:
        self.data = data
        self.name = name
        self.error = error
        self.digest = digest
        self._places = dict(places or {})

    def with_data(self, data: Any) -> Document:
        """Return the same document with other data, such as that of an older version in the newer form; places stay."""
        return Document(data, self.name, self.error, self._places, self.digest)

    def place(self, path: Sequence[str | int], *, value: bool = False) -> Place:
        """Return the line and column, from 1, of the part at a path of keys and list positions.

        Parameters
        ----------
        path : sequence of str and int
            Keys of mappings and positions in lists, from the outside in; empty for the document.
        value : bool
            Whether to return the place of the value instead of that of its key.

        Returns
        -------
        (int, int)
            For a path that does not exist, the place of the deepest part of it that does.
        """
        parts = tuple(path)
        while parts and parts not in self._places:
            parts = parts[:-1]
        return self._places.get(parts, ((1, 1), (1, 1)))[1 if value else 0]

    def message(self, path: Sequence[str | int], text: str, *, value: bool = False) -> str:
        """Return `text` after the file's name, the line and the column: ``flow.yaml:12:5: text``."""
        line, column = self.place(path, value=value)
        return f"{self.name}:{line}:{column}: {text}"

    def problems(self) -> Problems:
        """Return an empty collection of problems of this document."""
        return Problems(self)


class Problems:
    """Problems of a document, each once, collected and raised as one error, in the order of the file."""

    def __init__(self, document: Document) -> None:
        self._document = document
        self._problems: dict[tuple[Place, Problem], None] = {}

    def __len__(self) -> int:
        return len(self._problems)

    def __iter__(self) -> Iterator[str]:
        name = self._document.name
        for (line, column), problem in self._in_order():
            yield f"{name}:{line}:{column}: " + problem.text

    def _in_order(self) -> list[tuple[Place, Problem]]:
        return sorted(self._problems, key=lambda entry: entry[0])

    def add(self, path: Sequence[str | int], text: str | None, *, value: bool = False) -> None:
        """Record a problem of the part at `path`; without a text there is none."""
        if text is not None:
            self._problems[self._document.place(path, value=value), Problem(tuple(path), text)] = None

    def add_unknown_keys(self, path: Sequence[str | int], keys: Iterable[Any], known: Iterable[str]) -> None:
        """Record every key of the mapping at `path` that is not in `known`."""
        names = list(known)
        for key in keys:
            if key not in names:
                self.add((*path, key), unknown(str(key), names))

    def raise_if_any(self) -> None:
        """Raise all problems as one error of the document's class.

        Raises
        ------
        AnonflowError
            Of the document's class, if there are problems.
        """
        if self._problems:
            problems = [problem for _, problem in self._in_order()]
            raise self._document.error.collected(self._document.name, _capped(list(self)), problems)


def read(path: str | PathLike[str], error: type[AnonflowError] = FlowError) -> Document:
    """Read a YAML file.

    Parameters
    ----------
    path : str or path
        A UTF-8 file of at most 1 MiB.
    error : type of AnonflowError
        The class of every error.

    Returns
    -------
    Document

    Raises
    ------
    AnonflowError
        Of class `error`: the file cannot be read, is too large, is not UTF-8, or is not strict YAML. The message lists
        all problems with file, line and column.
    """
    name = str(path)
    try:
        file = Path(path)
        if file.is_dir():
            raise error(f"{name}: a folder, not a YAML file; name the file")
        if not file.exists():
            raise error(f"{name}: no such file; check the path")
        if not file.is_file():
            raise error(f"{name}: no ordinary file; name a YAML file")
        with file.open("rb") as stream:
            raw = stream.read(MAX_BYTES + 1)
    except (OSError, ValueError) as reason:
        why = getattr(reason, "strerror", None) or "not a usable path"
        raise error(f"{name}: cannot be read: {why}") from reason
    if len(raw) > MAX_BYTES:
        raise error(f"{name}: larger than {MAX_BYTES // 2**20} MiB; keep large hierarchies in CSV files")
    try:
        text = raw.decode("utf-8-sig")
    except UnicodeDecodeError as reason:
        before = raw[: reason.start]
        line = before.count(b"\n") + 1
        column = len(before[before.rfind(b"\n") + 1 :].decode("utf-8", "replace")) + 1
        raise error(f"{name}:{line}:{column}: not UTF-8; save the file as UTF-8") from reason
    document = loads(text, name, error)
    document.digest = hashlib.sha256(raw).digest()
    return document


def loads(text: str, name: str = "<text>", error: type[AnonflowError] = FlowError) -> Document:
    """Read YAML from a text.

    Parameters
    ----------
    text : str
        At most 1 MiB.
    name : str
        The name of the text in messages.
    error : type of AnonflowError
        The class of every error.

    Returns
    -------
    Document

    Raises
    ------
    AnonflowError
        Of class `error`: see `read`.

    Notes
    -----
    The data are built from the parser's events with an explicit stack: no objects are constructed, and deep nesting
    cannot exhaust Python's stack. ruamel.yaml is imported at the first use.
    """
    from ruamel.yaml import YAML
    from ruamel.yaml.error import YAMLError

    problems: list[tuple[Place, str]] = []
    if len(text) > MAX_BYTES:
        raise error(f"{name}: larger than {MAX_BYTES // 2**20} MiB; keep large hierarchies in CSV files")
    bad = _BAD_CHARACTER.search(text)
    if bad:
        says = f"the character U+{ord(bad[0]):04X} is not allowed; write an escape in double quotes"
        problems.append((_place_in(text, bad.start()), says))
    tab = _TAB.search(text)
    if tab:
        problems.append((_place_in(text, tab.end() - 1), "a tab in the indentation; use spaces"))
    builder = _Builder(problems)
    if not problems:
        try:
            for event in YAML(typ="safe", pure=True).parse(text):
                builder.take(event)
        except YAMLError as problem:
            mark = getattr(problem, "problem_mark", None) or getattr(problem, "context_mark", None)
            where = (mark.line + 1, mark.column + 1) if mark is not None else (1, 1)
            problems.append((where, _reworded(problem)))
        except _Stop:
            pass
    if problems:
        lines = [f"{name}:{line}:{column}: {problem}" for (line, column), problem in sorted(problems)]
        raise error.collected(name, _capped(lines))
    return Document(builder.data, name, error, builder.places)


class _Stop(Exception):
    """Raised when there are enough problems."""


class _Builder:
    """Builds plain data from parser events, and records problems and places."""

    def __init__(self, problems: list[tuple[Place, str]]) -> None:
        self.data: Any = None
        self.places: dict[KeyPath, tuple[Place, Place]] = {}
        self._problems = problems
        self._documents = 0
        # Open collections: container, path, key waiting for its value, place of that key.
        self._open: list[_Level] = []

    def take(self, event: Any) -> None:
        kind = type(event).__name__
        where = (event.start_mark.line + 1, event.start_mark.column + 1)
        if kind == "DocumentStartEvent":
            self._documents += 1
            if self._documents > 1:
                self._problem(where, "a second document; keep one in each file", stop=True)
            if event.version not in (None, (1, 2)) or event.tags:
                self._problem(where, "a directive; only %YAML 1.2 is allowed")
        elif kind == "AliasEvent":
            self._problem(where, "an alias (*); write the value out")
            self._value(None, where)
        elif kind == "ScalarEvent":
            self._unadorned(event, where)
            plain = not event.style and not event.anchor
            self._scalar(event.value, plain, where)
        elif kind in ("MappingStartEvent", "SequenceStartEvent"):
            self._unadorned(event, where)
            if len(self._open) >= MAX_DEPTH:
                self._problem(where, f"nested more than {MAX_DEPTH} deep", stop=True)
            container: Any = {} if kind == "MappingStartEvent" else []
            path = self._value(container, where)
            self._open.append(_Level(container, path))
        elif kind in ("MappingEndEvent", "SequenceEndEvent"):
            self._open.pop()

    def _problem(self, where: Place, text: str, stop: bool = False) -> None:
        self._problems.append((where, text))
        if stop or len(self._problems) > MAX_PROBLEMS:
            raise _Stop

    def _unadorned(self, event: Any, where: Place) -> None:
        if event.anchor:
            self._problem(where, "an anchor (&); anchors and aliases are not allowed")
        if event.tag:
            self._problem(where, "a tag (!); tags are not allowed, write the value alone")

    def _scalar(self, text: str, plain: bool, where: Place) -> None:
        if any("\ud800" <= character <= "\udfff" for character in text):
            self._problem(where, "an escape that is no character (half of a surrogate pair)")
        level = self._open[-1] if self._open else None
        if level is not None and level.wants_key:
            if text in level.container:
                line = self.places[(*level.path, text)][0][0]
                self._problem(where, f"duplicate key {shorten(text)}, first in line {line}")
            level.key, level.key_place, level.wants_key = text, where, False
            return
        self._value(self._resolved(text, where) if plain else text, where)

    def _resolved(self, text: str, where: Place) -> Any:
        if text in _WORDS:
            return _WORDS[text]
        if _FLOAT.fullmatch(text):
            if len(text) > 400:
                self._problem(where, "a number of more than 400 digits; put it in quotes if it is text")
                return None
            if _INTEGER.fullmatch(text):
                return int(text)
            if text != "-0":
                number = float(text)
                if math.isinf(number):
                    self._problem(where, "a number too large; put it in quotes if it is text")
                return number
        return text

    def _value(self, value: Any, where: Place) -> KeyPath:
        """Add a value to the open collection, and return its path."""
        if not self._open:
            self.data = value
            self.places[()] = (where, where)
            return ()
        level = self._open[-1]
        if isinstance(level.container, list):
            path: KeyPath = (*level.path, len(level.container))
            level.container.append(value)
            self.places[path] = (where, where)
            return path
        if level.wants_key:
            self._problem(where, "a key that is no text; keys must be plain words", stop=True)
        path = (*level.path, level.key)
        # The first of two duplicates keeps its place, because the problem refers to it.
        self.places.setdefault(path, (level.key_place, where))
        level.container[level.key] = value
        level.wants_key = True
        return path


class _Level:
    __slots__ = ("container", "key", "key_place", "path", "wants_key")

    def __init__(self, container: Any, path: KeyPath) -> None:
        self.container = container
        self.path = path
        self.wants_key = isinstance(container, dict)
        self.key = ""
        self.key_place: Place = (1, 1)


def _place_in(text: str, position: int) -> Place:
    before = text[:position]
    return before.count("\n") + 1, position - (before.rfind("\n") + 1) + 1


def _capped(lines: list[str]) -> list[str]:
    extra = len(lines) - MAX_PROBLEMS
    return [*lines[:MAX_PROBLEMS], f"... and {extra} more"] if extra > 0 else lines


def _reworded(problem: Any) -> str:
    words = str(getattr(problem, "problem", None) or getattr(problem, "context", None) or "no valid YAML")
    words = " ".join(words.split())
    context = " ".join(str(getattr(problem, "context", None) or "").split())
    if "mapping values are not allowed" in words:
        return "a second ':' in one line, or a wrong indentation; put text with ': ' in quotes"
    if "cannot start any token" in words:
        return "a character that cannot begin a value (such as @, `, % or a tab); put the text in quotes"
    if "undefined alias" in words or "alias" in context:
        return "an alias (*); text that begins with * must be in quotes"
    if "expected ':'" in words:
        return "a key without ':', or a quote that is not closed"
    if "but found" in words or "did not find expected" in words:
        return f"no valid YAML {context}: {words}; check indentation and brackets".replace("  ", " ")
    return f"no valid YAML: {words}"
