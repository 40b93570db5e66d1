"""The sources of hierarchies:

CSV rows, nested mappings, intervals of numbers, positions of codes. Every source returns a list of labels and a list of
parent positions (-1 for the root); the tree itself is built, and checked once more, by `anonflow.hierarchy.tree`.
"""

from __future__ import annotations

import csv
import io
import re
from collections.abc import Iterable, Iterator, Mapping, Sequence
from fractions import Fraction
from pathlib import Path
from typing import Any

import numpy as np

from anonflow.errors import HierarchyError
from anonflow.hierarchy.wording import fail, number_text, plural, some, verb_of
from anonflow.option import check_text, is_finite
from anonflow.strict_yaml import shorten
from anonflow.whole_file import as_path

MAX_BYTES = 256 * 2**20
MAX_NODES = 5_000_000
MAX_LEVELS = 64
MAX_FANOUT = 1_000_000
MAX_PROBLEMS = 20
ROOT = "*"

Forest = tuple[list[str], list[int]]

_NUMBER = re.compile(r"[+-]?([0-9]+(\.[0-9]*)?|\.[0-9]+)([eE][+-]?[0-9]{1,3})?")


# --- rows, leaf to root -----------------------------------------------------------------------------


def from_rows(rows: Iterable[tuple[int, Sequence[str]]], where: str) -> Forest:
    """Return the tree of `rows`, each the path of one leaf up to the root.

    Equal labels in neighbouring columns are one node. All problems are collected, with line numbers
    and never with a leaf's label, because a leaf is a value of the table.

    Parameters
    ----------
    rows : iterable of (int, sequence of str)
        Line number and labels from the leaf to the root.
    where : str
        Name for messages.

    Returns
    -------
    (list of str, list of int)
        Labels, and for each the position of its parent, -1 for the root.

    Raises
    ------
    HierarchyError
        If the rows are no tree: none at all, different lengths, two roots, a leaf listed twice or
        under two parents, a node under two parents, a cycle, a label for a leaf and an inner node,
        a blank inner label, `*` below the root.
    """
    labels: list[str] = []
    parents: list[int] = []
    index: dict[str, int] = {}
    leaves: set[str] = set()
    lines: dict[str, list[int]] = {}
    first_line, width, root = 0, 0, ""
    for line, row in rows:
        if not first_line:
            first_line, width, root = line, len(row), row[-1]
        path = [label for j, label in enumerate(row) if j == 0 or label != row[j - 1]]
        leaf = path[0]
        wrong = ""
        if len(row) != width:
            wrong = "ragged"
        elif len(path) == 1:
            wrong = "alone"
        elif path[-1] != root:
            wrong = "roots"
        elif "" in path[1:]:
            wrong = "blank"
        elif ROOT in path[:-1]:
            wrong = "star"
        elif len(set(path)) < len(path):
            wrong = "cycle"
        elif leaf in leaves:
            wrong = "twice" if labels[parents[index[leaf]]] == path[1] else "two parents"
        elif leaf in index or not leaves.isdisjoint(path[1:]):
            wrong = "both"
        else:
            above = -1
            for label in reversed(path):
                node = index.get(label)
                if node is None:
                    node = index[label] = len(labels)
                    labels.append(label)
                    parents.append(above)
                elif parents[node] != above:
                    wrong = "moved"
                    break
                above = node
            else:
                leaves.add(leaf)
        if wrong:
            lines.setdefault(wrong, []).append(line)
        if len(labels) > MAX_NODES:
            raise HierarchyError(f"{where}: more than {MAX_NODES:,} nodes; use a smaller hierarchy")
    if not first_line:
        raise HierarchyError(f"{where}: no rows; write one row for each value, from the value to the root")
    says = {
        "ragged": f"another number of columns than line {first_line} ({width}); repeat a label in neighbouring columns",
        "alone": "no node above the value; end each row with the root, for example `*`",
        "roots": f"another root (last column) than line {first_line}; end every row with the same root",
        "blank": "a blank label above the value; repeat the label before it instead",
        "star": "`*` below the root, where only the whole domain may be called so",
        "cycle": "a label again in a column that is no neighbour: a cycle",
        "twice": "a value that an earlier line has; leave one of them out",
        "two parents": "a value that an earlier line has under another parent",
        "both": "a label that is a value in one line and an inner node in another; rename one",
        "moved": "an inner node that an earlier line has under another parent; rename one of the two",
    }
    fail(where, [f"{some(lines[kind])}: {text}" for kind, text in says.items() if kind in lines])
    return labels, parents


