"""The worker processes of a server, without any: how they are ended."""

from __future__ import annotations

import threading
from types import SimpleNamespace
from typing import Any

import pytest

pytest.importorskip("panel", reason="the dashboards are an extra")
from anonflow.dashboards.server.workers import SharedCluster


def test_a_server_ends_whose_workers_do_not_in_time(caplog: pytest.LogCaptureFixture) -> None:
    """On a busy machine a planned stop ended in a traceback, and did not say what goes on when the server is started again."""
    cluster: Any = SharedCluster.__new__(SharedCluster)
    ended: list[str] = []

    def late(part: str) -> Any:
        def close(timeout: float) -> None:
            ended.append(part)
            raise TimeoutError(f"timed out after {timeout} s.")

        return SimpleNamespace(close=close)

    cluster._lock, cluster._timer = threading.Lock(), None
    cluster._client, cluster._cluster = late("client"), late("workers")
    cluster.close()
    assert ended == ["client", "workers"]
    assert [record.getMessage() for record in caplog.records] == [
        "the workers did not end in time; the system ends them with this process"
    ]
