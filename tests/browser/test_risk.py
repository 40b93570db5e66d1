"""The screen Risk in a real browser: from a table to who stands alone, with a sampling fraction, and back by its address."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest

from tests.browser.conftest import outside, ready, shot
from tests.browser.test_compare_explore_publish import flow, step

pytestmark = pytest.mark.browser


def test_a_reviewer_sees_who_stands_alone_before_anything_is_done(
    page: Any, serve: Any, tmp_path: Path
) -> None:
    served = serve(flow(tmp_path))
    page.goto(served.url)
    ready(page)
    step(page, "Risk")
    assert page.url.endswith("?screen=risk")
    page.get_by_text("Unique to who knows").first.wait_for()
    page.get_by_text("The riskiest records").first.wait_for()
    assert page.locator(".af-risk-riskiest mark").count() > 0
    # other sizes of sets, and larger ones
    page.get_by_role("button", name="1 column", exact=True).click()
    page.wait_for_function(
        """() => { const seen = []; const walk = (root) => { for (const node of root.querySelectorAll('*')) {
        if (node.matches('g title')) seen.push(node.textContent); if (node.shadowRoot) walk(node.shadowRoot); } };
        walk(document); return seen.length === 4; }"""
    )
    page.get_by_label("Look at every combination of").select_option(label="up to 4 columns: 15 sets")
    page.get_by_role("button", name="4 columns", exact=True).wait_for()
    # the population, once the sampling fraction is there
    page.get_by_label("Sampling fraction, if it is a sample").fill("0.05")
    page.keyboard.press("Enter")
    page.get_by_text("people in the population").first.wait_for(timeout=60_000)
    page.get_by_text("if the model holds").first.wait_for()
    shot(page, "risk-light", full_page=True)
    # a page that is loaded anew shows the same screen
    page.reload()
    ready(page)
    page.get_by_text("Unique to who knows").first.wait_for()
    assert page.errors == []
    assert outside(page.asked) == []
