"""The page itself in a real browser: how soon it is there, what it asks of whom, light and dark, keyboard."""

from __future__ import annotations

import signal
from collections.abc import Callable
from pathlib import Path
from typing import Any

from tests.browser.conftest import Served, outside, ready
from tests.browser.steps import STEPS, fits, run_all, step, wait_in_page

ENTRIES = """["navigation", "resource"].flatMap(kind => performance.getEntriesByType(kind)).map(file => file.encodedBodySize)"""
"""The size of each file that the page was made of, as it was sent."""

ADOPTED = """() => [...document.styleSheets].filter((sheet) => /tabulator/.test(sheet.href)).map((sheet) => {
  const root = document.createElement("div").attachShadow({ mode: "open" });
  new (Bokeh.Models.get("ImportedStyleSheet"))({ url: new URL(sheet.href).pathname + new URL(sheet.href).search }).underlying().install(root);
  return root.adoptedStyleSheets[0].cssRules.length;
})"""
"""Rules that a table's style sheets have at once, on a page that has loaded them."""


def test_the_first_page_needs_few_files_and_bytes(page: Any, serve: Any) -> None:
    """Files, packed bytes and models of Bokeh are what its seconds depend on; these are for benchmarks."""
    page.goto(serve().url)
    ready(page)
    page.locator("nav li button", has_text="Protect").wait_for()
    assert not page.errors, page.errors
    sizes = page.evaluate(ENTRIES)
    models = page.evaluate("[...Bokeh.documents[0].all_models].length")
    assert len(sizes) <= 36
    assert 500_000 < sum(sizes) <= 1_200_000
    assert models <= 90
    rules = page.evaluate(ADOPTED)
    assert min(rules, default=0) > 0, "a table is laid out by the style sheet that it has then"


def test_the_first_page_is_small_and_shows_something_before_its_scripts(
    new_page: Callable[..., Any], serve: Any
) -> None:
    served = serve()
    page, sizes = new_page(), []
    network = page.context.new_cdp_session(page)
    network.send("Network.enable")
    network.on("Network.loadingFinished", lambda event: sizes.append(event["encodedDataLength"]))
    page.goto(served.url)
    ready(page)
    assert sum(sizes) < 1_000_000, sizes
    assert page.get_by_text("Loading the screens").is_hidden()
    assert not page.errors, page.errors
    without = new_page()
    without.route("**/*.js*", lambda route: route.abort())
    without.route("**/*.css*", lambda route: route.abort())
    without.goto(served.url)
    assert without.get_by_text("Loading the screens").is_visible()


def test_the_old_screen_is_dim_until_the_server_answers(page: Any, tmp_path: Path) -> None:
    """The server stands still, so that the page alone does what is seen; then it is gone."""
    served = Served((), tmp_path)
    main = page.get_by_role("main")
    looks = "node => [node.getAttribute('aria-busy'), getComputedStyle(node).opacity === '1']"
    calm, busy = [None, True], ["true", False]
    try:
        page.goto(served.url)
        ready(page)
        assert main.evaluate(looks) == calm
        for way, name, following in (
            ("nav li button >> text=Prepare", "Prepare", "Risk"),  # a screen that is built
            ("nav li button >> text=Data", "Data", "Prepare"),  # one that is there
            (".af-next button", "Prepare", "Risk"),
            (".af-back button", "Data", "Prepare"),
        ):
            served.process.send_signal(signal.SIGSTOP)
            page.locator(way).click()
            page.locator("nav li button[aria-current=step]", has_text=name).wait_for()
            assert main.evaluate(looks) == busy
            served.process.send_signal(signal.SIGCONT)
            page.locator(".af-next button", has_text=following).wait_for()
            ready(page)
            assert main.evaluate(looks) == calm
        served.process.send_signal(signal.SIGSTOP)
        page.locator("nav li button", has_text="Prepare").click()
        assert main.evaluate(looks) == busy
    finally:
        served.process.send_signal(signal.SIGKILL)
        served.process.wait(60)
    page.get_by_text("The server cannot be reached.").first.wait_for()
    assert main.evaluate(looks) == calm


LAID_OUT = """() => {
  let views = Bokeh.index.roots[0];
  const seen = window.laidOut = [];
  while (!Object.hasOwn(views, "update_bbox") || !Object.hasOwn(views, "layoutable_views")) views = Object.getPrototypeOf(views);
  const update = views.update_bbox;
  views.update_bbox = function () { seen.push(this.el.checkVisibility()); return update.call(this); };
}"""
"""Note of each part that Bokeh lays out whether it is seen."""


