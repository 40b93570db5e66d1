"""A real JupyterLab in a real browser: the explorer answers clicks, the next cell reads it, views are drawn."""

from __future__ import annotations

import json
import os
import re
import shutil
import subprocess
import sys
import time
import urllib.request
from collections.abc import Callable, Iterator
from contextlib import suppress
from dataclasses import dataclass
from importlib.util import find_spec
from pathlib import Path
from typing import Any
from urllib.parse import urlsplit

import pytest

from tests import ROOT
from tests.browser.conftest import PATIENCE

OUT = ROOT / "out"
IDLE = re.compile(r"Python 3 \(ipykernel\) \| Idle")

pytestmark = [
    pytest.mark.slow,
    # not imported: all workers of all sections read this file, and JupyterLab takes seconds
    pytest.mark.skipif(
        any(find_spec(name) is None for name in ("jupyterlab", "playwright")),
        reason="they are for developers",
    ),
]


@dataclass(frozen=True)
class Lab:
    """A running JupyterLab, and the folder of its notebooks and settings."""

    url: str
    home: Path

    def notebook(self, name: str, *cells: str) -> str:
        """Write a notebook; its address."""
        import nbformat
        from nbformat.v4 import new_code_cell, new_notebook

        result = new_notebook(cells=[new_code_cell(cell) for cell in cells])
        result.metadata["kernelspec"] = {
            "name": "python3",
            "display_name": "Python 3 (ipykernel)",
            "language": "python",
        }
        nbformat.write(result, self.home / f"{name}.ipynb")
        return f"{self.url}/lab/workspaces/{name}/tree/{name}.ipynb?reset"

    def theme(self, name: str) -> None:
        """What a page that is opened from now on looks like."""
        folder = self.home / "settings" / "@jupyterlab" / "apputils-extension"
        folder.mkdir(parents=True, exist_ok=True)
        (folder / "themes.jupyterlab-settings").write_text(json.dumps({"theme": name}))


@pytest.fixture(scope="module")
def lab(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Lab]:
    import socket

    home = tmp_path_factory.mktemp("lab")
    with socket.socket() as free:
        free.bind(("127.0.0.1", 0))
        port = free.getsockname()[1]
    folders = (
        "JUPYTER_CONFIG_DIR",
        "JUPYTER_DATA_DIR",
        "JUPYTER_RUNTIME_DIR",
        "JUPYTERLAB_WORKSPACES_DIR",
        "IPYTHONDIR",
    )
    env = {
        **os.environ,
        **{name: str(home / name.lower()) for name in folders},
        "JUPYTERLAB_SETTINGS_DIR": str(home / "settings"),
        "PYTHONPATH": str(ROOT),
        "PATH": f"{Path(sys.executable).parent}{os.pathsep}{os.environ.get('PATH', '')}",
    }
    log = home / "log"
    with log.open("w") as stream:
        server = subprocess.Popen(
            [
                sys.executable, "-m", "jupyterlab", "--no-browser", "--allow-root", "--ip=127.0.0.1",
                f"--port={port}", "--IdentityProvider.token=", "--ServerApp.disable_check_xsrf=True",
                f"--ServerApp.root_dir={home}", "--LabApp.news_url=None", "--LabApp.extension_manager=readonly",
                "--LabApp.check_for_updates_class=jupyterlab.NeverCheckForUpdate",
            ],
            env=env, cwd=home, stdout=stream, stderr=subprocess.STDOUT,
        )  # fmt: skip
    try:
        for _ in range(10 * PATIENCE):
            assert server.poll() is None, log.read_text()
            try:
                urllib.request.urlopen(f"http://127.0.0.1:{port}/api", timeout=PATIENCE)
                break
            except OSError:
                time.sleep(0.1)
        yield Lab(f"http://127.0.0.1:{port}", home)
    finally:
        server.terminate()
        try:
            server.wait(20)
        except subprocess.TimeoutExpired:
            server.kill()
            server.wait()


@pytest.fixture
def page(browser: Any) -> Iterator[Any]:
    """A page that remembers whom it asked, and what went wrong."""
    context = browser.new_context(viewport={"width": 1400, "height": 1500})
    context.set_default_timeout(1000 * PATIENCE)
    page = context.new_page()
    page.requested, page.wrong = [], []
    page.on("request", lambda request: page.requested.append(request.url))
    page.on("websocket", lambda socket: page.requested.append(socket.url))
    page.on("pageerror", lambda error: page.wrong.append(str(error)))
    yield page
    outside = {url for url in page.requested if urlsplit(url).scheme in ("http", "https", "ws", "wss")}
    assert {url for url in outside if urlsplit(url).hostname != "127.0.0.1"} == set()
    assert page.wrong == []
    context.close()


def run_all(page: Any, address: str) -> None:
    """Open a notebook and run its cells; a request to run is lost while the session connects, so it is repeated."""
    page.goto(address)
    page.locator(".jp-Notebook").wait_for()
    page.get_by_text(IDLE).wait_for()
    for _ in range(10):
        page.get_by_role("menuitem", name="Run", exact=True).click()
        page.get_by_role("menuitem", name="Run All Cells", exact=True).click()
        with suppress(Exception):
            page.locator(".jp-InputPrompt", has_text=re.compile(r"\[(\*|\d+)\]")).first.wait_for(
                timeout=10_000
            )
            return
    raise AssertionError("the cells did not run")


