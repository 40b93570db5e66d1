"""Hierarchies of codes by how they begin: prefixes of some lengths, or those of a classification by the code alone."""

from __future__ import annotations

import re
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from typing import Any

from anonflow.errors import HierarchyError
from anonflow.hierarchy.sources import MAX_LEVELS, ROOT, Forest, distinct_codes, from_rows
from anonflow.hierarchy.wording import plural, verb_of

_SIGNS = re.compile(r"[\W_]+")
"""Points, hyphens and blanks between letters and digits: they do not count as characters of a code."""


@dataclass(frozen=True)
class Classification:
    """The codes of a classification.

    Attributes
    ----------
    name : str
        As a schema names it.
    code : re.Pattern
        Every code, also without its points, and of any level.
    lengths : tuple of int
        Letters and digits of each level above the longest codes.
    """

    name: str
    code: re.Pattern[str]
    lengths: tuple[int, ...]


def _classification(name: str, code: str, *lengths: int) -> Classification:
    return Classification(name, re.compile(code, re.IGNORECASE), lengths)


CLASSIFICATIONS = (
    _classification("icd-10", r"[A-Z][0-9][0-9A-Z](\.?[0-9A-Z]{1,4})?[-+!]?", 1, 2, 3, 4),
    _classification("nace", r"[0-9]{2}(\.?[0-9]([0-9](\.?[0-9A-Z]{1,2})?)?)?", 2, 3, 4),
    _classification("nace", r"[A-V](\.?[0-9]{2}(\.?[0-9]([0-9](\.?[0-9A-Z]{1,2})?)?)?)?", 1, 3, 4, 5),
    _classification("naics", r"[0-9]{2,6}", 2, 3, 4, 5),
    _classification("isco", r"[0-9]{1,4}", 1, 2, 3),
    _classification("zip", r"[0-9]{5}([- ]?[0-9]{4})?", 1, 3, 5),
    _classification("nuts", r"[A-Z]{2}[0-9A-Z]{0,3}", 2, 3, 4),
)
"""ICD-10, NACE without and with its letter of a section, NAICS, ISCO, ZIP codes of the United States, NUTS."""


def signs_of(code: str) -> str:
    """Return the letters and digits of a code."""
    return _SIGNS.sub("", code)


def classification_lengths(name: str, codes: Iterable[str]) -> tuple[int, ...] | None:
    """Return the lengths of a classification's levels, None where a code is none of its codes.

    Parameters
    ----------
    name : str
        Of `CLASSIFICATIONS`.
    codes : iterable of str
        Without blanks.
    """
    distinct = set(codes)
    for classification in CLASSIFICATIONS:
        if classification.name == name and all(map(classification.code.fullmatch, distinct)):
            return classification.lengths
    return None


def from_prefixes(codes: Iterable[str], lengths: Sequence[int] | str, root: str = ROOT) -> Forest:
    """Return the tree of codes below their prefixes; see `Hierarchy.from_prefixes`.

    Raises
    ------
    HierarchyError
        If there are no codes, one is no text or contains ``*``, one is no code of the classification, lengths do not ascend, or
        every code is shorter than each of them.
    """
    reserved = f"'{ROOT}' inside, which stands for the characters after a prefix"
    distinct, blank = distinct_codes(codes, "prefixes", ROOT, reserved)
    levels = _lengths(lengths, distinct)
    length = {code: len(signs_of(code)) for code in distinct}
    longest = max(length.values())
    used = [level for level in levels if level < longest]
    if not used:
        raise HierarchyError(
            f"prefixes: the codes have at most {longest} characters, none more than {levels[0]}; give a smaller length"
        )

    def row(code: str) -> list[str]:
        above = [code]
        for level in reversed(used):
            above.append(_beginning(code, level) if length[code] >= level else above[-1])
        return [*above, root]

    rows = [row(code) for code in sorted(distinct, key=lambda code: (signs_of(code), code))]
    if blank:
        rows.append([""] * (len(used) + 1) + [root])
    return from_rows(enumerate(rows, start=1), "prefixes")


def _beginning(code: str, level: int) -> str:
    """Return the label of a code's prefix: its first letters and digits, with the signs between them."""
    count = 0
    for at, character in enumerate(code):
        count += not _SIGNS.fullmatch(character)
        if count == level:
            return code[: at + 1] + ROOT
    return code + ROOT


def _lengths(lengths: Any, codes: set[str]) -> Sequence[int]:
    if isinstance(lengths, str):
        names = sorted({classification.name for classification in CLASSIFICATIONS})
        if lengths not in names:
            raise HierarchyError(f"prefixes: lengths must be one of {', '.join(names)}, or a list of numbers")
        levels = classification_lengths(lengths, codes)
        if levels is None:
            patterns = [
                classification.code for classification in CLASSIFICATIONS if classification.name == lengths
            ]
            wrong = min(sum(not pattern.fullmatch(code) for code in codes) for pattern in patterns)
            raise HierarchyError(
                f"prefixes: {plural(wrong, 'value')} of {len(codes):,} {verb_of(wrong, 'are')} no code of {lengths}; correct "
                "them, or give a list of lengths"
            )
        return levels
    whole = isinstance(lengths, (list, tuple)) and all(type(level) is int and level > 0 for level in lengths)
    if not whole or not 0 < len(lengths) <= MAX_LEVELS or list(lengths) != sorted(set(lengths)):
        raise HierarchyError(
            "prefixes: lengths must be ascending whole numbers of at least 1, such as [1, 3]"
        )
    return list(lengths)