def check_delimiter(delimiter: Any, where: str) -> None:
    """Refuse a delimiter that cannot separate the columns of a CSV file.

    Raises
    ------
    HierarchyError
        If it is not one character, or a quote or a line end.
    """
    if not (isinstance(delimiter, str) and len(delimiter) == 1 and delimiter not in '\r\n"\0'):
        raise HierarchyError(f"{where}: the delimiter must be one character, such as `;`")


def read_csv(path: str | Path, delimiter: str, encoding: str) -> Forest:
    """Return the tree of a CSV file in the ARX layout: no header, one row a leaf, from the leaf to the root.

    Raises
    ------
    HierarchyError
        If the file cannot be read, is too big, is not in `encoding` or is no tree (see `from_rows`).
    """
    path = as_path(path)
    where = path.name
    check_delimiter(delimiter, where)
    check_text("encoding", encoding)
    try:
        if not path.is_file():
            raise HierarchyError(f"{where}: no such hierarchy file; check the path")
        if path.stat().st_size > MAX_BYTES:
            raise HierarchyError(f"{where}: larger than {MAX_BYTES // 2**20} MiB; use a smaller hierarchy")
        data = path.read_bytes()
    except OSError as error:
        raise HierarchyError(f"{where}: the hierarchy file cannot be read: {error.strerror}") from error
    try:
        # a byte order mark would else be part of the first label
        text = data.decode(
            "utf-8-sig" if encoding.lower().replace("_", "-") in ("utf-8", "utf8") else encoding
        )
    except LookupError as error:
        raise HierarchyError(
            f"{where}: unknown encoding {shorten(encoding)}; use for example utf-8"
        ) from error
    except ValueError as error:
        line = data.count(b"\n", 0, getattr(error, "start", 0)) + 1
        raise HierarchyError(
            f"{where}: line {line}: not {encoding}; save it as {encoding} or give its encoding"
        ) from error
    if "\0" in text:
        raise HierarchyError(f"{where}: not a text file in {encoding}; save it as CSV or give its encoding")
    return from_rows(_csv_rows(text, delimiter, where), where)


def _csv_rows(text: str, delimiter: str, where: str) -> Iterator[tuple[int, list[str]]]:
    reader = csv.reader(io.StringIO(text, newline=""), delimiter=delimiter, strict=True)
    single = False
    try:
        for row in reader:
            if row:
                if len(row) == 1 and not single:
                    single = True
                    other = next((mark for mark in ";,\t|" if mark != delimiter and mark in row[0]), None)
                    if other is not None and reader.line_num == 1:
                        raise HierarchyError(
                            f"{where}: line 1: one column with delimiter {delimiter!r}; "
                            f"the delimiter may be {other!r}"
                        )
                yield reader.line_num, row
    except csv.Error as error:
        raise HierarchyError(f"{where}: line {reader.line_num}: no valid CSV: {error}") from error


# --- nested mappings --------------------------------------------------------------------------------


def _label(label: Any) -> str | None:
    if isinstance(label, str):
        return str(label)
    # A canonical integer of a YAML file keeps its text; a float or a date may not.
    if isinstance(label, (int, np.integer)) and not isinstance(label, (bool, np.bool_)):
        return str(int(label))
    return None


def _entries(branch: Any) -> Iterator[tuple[Any, Any]]:
    """Yield pairs (label, content below it); the label is None for an entry without one."""
    if isinstance(branch, Mapping):
        yield from branch.items()
    elif isinstance(branch, (list, tuple)):
        for entry in branch:
            if isinstance(entry, Mapping):
                yield from entry.items()
            else:
                yield entry, None
    else:
        yield branch, None


