"""Every text of the package that a person may read, as one list: ``python -m tests.test_messages`` prints it.

``python -m tests.test_messages publish`` prints the texts of a screen. No phrase of :data:`RIDDLES` may come back: a reader
stumbles over each, and CONTRIBUTING says how we write instead. No sentence of the screens is written in two places, and the texts
of a screen stand in ``texts.py`` of its folder.
"""

from __future__ import annotations

import ast
import re
import subprocess
import sys
from collections import Counter
from collections.abc import Iterator
from functools import cache
from pathlib import Path
from typing import NamedTuple

import pytest

from tests import ROOT
from tests.cases.sources import forget_trees, nodes_of, tree_of

__all__ = ["forget_trees"]

DASHBOARDS = ROOT / "anonflow" / "dashboards"
SCREENS = sorted(path.parent.name for path in DASHBOARDS.glob("*/screen.py"))

WITH_TEXTS = (*SCREENS, "hierarchies")
"""Folders of :data:`DASHBOARDS` whose texts stand in their ``texts.py``, and in no other module."""

KEYS = {"minimal uniques", "no value"}
"""Keys of two words: a column of a frame, a field of the table of columns."""

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


def literals(path: Path) -> Iterator[tuple[Text, bool]]:
    """The texts of a module without its docstrings, each with whether it documents a parameter (``doc=``)."""
    nodes = nodes_of(path)
    seen = {id(node.value) for node in nodes if isinstance(node, ast.Expr)}
    docs = {id(node.value) for node in nodes if isinstance(node, ast.keyword) and node.arg == "doc"}
    for node in nodes:
        text = None if id(node) in seen else written(node)
        if text is not None:
            seen |= {id(part) for part in ast.walk(node)}
            line = getattr(node, "lineno", 0)
            yield Text(path.relative_to(ROOT), line, " ".join(text.split())), id(node) in docs


def texts(path: Path) -> Iterator[Text]:
    """The texts of several words in a module, without its docstrings."""
    return (text for text, _ in literals(path) if re.search(r"\w \w", text.text))


_STYLE = re.compile(r"(?:[\w-]+: ?[^;]+;\s*)+")
_ATTRIBUTE = re.compile(r"""([\w-]+)=("[^"]*"|'[^']*')""")
_WORD = re.compile(r"\W*[^\W\d_]+(?:['’-][^\W\d_]+)*\W*")


def is_read(text: str) -> bool:
    """Whether a person reads a text: two words stand in it, at least one of them spelt out.

    ``{...}``, which is filled in, is a word. Tags and attributes of markup are none, but for attributes that are shown or read
    aloud; neither are declarations of a style, scripts (``=>``), nor numbers.
    """
    if text in KEYS or _STYLE.fullmatch(text) or "=>" in text:
        return False
    aloud = [
        value[1:-1]
        for name, value in _ATTRIBUTE.findall(text)
        if name in ("alt", "aria-label", "placeholder", "title")
    ]
    plain = re.sub(r"<[^>]*>", " ", _ATTRIBUTE.sub(" ", text))
    for part in (plain, *aloud):
        words = [word for word in part.split() if "{" in word or _WORD.fullmatch(word)]
        if len(words) >= 2 and any(map(_WORD.fullmatch, words)):
            return True
    return False


def read_by_a_person(path: Path) -> list[Text]:
    """The texts of a module that a person reads on a screen: documentation of parameters is none."""
    return [text for text, is_doc in literals(path) if not is_doc and is_read(text.text)]


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


def test_texts_of_a_screen_stand_in_one_place() -> None:
    elsewhere = []
    for folder in WITH_TEXTS:
        modules = [path for path in (DASHBOARDS / folder).glob("*.py") if path.name != "texts.py"]
        elsewhere += [text for path in sorted(modules) for text in read_by_a_person(path)]
        assert len(read_by_a_person(DASHBOARDS / folder / "texts.py")) >= 5, folder
    assert elsewhere == []


def test_what_a_person_reads_is_recognized() -> None:
    by_a_person = [
        "Add the step",
        "{...} more",
        "<p><b>Used.</b> {...}</p>",
        '<span data-key="a b" aria-label="take {...} away">✕</span>',
    ]
    by_nobody = [
        "Rename",
        "{...} {...}",
        "quasi-identifier",
        '<g class="more beyond"{...}><rect x="{...}"/><text x="1">{...}</text></g>',
        "color: var(--af-muted); font-style: italic;",
        "0 8px 12px",
        "af-risk-{...}",
        "{...}-k{...}.html",
        "() => { button.label = copy; }",
        "no value",
    ]
    assert [text for text in by_a_person + by_nobody if is_read(text)] == by_a_person


def test_every_text_of_a_screen_is_used() -> None:
    unused = []
    for folder in WITH_TEXTS:
        defined, used = _defined_and_used(DASHBOARDS / folder)
        assert len(defined) >= 5, folder
        unused += [f"{folder}: {text}" for text in sorted(defined - used)]
    assert unused == []


def _defined_and_used(folder: Path) -> tuple[set[str], set[str]]:
    """The names of a folder's `texts.py`, and those that its modules use."""
    defined: set[str] = set()
    used: set[str] = set()
    for path in folder.glob("*.py"):
        if path.name == "texts.py":
            body = tree_of(path).body
            defined = {node.name for node in body if isinstance(node, ast.FunctionDef)}
            defined |= {
                node.id
                for statement in body
                for node in ast.walk(statement)
                if isinstance(statement, ast.Assign | ast.AnnAssign)
                and isinstance(node, ast.Name)
                and isinstance(node.ctx, ast.Store)
            }
            used |= {
                node.id
                for node in nodes_of(path)
                if isinstance(node, ast.Name) and isinstance(node.ctx, ast.Load)
            }
        else:
            used |= {
                node.attr
                for node in nodes_of(path)
                if isinstance(node, ast.Attribute)
                and isinstance(node.value, ast.Name)
                and node.value.id == "texts"
            }
    return defined, used


@pytest.mark.slow
def test_texts_of_screens_load_no_panel() -> None:
    modules = [f"anonflow.dashboards.{folder}.texts" for folder in WITH_TEXTS]
    code = f"import sys, {', '.join(modules)}; sys.exit('panel' in sys.modules)"
    subprocess.run([sys.executable, "-c", code], check=True, cwd=ROOT)


def test_no_riddle_comes_back() -> None:
    """A refusal names the file, the phrase and the text."""
    riddles = [(text, _RIDDLE.search(text.text)) for text in messages()]
    assert [
        f"{text.path}:{text.line}: {riddle[0]!r} in {text.text!r}" for text, riddle in riddles if riddle
    ] == []


def test_a_riddle_is_recognized() -> None:
    assert _RIDDLE.search("the step is said twice; say it once")
    assert not _RIDDLE.search("the step is given twice; give it once")


if __name__ == "__main__":
    for each in messages(DASHBOARDS / sys.argv[1]) if len(sys.argv) > 1 else messages():
        print(f"{each.path}:{each.line}: {each.text}")
