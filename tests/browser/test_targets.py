"""Before a method is chosen: what runs are expected to take, and a target instead; reachable by keys, at three widths, clean under axe."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from tests.browser.conftest import outside, ready, shot
from tests.browser.steps import CUT, audit, in_light_and_dark, press, step

WIDTHS = ((1000, 700), (1280, 800), (1680, 1000))


def at_widths(page: Any, name: str, script: str) -> list[str]:
    """What is cut off at one of three widths, and what axe says at the least of them, light and dark; a picture of it is kept."""
    faults = []
    for colours, scheme in enumerate(in_light_and_dark(page)):
        for width, height in WIDTHS:
            page.set_viewport_size({"width": width, "height": height})
            ready(page)
            faults += [f"{name} at {width}, {scheme}: {fault}" for fault in page.evaluate(CUT)]
            if (width, height) == WIDTHS[0]:  # where parts are closest to each other
                faults += audit(page, script, f"{name}, {scheme}", colours=colours > 0)
                shot(page, f"{name}-{scheme}-{width}", full_page=True)
    return faults


def test_expectations_and_targets(page: Any, serve: Any, flow: Callable[..., str], axe: str) -> None:
    served = serve(flow(methods="mondrian"))
    page.goto(served.url)
    ready(page)
    step(page, "Prepare")
    faults = at_widths(page, "prepare", axe)
    step(page, "Protect")
    page.set_viewport_size({"width": 1280, "height": 800})
    press(page, ".af-expect", lambda: page.get_by_text("from up to").first.wait_for(timeout=90_000))
    assert page.get_by_text("mondrian k=10").count() > 0
    faults += at_widths(page, "expected", axe)
    page.locator(".bk-tab", has_text="Target").click()
    ready(page)
    # by keys alone: the fields, the button, and what came of it
    page.get_by_label("Only the methods that are chosen").focus()
    page.keyboard.press("Space")
    page.get_by_label("Risk of being found, at most (%)").focus()
    page.keyboard.press("Control+A")
    page.keyboard.type("25")
    page.keyboard.press("Tab")
    page.keyboard.type("95")
    page.keyboard.press("Tab")
    ready(page)
    page.locator(".af-search button").first.focus()
    page.keyboard.press("Enter")
    page.get_by_text("meets the target").first.wait_for()
    page.get_by_text("nothing else is expected to be better").first.wait_for()
    assert page.get_by_text("no sensitive value guessed with a probability above 95%").count() > 0
    faults += at_widths(page, "target", axe)
    # the trials are runs, and the frontier is drawn of them
    step(page, "Compare")
    page.locator(".af-runs .tabulator-row").first.wait_for()
    faults += at_widths(page, "searched", axe)
    assert faults == [], "\n".join(faults)
    assert outside(page.requested) == []
    assert not page.errors, page.errors
