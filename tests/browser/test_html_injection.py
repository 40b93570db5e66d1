"""HTML injection in a real browser: a table that is all markup, through every screen, its tooltips and drawings, and the reports."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from anonflow import engine
from tests.browser.conftest import outside, ready, upload
from tests.browser.steps import press, run_all, seen, step, wait_in_page
from tests.cases.hostile_table import PAYLOADS, hostile_frame, write_hostile_flow


def harmless(page: Any) -> None:
    """No script of the table ran, and none of its elements is there, in shadow trees either."""
    wait_in_page(page, 300)
    assert page.evaluate("window.owned") is None
    value = page.evaluate(
        """() => {
          const found = [];
          const walk = (root) => {
            for (const one of root.querySelectorAll("*")) {
              if (one.shadowRoot) walk(one.shadowRoot);
              const bad = [...one.attributes].filter((has) => has.value.includes("owned") && has.name.startsWith("on"));
              if (bad.length || (one.getAttribute("title") === "owned")
                  || (["SCRIPT", "A", "IFRAME", "IMG"].includes(one.tagName) && one.outerHTML.slice(0, 200).includes("owned")
                      && !one.outerHTML.includes("application/json") && !one.textContent.includes("docs_json")))
                found.push(one.outerHTML.slice(0, 200));
            }
          };
          walk(document);
          return found;
        }"""
    )
    assert value == []


def hover(page: Any, css: str) -> None:
    """The mouse over the first dozen of what is seen: tooltips are made when it comes."""
    for entry in [item for item in page.locator(css).all()[:24] if item.is_visible()][:12]:
        entry.hover(force=True)


def test_the_check_finds_what_it_looks_for(page: Any) -> None:
    page.set_content(f"<p>{PAYLOADS[1]}</p>")
    with pytest.raises(AssertionError):
        harmless(page)


def test_hostile_names_run_on_no_screen(page: Any, serve: Callable[..., Any], tmp_path: Path) -> None:
    page.goto(serve(str(write_hostile_flow(tmp_path, ("mondrian", "greedy")))).url)
    ready(page)
    page.get_by_text("age<script>", exact=False).first.wait_for()
    harmless(page)
    hover(page, ".tabulator-col")
    harmless(page)
    step(page, "Protect")
    harmless(page)
    for tab in ("Hierarchies", "Patterns", "Diversity", "Limits and weights"):
        page.get_by_text(tab, exact=True).click()
        ready(page)
        harmless(page)
    step(page, "Compare")
    run_all(page, "Done: 2 runs")
    page.locator(".af-runs .tabulator-row").nth(1).wait_for()
    harmless(page)
    page.locator(".af-runs .tabulator-row").nth(1).click()
    step(page, "Explore")
    page.locator(".af-records .tabulator-row").first.wait_for()
    harmless(page)
    hover(page, ".af-records .tabulator-col")
    hover(page, ".af-records .tabulator-cell")
    page.locator(".af-records .tabulator-row").nth(2).click()
    ready(page)
    harmless(page)
    press(page, ".af-attack", lambda: seen(page, "How often each one wins").wait_for(timeout=30_000))
    harmless(page)
    step(page, "Publish")
    press(page, ".af-draw", lambda: seen(page, "Every check passed").wait_for(timeout=30_000))
    harmless(page)
    assert not page.errors, page.errors
    assert outside(page.requested) == []


def test_an_upload_with_a_hostile_name(page: Any, serve: Callable[..., Any], tmp_path: Path) -> None:
    place = tmp_path / "<img src=x onerror=window.owned=6>.csv"
    hostile_frame().to_csv(place, index=False)
    page.goto(serve().url)
    ready(page)
    upload(page, place)
    page.get_by_text("are unique on these quasi-identifiers").wait_for()
    ready(page)
    harmless(page)


def test_names_in_reports_run_no_script(page: Any, tmp_path: Path) -> None:
    engine.run(write_hostile_flow(tmp_path, ("mondrian", "greedy")))
    page.goto((tmp_path / "out" / "report.html").as_uri())
    harmless(page)
    assert not page.errors, page.errors
