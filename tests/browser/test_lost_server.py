"""A server that is killed with an upload in it, and started again: whose page it was goes on, nobody else has anything."""

from __future__ import annotations

import os
import re
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


def killed(served: Served) -> None:
    served.process.kill()
    served.process.wait()


def test_what_was_open_when_a_server_was_killed(
    new_page: Callable[..., Any], flow: Callable[..., str], tmp_path: Path
) -> None:
    """One browser had uploaded a table, another had runs at work; the server is killed twice, and is late at last."""
    census = flow(40_000, 40_000, "mondrian, greedy")
    arguments = (census, "--port", str(free_port()))
    table = tmp_path / "people.csv"
    pd.DataFrame(
        {"age": [20 + i % 50 for i in range(120)], "town": [f"Town{i % 5}" for i in range(120)]}
    ).to_csv(table, index=False)
    served = Served(arguments, tmp_path, fresh=True)
    page, running, stranger = new_page(), new_page(), new_page()
    page.goto(served.url)
    ready(page)
    upload(page, table)
    page.get_by_text("120 records, 2 columns").first.wait_for()
    ready(page)
    running.goto(served.url)
    ready(running)
    step(running, "Compare")
    press(running, ".af-run", lambda: seen(running, "2 of 4 runs done").wait_for(timeout=60_000))
    seen(running, "Running greedy").wait_for()
    running.locator(".af-runs .tabulator-row").nth(1).wait_for()
    measures = running.locator(".af-runs .tabulator-row").all_inner_texts()
    assert len(measures) == 2
    killed(served)
    assert uploads(tmp_path) == ["people.csv"]

    served = Served(arguments, tmp_path, fresh=True)
    assert uploads(tmp_path) == ["people.csv"]
    # a stranger has nothing of it; neither does an address, whatever it names
    stranger.goto(served.url)
    ready(stranger)
    status = stranger.locator("[role=status]").first.inner_text()
    assert "40,000 records" in status
    assert "open again" not in status
    (folder,) = (path.parent.parent for path in tmp_path.glob("anonflow-sessions-*/*/files/people.csv"))
    for named in (f"?bokeh-session-id={folder.name}", f"?bokeh-session-id={folder.name.partition('-')[0]}"):
        assert served.get(named)[0] == 403
    # whose page it was goes on, by itself
    page.get_by_text("your table is open again").first.wait_for()
    page.get_by_text("120 records, 2 columns").first.wait_for()
    assert uploads(tmp_path) == ["people.csv"]
    # runs that were done are there, with their results, and those at work are named
    seen(running, "Not finished: greedy k=5, greedy k=10").wait_for()
    running.locator(".af-runs .tabulator-row").nth(1).wait_for()
    assert running.locator(".af-runs .tabulator-row").all_inner_texts() == measures
    running.locator("nav li button", has_text="Explore").get_by_text(
        re.compile("^mondrian k=")
    ).first.wait_for()
    press(running, ".af-run", lambda: seen(running, "of 4 runs done").wait_for(timeout=60_000))
    press(running, ".af-cancel", lambda: seen(running, "Cancelled").wait_for(timeout=60_000))
    for item in (page, running, stranger):  # each waited for the server, which did not answer
        assert not [error for error in item.errors if "ERR_CONNECTION_REFUSED" not in error], item.errors
    # a planned stop loses no more than that
    assert served.stop() == 0
    assert "2 sessions with work in them can go on for 1h" in served.text()
    assert uploads(tmp_path) == ["people.csv"]

    # what is kept for a second is swept after two
    for lock in tmp_path.glob("anonflow-sessions-*/*/lock"):
        os.utime(lock, (lock.stat().st_mtime - 2,) * 2)
    served = Served((*arguments, "--keep", "1s"), tmp_path, fresh=True)
    try:
        assert uploads(tmp_path) == []
        page.goto(served.url)
        ready(page)
        assert "40,000 records" in page.locator("[role=status]").first.inner_text()
        upload(page, table)
        page.get_by_text("120 records, 2 columns").first.wait_for()
        assert uploads(tmp_path) == ["people.csv"]
    finally:
        served.stop()
    assert uploads(tmp_path) == ["people.csv"]
    served = Served((*arguments, "--keep", "0"), tmp_path, fresh=True)
    served.stop()
    assert uploads(tmp_path) == []