def from_nested(tree: Any, root: str | None) -> Forest:
    """Return the tree of nested mappings and lists; see `Hierarchy.from_nested`.

    Raises
    ------
    HierarchyError
        If the nesting is no tree: several roots, a label twice, a cycle, a label that is no text.
    """
    where = "nested hierarchy"
    labels: list[str] = []
    parents: list[int] = []
    index: dict[str, int] = {}
    inner: set[int] = set()
    problems: list[str] = []
    if root is None:
        if not isinstance(tree, Mapping) or not tree:
            raise HierarchyError(
                f"{where}: write a mapping of the root to its children, such as {{'*': [...]}}"
            )
        if len(tree) > 1:
            raise HierarchyError(f"{where}: {len(tree):,} roots; put them under one, such as '*'")
        stack: list[tuple[Any, int]] = [(tree, -1)]
    else:
        labels, parents, index, stack = [root], [-1], {root: 0}, [(tree, 0)]
        inner.add(0)
    # A stack of our own: Python's would overflow on deep nesting. A repeated label is not followed, so aliases that
    # repeat or contain themselves end here, and the work is linear in the size of the file.
    while stack:
        branch, above = stack.pop()
        deeper: list[tuple[Any, int]] = []
        place = f"below {shorten(labels[above])}" if above >= 0 else "at the top"
        for label, below in _entries(branch):
            text = _label(label)
            empty = below is None or (isinstance(below, (Mapping, list, tuple)) and not below)
            if text is None:
                problems.append(f"{place}: a label is {_kind(label)}, not text; write it in quotes")
            elif text in index:
                node = index[text]
                name = shorten(text) if node in inner else "a value"
                if _is_above(node, above, parents):
                    problems.append(f"{place}: {name} is below itself: a cycle")
                elif (node in inner) == empty:
                    problems.append(f"{place}: a label is a value and an inner node; rename one")
                elif parents[node] == above:
                    problems.append(f"{place}: {name} is listed twice")
                else:
                    other = f"below {shorten(labels[parents[node]])}"
                    problems.append(f"{place}: {name} is also {other}; a value has one parent")
            elif text == ROOT and above >= 0:
                problems.append(f"{place}: `*` stands for the whole domain and can only be the root")
            elif text == "" and not empty:
                problems.append(f"{place}: a blank label has values below it; name it")
            else:
                node = index[text] = len(labels)
                labels.append(text)
                parents.append(above)
                if not empty:
                    inner.add(node)
                    deeper.append((below, node))
            if len(labels) > MAX_NODES:
                raise HierarchyError(f"{where}: more than {MAX_NODES:,} nodes; use a smaller hierarchy")
            if len(problems) > MAX_PROBLEMS:
                fail(where, problems)
        stack.extend(reversed(deeper))
    fail(where, problems)
    return labels, parents


def _kind(value: Any) -> str:
    if isinstance(value, (list, tuple)):
        return "a list"
    names = {type(None): "empty", bool: "true or false", float: "a number"}
    return names.get(type(value), f"of type {type(value).__name__}")


def _is_above(node: int, start: int, parents: Sequence[int]) -> bool:
    while start >= 0:
        if start == node:
            return True
        start = parents[start]
    return False


# --- numbers in intervals ---------------------------------------------------------------------------


def _distinct_numbers(values: Iterable[Any]) -> tuple[list[tuple[Fraction, str]], bool]:
    """Return distinct (number, label) in order, and whether there is a blank."""
    numbers: dict[str, Fraction] = {}
    blank, wrong = False, 0
    for value in values:
        if isinstance(value, str):
            if value == "":
                blank = True
            elif len(value) <= 400 and _NUMBER.fullmatch(value):
                numbers[value] = Fraction(value)
            else:
                wrong += 1
        elif not is_finite(value):
            wrong += 1
        else:
            # From the shortest text: 0.3 in steps of 0.1 is the first value of [0.3, 0.4), although its binary form is less.
            text = number_text(value.item() if isinstance(value, np.generic) else value)
            numbers[text] = Fraction(text)
    if wrong:
        raise HierarchyError(
            f"intervals: {plural(wrong, 'value')} that {verb_of(wrong, 'are')} no finite number; "
            "clean the column or use another kind of hierarchy"
        )
    return sorted((number, text) for text, number in numbers.items()), blank


def _exact_fraction(number: Any, name: str) -> Fraction:
    if not is_finite(number):
        raise HierarchyError(f"intervals: {name} must be a finite number")
    return Fraction(number_text(number))


