"""The documentation in a real browser: every page opens without an error and asks nothing of another host."""

from __future__ import annotations

import functools
import threading
from collections.abc import Iterator
from http.server import SimpleHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path
from typing import Any

import pytest

from tests.browser.conftest import outside

pytestmark = pytest.mark.slow


class _Quiet(SimpleHTTPRequestHandler):
    def log_message(self, format: str, *args: object) -> None:
        pass


@pytest.fixture
def address(site: Path) -> Iterator[str]:
    """The site's address on this machine."""
    with ThreadingHTTPServer(("127.0.0.1", 0), functools.partial(_Quiet, directory=str(site))) as server:
        thread = threading.Thread(target=server.serve_forever, daemon=True)
        thread.start()
        yield f"http://127.0.0.1:{server.server_address[1]}/"
        server.shutdown()
        thread.join()


def test_a_browser_requests_nothing_outside(site: Path, address: str, page: Any) -> None:
    page.set_default_timeout(120_000)
    pages = sorted(path.relative_to(site).as_posix() for path in site.rglob("*.html"))
    for path in pages:
        page.goto(address + path)
    page.goto(address + "search.html?q=certificate")
    page.wait_for_selector("#search-results li")
    assert len(page.requested) > len(pages)
    assert outside(page.requested) == []
    assert page.errors == []