def test_a_tab_lays_out_what_is_shown_alone(page: Any, serve: Any, flow: Callable[..., str]) -> None:
    """Bokeh lays out everything of a page, also what is hidden: of Protect most are the other tabs."""
    page.goto(serve(flow()).url)
    ready(page)
    step(page, "Protect")
    tabs = page.locator(".bk-tab").filter(visible=True)
    for at in range(tabs.count()):
        tabs.nth(at).click()
        ready(page)
    page.evaluate(LAID_OUT)
    tabs.nth(1).click()
    ready(page)
    seen = page.evaluate("window.laidOut")
    assert seen.count(True) > 20
    assert seen.count(False) < seen.count(True), "a few that are folded, for the hundreds of the other tabs"


def test_every_screen_fits_a_tablet_and_the_dark_and_asks_nobody_else(
    new_page: Callable[..., Any], serve: Any, flow: Callable[..., str]
) -> None:
    served = serve(flow())
    page = new_page(color_scheme="dark")
    page.goto(served.url)
    ready(page)
    assert page.evaluate("document.documentElement.dataset.theme") == "dark"
    for label in STEPS:
        step(page, label)
        fits(page, f"dashboard-{label.lower()}-dark")
    assert outside(page.requested) == []
    assert not page.errors, page.errors


def test_dark_mode_is_switched_and_remembered(new_page: Callable[..., Any], serve: Any) -> None:
    page = new_page(color_scheme="light")
    page.goto(serve().url)
    ready(page)
    assert page.evaluate("document.documentElement.dataset.theme") == "light"
    background = "getComputedStyle(document.documentElement).backgroundColor"
    light = page.evaluate(background)
    page.get_by_role("button", name="Dark mode").click()
    page.wait_for_function("document.documentElement.dataset.theme === 'dark'")
    assert page.evaluate(background) != light
    page.reload()
    ready(page)
    page.wait_for_function("document.documentElement.dataset.theme === 'dark'")


def test_the_keyboard_reaches_the_steps_and_skips_them(page: Any, serve: Any) -> None:
    page.goto(serve().url)
    ready(page)
    page.keyboard.press("Tab")
    active = """() => { let at = document.activeElement; while (at && at.shadowRoot && at.shadowRoot.activeElement) at = at.shadowRoot.activeElement; return at ? (at.innerText || at.className || at.tagName) : null }"""
    assert page.evaluate(active) == "Skip to the screen"
    page.keyboard.press("Tab")
    assert "Data" in page.evaluate(active)
    page.keyboard.press("Tab")
    assert "Prepare" in page.evaluate(active)
    page.keyboard.press("Enter")
    page.locator("nav li button[aria-current=step]", has_text="Prepare").wait_for()
    assert page.locator("[role=main]").count() == 1
    page.locator("a.skip").focus()
    page.keyboard.press("Enter")
    assert "af-main" in page.evaluate(
        """() => { let at = document.activeElement; while (at.shadowRoot && at.shadowRoot.activeElement) at = at.shadowRoot.activeElement; return at.className }"""
    )


STOP = """() => {
  let at = document.activeElement;
  while (at && at.shadowRoot && at.shadowRoot.activeElement) at = at.shadowRoot.activeElement;
  const style = getComputedStyle(at), box = at.getBoundingClientRect();
  const cell = at.closest(".tabulator-editing");
  const marked = style.outlineStyle !== "none" || (cell && getComputedStyle(cell).outlineStyle === "solid") || at.matches(".tree [data-key]");
  return {
    name: at === document.body ? "" : `${at.tagName}.${at.className}`,
    isCell: at.matches(".tabulator-cell"),
    isEditable: at.matches(".tabulator-editable, .tabulator-editable *, .tabulator-row-header, .tabulator-row-header *"),
    isSeen: marked && box.width > 0 && box.bottom > 0 && box.top < innerHeight,
  };
}"""
"""The part of the page that has the keyboard: whether it is marked, in the window, and a cell of a table."""


def stops(page: Any, most: int = 300) -> list[dict[str, Any]]:
    """Press the tabulator key from the beginning of the page to its end, and return where it stopped."""
    page.locator("a.skip").focus()
    reached: list[dict[str, Any]] = []
    while len(reached) < most:
        page.keyboard.press("Tab")
        stop = page.evaluate(STOP)
        if not stop["name"] or "skip" in stop["name"]:
            break
        reached.append(stop)
    return reached


def test_the_keyboard_stops_at_what_can_be_used_and_is_seen_there(
    page: Any, serve: Any, flow: Callable[..., str]
) -> None:
    page.goto(serve(flow()).url)
    ready(page)
    page.locator(".af-columns .tabulator-row").first.wait_for()
    step(page, "Compare")
    run_all(page, "Done: 4 runs")
    for label in STEPS:
        step(page, label)
        wait_in_page(page, 800)  # the page looks at its parts four times a second here
        along = stops(page)
        assert len(along) < 150, label
        assert [stop["name"] for stop in along if stop["isCell"] and not stop["isEditable"]] == [], label
        assert [stop["name"] for stop in along if not stop["isSeen"]] == [], label
