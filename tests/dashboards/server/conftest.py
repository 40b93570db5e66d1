"""Servers that end with their test, and their users."""

from __future__ import annotations

import gc
import math
import warnings
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest

pytest.importorskip("panel", reason="the dashboards are an extra")
from bokeh.server.session import ServerSession

from anonflow.dashboards.server import seats, server
from anonflow.dashboards.server.accounts import add_account
from tests.dashboards.server.running import PASSWORD, Running


@pytest.hookimpl(tryfirst=True)
def pytest_collection_modifyitems(items: list[pytest.Item]) -> None:
    """Say that a test that asks a running server needs the machine: its sockets, and a thread."""
    for item in items:
        if item.path.parent == Path(__file__).parent and "running" in getattr(item, "fixturenames", ()):
            item.add_marker(pytest.mark.machine)


@pytest.fixture
def running(monkeypatch: pytest.MonkeyPatch) -> Iterator[Callable[..., Running]]:
    monkeypatch.setattr(server, "LOST", 0.2)
    monkeypatch.setattr(server, "LOOK", 0.2)
    servers: list[Running] = []

    def start(**settings: Any) -> Running:
        servers.append(Running(**settings))
        return servers[-1]

    yield start
    for item in servers:
        item.stop()
    with warnings.catch_warnings():  # tornado leaves sockets to the collector when its loop ends
        warnings.simplefilter("ignore", ResourceWarning)
        gc.collect()


@pytest.fixture
def stay(monkeypatch: pytest.MonkeyPatch) -> None:
    """Sessions stay though no page looks at them: however busy the machine is, none ends before it was looked at."""
    monkeypatch.setattr(ServerSession, "milliseconds_since_last_unsubscribe", 0.0)
    monkeypatch.setattr(seats, "LOADING", math.inf)


@pytest.fixture
def users(tmp_path: Path, quick_hashes: None) -> Path:
    path = tmp_path / "users"
    add_account(path, "anna", PASSWORD)
    add_account(path, "bert", PASSWORD)
    return path
