"""The index of the attacks: every file is in it, says its figure, and holds what the index says that it must stay under."""

from __future__ import annotations

import ast
import re
from pathlib import Path

HOME = Path(__file__).parent
ROW = re.compile(r"^\| `(test_\w+\.py)` \| (.+?) \| (.+?) \| (.+) \|$", re.MULTILINE)
ROWS = {row[0]: row[1:] for row in ROW.findall((HOME / "README.md").read_text(encoding="utf-8"))}


def test_every_attack_is_in_the_index() -> None:
    files = {path.name for path in HOME.glob("test_*.py")} - {Path(__file__).name}
    assert set(ROWS) == files


def test_an_attack_says_its_figure_and_holds_its_bound() -> None:
    for name, (attack, figure, bound) in ROWS.items():
        text = (HOME / name).read_text(encoding="utf-8")
        texts = ast.get_docstring(ast.parse(text)) or ""
        assert re.search(r"Figures?[:,]|Before:", texts), (name, "the file says what the attack reached")
        assert re.search(r"\b(must|may|Now)\b", texts), (name, "and what it must stay under")
        assert re.search(r"\d|before", figure), attack
        for code in re.findall(r"`([^`]+)`", bound):
            assert code in text, (name, code)
        assert "`" in bound, name
