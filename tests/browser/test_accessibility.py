"""Every screen, light and dark, under axe."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from tests.browser.conftest import ready
from tests.browser.steps import audit, in_light_and_dark, press, run_all, seen, step


def audit_both(page: Any, axe: str, where: str) -> list[str]:
    return [
        fault
        for colours, scheme in enumerate(in_light_and_dark(page))
        for fault in audit(page, axe, f"{where}, {scheme}", colours=colours > 0)
    ]


def test_every_screen_is_clean_under_axe(page: Any, serve: Any, flow: Callable[..., str], axe: str) -> None:
    served = serve(flow())
    page.goto(served.url)
    ready(page)
    violations = audit_both(page, axe, "Data")
    step(page, "Prepare")
    violations += audit_both(page, axe, "Prepare")
    step(page, "Risk")
    page.get_by_label("Sampling fraction, if it is a sample").fill("0.05")
    page.keyboard.press("Enter")
    page.get_by_text("people in the population").first.wait_for()
    violations += audit_both(page, axe, "Risk")
    step(page, "Protect")
    for tab in ("Methods", "Target", "Hierarchies", "Patterns", "Diversity", "Limits and weights"):
        page.locator(".bk-tab", has_text=tab).click()
        ready(page)
        violations += audit_both(page, axe, f"Protect, {tab}")
    step(page, "Compare")
    run_all(page, "Done: 4 runs")
    page.get_by_label("Measure", exact=True).select_option(label="pair-distance")
    press(page, ".af-measure", lambda: page.get_by_text("Measured: 4 of 4").first.wait_for(timeout=60_000))
    page.get_by_label("Measure", exact=True).select_option(label="question")
    page.get_by_label("Among: column").wait_for()
    violations += audit_both(page, axe, "Compare")
    step(page, "Explore")
    press(page, ".af-attack", lambda: seen(page, "How often each one wins").wait_for(timeout=60_000))
    press(page, ".af-associate", lambda: seen(page, "What changed most").wait_for(timeout=60_000))
    violations += audit_both(page, axe, "Explore")
    step(page, "Publish")
    press(page, ".af-draw", lambda: seen(page, "Every check passed").wait_for(timeout=60_000))
    violations += audit_both(page, axe, "Publish")
    assert violations == [], "\n".join(violations)
