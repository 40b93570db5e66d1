"""Nothing is lost: Back, reload and a closed tab; a project saved and opened; what is no project is refused."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import pytest

from anonflow.dashboards.publish.screen import AGREE
from tests.browser.conftest import ready
from tests.browser.steps import press, run_all, seen, step


def caption(page: Any, name: str, text: str) -> None:
    page.locator("nav li button", has_text=name).get_by_text(text).first.wait_for()


def current(page: Any, name: str) -> None:
    page.locator("nav li button[aria-current=step]", has_text=name).wait_for()


def test_back_reload_and_a_closed_tab_lose_nothing(
    new_page: Callable[..., Any], serve: Any, flow: Callable[..., str]
) -> None:
    served = serve(flow())
    page = new_page()
    page.goto(served.url)
    ready(page)
    step(page, "Compare")
    assert page.url.endswith("?screen=compare")
    run_all(page, "Done: 4 runs")
    step(page, "Publish")
    press(page, ".af-draw", lambda: seen(page, "Every check passed").wait_for(timeout=30_000))
    # each screen has its address, and Back moves between them
    page.go_back()
    current(page, "Compare")
    page.go_forward()
    current(page, "Publish")
    # a page that is loaded anew goes on where it was, release and all
    page.reload()
    ready(page)
    current(page, "Publish")
    caption(page, "Compare", "4 runs")
    seen(page, "Every check passed").wait_for()
    # the address alone opens nothing
    stranger = new_page()
    stranger.goto(page.url)
    ready(stranger)
    caption(stranger, "Compare", "0 runs")
    # a second tab of the same browser is a session of its own
    second = page.context.new_page()
    second.goto(served.url)
    ready(second)
    caption(second, "Compare", "0 runs")
    second.close()
    # a tab that was closed is opened again
    context = page.context
    page.close()
    again = context.new_page()
    again.wait_for_timeout(
        3_000
    )  # a busy server sees late that a tab was closed; until then its session is not free
    again.goto(served.url + "?screen=compare")
    ready(again)
    current(again, "Compare")
    caption(again, "Compare", "4 runs")
    again.locator(".af-runs .tabulator-row").nth(3).wait_for()
    # and runs on
    run_all(again, "Done: 4 runs")
    caption(again, "Compare", "8 runs")
    # a button that waits for an answer is not pressed for minutes
    again.locator(".af-runs .tabulator-row").filter(has_text="greedy k=10").first.click()
    step(again, "Publish")
    with pytest.raises(AssertionError, match=AGREE):
        press(again, ".af-draw", lambda: pytest.fail("the button was pressed"))
