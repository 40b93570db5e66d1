"""A server that is killed with an upload in it, and started again: whose page it was goes on, nobody else has anything."""

from __future__ import annotations

import os
import socket
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pandas as pd

from tests.browser.conftest import Served, ready, upload
from tests.browser.steps import press, seen, step


def free_port() -> int:
    with socket.socket() as probe:
        probe.bind(("127.0.0.1", 0))
        return int(probe.getsockname()[1])


def uploads(home: Path) -> list[str]:
    """The uploads that lie below a temporary folder."""
    return sorted(path.name for path in home.glob("anonflow-sessions-*/*/files/*"))


def killed_with_an_upload(page: Any, home: Path, port: int) -> None:
    """Start a server, upload a table to it, and kill it."""
    frame = pd.DataFrame(
        {"age": [20 + i % 50 for i in range(120)], "town": [f"Town{i % 5}" for i in range(120)]}
    )
    frame.to_csv(home / "people.csv", index=False)
    served = Served(("--port", str(port)), home)
    page.goto(served.url)
    ready(page)
    upload(page, home / "people.csv")
    page.get_by_text("120 records, 2 columns").first.wait_for()
    ready(page)
    served.process.kill()
    served.process.wait()
    assert uploads(home) == ["people.csv"]


def test_its_own_browser_goes_on_and_nobody_else(new_page: Callable[..., Any], tmp_path: Path) -> None:
    port = free_port()
    page = new_page()
    killed_with_an_upload(page, tmp_path, port)
    served = Served(("--port", str(port)), tmp_path)
    try:
        assert uploads(tmp_path) == ["people.csv"]
        other = new_page()
        other.goto(served.url)
        ready(other)
        assert "Open a table to begin" in other.locator("[role=status]").first.inner_text()
        # neither does an address, whatever it names
        (folder,) = (path.parent.parent for path in tmp_path.glob("anonflow-sessions-*/*/files/people.csv"))
        for named in (
            f"?bokeh-session-id={folder.name}",
            f"?bokeh-session-id={folder.name.partition('-')[0]}",
        ):
            assert served.get(named)[0] == 403
        page.goto(served.url)
        page.get_by_text("120 records, 2 columns").first.wait_for()
        assert "open again" in page.locator("[role=status]").first.inner_text()
        assert uploads(tmp_path) == ["people.csv"]
        assert not other.errors
    finally:
        served.stop()
    assert uploads(tmp_path) == []


def test_what_it_left_is_swept_after_its_time(new_page: Callable[..., Any], tmp_path: Path) -> None:
    port = free_port()
    page = new_page()
    killed_with_an_upload(page, tmp_path, port)
    for lock in tmp_path.glob("anonflow-sessions-*/*/lock"):
        os.utime(lock, (lock.stat().st_mtime - 2,) * 2)  # it was killed two seconds ago
    served = Served(("--port", str(port), "--keep", "1s"), tmp_path)
    try:
        assert uploads(tmp_path) == []
        page.goto(served.url)
        ready(page)
        assert "Open a table to begin" in page.locator("[role=status]").first.inner_text()
    finally:
        served.stop()


def test_runs_that_were_done_come_back_and_those_at_work_are_named(
    new_page: Callable[..., Any], flow: Callable[..., str], tmp_path: Path
) -> None:
    port = free_port()
    census = flow(40_000, 40_000, "mondrian, greedy")
    served = Served((census, "--port", str(port)), tmp_path)
    page = new_page()
    page.goto(served.url)
    ready(page)
    step(page, "Compare")
    press(page, ".af-run", lambda: seen(page, "2 of 4 runs done").wait_for(timeout=60_000))
    seen(page, "Running greedy").wait_for(timeout=60_000)
    page.locator(".af-runs .tabulator-row").nth(1).wait_for()
    measures = page.locator(".af-runs .tabulator-row").all_inner_texts()
    assert len(measures) == 2
    served.process.kill()
    served.process.wait()
    served = Served((census, "--port", str(port)), tmp_path)
    try:
        page.goto(f"{served.url}?screen=compare")
        seen(page, "Not finished: greedy k=5, greedy k=10").wait_for()
        page.locator(".af-runs .tabulator-row").nth(1).wait_for()
        assert page.locator(".af-runs .tabulator-row").all_inner_texts() == measures
        press(page, ".af-run", lambda: seen(page, "of 4 runs done").wait_for(timeout=60_000))
        press(page, ".af-cancel", lambda: seen(page, "Cancelled").wait_for(timeout=60_000))
        assert not page.errors, page.errors
    finally:
        served.stop()
