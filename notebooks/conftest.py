"""How a notebook that is tested reaches its kernel.

A kernel's ports are looked for, released, and taken when it has started: on a busy machine another process takes one in between, and
the kernel dies ("Kernel died before replying to kernel_info"). Files in a folder of its own are nobody else's.
"""

from __future__ import annotations

import tempfile
from pathlib import Path

import nbval.kernel
import pytest
from jupyter_client.manager import KernelManager


def pytest_configure(config: pytest.Config) -> None:
    """Let every kernel's sockets be files in a temporary folder, which goes with the tests."""
    sockets = tempfile.TemporaryDirectory(prefix="kernels-")

    def manager(**options: object) -> KernelManager:
        folder = tempfile.mkdtemp(dir=sockets.name)
        return KernelManager(transport="ipc", ip=str(Path(folder) / "kernel"), **options)

    # nbval starts a kernel before any fixture is set up, and takes no options for it.
    nbval.kernel.KernelManager = manager
    config.add_cleanup(sockets.cleanup)
