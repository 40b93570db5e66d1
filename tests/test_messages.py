"""Every text of the package that a person may read, as one list: ``python -m tests.test_messages`` prints it.

No phrase of :data:`RIDDLES` may come back: a reader stumbles over each, and CONTRIBUTING says how we write instead.
"""

from __future__ import annotations

import ast
import re
from collections.abc import Iterator
from pathlib import Path
from typing import NamedTuple

from tests import ROOT

RIDDLES = (
    "all the same",
    "dear",
    "gave up",
    "in the care of",
    "is none that",
    "is no truth value",
    "is not good",
    "is said of",
    "is said twice",
    "it is whole",
    "nothing is asked of",
    "nothing is said",
    "says no to",
    "says yes to",
    "seen to it",
    "so to say",
    "stands twice",
    "takes? apart",
    "who guesses",
)
"""Regular expressions of what was in messages once."""

_RIDDLE = re.compile(rf"\b(?:{'|'.join(RIDDLES)})\b", re.IGNORECASE)


class Text(NamedTuple):
    """A text, where it stands, and ``{...}`` for what is filled in."""

    path: Path
    line: int
    text: str


def written(node: ast.AST) -> str | None:
    """The text of a literal, an f-string or a sum of them; None for anything else."""
    match node:
        case ast.Constant(value=str(text)):
            return text
        case ast.JoinedStr(values=parts):
            return "".join(written(part) or "{...}" for part in parts)
        case ast.BinOp(left=left, op=ast.Add(), right=right):
            first, second = written(left), written(right)
            return None if first is None and second is None else (first or "{...}") + (second or "{...}")
    return None


def texts(path: Path) -> Iterator[Text]:
    """The texts of several words in a module, without its docstrings."""
    tree = ast.parse(path.read_text(encoding="utf-8"))
    seen = {id(node.value) for node in ast.walk(tree) if isinstance(node, ast.Expr)}
    for node in ast.walk(tree):
        text = None if id(node) in seen else written(node)
        if text is not None:
            seen |= {id(part) for part in ast.walk(node)}
            if re.search(r"\w \w", text):
                yield Text(path.relative_to(ROOT), getattr(node, "lineno", 0), " ".join(text.split()))


def messages() -> list[Text]:
    """Errors, warnings, labels, hints and pages of the package, in the order of its files."""
    return [text for path in sorted((ROOT / "anonflow").rglob("*.py")) for text in texts(path)]


def test_texts_are_collected() -> None:
    collected = [text.text for text in messages()]
    assert len(collected) > 2_000
    assert any("k must be a whole number of at least 2" in text for text in collected)
    assert any("{...}" in text for text in collected)


def test_no_riddle_comes_back() -> None:
    assert [text for text in messages() if _RIDDLE.search(text.text)] == []


def test_a_riddle_is_recognized() -> None:
    assert _RIDDLE.search("the step is said twice; say it once")
    assert not _RIDDLE.search("the step is given twice; give it once")


if __name__ == "__main__":
    for each in messages():
        print(f"{each.path}:{each.line}: {each.text}")
