"""From a run to a release in a real browser: run, cancel, tap, look closely, download."""

from __future__ import annotations

import zipfile
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pandas as pd
import pytest

from tests.browser.conftest import outside, ready, shot

pytestmark = pytest.mark.browser

FLOW = """
flow: census
version: 1
table:
  source: {{dataset: census_like, n: {n}, seed: 3}}
  columns:
    Age:          {{role: quasi-identifier, kind: numeric}}
    Gender:       {{role: quasi-identifier, kind: categorical}}
    Education:    {{role: quasi-identifier, kind: numeric}}
    Marital:      {{role: quasi-identifier, kind: categorical}}
    Salary-class: {{role: sensitive}}
partition: {{order: lexicographic, size: {size}}}
steps:
  - anonymize: {{algorithm: {first}, k: 5}}
  - draw: {{}}
  - verify: [covers, guarantee]
  - measure: [gcp, usefulness]
matrix:
  anonymize.algorithm: [{methods}]
  anonymize.k: [5, 10]
"""


MARK = """name => {
  // where on the page the last mark of the frontier is drawn: its place, and the id of its run
  const views = [];
  const walk = (view) => { views.push(view); for (const one of view.child_views || []) walk(one); };
  for (const root of Object.values(Bokeh.index.roots ? Bokeh.index.roots : Bokeh.index)) walk(root);
  const plot = views.find((view) => view.model && view.model.css_classes && view.model.css_classes.includes(name));
  const inner = views.find((view) => view.renderer_views && view.model.css_classes && view.model.css_classes.includes(name))
    || (plot.child_views || []).find((view) => view.renderer_views);
  const marks = inner.model.renderers.filter((one) => one.data_source.data.id && one.glyph.size.value === 13);
  const last = marks[marks.length - 1];
  const at = last.data_source.data.id.length - 1;
  const frame = inner.frame;
  const box = inner.el.getBoundingClientRect();
  const x = frame.x_scale.compute(last.data_source.data.x[at]), y = frame.y_scale.compute(last.data_source.data.y[at]);
  return { x: box.left + x, y: box.top + y, id: last.data_source.data.id[at] };
}"""


def flow(folder: Path, n: int = 400, size: int = 100, methods: str = "greedy, mondrian") -> str:
    path = folder / "census.yaml"
    path.write_text(
        FLOW.format(n=n, size=size, methods=methods, first=methods.split(",")[0]), encoding="utf-8"
    )
    return str(path)


def step(page: Any, name: str) -> None:
    page.locator("nav li button", has_text=name).click()
    page.locator("nav li button[aria-current=step]", has_text=name).wait_for()
    page.wait_for_timeout(500)
    ready(page)


def press(page: Any, css: str, until: Callable[[], Any]) -> None:
    """Click a button until it was heard: one that comes while the layout moves may be lost."""
    for _ in range(5):
        page.locator(f"{css} button").first.click()
        try:
            until()
        except Exception:
            continue
        return
    until()


def run_all(page: Any, said: str) -> None:
    """Press Run, and wait for the end."""
    heard = page.locator(".af-progress progress").or_(page.get_by_text(said)).first
    press(page, ".af-run", lambda: heard.wait_for(timeout=10_000))
    page.get_by_text(said).first.wait_for(timeout=120_000)


@pytest.fixture(scope="module")
def folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return tmp_path_factory.mktemp("flows")


