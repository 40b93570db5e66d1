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

OUT = ROOT / "out"
"""Screenshots are kept here."""

CHROMIUM = [
    "--no-sandbox", "--disable-gpu", "--disable-quic", "--no-first-run", "--disable-background-networking",
    "--disable-component-update", "--disable-sync", "--disable-dev-shm-usage",
]  # fmt: skip

READY = """() => {
  if (!(window.Bokeh && Bokeh.documents.length > 0 && Bokeh.documents[0].is_idle)) return false;
  const inside = (root) => [...root.querySelectorAll("*")].some(
    (node) => node.matches("li button[data-step]") || (node.shadowRoot && inside(node.shadowRoot)));
  return inside(document);
}"""
"""The page is drawn, its steps are there, and nothing is on its way."""


def outside(urls: list[str]) -> list[str]:
    """What was asked of another host."""
    requests = [urlsplit(url) for url in urls]
    return sorted(
        {item.geturl() for item in requests if item.scheme in ("http", "https", "ws", "wss")
         and item.hostname not in ("127.0.0.1", "localhost")}
    )  # fmt: skip


def ready(page: Any, timeout: float = 30_000) -> None:
    """Wait until a page is idle."""
    page.wait_for_function(READY, timeout=timeout)


def shot(page: Any, name: str, **settings: Any) -> Path:
    """Keep a screenshot."""
    OUT.mkdir(exist_ok=True)
    path = OUT / f"{name}.png"
    page.screenshot(path=path, **settings)
    return path


class Served:
    """A server in a process of its own."""

    def __init__(self, arguments: tuple[str, ...], folder: Path, stdin: str | None = None) -> None:
        self.log = folder / f"server-{time.monotonic_ns()}.log"
        with self.log.open("wb") as log:
            self.process = subprocess.Popen(
                [sys.executable, "-m", "anonflow", "dashboard", "--no-browser", "--port", "0", *arguments],
                cwd=ROOT,
                stdout=log,
                stderr=subprocess.STDOUT,
                start_new_session=True,
                env={**os.environ, "PYTHONPATH": str(ROOT), "TMPDIR": str(folder), "PYTHONFAULTHANDLER": "1"},
            )
        until = time.monotonic() + 90
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
            with urllib.request.urlopen(request, timeout=20) as answer:
                return answer.status, answer.read().decode()
        except urllib.error.HTTPError as error:
            return error.code, error.read().decode()

    def stop(self) -> int:
        """End it, and say how it ended."""
        self.process.terminate()
        try:
            return self.process.wait(30)
        except subprocess.TimeoutExpired:
            self.process.send_signal(signal.SIGABRT)  # its log then says where it hangs
            self.process.wait(10)
            raise AssertionError(f"the server did not end: {self.text()[-3000:]}") from None


@pytest.fixture(scope="session")
def browser() -> Iterator[Any]:
    """One Chromium for all tests."""
    sync_api = pytest.importorskip("playwright.sync_api", reason="the browser tests need playwright")
    program = shutil.which("chromium") or shutil.which("chromium-browser") or shutil.which("google-chrome")
    if program is None:
        pytest.skip("there is no Chromium here")
    with sync_api.sync_playwright() as playwright:
        chromium = playwright.chromium.launch(executable_path=program, headless=True, args=CHROMIUM)
        yield chromium
        chromium.close()


@pytest.fixture
def new_page(browser: Any) -> Iterator[Callable[..., Any]]:
    """Make pages, each in a context of its own, as different people have them."""
    contexts = []

    def make(**settings: Any) -> Any:
        # colours at once: a fade that starts late on a busy machine is no colour of the page
        usual = {"viewport": {"width": 1280, "height": 800}, "reduced_motion": "reduce"}
        settings = {**usual, "accept_downloads": True, **settings}
        context = browser.new_context(**settings)
        context.set_default_timeout(30_000)
        contexts.append(context)
        page = context.new_page()
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
        item.stop()


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
    page.get_by_text("Your own file", exact=True).click()
    page.locator("input[type=file]").first.set_input_files(path)
