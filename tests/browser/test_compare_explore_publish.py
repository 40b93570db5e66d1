"""From a run to a release in a real browser: run, cancel, tap, look closely, download."""

from __future__ import annotations

import zipfile
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pandas as pd
import pytest

pytest.importorskip("playwright", reason="browsers are for developers")

from tests.browser.conftest import outside, ready, shot
from tests.browser.steps import fits, press, run_all, seen, step, turn


def test_run_tap_explore_and_download(
    page: Any, serve: Any, flow: Callable[..., str], tmp_path: Path
) -> None:
    served = serve(flow())
    page.goto(served.url)
    ready(page)
    step(page, "Compare")
    seen(page, "No run yet").wait_for()
    run_all(page, "Done: 4 runs")
    rows = page.locator(".af-runs .tabulator-row")
    rows.nth(3).wait_for()
    assert rows.count() == 4
    assert page.locator(".af-runs .tabulator-row svg").count() >= 12, "marks and two sparklines in each row"
    fits(page, "compare-light")
    # a row loads its run; runs are listed as they end, in whatever order
    rows.filter(has_text="greedy k=10").click()
    page.locator("nav li button", has_text="Explore").get_by_text("greedy k=10").first.wait_for()
    # and so does a mark of the frontier
    taken = page.locator("nav li button", has_text="Publish").get_by_text("mondrian k=10").first
    page.locator(".af-frontier .mark").filter(has_text="mondrian k=10").click()
    taken.wait_for()

    step(page, "Explore")
    seen(page, "Owner's view").wait_for()
    page.locator(".af-records .tabulator-row").first.wait_for()
    assert page.locator(".af-graph svg").count() == 1
    press(page, ".af-attack", lambda: seen(page, "How often each one wins").wait_for(timeout=30_000))
    seen(page, "with confidence 95%").wait_for()
    fits(page, "explore-light")

    step(page, "Publish")
    press(page, ".af-draw", lambda: seen(page, "Every check passed").wait_for(timeout=30_000))
    got = {}
    for file in ("csv", "parquet", "report", "certificate", "flow"):
        with page.expect_download() as waiting:
            page.locator(f".af-file-{file} a, .af-file-{file} button").first.click()
        got[file] = tmp_path / waiting.value.suggested_filename
        waiting.value.save_as(got[file])
    csv = pd.read_csv(got["csv"], dtype=str)
    assert len(csv) == 120
    assert len(pd.read_parquet(got["parquet"])) == 120
    assert "<!doctype html>" in got["report"].read_text(encoding="utf-8")
    assert zipfile.is_zipfile(got["certificate"])
    assert "algorithm: mondrian" in got["flow"].read_text(encoding="utf-8")
    assert page.locator(".af-file-seed").count() == 0 or not page.locator(".af-file-seed").first.is_visible()
    address = page.locator("code.link").first.inner_text()
    assert "?c=" in address
    fits(page, "publish-light")
    assert outside(page.requested) == []
    assert not page.errors, page.errors
    # all of it in the dark
    turn(page, "dark")
    fits(page, "publish-dark")
    for screen in ("Explore", "Compare"):
        step(page, screen)
        fits(page, f"{screen.lower()}-dark")
    assert not page.errors, page.errors
    # the link brings the configuration back
    page.goto(address)
    ready(page)
    page.get_by_text("2 methods").first.wait_for()


ROWS_BEFORE_IT_IS_BUILT = """() => {
  const parts = (view) => [view, ...(view.child_views ?? []).flatMap(parts)];
  const view = [...Bokeh.index.roots].flatMap(parts).find((part) => part.tabulator);
  const before = view.tabulator.getDataCount();
  view.render();  // Tabulator builds in its next task
  const twice = Object.entries(view.model.source.data).map(([name, cells]) => [name, [...cells, ...cells]]);
  view.model.source.setv({ data: Object.fromEntries(twice) }, { sync: false });
  return new Promise((done) => view.tabulator.on("tableBuilt", () => setTimeout(() => done([before, view.tabulator.getDataCount()]))));
}"""


def test_rows_that_come_before_a_table_is_built_are_shown(
    page: Any, serve: Any, flow: Callable[..., str]
) -> None:
    """A second run that ended while the table of the first one was built was never shown."""
    page.goto(serve(flow()).url)
    ready(page)
    before, rows = page.evaluate(ROWS_BEFORE_IT_IS_BUILT)
    assert rows == 2 * before > 0


def test_cancel_keeps_what_is_done(page: Any, serve: Any, flow: Callable[..., str]) -> None:
    served = serve(flow(20_000, 400, "greedy, hungarian"))
    page.goto(served.url)
    ready(page)
    step(page, "Compare")
    press(page, ".af-run", lambda: page.locator(".af-progress progress").first.wait_for(timeout=15_000))
    page.locator(".af-progress .n", has_text="of its partitions").first.wait_for()
    shot(page, "compare-running")
    press(page, ".af-cancel", lambda: page.get_by_text("Cancelled: ").first.wait_for(timeout=30_000))
    # the bars go right after the sentence comes
    page.locator(".af-progress progress").first.wait_for(state="detached")
    page.locator(".af-run button:not([disabled])").first.wait_for()
    assert not page.errors, page.errors
