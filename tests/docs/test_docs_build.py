"""The documentation site: built without a warning, complete, and asking nothing of any other machine.

Building it takes the extra ``docs``; without it what needs the site is skipped, and `.ci/run` has a section that
installs it. What a browser does with the site is in tests/browser/test_documentation.py.
"""

from __future__ import annotations

import re
from collections.abc import Iterator
from html.parser import HTMLParser
from pathlib import Path

import pytest

import anonflow as af
from anonflow.algorithms.registry import REGISTRY
from anonflow.criteria import CRITERIA
from anonflow.engine.flows.json_schema import flow_schema
from tests import ROOT

pytestmark = pytest.mark.slow

NOTEBOOKS = {"notebooks": "tutorials", "notebooks/papers": "papers"}


def test_every_page_and_notebook_is_there(site: Path) -> None:
    pages = [path.relative_to(ROOT / "docs") for path in (ROOT / "docs").rglob("*.md")]
    wanted = {page.with_suffix(".html") for page in pages}
    for folder, target in NOTEBOOKS.items():
        wanted |= {Path(target, path.stem + ".html") for path in (ROOT / folder).glob("*.ipynb")}
    assert {page.as_posix() for page in wanted if not (site / page).is_file()} == set()


def test_every_public_name_is_documented(site: Path) -> None:
    from sphinx.util.inventory import InventoryFile

    with (site / "objects.inv").open("rb") as stream:
        inventory = InventoryFile.load(stream, "", lambda base, target: target)
    result = {name for kind, names in inventory.items() if kind.startswith("py:") for name in names}
    wanted = {f"anonflow.{name}" for name in af.__all__ if name not in ("__version__", "errors")}
    wanted |= {f"anonflow.errors.{name}" for name in af.errors.__all__}
    wanted |= {f"anonflow.datasets.{name}" for name in af.datasets.__all__}
    wanted |= {f"anonflow.risk.{kind.__name__}" for kind in af.risk.ATTACKERS.values()}
    assert wanted - result == set()


def test_tables_follow_the_package(site: Path) -> None:
    def words(page: str) -> set[str]:
        text = (site / "reference" / page).read_text(encoding="utf-8")
        return set(re.findall(r'<span class="pre">([^<]+)</span>', text))

    assert set(REGISTRY) <= words("algorithms.html")
    assert set(CRITERIA) - words("criteria.html") == set()
    schema = flow_schema()
    keys = {
        *schema["properties"],
        *schema["properties"]["steps"]["items"]["properties"],
        *(key for part in schema["$defs"].values() for key in part.get("properties", {}) if "_" not in key),
    }
    assert keys - words("flow.html") == set()
    assert {"--replay", "--fresh", "--criterion"} <= words("cli.html")


def test_formulas_are_drawn_by_the_browser(site: Path) -> None:
    text = (site / "reference" / "losses.html").read_text(encoding="utf-8")
    assert text.count("<math ") > 10
    assert "\\frac" not in text


LOADS = {
    "script": ("src",), "img": ("src", "srcset"), "iframe": ("src",), "embed": ("src",), "object": ("data",),
    "source": ("src", "srcset"), "video": ("src", "poster"), "audio": ("src",), "input": ("src",),
    "use": ("href", "xlink:href"), "image": ("href", "xlink:href"), "link": ("href",), "body": ("background",),
}  # fmt: skip
NEVER_LOADED = {"canonical", "next", "prev", "author", "license", "help", "search", "index", "genindex"}


class _Requests(HTMLParser):
    """What a browser loads for a page, without scripts being run."""

    def __init__(self) -> None:
        super().__init__()
        self.urls: list[str] = []
        self.style = ""
        self.script = ""
        self._inside = ""

    def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        attributes = {name: value or "" for name, value in attrs}
        self._inside = tag
        self.style += attributes.get("style", "") + "\n"
        if tag == "link" and set(attributes.get("rel", "").split()) <= NEVER_LOADED:
            return
        self.urls += [attributes[name] for name in LOADS.get(tag, ()) if name in attributes]

    def handle_endtag(self, tag: str) -> None:
        self._inside = ""

    def handle_data(self, data: str) -> None:
        if self._inside == "style":
            self.style += data
        elif self._inside == "script":
            self.script += data


OUTSIDE = re.compile(r"^\s*(?:[a-z]+:)?//", re.I)
IN_STYLE = re.compile(r"""(?:url\(\s*|@import\s+)["']?((?:https?:)?//[^"')\s]+)""", re.I)
IN_SCRIPT = re.compile(
    r"""(?:fetch|import|importScripts|open|\.src\s*=|\.href\s*=|require)\s*\(?\s*["'`]((?:https?:)?//[^"'`]+)"""
)


def _outside(site: Path) -> Iterator[str]:
    for path in sorted(site.rglob("*")):
        name = path.relative_to(site).as_posix()
        if path.suffix == ".html":
            page = _Requests()
            page.feed(path.read_text(encoding="utf-8"))
            yield from (f"{name}: {url}" for url in page.urls if OUTSIDE.match(url))
            yield from (f"{name}: {url}" for url in IN_STYLE.findall(page.style))
            yield from (f"{name}: {url}" for url in IN_SCRIPT.findall(page.script))
        elif path.suffix in (".css", ".svg"):
            yield from (f"{name}: {url}" for url in IN_STYLE.findall(path.read_text(encoding="utf-8")))
        elif path.suffix == ".js":
            yield from (f"{name}: {url}" for url in IN_SCRIPT.findall(path.read_text(encoding="utf-8")))


def test_nothing_is_requested_outside(site: Path) -> None:
    assert list(_outside(site)) == []


@pytest.mark.parametrize(
    "text",
    [
        '<script src="https://cdn.example.org/a.js"></script>',
        '<link rel="stylesheet" href="//fonts.example.org/a.css">',
        "<style>@import 'https://example.org/a.css';</style>",
        '<p style="background: url(https://example.org/a.png)">',
        '<script>require("https://example.org/a.js")</script>',
    ],
)
def test_the_scan_finds_what_is_requested(text: str, tmp_path: Path) -> None:
    (tmp_path / "a.html").write_text(text, encoding="utf-8")
    assert len(list(_outside(tmp_path))) == 1
