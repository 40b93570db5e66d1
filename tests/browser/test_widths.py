"""A table of 24 columns with long names at 1000 x 700 and 600 x 800: what is written on the screens is seen whole, light and dark."""

from __future__ import annotations

import random
from collections.abc import Callable
from pathlib import Path
from typing import Any

from tests.browser.conftest import ready, upload
from tests.browser.steps import (
    ALL,
    CUT,
    SCROLLED,
    audit,
    in_light_and_dark,
    press,
    run_all,
    seen,
    step,
    wait_in_page,
)

NAMES = [
    "holder_birth_year",
    "postcode_of_residence",
    "merchant_category (as a text; long)",
    "chargeback_reason",
]


def payments(path: Path, rows: int = 90) -> Path:
    rng = random.Random(24)
    names = [*NAMES, *(f"payment_detail_{i}" for i in range(20))]
    lines = [",".join(names)]
    for _ in range(rows):
        first = [str(rng.randint(1950, 1955)), f"10{rng.randint(0, 3)}", rng.choice(["food", "fuel"])]
        reason = rng.choice(["", "not received by the card holder", "duplicate"])
        lines.append(",".join([*first, reason, *(rng.choice("abc") for _ in range(20))]))
    path.write_text("\n".join(lines) + "\n", encoding="utf-8")
    return path


def with_payments(
    new_page: Callable[..., Any], serve: Callable[..., Any], folder: Path, width: int, height: int
) -> Any:
    """A page of that size on which the payments are read."""
    page = new_page(viewport={"width": width, "height": height})
    page.goto(serve().url)
    ready(page)
    upload(page, payments(folder / "payments.csv"))
    page.get_by_text("unique on these quasi-identifiers").first.wait_for()
    ready(page)
    return page


IN_A_CELL = (
    "width => {"
    + ALL
    + """
  all(document).find((node) => node.matches(".af-app")).style.maxWidth = width;
}"""
)
"""Leave the app no more than a width of the window, as a notebook does."""


def cut(page: Any) -> list[str]:
    """What of the screen has no room in either window, light or dark, or in the cell of a notebook whose window has 980 pixels."""
    page.set_viewport_size({"width": 980, "height": 900})
    page.evaluate(IN_A_CELL, "640px")
    ready(page)
    faults = [f"in a cell: {fault}" for fault in page.evaluate(CUT)]
    page.evaluate(IN_A_CELL, "")
    for scheme in in_light_and_dark(page):
        for width, height in ((600, 800), (1000, 700)):
            page.set_viewport_size({"width": width, "height": height})
            ready(page)
            faults += [f"{width}, {scheme}: {fault}" for fault in page.evaluate(CUT)]
    return faults


def test_a_wide_table_is_readable_in_a_small_window(
    new_page: Callable[..., Any], serve: Callable[..., Any], tmp_path: Path
) -> None:
    page = with_payments(new_page, serve, tmp_path, 1000, 700)
    faults = {"Data": cut(page)}
    step(page, "Risk")
    page.get_by_text("The riskiest records").first.wait_for()
    ready(page)
    faults["Risk"] = cut(page)
    step(page, "Protect")
    for tab in ("Target", "Hierarchies", "Patterns", "Diversity", "Limits and weights"):
        page.locator(".bk-tab", has_text=tab).click()
        ready(page)
        faults[f"Protect, {tab}"] = cut(page)
    step(page, "Compare")
    page.get_by_label("k, one or several").fill("3, 4")
    page.keyboard.press("Enter")
    ready(page)
    run_all(page, "Done: 2 runs")
    faults["Compare"] = cut(page)
    step(page, "Explore")
    press(page, ".af-associate", lambda: seen(page, "What changed most").wait_for(timeout=60_000))
    press(page, ".af-attack", lambda: seen(page, "How often each one wins").wait_for(timeout=60_000))
    faults["Explore"] = cut(page)
    step(page, "Publish")
    press(page, ".af-draw", lambda: seen(page, "Before you publish").wait_for(timeout=60_000))
    faults["Publish"] = cut(page)
    assert faults == {screen: [] for screen in faults}
    assert not page.errors, page.errors


def test_a_file_of_ones_own_in_a_narrow_window_is_clean_under_axe(
    new_page: Callable[..., Any], serve: Any, tmp_path: Path, axe: str
) -> None:
    page = with_payments(new_page, serve, tmp_path, 600, 800)
    violations = audit(page, axe, "Data")
    step(page, "Risk")
    page.get_by_text("The riskiest records").first.wait_for()
    violations += audit(page, axe, "Risk")
    assert violations == [], "\n".join(violations)


def test_keys_reach_what_is_scrolled_and_nothing_else(
    new_page: Callable[..., Any], serve: Any, tmp_path: Path
) -> None:
    page = with_payments(new_page, serve, tmp_path, 600, 800)
    step(page, "Risk")
    page.get_by_text("The riskiest records").first.wait_for()
    page.wait_for_function(f"({SCROLLED})().some(([isWider]) => isWider)")  # what is wider may come later
    scrolled = []
    for width in (600, 1680):
        page.set_viewport_size({"width": width, "height": 1000})
        wait_in_page(page, 800)  # the page looks at its parts four times a second here
        places = page.evaluate(SCROLLED)
        assert [wider for wider, _ in places] == [is_stop for _, is_stop in places]
        scrolled.append(sum(wider for wider, _ in places))
    assert scrolled[0] > scrolled[1]
