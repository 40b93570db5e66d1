"""Local Dask clusters: another account of the machine connects to the scheduler's port, and has it run code.

Figure: any account could submit tasks to the workers of a run with ``scheduler: processes`` and of the hosted dashboard, with the
rights of who runs them. Without the certificate that exists in this process alone, no connection may get that far. That
keys of tasks name no cell is tested with the engine.
"""

from __future__ import annotations

import asyncio
import logging
from typing import Any

import pytest
from distributed import Client, LocalCluster
from distributed.security import Security

from anonflow.engine.execution.trust import guarded, known, security_of


async def submitted(address: str, security: Any, seconds: float) -> int:
    """Have a scheduler add two numbers; on this thread, for a starved machine may not begin Dask's own in its ten seconds."""
    async with Client(
        address, timeout=seconds, security=security, set_as_default=False, asynchronous=True
    ) as client:
        total: int = await asyncio.wait_for(client.submit(sum, [1, 2]), seconds)
        return total


@pytest.mark.machine
@pytest.mark.slow
@pytest.mark.filterwarnings("ignore")
def test_nobody_else_can_submit_code() -> None:
    with LocalCluster(
        n_workers=1, threads_per_worker=1, processes=True, dashboard_address="127.0.0.1:0",
        silence_logs=logging.CRITICAL, **guarded(),
    ) as cluster:  # fmt: skip
        address = cluster.scheduler_address
        assert address.startswith("tls://")
        assert all(
            worker["nanny"].startswith("tls://") for worker in cluster.scheduler_info["workers"].values()
        )
        for target, security in (
            (address, None),
            (address.replace("tls", "tcp"), None),
            (address, Security.temporary()),
        ):
            with pytest.raises((OSError, TypeError, TimeoutError)):
                asyncio.run(submitted(target, security, 3))
        known(address, cluster.security)
        assert asyncio.run(submitted(address, security_of(address), 300)) == 3


def test_two_clusters_do_not_trust_each_other() -> None:
    item, two = guarded()["security"], guarded()["security"]
    assert item.tls_ca_file != two.tls_ca_file
    assert security_of("tcp://192.0.2.1:8786") is None
