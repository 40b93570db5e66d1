"""A first visit: from a file to a release, as few clicks as a person makes, each counted in the page."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
import pytest

from tests.browser.conftest import outside, ready, shot, upload
from tests.browser.steps import fits, seen

MOST = 12
"""Clicks from the file to the downloaded release, at most."""

COUNT = """(() => {
  window.clicked = 0;
  document.addEventListener("click", (event) => { if (event.isTrusted) window.clicked += 1; }, true);
})()"""


def census(path: Path, n: int = 600) -> Path:
    """Write 26 columns as censuses have them: names, numbers with blanks, numbers with codes, categories."""
    rng = np.random.default_rng(4)
    columns = {
        "name": [f"Ann Lee{at}" for at in range(n)],
        "age": rng.integers(0, 95, n),
        "sex": rng.choice(["f", "m"], n),
        "hours": pd.Series(rng.integers(1, 80, n)).where(rng.random(n) > 0.3).astype("Int64"),
        "income": pd.Series(rng.integers(10, 900, n) * 100).astype(str).where(rng.random(n) > 0.1, "N"),
    }
    columns |= {f"q{at}": rng.integers(1, 4, n) for at in range(21)}
    pd.DataFrame(columns).to_csv(path, index=False)
    return path


@pytest.mark.slow
def test_from_a_file_to_a_release_in_twelve_clicks(
    page: Any, serve: Callable[..., Any], tmp_path: Path
) -> None:
    page.add_init_script(COUNT)
    page.goto(serve().url)
    ready(page)
    upload(page, census(tmp_path / "census.csv"))  # one click here, and one in the dialog of files
    page.locator(".af-columns .tabulator-row").nth(25).wait_for()
    ready(page)
    seen(page, "Nobody has confirmed the guess").wait_for()
    fits(page, "first-visit-data")
    page.get_by_role("button", name="These roles are right").filter(visible=True).click()
    seen(page, "Nobody has confirmed the guess").wait_for(state="hidden")
    page.locator("nav li button", has_text="Protect").click()
    page.locator(".af-find button").click()
    seen(page, "Best for you").wait_for(timeout=300_000)
    ready(page)
    fits(page, "first-visit-protect")
    numbers = page.locator("dl.numbers dd")
    assert numbers.count() == 4
    assert numbers.first.inner_text().endswith("→ 0")
    page.locator("nav li button", has_text="Publish").click()
    page.locator(".af-draw button").click()
    seen(page, "Already drawn").wait_for(timeout=300_000)
    ready(page)
    with page.expect_download() as download:
        page.get_by_role("button", name="Release, CSV").or_(
            page.get_by_text("Release, CSV", exact=True)
        ).first.click()
    rows = pd.read_csv(download.value.path(), dtype=str, keep_default_na=False)
    assert len(rows) == 600
    assert "name" not in rows
    clicks = page.evaluate("window.clicked") + 1  # the dialog of files is no part of the page
    shot(page, "first-visit-publish", full_page=True)
    assert clicks <= MOST, clicks
    print(f"{clicks} clicks")
    assert not page.errors, page.errors
    assert outside(page.requested) == []
