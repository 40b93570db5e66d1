"""A real Chromium, a page that remembers what it asked for, and the server that it asks."""

from __future__ import annotations

import os
import shutil
import signal
import subprocess
import sys
import time
import urllib.request
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any
from urllib.parse import urlsplit

import pytest

from tests import ROOT
from tests.browser.forks import Fork

OUT = ROOT / "out"
"""Screenshots are kept here."""

HOME = Path(__file__).parent

PATIENCE = 180
"""Seconds that anything may take on a busy machine. What is tried again if it was not heard waits less each time."""

CHROMIUM = [
    "--no-sandbox", "--disable-gpu", "--disable-quic", "--no-first-run", "--disable-background-networking",
    "--disable-component-update", "--disable-sync", "--disable-dev-shm-usage",
]  # fmt: skip

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

HEARD = """(() => {
  const heard = window.heard = { changes: 0, answers: 0, at: -1000 };
  const Socket = window.WebSocket, repeat = window.setInterval;
  const begins = (data, pattern) => typeof data === "string" && data.startsWith('{"msgid"') && pattern.test(data.slice(0, 200));
  window.WebSocket = class extends Socket {
    constructor(...address) {
      super(...address);
      this.addEventListener("message", (event) => {
        heard.at = performance.now();
        if (begins(event.data, /"msgtype": ?"(OK|ERROR)"/)) heard.answers += 1;
      });
    }
    send(data) {
      heard.at = performance.now();
      if (begins(data, /"msgtype": ?"PATCH-DOC"/)) heard.changes += 1;
      super.send(data);
    }
  };
  window.setInterval = (work, wait, ...more) => repeat(work, Math.min(wait, 250), ...more);
  const paint = window.requestAnimationFrame, painted = new WeakMap();
  window.requestAnimationFrame = (work) => {
    const frame = () => paint((now) => { painted.set(work, performance.now()); work(now); });
    if (!(performance.now() - painted.get(work) < 100)) return frame();
    setTimeout(frame, 50);
    return 0;
  };
})()"""
"""Count the changes that a page sends and the answers to them; what it does now and then, it does four times a second, and what
it does with each picture of the screen (FilePond does so from its beginning to its end), at most twenty times."""

READY = """() => {
  if (!(window.Bokeh && Bokeh.documents.length > 0 && Bokeh.documents[0].is_idle)) return false;
  if (window.heard.changes > window.heard.answers || performance.now() - window.heard.at < 150) return false;
  const inside = (root) => [...root.querySelectorAll("*")].some(
    (node) => node.matches("li button[data-step]") || (node.shadowRoot && inside(node.shadowRoot)));
  return inside(document);
}"""
"""The page is drawn, its steps are there, the server has answered every change, and nothing came or went for a moment."""


def outside(urls: list[str]) -> list[str]:
    """What was asked of another host."""
    requests = [urlsplit(url) for url in urls]
    return sorted(
        {item.geturl() for item in requests if item.scheme in ("http", "https", "ws", "wss")
         and item.hostname not in ("127.0.0.1", "localhost")}
    )  # fmt: skip


def ready(page: Any) -> None:
    """Wait until a page is idle."""
    page.wait_for_function(READY)


def shot(page: Any, name: str, **settings: Any) -> Path:
    """Keep a screenshot."""
    OUT.mkdir(exist_ok=True)
    path = OUT / f"{name}.png"
    page.screenshot(path=path, **settings)
    return path


class Served:
    """A server in a process of its own: a fork, or, if `fresh`, one that a shell starts."""

    def __init__(self, arguments: tuple[str, ...], folder: Path, *, fresh: bool = False) -> None:
        self.log = folder / f"server-{time.monotonic_ns()}.log"
        self.process: Any
        arguments = ("dashboard", "--no-browser", "--port", "0", *arguments)
        if not fresh:
            self.log.touch()
            self.process = Fork(*arguments, log=self.log)
        else:
            with self.log.open("wb") as log:
                self.process = subprocess.Popen(
                    [sys.executable, "-m", "anonflow", *arguments],
                    cwd=ROOT,
                    stdout=log,
                    stderr=subprocess.STDOUT,
                    start_new_session=True,
                    env={
                        **os.environ,
                        "PYTHONPATH": str(ROOT),
                        "TMPDIR": str(folder),
                        "PYTHONFAULTHANDLER": "1",
                    },
                )
        until = time.monotonic() + PATIENCE
        while "the dashboards are at" not in (text := self.text()):
            assert self.process.poll() is None, text
            assert time.monotonic() < until, text
            time.sleep(0.1)
        self.url = text.partition("the dashboards are at ")[2].split()[0]

    def text(self) -> str:
        """What it has said."""
        return self.log.read_text(encoding="utf-8", errors="replace")

    def get(self, path: str = "", **headers: str) -> tuple[int, str]:
        """Status and body of a request."""
        request = urllib.request.Request(self.url + path.lstrip("/"), headers=headers)
        try:
            with urllib.request.urlopen(request, timeout=PATIENCE) as answer:
                return answer.status, answer.read().decode()
        except urllib.error.HTTPError as error:
            return error.code, error.read().decode()

    def stop(self) -> int:
        """End it, and say how it ended."""
        self.process.terminate()
        try:
            return self.process.wait(PATIENCE)
        except subprocess.TimeoutExpired:
            self.process.send_signal(signal.SIGABRT)  # its log then says where it hangs
            self.process.wait(10)
            raise AssertionError(f"the server did not end: {self.text()[-3000:]}") from None


