"""Nothing is lost: Back, reload and a closed tab; a project saved and opened; what is no project is refused."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from anonflow.dashboards.publish.screen import AGREE
from tests.browser.conftest import ready, shot, upload
from tests.browser.steps import audit, press, run_all, seen, step


def caption(page: Any, name: str, text: str) -> None:
    page.locator("nav li button", has_text=name).get_by_text(text).first.wait_for()


def choose(page: Any, name: str) -> None:
    """Choose the first run of a name in the table of runs."""
    row = page.locator(".af-runs .tabulator-row").filter(has_text=name).first
    row.click()
    page.locator(".af-runs .tabulator-row.tabulator-selected").filter(has_text=name).wait_for()
    ready(page)


def current(page: Any, name: str) -> None:
    page.locator("nav li button[aria-current=step]", has_text=name).wait_for()


def other_table(page: Any) -> str:
    """Return what the menu of a page says of another table now."""
    page.locator("summary", has_text="census_like").click()
    ready(page)
    words = page.locator(".items a").first.inner_text()
    page.keyboard.press("Escape")
    return str(words)


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
    choose(page, "mondrian k=10")  # which run ends first, and is chosen for that, is chance
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
    # a tab that was closed is opened again; a busy server sees late that it was closed, and until then its session is not free
    context = page.context
    assert any("4 runs, in another tab" in other_table(second) for _ in range(100))
    page.close()
    assert any("in another tab" not in other_table(second) for _ in range(100))
    second.close()
    again = context.new_page()
    again.goto(served.url + "?screen=compare")
    ready(again)
    current(again, "Compare")
    caption(again, "Compare", "4 runs")
    again.locator(".af-runs .tabulator-row").nth(3).wait_for()
    # and runs on
    run_all(again, "Done: 4 runs")
    caption(again, "Compare", "8 runs")
    # a button that waits for an answer is not pressed for minutes
    choose(again, "greedy k=10")
    step(again, "Publish")
    again.get_by_role("checkbox", name=AGREE, checked=False).wait_for()
    with pytest.raises(AssertionError, match=AGREE):
        press(again, ".af-draw", lambda: pytest.fail("the button was pressed"))


def test_several_tables_lie_side_by_side(
    new_page: Callable[..., Any], serve: Callable[..., Any], tmp_path: Path, axe: str
) -> None:
    page = new_page()
    page.goto(serve("--max-sessions", "2").url)
    ready(page)
    page.get_by_label("records").fill("120")
    page.get_by_role("button", name="Open this table").click()
    page.get_by_text("unique on these quasi-identifiers").first.wait_for()
    step(page, "Compare")
    run_all(page, "Done: 1 run")
    open_now = page.locator(".said .table")
    assert open_now.inner_text() == "census_like"

    def other(name: str) -> None:
        page.locator("summary", has_text=open_now.inner_text()).click()
        page.locator(".items a", has_text=name).click()
        page.wait_for_load_state()
        ready(page)

    other("Another table")
    assert open_now.inner_text() == "Your tables"
    caption(page, "Compare", "0 runs")
    other("census_like")
    other("Another table")
    table = tmp_path / "people.csv"
    table.write_text(
        "age,town\n" + "".join(f"{20 + at % 30},t{at % 3}\n" for at in range(60)), encoding="utf-8"
    )
    upload(page, table)
    page.locator(".said .table", has_text="people.csv").wait_for()
    ready(page)
    page.locator("summary", has_text="people.csv").click()
    page.get_by_text("Your other tables").wait_for()
    assert "1 run" in page.locator(".items a", has_text="census_like").inner_text()
    assert audit(page, axe, "the menu of tables") == []
    shot(page, "tables")
    page.keyboard.press("Escape")
    # to and fro, and nothing is lost
    other("census_like")
    assert open_now.inner_text() == "census_like"
    caption(page, "Compare", "1 run")
    other("people.csv")
    assert open_now.inner_text() == "people.csv"
    caption(page, "Compare", "0 runs")
    # another browser has other tables
    stranger = new_page()
    stranger.goto(page.url)
    ready(stranger)
    assert stranger.locator(".said .table").inner_text() == "Your tables"
    # a server that is full keeps those that no page shows on disk
    other("Another table")
    page.get_by_role("button", name="Open this table").click()
    page.locator(".said .table", has_text="census_like").wait_for()
    other("people.csv")
    caption(page, "Data", "60 records")
    assert not page.errors, page.errors