def click_until(page: Any, button: Any, seen: Any) -> int:
    """Click until what must follow is there; how often it was tried."""
    return act_until(page, lambda: button.click() if button.is_enabled() else None, seen)


def act_until(page: Any, act: Callable[[], None], seen: Any, tries: int = 6) -> int:
    """Act until what must follow is there; how often it was tried.

    A click or a key right after a layout change may be lost, and one that is slow to take effect may count beside the next.
    """
    for tried in range(1, tries + 1):
        act()
        try:
            seen.first.wait_for(timeout=5_000)
            return tried
        except Exception:
            continue
    page.screenshot(path=OUT / "jupyterlab-failed.png")
    raise AssertionError(
        f"nothing followed; outputs: {page.locator('.jp-OutputArea-output').all_inner_texts()}"
    )


def nudge(page: Any, handle: Any, to: int) -> None:
    """Move a slider by keys, of which the first may be lost."""
    for _ in range(20):
        at = round(float(handle.get_attribute("aria-valuenow")))
        if at == to:
            return
        handle.press("ArrowRight" if at < to else "ArrowLeft")
        page.wait_for_timeout(300)


START = """\
import anonflow as af

frame = af.datasets.census_like({n}, seed=1)
table = af.Table(frame, af.datasets.schema("census_like"))
explorer = af.explorer(table, k=5, methods=["mondrian", "greedy"], partition_size={size})
explorer"""


@pytest.mark.parametrize("theme", ["JupyterLab Light", "JupyterLab Dark"])
def test_the_explorer_compares_methods(page: Any, lab: Lab, theme: str) -> None:
    OUT.mkdir(exist_ok=True)
    lab.theme(theme)
    name = "explorer-" + theme.split()[1].lower()
    reads = (
        "made = explorer.chosen\n"
        "print('read:', explorer.k, list(explorer.runs['k']), explorer.methods, made and made.algorithm.name)"
    )
    run_all(page, lab.notebook(name, START.format(n=600, size=200), reads))
    page.get_by_text("read: 5 [] ('mondrian', 'greedy') None").wait_for()
    run = page.get_by_role("button", name="Run", exact=True).and_(page.locator(".jupyter-button"))
    run.wait_for()
    page.get_by_text("Results appear here").wait_for()
    nudge(page, page.locator(".jupyter-widgets .noUi-handle").first, 7)
    page.locator(".widget-readout", has_text="7").wait_for()
    clicks = click_until(page, run, page.locator("td", has_text="mondrian"))
    page.locator(".anonflow-view td", has_text="greedy").first.wait_for()
    page.locator("text=2 of 2 runs are done.").wait_for()
    assert page.locator(".anonflow-view tr").count() >= 3
    page.locator(".jupyter-widgets svg[aria-label='Information loss against k']").wait_for()
    page.wait_for_timeout(500)
    page.screenshot(path=OUT / f"jupyterlab-{name}.png")

    page.get_by_role("tab", name="loss by column").click()
    page.locator(".jupyter-widgets svg[aria-label='Information loss by column']").wait_for()
    page.screenshot(path=OUT / f"jupyterlab-{name}-columns.png")

    # the next cell reads what was chosen by hand
    def run_the_next_cell() -> None:
        page.locator(".jp-Cell .jp-InputArea-editor").last.click()
        page.keyboard.press("Control+Enter")

    # one comparison, or at most one for each click
    more = rf"(, 7, 7){{0,{clicks - 1}}}"
    wanted = re.compile(rf"read: 7 \[7, 7{more}\] \('mondrian', 'greedy'\) greedy")
    act_until(page, run_the_next_cell, page.get_by_text(wanted))


def test_the_explorer_cancels(page: Any, lab: Lab) -> None:
    lab.theme("JupyterLab Light")
    run_all(page, lab.notebook("cancel", START.format(n=20_000, size=1_000)))
    run = page.get_by_role("button", name="Run", exact=True).and_(page.locator(".jupyter-button"))
    run.wait_for()
    page.get_by_label("two-phase").check()  # long enough to be cancelled
    click_until(page, run, page.get_by_role("progressbar"))
    stop = page.get_by_role("button", name="Cancel", exact=True)
    click_until(page, stop, page.get_by_text("Cancelled; "))
    page.screenshot(path=OUT / "jupyterlab-cancelled.png")