@pytest.hookimpl(tryfirst=True)
def pytest_collection_modifyitems(items: list[pytest.Item]) -> None:
    """Say that every test of this folder needs a browser, and with it the machine."""
    for item in items:
        if item.path.is_relative_to(HOME):
            item.add_marker(pytest.mark.browser)
            item.add_marker(pytest.mark.machine)


@pytest.fixture(scope="session")
def browser() -> Iterator[Any]:
    """One Chromium for all tests."""
    sync_api = pytest.importorskip("playwright.sync_api", reason="the browser tests need playwright")
    program = shutil.which("chromium") or shutil.which("chromium-browser") or shutil.which("google-chrome")
    if program is None:
        pytest.skip("there is no Chromium here")
    sync_api.expect.set_options(timeout=1000 * PATIENCE)
    with sync_api.sync_playwright() as playwright:
        chromium = playwright.chromium.launch(executable_path=program, headless=True, args=CHROMIUM)
        yield chromium
        chromium.close()


@pytest.fixture
def new_page(browser: Any) -> Iterator[Callable[..., Any]]:
    """Make pages, each in a context of its own, as different people have them."""
    contexts, pages = [], []

    def make(**settings: Any) -> Any:
        # colours at once: a fade that starts late on a busy machine is no colour of the page
        usual = {"viewport": {"width": 1280, "height": 800}, "reduced_motion": "reduce"}
        settings = {**usual, "accept_downloads": True, **settings}
        context = browser.new_context(**settings)
        context.set_default_timeout(1000 * PATIENCE)
        context.add_init_script(HEARD)
        contexts.append(context)
        page = context.new_page()
        pages.append(page)
        page.requested, page.errors = [], []
        page.on("request", lambda request: page.requested.append(request.url))
        page.on("websocket", lambda socket: page.requested.append(socket.url))
        page.on("pageerror", lambda error: page.errors.append(error.stack or str(error)))
        page.on(
            "console",
            lambda message: message.type == "error" and page.errors.append(message.text),
        )
        return page

    yield make
    for context in contexts:
        context.close()
    # a page stands still where a change fails in it, mostly long before anybody notices
    assert [error for page in pages for error in page.errors if "TypeError" in error] == []


@pytest.fixture
def page(new_page: Callable[..., Any]) -> Any:
    """A page at 1280 x 800."""
    return new_page()


@pytest.fixture(scope="module")
def serve(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Callable[..., Served]]:
    """Start servers; the same arguments give the same server."""
    running: dict[tuple[str, ...], Served] = {}

    def start(*arguments: str) -> Served:
        if arguments not in running:
            running[arguments] = Served(arguments, tmp_path_factory.mktemp("server"))
        return running[arguments]

    yield start
    for item in running.values():
        item.process.terminate()  # all end at the same time
    for item in running.values():
        item.stop()


@pytest.fixture
def flow(tmp_path_factory: pytest.TempPathFactory) -> Callable[..., str]:
    """Write a flow of census-like people in a folder of its own: beside a flow lies what was released of its people."""

    def write(n: int = 120, size: int = 60, methods: str = "greedy, mondrian") -> str:
        path = tmp_path_factory.mktemp("flow") / "census.yaml"
        first = methods.partition(",")[0]
        path.write_text(FLOW.format(n=n, size=size, methods=methods, first=first), encoding="utf-8")
        return str(path)

    return write


@pytest.fixture(scope="session")
def axe() -> str:
    """The script of axe-core: fetched for the tests, and no part of this project."""
    script = os.environ.get("ANONFLOW_AXE")
    if not script or not Path(script).is_file():
        pytest.skip(
            "ANONFLOW_AXE names no axe.min.js: npm pack axe-core, unpack it, and name package/axe.min.js"
        )
    return Path(script).read_text(encoding="utf-8")


def upload(page: Any, path: Path) -> None:
    way = page.get_by_text("Your own file", exact=True)
    if not way.is_visible():  # a table is open
        page.get_by_role("button", name="Open another table").click()
    way.click()
    page.locator("input[type=file]").first.set_input_files(path)
