"""Every screen, light and dark, under axe."""

from __future__ import annotations

import os
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from tests.browser.conftest import ready
from tests.browser.test_compare_explore_publish import flow, press, run_all, step

pytestmark = pytest.mark.browser

RULES = ["wcag2a", "wcag2aa", "wcag21a", "wcag21aa", "wcag22aa", "best-practice"]


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
    step(page, "Risk")
    page.get_by_label("Sampling fraction, if it is a sample").fill("0.05")
    page.keyboard.press("Enter")
    page.get_by_text("people in the population").first.wait_for(timeout=60_000)
    found += audit(page, axe, "Risk")
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