@pytest.mark.parametrize("theme", ["JupyterLab Light", "JupyterLab Dark"])
def test_views_are_drawn_in_light_and_dark(page: Any, lab: Lab, theme: str) -> None:
    cells = (
        START.format(n=600, size=200).rpartition("\n")[0] + "\ntable",
        "af.Hierarchy.from_nested(af.datasets.nursery_hierarchies()['has_nurs'])",
        "made = af.anonymize(table, 'mondrian', k=10)\nmade",
        "af.verify(table, made)",
        "made.release(seed=2**127)",
    )
    lab.theme(theme)
    name = "views-" + theme.split()[1].lower()
    run_all(page, lab.notebook(name, *cells))
    page.locator(".anonflow-view").nth(4).wait_for()
    colours = page.evaluate(
        """() => [...document.querySelectorAll('.anonflow-view svg text')].map(
            text => getComputedStyle(text).fill)"""
    )
    assert len(set(colours)) == 1
    red, green, blue = (int(part) for part in re.findall(r"\d+", colours[0])[:3])
    bright = (red + green + blue) / 3 > 127
    assert bright == (theme == "JupyterLab Dark")
    page.set_viewport_size({"width": 1400, "height": 2600})
    page.wait_for_timeout(800)
    page.screenshot(path=OUT / f"jupyterlab-{name}.png")


def test_the_dashboard_has_the_theme_of_the_notebook(page: Any, lab: Lab) -> None:
    lab.theme("JupyterLab Dark")
    run_all(page, lab.notebook("dark-dashboard", "import anonflow as af\naf.dashboard()"))
    page.locator(".af-app.af-dark").wait_for()
    page.get_by_role("button", name="Dark mode").click()
    page.locator(".af-app:not(.af-dark)").wait_for()


def test_the_dashboard_is_shown_in_a_cell(page: Any, lab: Lab) -> None:
    """All of it comes with the cell: no other host is asked, and clicks are answered."""
    lab.theme("JupyterLab Light")
    shown = START.format(n=600, size=200).splitlines()[0]
    cell = (
        f"{shown}\ntable = af.Table(af.datasets.census_like(600, seed=1), af.datasets.schema('census_like'))\n"
        "app = af.dashboard(table)\napp"
    )
    run_all(page, lab.notebook("dashboard", cell))
    page.get_by_text("records (99.7%) are unique on these quasi-identifiers").wait_for()
    page.screenshot(path=OUT / "jupyterlab-dashboard.png")
    steps = page.locator("button[data-step]")
    # the bar is as wide as the cell, not as the window: its words fit
    assert all(
        step.evaluate(
            "step => step.querySelector('.step').scrollWidth <= step.querySelector('.step').clientWidth"
        )
        for step in steps.all()
    )
    protect = page.locator("button[data-step]").filter(has_text="Protect")
    click_until(page, protect, page.get_by_text("How strong is the protection to be?"))
    assert not page.get_by_text("Nothing answers here").is_visible()
    # words have room in a narrow window, and a screen that is opened from below the one before begins at its top
    page.set_viewport_size({"width": 980, "height": 800})
    page.locator(".af-unfold button").click()
    slider = page.locator(".af-k")
    assert slider.bounding_box()["width"] > 350
    assert page.get_by_label("or type k").bounding_box()["y"] > slider.bounding_box()["y"] + 50
    page.locator(".af-next button").click()
    page.locator("button[data-step][aria-current=step]", has_text="Compare").wait_for()
    page.wait_for_function(
        "() => document.querySelector('.jp-OutputArea-output').getBoundingClientRect().top > 0"
    )
    page.locator(".af-back button").wait_for()
    # a saved notebook, opened without its kernel, says what to do
    saved = lab.home / "dashboard.ipynb"
    for _ in range(20):
        page.locator(".jp-Cell .jp-InputArea-editor").first.click()
        page.keyboard.press("Control+s")
        page.wait_for_timeout(500)
        if "docs_json" in saved.read_text(encoding="utf-8"):
            break
    page.get_by_role("menuitem", name="Kernel", exact=True).click()
    page.get_by_role("menuitem", name="Shut Down Kernel", exact=True).click()
    page.wait_for_timeout(2_000)
    page.goto(f"{lab.url}/lab/workspaces/saved/tree/dashboard.ipynb?reset")
    page.get_by_text("Nothing answers here. If the kernel is not busy, run this cell again.").wait_for()


def test_a_workbook_that_is_not_trusted_shows_its_summary_and_pictures(page: Any, lab: Lab) -> None:
    """The summary stands on the first screen, and drawings are PNG, since JupyterLab shows no SVG of a notebook it does not trust."""
    name = "3-constrained-k-anonymity.ipynb"
    shutil.copy(ROOT / "notebooks" / "papers" / name, lab.home)
    lab.theme("JupyterLab Light")
    page.set_viewport_size({"width": 1400, "height": 1000})
    page.goto(f"{lab.url}/lab/workspaces/paper/tree/{name}?reset")
    summary = page.locator(".jp-Notebook .jp-OutputArea-output table").first
    summary.wait_for()
    assert "do not hold" in summary.inner_text()
    assert summary.bounding_box()["y"] < 1000
    page.get_by_title("Notebook not trusted").first.wait_for(state="attached")
    picture = page.locator(".jp-Notebook .jp-OutputArea-output img[src^='data:image/png']").first
    page.locator(".jp-Notebook").hover()
    for _ in range(60):  # outputs are drawn where one has scrolled to
        if picture.count():
            break
        page.mouse.wheel(0, 1500)
        page.wait_for_timeout(100)
    assert picture.evaluate("picture => picture.naturalWidth") > 300
