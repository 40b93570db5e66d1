"""Every screen, light and dark, under axe; and from a file to a release with the keyboard alone."""

from __future__ import annotations

import os
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from tests.browser.conftest import ready, upload
from tests.browser.test_compare_explore_publish import flow, press, run_all, step
from tests.browser.test_data_protect import people

pytestmark = pytest.mark.browser

RULES = ["wcag2a", "wcag2aa", "wcag21a", "wcag21aa", "wcag22aa", "best-practice"]

FOCUS = """() => {
  let at = document.activeElement;
  while (at && at.shadowRoot && at.shadowRoot.activeElement) at = at.shadowRoot.activeElement;
  const label = at.getAttribute("aria-label") || (at.labels && at.labels[0] && at.labels[0].textContent) || at.innerText || "";
  const host = at.getRootNode().host;
  return { tag: at.tagName, label: label.trim(), type: at.type || "", host: host ? host.className : "" };
}"""


@pytest.fixture(scope="session")
def axe() -> str:
    """The script of axe-core: fetched for the tests, and no part of this project."""
    given = os.environ.get("ANONFLOW_AXE")
    if not given or not Path(given).is_file():
        pytest.skip(
            "ANONFLOW_AXE names no axe.min.js: npm pack axe-core, unpack it, and name package/axe.min.js"
        )
    return Path(given).read_text(encoding="utf-8")


def audit(page: Any, axe: str, where: str) -> list[str]:
    page.wait_for_timeout(1_000)  # names are given while the page is idle
    page.evaluate(axe)
    found = page.evaluate("rules => axe.run(document, { runOnly: rules })", RULES)
    return [
        f"{where}: {one['id']}: {one['help']}: {node['html'][:160]}"
        for one in found["violations"]
        for node in one["nodes"][:3]
    ]


@pytest.mark.parametrize("scheme", ["light", "dark"])
def test_every_screen_is_clean_under_axe(
    new_page: Callable[..., Any], serve: Any, tmp_path_factory: pytest.TempPathFactory, axe: str, scheme: Any
) -> None:
    served = serve(flow(tmp_path_factory.mktemp(scheme), n=120, size=60))
    page = new_page(color_scheme=scheme)
    page.goto(served.url)
    ready(page)
    found = audit(page, axe, "Data")
    step(page, "Protect")
    for tab in ("Methods", "Hierarchies", "Patterns", "Diversity", "Limits and weights"):
        page.locator(".bk-tab", has_text=tab).click()
        ready(page)
        found += audit(page, axe, f"Protect, {tab}")
    step(page, "Compare")
    run_all(page, "Done: 4 runs")
    found += audit(page, axe, "Compare")
    step(page, "Explore")
    press(
        page, ".af-attack", lambda: page.get_by_text("How often each one wins").first.wait_for(timeout=60_000)
    )
    found += audit(page, axe, "Explore")
    step(page, "Publish")
    press(page, ".af-draw", lambda: page.get_by_text("Every check passed").first.wait_for(timeout=60_000))
    found += audit(page, axe, "Publish")
    assert found == [], "\n".join(found)


def tab_to(page: Any, label: str, most: int = 150, key: str = "Tab") -> None:
    """Press the tabulator key until something of this name has the focus: no trap on the way."""
    seen = []
    for _ in range(most):
        page.keyboard.press(key)
        at = page.evaluate(FOCUS)
        seen.append(at["label"][:30])
        if at["label"].startswith(label):
            return
    raise AssertionError(f"{label} was not reached: {seen}")


def test_from_a_file_to_a_release_by_keyboard_alone(page: Any, serve: Any, tmp_path: Path) -> None:
    page.goto(serve().url)
    ready(page)
    upload(page, people(tmp_path / "people.csv", rows=90))  # the file dialogue is the browser's own
    page.get_by_text("are unique on these QIs").wait_for(timeout=90_000)
    ready(page)
    page.locator("a.skip").focus()
    for name in ("Protect",):
        steps = page.locator("nav li button", has_text=name)
        tab_to(page, "2\nProtect")
        page.keyboard.press("Enter")
        page.locator("nav li button[aria-current=step]", has_text=name).wait_for()
        ready(page)
        assert steps.count() == 1
    page.wait_for_timeout(1_200)
    # past the ks to compare with, to the tabs, along them, and to the next screen
    tab_to(page, "Methods")
    page.keyboard.press("ArrowRight")
    page.locator(".bk-tab[aria-selected=true]", has_text="Hierarchies").wait_for()
    page.wait_for_timeout(800)
    tab_to(page, "Compare →")
    page.keyboard.press("Enter")
    page.locator("nav li button[aria-current=step]", has_text="Compare").wait_for()
    ready(page)
    page.locator("a.skip").focus()
    tab_to(page, "Run")
    page.keyboard.press("Enter")
    page.locator("[role=status]", has_text="Done: 1 run").first.wait_for(timeout=120_000)
    ready(page)
    page.locator("a.skip").focus()
    tab_to(page, "5\nPublish")
    page.keyboard.press("Enter")
    page.locator(".af-draw").first.wait_for()
    ready(page)
    tab_to(page, "Draw the release")
    page.keyboard.press("Enter")
    page.get_by_text("Every check passed").first.wait_for(timeout=120_000)
    ready(page)
    with page.expect_download() as waiting:
        tab_to(page, "Release, CSV")
        page.keyboard.press("Enter")
    assert waiting.value.suggested_filename.endswith("release.csv")
    assert not page.errors, page.errors