def test_run_tap_explore_and_download(page: Any, serve: Any, folder: Path, tmp_path: Path) -> None:
    served = serve(flow(folder))
    page.goto(served.url)
    ready(page)
    step(page, "Compare")
    page.get_by_text("No run yet").first.wait_for()
    run_all(page, "Done: 4 runs")
    rows = page.locator(".af-runs .tabulator-row")
    rows.nth(3).wait_for()
    assert rows.count() == 4
    assert page.locator(".af-runs .tabulator-row svg").count() >= 12, "marks and two sparklines in each row"
    shot(page, "compare-light", full_page=True)
    # a row loads its run
    rows.nth(1).click()
    page.locator("nav li button", has_text="Explore").get_by_text("greedy k=10").or_(
        page.locator("nav li button", has_text="Explore").get_by_text("mondrian")
    ).first.wait_for()
    # and so does a mark of the frontier
    page.locator(".af-frontier").first.scroll_into_view_if_needed()
    page.wait_for_timeout(500)
    mark = page.evaluate(MARK, "af-frontier")
    page.mouse.click(mark["x"], mark["y"])
    page.locator("nav li button", has_text="Publish").get_by_text("mondrian").first.wait_for()

    step(page, "Explore")
    page.get_by_text("Owner's view").first.wait_for()
    page.locator(".af-records .tabulator-row").first.wait_for()
    assert page.locator(".af-graph svg").count() == 1
    press(
        page, ".af-attack", lambda: page.get_by_text("How often each one wins").first.wait_for(timeout=30_000)
    )
    page.get_by_text("with confidence 95 %").first.wait_for()
    shot(page, "explore-light", full_page=True)

    step(page, "Publish")
    press(page, ".af-draw", lambda: page.get_by_text("Every check passed").first.wait_for(timeout=30_000))
    got = {}
    for what in ("csv", "parquet", "report", "certificate", "flow"):
        with page.expect_download() as waiting:
            page.locator(f".af-file-{what} a, .af-file-{what} button").first.click()
        got[what] = tmp_path / waiting.value.suggested_filename
        waiting.value.save_as(got[what])
    csv = pd.read_csv(got["csv"], dtype=str)
    assert len(csv) == 400
    assert len(pd.read_parquet(got["parquet"])) == 400
    assert "<!doctype html>" in got["report"].read_text(encoding="utf-8")
    assert zipfile.is_zipfile(got["certificate"])
    assert "algorithm: mondrian" in got["flow"].read_text(encoding="utf-8")
    assert page.locator(".af-file-seed").count() == 0 or not page.locator(".af-file-seed").first.is_visible()
    address = page.locator("code.link").first.inner_text()
    assert "?c=" in address
    shot(page, "publish-light", full_page=True)
    assert outside(page.asked) == []
    assert not page.errors, page.errors
    # the link brings the configuration back
    page.goto(address)
    ready(page)
    page.get_by_text("2 methods").first.wait_for()


def test_cancel_keeps_what_is_done(page: Any, serve: Any, folder: Path) -> None:
    long = folder / "long"
    long.mkdir()
    served = serve(flow(long, n=20_000, size=400, methods="greedy, hungarian"))
    page.goto(served.url)
    ready(page, timeout=60_000)
    step(page, "Compare")
    press(page, ".af-run", lambda: page.locator(".af-progress progress").first.wait_for(timeout=15_000))
    page.locator(".af-progress .n", has_text="of its partitions").first.wait_for(timeout=60_000)
    shot(page, "compare-running")
    press(page, ".af-cancel", lambda: page.get_by_text("Cancelled: ").first.wait_for(timeout=30_000))
    for _ in range(100):  # the bars go right after the sentence comes
        if page.locator(".af-progress progress").count() == 0:
            break
        page.wait_for_timeout(100)
    assert page.locator(".af-progress progress").count() == 0
    page.locator(".af-run button:not([disabled])").first.wait_for()
    assert not page.errors, page.errors


@pytest.mark.parametrize(
    ("name", "size", "scheme"), [("dark", (1280, 800), "dark"), ("tablet", (820, 1180), "light")]
)
def test_results_read_well_in_the_dark_and_on_a_tablet(
    new_page: Callable[..., Any], serve: Any, folder: Path, name: str, size: tuple[int, int], scheme: str
) -> None:
    served = serve(flow(folder))
    page = new_page(viewport={"width": size[0], "height": size[1]}, color_scheme=scheme)
    page.goto(served.url)
    ready(page)
    step(page, "Compare")
    run_all(page, "Done: 4 runs")
    for screen in ("Compare", "Explore", "Publish"):
        step(page, screen)
        page.wait_for_timeout(700)
        shot(page, f"{screen.lower()}-{name}", full_page=True)
        wide = page.evaluate("document.documentElement.scrollWidth - document.documentElement.clientWidth")
        assert wide <= 2, (screen, wide)
    assert not page.errors, page.errors