def from_intervals(
    values: Iterable[Any], step: float, levels: int, fanout: int, origin: float, root: str
) -> Forest:
    """Return the tree of intervals over `values`; see `Hierarchy.from_intervals`.

    Raises
    ------
    HierarchyError
        If `values` are no finite numbers or none, or a parameter is outside its domain.
    """
    width, start = _exact_fraction(step, "step"), _exact_fraction(origin, "origin")
    if width <= 0:
        raise HierarchyError("intervals: step must be greater than 0")
    for option, count, least in (("levels", levels, 1), ("fanout", fanout, 2)):
        if not isinstance(count, (int, np.integer)) or isinstance(count, bool) or count < least:
            raise HierarchyError(f"intervals: {option} must be a whole number of at least {least}")
    for option, count, most in (("levels", levels, MAX_LEVELS), ("fanout", fanout, MAX_FANOUT)):
        if count > most:
            raise HierarchyError(f"intervals: {option} must be at most {most:,}")
    numbers, blank = _distinct_numbers(values)
    if not numbers:
        raise HierarchyError("intervals: no numbers to put into intervals")
    whole = all(number.denominator == 1 for number, _ in [*numbers, (width, ""), (start, "")])
    names: dict[tuple[int, int], str] = {}

    def name(level: int, slot: int) -> str:
        label = names.get((level, slot))
        if label is None:
            size = width * fanout**level
            low, high = start + slot * size, start + (slot + 1) * size
            if whole:
                label = str(low) if size == 1 else f"{low}-{high - 1}"
            else:
                label = f"[{_decimal(low)}, {_decimal(high)})"
            names[level, slot] = label
        return label

    def rows() -> Iterator[tuple[int, list[str]]]:
        for line, (number, text) in enumerate(numbers, start=1):
            slot = (number - start) // width
            row = [text]
            for level in range(levels):
                row.append(name(level, slot))
                slot //= fanout
            yield line, [*row, root]
        if blank:
            yield len(numbers) + 1, [""] * (levels + 1) + [root]

    try:
        return from_rows(rows(), "intervals")
    except OverflowError as error:
        raise HierarchyError("intervals: an interval is too wide for a number; use fewer levels") from error


def _decimal(number: Fraction) -> str:
    return str(number) if number.denominator == 1 and abs(number) < 10**16 else number_text(float(number))


# --- positions of codes -----------------------------------------------------------------------------


def distinct_codes(codes: Iterable[Any], kind: str, mask: str, reserved: str) -> tuple[set[str], bool]:
    """Return the distinct codes without the blank one, and whether there is a blank one.

    Parameters
    ----------
    codes : iterable
    kind : str
        Of the hierarchy, for messages.
    mask : str
        What no code may contain.
    reserved : str
        The mask and what it stands for, for messages.

    Raises
    ------
    HierarchyError
        If there are none, or one is no text or contains the mask.
    """
    distinct = set(codes)
    wrong = sum(not isinstance(code, str) for code in distinct)
    if wrong:
        raise HierarchyError(f"{kind}: {plural(wrong, 'code')} not text; read the column as text")
    blank = "" in distinct
    distinct.discard("")
    if not distinct:
        raise HierarchyError(f"{kind}: no codes")
    masked = sum(mask in code for code in distinct)
    if masked:
        raise HierarchyError(f"{kind}: {plural(masked, 'code')} with {reserved}")
    return distinct, blank


def from_positions(codes: Iterable[str], hide: str, mask: str, root: str) -> Forest:
    """Return the tree of codes hidden one position after the other; see `Hierarchy.from_positions`.

    Raises
    ------
    HierarchyError
        If there are no codes, one is no text, their lengths differ, one contains the mask, or an
        option is outside its domain.
    """
    if hide not in ("right", "left"):
        raise HierarchyError("positions: hide must be 'right' or 'left'")
    if not isinstance(mask, str) or len(mask) != 1:
        raise HierarchyError("positions: the mask must be one character, such as `*`")
    distinct, blank = distinct_codes(codes, "positions", mask, f"{mask!r} inside, which hides a position")
    lengths = sorted({len(code) for code in distinct})
    if len(lengths) > 1:
        raise HierarchyError(
            f"positions: codes of {len(lengths)} lengths ({lengths[0]} to {lengths[-1]}); make them equally long"
        )
    size = lengths[0]
    if size * len(distinct) > 4 * MAX_NODES:
        raise HierarchyError("positions: too many codes of too many positions; use a smaller hierarchy")
    right = hide == "right"
    order = sorted(distinct) if right else sorted(distinct, key=lambda code: code[::-1])

    def rows() -> Iterator[tuple[int, list[str]]]:
        for line, code in enumerate(order, start=1):
            hidden = [
                code[: size - level] + mask * level if right else mask * level + code[level:]
                for level in range(size)
            ]
            yield line, [*hidden, root]
        if blank:
            yield len(order) + 1, [""] * size + [root]

    return from_rows(rows(), "positions")
