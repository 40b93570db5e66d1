"""What pages say of the screens is there: every name in italics under "On the screens" is a text of the dashboards."""

from __future__ import annotations

import re

from tests import ROOT

SECTION = "## On the screens\n"
PAGES = [
    path for path in sorted((ROOT / "docs").rglob("*.md")) if SECTION in path.read_text(encoding="utf-8")
]


def names_in(text: str) -> list[str]:
    section = text.partition(SECTION)[2].partition("\n## ")[0]
    return [" ".join(name.split()) for name in re.findall(r"(?<!\*)\*([^*\s][^*]*)\*(?!\*)", section)]


def texts_of_screens() -> str:
    sources = [*(ROOT / "anonflow" / "dashboards").rglob("*.py"), ROOT / "anonflow" / "utility" / "measures.py",
               ROOT / "anonflow" / "engine" / "report" / "reviewer.py"]  # fmt: skip
    return "\n".join(path.read_text(encoding="utf-8") for path in sources)


def test_names_of_screens_cards_and_buttons_are_theirs() -> None:
    texts = texts_of_screens()
    strange = []
    for page in PAGES:
        names = names_in(page.read_text(encoding="utf-8"))
        assert names, page
        strange += [f"{page.stem}: {name}" for name in names if f'"{name}"' not in texts]
    assert strange == []


def test_there_are_such_pages_and_a_wrong_name_is_found() -> None:
    assert len(PAGES) >= 3
    assert names_in(f"{SECTION}the card *No such\n card*, **bold**\n## next\n*later*") == ["No such card"]
    assert '"No such card"' not in texts_of_screens()
