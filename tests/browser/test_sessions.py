"""Two people on one hosted server: they sign in, upload, run and publish, and never see each other's data."""

from __future__ import annotations

from collections.abc import Callable
from functools import partial
from pathlib import Path
from typing import Any

import pandas as pd
import pytest

from anonflow.dashboards.server.accounts import add_account
from tests.browser.conftest import outside, ready, shot, upload
from tests.browser.steps import CUT, audit, press, step

PASSWORD = "correct horse battery"
LONG = "annamaria.von.hohenberg-langenfeld"


@pytest.fixture(scope="module")
def users(tmp_path_factory: pytest.TempPathFactory) -> Path:
    path = tmp_path_factory.mktemp("accounts") / "users"
    for name in ("anna", "ben", LONG):
        add_account(path, name, PASSWORD)
    return path


def heard(page: Any) -> list[str]:
    """All that the server tells a page over its websocket, from now on."""
    frames: list[str] = []

    def listen(socket: Any) -> None:
        def take(payload: Any) -> None:
            frames.append(payload if isinstance(payload, str) else payload.decode("utf-8", "replace"))

        socket.on("framereceived", take)

    page.on("websocket", listen)
    return frames


def test_the_account_has_a_menu_whatever_its_name(
    new_page: Callable[..., Any], serve: Any, users: Path, axe: str
) -> None:
    page = new_page(viewport={"width": 1000, "height": 700})
    page.goto(serve("--users", str(users), "--workers", "0").url)
    page.get_by_label("Name").fill(LONG)
    page.get_by_label("Password").fill(PASSWORD)
    page.get_by_role("button", name="Sign in").click()
    ready(page)
    publish = page.locator("nav li button", has_text="Publish")
    for width in (1600, 1000, 700):
        page.set_viewport_size({"width": width, "height": 700})
        tools, last = page.locator(".tools").bounding_box(), publish.bounding_box()
        apart = last["x"] + last["width"] <= tools["x"] or tools["y"] + tools["height"] <= last["y"]
        assert apart, width
        assert tools["x"] + tools["width"] <= width, width
    page.locator("summary", has_text="Account").click()
    page.get_by_text(f"Signed in as {LONG}").wait_for()
    shot(page, "account-menu")
    assert page.evaluate(CUT) == []
    assert audit(page, axe, "the menu of the account") == []
    page.get_by_role("button", name="Sign out").click()
    page.get_by_label("Password").wait_for()


def test_two_people_at_once_never_see_each_others_data(
    new_page: Callable[..., Any], serve: Any, users: Path, tmp_path: Path
) -> None:
    served = serve("--users", str(users), "--workers", "1", "--max-sessions", "2", "--max-rows", "5000")
    assert served.get("health") == (200, '{"ok": true}')
    assert served.get("health", Host="evil.test")[0] == 421
    marks = {"anna": "Quokkaberg", "ben": "Wombatheim"}
    pages, frames = {}, {}
    for name in marks:
        page = pages[name] = new_page()
        frames[name] = heard(page)
        page.goto(served.url)
        page.get_by_label("Name").fill(name)
        page.get_by_label("Password").fill("wrong wrong")
        page.get_by_role("button", name="Sign in").click()
        page.get_by_role("alert").wait_for()
        if name == "anna":
            shot(page, "dashboard-login")
        page.get_by_label("Name").fill(name)
        page.get_by_label("Password").fill(PASSWORD)
        page.get_by_role("button", name="Sign in").click()
        ready(page)
        account = page.locator("summary", has_text="Account")
        account.click()
        page.get_by_text(f"Signed in as {name}").wait_for()
        page.get_by_role("button", name="Sign out").wait_for()
        page.keyboard.press("Escape")
        page.get_by_role("button", name="Sign out").wait_for(state="hidden")
        page.errors.clear()  # the refused password is one to the browser
    for name, mark in marks.items():
        frame = pd.DataFrame(
            {
                "age": [20 + (7 * i) % 50 for i in range(200)],
                "town": [f"{mark} {i % 5}" for i in range(200)],
                f"{mark}-income": [("low", "high", "none")[i % 3] for i in range(200)],
            }
        )
        path = tmp_path / f"{mark}.csv"
        frame.to_csv(path, index=False)
        upload(pages[name], path)
    for page in pages.values():
        page.get_by_text("are unique on these quasi-identifiers").wait_for()
        ready(page)
        step(page, "Compare")
        begun = page.locator(".af-progress progress").or_(page.get_by_text("Done: 1 run")).first
        press(page, ".af-run", partial(begun.wait_for, timeout=10_000))
    for page in pages.values():
        page.locator("[role=status]", has_text="Done: 1 run").first.wait_for()
    for name, page in pages.items():
        step(page, "Explore")
        step(page, "Publish")
        passed = page.get_by_text("Every check passed").first
        press(page, ".af-draw", partial(passed.wait_for, timeout=60_000))
        with page.expect_download() as waiting:
            page.locator(".af-file-csv a, .af-file-csv button").first.click()
        target = tmp_path / f"{name}-release.csv"
        waiting.value.save_as(target)
        assert len(pd.read_csv(target, dtype=str)) == 200
    for name, mark in marks.items():
        other = next(item for item in marks.values() if item != mark)
        text = "".join(frames[name])
        assert mark in text, "the test would see it"
        assert other not in text
        assert other not in pages[name].content()
        assert outside(pages[name].requested) == []
        assert not pages[name].errors, pages[name].errors
        # nothing of a table in any address
        assert not any(secret in url for url in pages[name].requested for secret in marks.values())
    # a third one is told that the server is full
    third = new_page()
    third.goto(served.url)
    third.get_by_label("Name").fill("anna")
    third.get_by_label("Password").fill(PASSWORD)
    third.get_by_role("button", name="Sign in").click()
    third.get_by_text("This server is full").wait_for()
    log = served.text()
    assert not any(mark in log for mark in marks.values())
    assert PASSWORD not in log
