"""The pages of the documentation as tests see them: fenced blocks, and what is said above each of them.

A comment directly above a fence is an order:

``<!-- not run: REASON -->``
    Only its syntax is checked, and the reason shows up as that of a skipped test.
``<!-- save: NAME -->``
    The block is a file that later blocks of the page use.
``<!-- output -->``
    The block is what the block before it prints; ``...`` stands for anything.
``<!-- fails: STATUS -->``
    The command ends with that exit status.

``<!-- slow -->`` anywhere on a page makes its test a slow one. ``<!-- one draw -->`` makes releases that are drawn without a
seed, as a reader draws them, the same each time, so that what the page prints can be compared.
"""

from __future__ import annotations

import re
from dataclasses import dataclass, field
from pathlib import Path

from tests import ROOT

RUN = ("python", "bash", "yaml")
"""Languages that are run, or checked by the package."""

SHOWN = ("r", "text", "json", "ini", "nginx", "bibtex", "toml")
"""Languages of what is shown only, unless it is saved for a later block or is the output of an earlier one."""

_FENCE = re.compile(r"^(?P<indent> *)(?P<ticks>`{3,})(?P<info>[^`]*)$")
_ORDER = re.compile(r"^ *<!-- (?P<order>[a-z ]+?)(?:: (?P<value>.+))? -->$")
_ORDERS = {"not run", "save", "output", "fails"}


@dataclass(frozen=True)
class Block:
    """A fenced block."""

    page: str
    line: int
    language: str
    text: str
    orders: dict[str, str] = field(default_factory=dict)

    @property
    def place(self) -> str:
        """Page and line, as a test's name."""
        return f"{self.page}:{self.line}"


@dataclass(frozen=True)
class Page:
    """A page and its blocks, directives of the site left out."""

    name: str
    blocks: tuple[Block, ...]
    slow: bool
    one_draw: bool


def pages() -> list[Page]:
    """Every page in Markdown: the front ones and the site's."""
    paths = [ROOT / "README.md", ROOT / "CONTRIBUTING.md", *sorted((ROOT / "docs").rglob("*.md"))]
    return [_page(path) for path in paths if "build" not in path.relative_to(ROOT).parts]


def _page(path: Path) -> Page:
    name = path.relative_to(ROOT).as_posix()
    text = path.read_text(encoding="utf-8")
    marks = set(re.findall(r"^<!-- (slow|one draw) -->$", text, re.M))
    return Page(name, tuple(blocks_of(name, text)), slow="slow" in marks, one_draw="one draw" in marks)


def blocks_of(page: str, text: str) -> list[Block]:
    """The fenced blocks of a text in Markdown.

    A fence of one of the site's directives, ``{name}``, is no block.
    """
    results = []
    lines = text.splitlines()
    at = 0
    while at < len(lines):
        opened = _FENCE.match(lines[at])
        if opened is None:
            at += 1
            continue
        indent, ticks = len(opened["indent"]), opened["ticks"]
        start = at
        at += 1
        body = []
        while at < len(lines) and lines[at].strip() != ticks:
            body.append(lines[at][indent:])
            at += 1
        if at == len(lines):
            raise ValueError(f"{page}:{start + 1}: a fence that is not closed")
        at += 1
        language = opened["info"].strip()
        if not language.startswith("{"):
            orders = _orders(page, lines, start)
            results.append(Block(page, start + 1, language, "\n".join(body) + "\n", orders))
    return results


def _orders(page: str, lines: list[str], start: int) -> dict[str, str]:
    """What the comments directly above a fence say."""
    orders = {}
    for line in reversed(lines[:start]):
        text = _ORDER.match(line)
        if text is None:
            break
        if text["order"] in ("slow", "one draw"):
            continue
        if text["order"] not in _ORDERS:
            raise ValueError(f"{page}:{start + 1}: unknown order {text['order']!r}")
        orders[text["order"]] = text["value"] or ""
    return orders
