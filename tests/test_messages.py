"""Every text of the package that a person may read, as one list: ``python -m tests.test_messages`` prints it.

``python -m tests.test_messages publish`` prints the texts of a screen. No phrase of :data:`RIDDLES` may come back: a reader
stumbles over each, and CONTRIBUTING says how we write instead. No sentence of the screens is written in two places.
"""

from __future__ import annotations

import ast
import re
import sys
from collections import Counter
from collections.abc import Iterator
from functools import cache
from pathlib import Path
from typing import NamedTuple

from tests import ROOT
from tests.cases.sources import forget_trees, nodes_of

__all__ = ["forget_trees"]

DASHBOARDS = ROOT / "anonflow" / "dashboards"
SCREENS = sorted(path.parent.name for path in DASHBOARDS.glob("*/screen.py"))

RIDDLES = (
    "all the same",
    "asked for twice",
    "asked of",
    "begin anew",
    "dear",
    "gave up",
    "in the care of",
    "is none that",
    "is no truth value",
    "is not good",
    "is said of",
    "is said twice",
    "it is whole",
    "leaves? the house",
    "named rightly by who",
    "nothing is asked of",
    "nothing is said",
    "says no to",
    "says yes to",
    "seen to it",
    "so to say",
    "stands twice",
    "taken to be like",
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
    nodes = nodes_of(path)
    seen = {id(node.value) for node in nodes if isinstance(node, ast.Expr)}
    for node in nodes:
        text = None if id(node) in seen else written(node)
        if text is not None:
            seen |= {id(part) for part in ast.walk(node)}
            if re.search(r"\w \w", text):
                yield Text(path.relative_to(ROOT), getattr(node, "lineno", 0), " ".join(text.split()))


@cache
def _collected(path: Path) -> list[Text]:
    return list(texts(path))


@cache
def messages(folder: Path = ROOT / "anonflow") -> list[Text]:
    """Errors, warnings, labels, hints and pages of a folder of the package, in the order of its files."""
    return [text for path in sorted(folder.rglob("*.py")) for text in _collected(path)]


def repeated(collected: list[Text]) -> list[str]:
    """Sentences of at least five words that are written in several places."""
    counts = Counter(text.text for text in collected if len(re.findall(r"\w+", text.text)) >= 5)
    return [sentence for sentence, count in counts.items() if count > 1 and not sentence.startswith("<")]


def test_texts_are_collected() -> None:
    collected = [text.text for text in messages()]
    assert len(collected) > 2_000
    assert any("k must be a whole number of at least 2" in text for text in collected)
    assert any("{...}" in text for text in collected)


def test_each_screen_has_its_list() -> None:
    collected = {screen: [text.text for text in messages(DASHBOARDS / screen)] for screen in SCREENS}
    assert len(collected) >= 7
    assert min(map(len, collected.values())) >= 10
    assert "Draw another release: I will publish only one of them" in collected["publish"]


def test_no_sentence_of_the_screens_is_written_twice() -> None:
    assert repeated(messages(DASHBOARDS)) == []


def test_a_sentence_that_is_written_twice_is_recognized() -> None:
    file = Path(__file__)
    sentence = Text(file, 1, "no table is open; open one first")
    assert repeated([sentence, sentence._replace(line=2)]) == ["no table is open; open one first"]


def test_no_riddle_comes_back() -> None:
    """A refusal names the file, the phrase and the text."""
    riddles = [(text, _RIDDLE.search(text.text)) for text in messages()]
    assert [
        f"{text.path}:{text.line}: {riddle[0]!r} in {text.text!r}" for text, riddle in riddles if riddle
    ] == []


def test_a_percentage_is_written_without_a_space() -> None:
    spaced = []
    for path in (ROOT / "anonflow").rglob("*.py"):
        nodes = nodes_of(path)
        docstrings = {node.value for node in nodes if isinstance(node, ast.Expr)}
        literals = filter(None, map(written, (node for node in nodes if node not in docstrings)))
        spaced += [f"{path}: {text}" for text in literals if re.search(r"[\d}] %(?![\w(])", text)]
    assert spaced == []


def test_a_riddle_is_recognized() -> None:
    assert _RIDDLE.search("the step is said twice; say it once")
    assert not _RIDDLE.search("the step is given twice; give it once")


if __name__ == "__main__":
    for each in messages(DASHBOARDS / sys.argv[1]) if len(sys.argv) > 1 else messages():
        print(f"{each.path}:{each.line}: {each.text}")
