"""The lattice of levels in a real browser: drawn, read in light and dark, a click runs a node and shows where it stands."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest

from tests.browser.conftest import outside, ready, shot
from tests.browser.steps import CUT, audit, in_light_and_dark, run_all, step

FLOW = """
flow: levels
version: 1
table:
  source: {dataset: census_like, n: 400, seed: 3}
  columns:
    Age:          {role: quasi-identifier, kind: numeric}
    Gender:       {role: quasi-identifier, kind: suppression}
    Marital:      {role: quasi-identifier, kind: suppression}
    Salary-class: {role: sensitive}
steps:
  - anonymize: {algorithm: full-domain, k: 5, limit: 0.05, widths: {Age: [10, 20, 40]}}
  - draw: {}
  - verify: [covers, guarantee]
publish: {table: out/levels.csv, report: out/levels.html}
"""


@pytest.fixture(scope="module")
def levels(tmp_path_factory: pytest.TempPathFactory) -> Path:
    path = tmp_path_factory.mktemp("levels") / "levels.yaml"
    path.write_text(FLOW, encoding="utf-8")
    return path


def test_a_click_on_a_node_runs_it(page: Any, serve: Any, levels: Path, axe: str) -> None:
    served = serve(str(levels))
    page.goto(served.url)
    ready(page)
    step(page, "Compare")
    run_all(page, "Done: 1 run")
    step(page, "Explore")
    nodes = page.locator("[data-key^='node:']")
    nodes.first.wait_for()
    assert nodes.count() == 20
    page.get_by_text("★ optimum, this run").first.wait_for()
    before = page.locator("nav li button", has_text="Explore").inner_text()
    # the top hides everything but who is in the table: it is anonymous for any k
    nodes.filter(has_text="4 1 1").first.click()
    page.get_by_text("● this run").first.wait_for()
    page.get_by_text("★ optimum", exact=True).first.wait_for()
    assert page.locator("[data-key^='node:']").count() == 20
    page.locator(".lattice").first.scroll_into_view_if_needed()
    ready(page)
    page.set_viewport_size({"width": 700, "height": 800})  # it is scrolled inside its card
    faults = []
    for scheme in in_light_and_dark(page):
        shot(page, f"levels-{scheme}", full_page=True)
        faults += page.evaluate(CUT)
        faults += audit(page, axe, f"Explore, {scheme}", colours=scheme == "dark")
    assert faults == []
    assert page.locator("nav li button", has_text="Explore").inner_text() == before or "full-domain" in before
    assert outside(page.requested) == []
    assert not page.errors, page.errors
