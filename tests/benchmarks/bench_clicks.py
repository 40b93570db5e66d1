"""Ten clicks a screen in a real browser: how soon something moves, how soon all is there, and what the server's event loop works.

The times are the page's own: from the click to the first change of what is drawn, and to the last message of the server. The event loop is the
server's first thread; the system counts its processor time. Without Chromium and playwright there are no figures.
"""

from __future__ import annotations

import itertools
import shutil
import tempfile
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from importlib.util import find_spec
from pathlib import Path
from typing import Any

import psutil

from tests.benchmarks.measuring import row

PEOPLE, FEW = 20_000, 300
CLICKS = 10
FEEDBACK, DONE, LOOP = 0.1, 0.3, 0.5
"""Seconds at most: until something moves, until all is there where nothing is computed, of the event loop."""

WATCH = """() => {
  const roots = (root) => [root, ...[...root.querySelectorAll("*")].flatMap((node) => node.shadowRoot ? roots(node.shadowRoot) : [])];
  const clicks = window.clicks = { at: null, first: null };
  const seen = () => { if (clicks.at !== null && clicks.first === null) clicks.first = performance.now(); };
  const watched = new WeakSet();
  window.watchAll = () => {
    for (const root of roots(document)) {
      if (watched.has(root)) continue;
      watched.add(root);
      new MutationObserver(seen).observe(root, { subtree: true, childList: true, attributes: true, characterData: true });
      root.addEventListener("input", seen, true);
    }
  };
  document.addEventListener("pointerdown", () => { clicks.at = performance.now(); clicks.first = null; }, true);
}"""
"""Note when the page is clicked, and when something in it changes for the first time after that."""


def _clicks(page: Any) -> dict[str, list[tuple[str, Callable[[], Any]]]]:
    """Return of each screen the clicks that compute nothing anew, as words and what is clicked."""

    def button(name: str) -> Any:
        return page.get_by_role("button", name=name, exact=True).filter(visible=True).first

    def at(css: str, number: int = 0) -> Any:
        return page.locator(css).filter(visible=True).nth(number)

    dark = ("the dark", lambda: button("Dark mode"))

    def back_from(name: str, screen: str) -> list[tuple[str, Callable[[], Any]]]:
        return [(name, lambda: at(f"nav li button >> text={name}")), (screen, lambda: at(f"nav li button >> text={screen}"))]  # fmt: skip

    tick = ("a column is ticked", lambda: at(".af-columns .tabulator-row input[type=checkbox]"))
    fold = ("what opens files", lambda: button("Open another table"))
    sets = [(f"sets, {n}", lambda n=n: at(".bk-btn-group button", n)) for n in (1, 0)]
    tabs = [(f"tab {n}", lambda n=n: at(".bk-tab", n)) for n in (1, 2, 3, 4, 5, 0)]
    rows = [(f"run {n}", lambda n=n: at(".af-runs .tabulator-row", n)) for n in (1, 0)]
    changed = ("only changed records", lambda: page.get_by_label("only records that changed"))
    return {
        "Data": [tick, fold, dark, *back_from("Prepare", "Data")],
        "Prepare": [dark, *back_from("Data", "Prepare")],
        "Risk": [*sets, dark, *back_from("Prepare", "Risk")],
        "Protect": [*tabs, dark, *back_from("Compare", "Protect")],
        "Compare": [*rows, dark, *back_from("Explore", "Compare")],
        "Explore": [changed, dark, *back_from("Publish", "Explore")],
        "Publish": [dark, *back_from("Explore", "Publish")],
    }


@contextmanager
def _served(n: int) -> Iterator[tuple[Any, Any]]:
    """A page on which runs of a table are done, and the server's process."""
    from playwright.sync_api import sync_playwright

    from tests.browser.conftest import CHROMIUM, FLOW, HEARD, Served, ready

    program = shutil.which("chromium") or shutil.which("chromium-browser") or shutil.which("google-chrome")
    with tempfile.TemporaryDirectory() as folder, sync_playwright() as playwright:
        path = Path(folder) / "census.yaml"
        path.write_text(
            FLOW.format(n=n, size=250, methods="greedy, mondrian", first="greedy"), encoding="utf-8"
        )
        served = Served((str(path),), Path(folder))
        try:
            chromium = playwright.chromium.launch(executable_path=program, headless=True, args=CHROMIUM)
            context = chromium.new_context(viewport={"width": 1280, "height": 900}, reduced_motion="reduce")
            context.set_default_timeout(120_000)
            context.add_init_script(HEARD)
            page = context.new_page()
            page.goto(served.url)
            ready(page)
            yield page, psutil.Process(served.process.pid)
            chromium.close()
        finally:
            served.stop()


def _loop(process: Any) -> float:
    """Return the processor seconds of a process's first thread so far."""
    first = next(thread for thread in process.threads() if thread.id == process.pid)
    return float(first.user_time + first.system_time)


def _settle(page: Any, process: Any) -> None:
    """Wait until the page is idle and its server has nothing more to send: the parts of a new screen come after the answer to the click."""
    from tests.browser.conftest import ready

    worked = None
    while worked != (worked := _loop(process)):
        page.wait_for_timeout(400)
        ready(page)


def run(small: bool) -> list[dict[str, Any]]:
    """Two methods with two k on census-like people; the worst of ten clicks for each screen, named; the first click of each kind builds what it shows."""
    if find_spec("playwright") is None:
        return []
    if not any(map(shutil.which, ("chromium", "chromium-browser", "google-chrome"))):
        return []
    from tests.browser.conftest import ready
    from tests.browser.steps import run_all, step

    figures = []
    with _served(FEW if small else PEOPLE) as (page, process):
        step(page, "Compare")
        run_all(page, "Done: 4 runs")
        page.evaluate(WATCH)
        for screen, kinds in _clicks(page).items():
            step(page, screen)
            ready(page)
            taken = []
            for name, place in itertools.islice(itertools.cycle(kinds), 3 if small else CLICKS):
                page.evaluate("watchAll()")
                before = _loop(process)
                try:
                    place().click(timeout=30_000)
                    _settle(page, process)
                except Exception as error:
                    error.add_note(f"{screen}, {name}:\n{page.inner_text('body')}")
                    raise
                moved, done = page.evaluate("[clicks.first - clicks.at, heard.at - clicks.at]")
                taken.append((name, max(0.0, moved) / 1000, max(0.0, done) / 1000, _loop(process) - before))
            for at, words, most in ((1, "something moves", FEEDBACK), (2, "all is there", DONE), (3, "of the event loop", LOOP)):  # fmt: skip
                worst = max(taken, key=lambda times: times[at])
                figures.append(row(f"clicks: {screen}, {words} ({worst[0]})", worst[at], "s", most=most))
    return figures
