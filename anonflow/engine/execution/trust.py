"""Local clusters that only their own process can use: TLS with certificates that are made for the occasion."""

from __future__ import annotations

from typing import Any

__all__ = ["guarded", "known", "security_of"]

_KNOWN: dict[str, Any] = {}
"""Scheduler address -> what this process may reach it with."""


def guarded() -> dict[str, Any]:
    """Return how a local cluster is started so that no other account of the machine can reach it.

    Returns
    -------
    dict
        ``protocol`` and ``security`` of a ``distributed.LocalCluster``: TLS with a certificate that exists in memory only,
        in this process and in its workers. A scheduler that answers on an open port of the machine would run the code
        of whoever connects, with the rights of this account.
    """
    from distributed.security import Security

    return {"protocol": "tls://", "security": Security.temporary()}


def known(address: str, security: Any) -> None:
    """Remember what this process may reach a cluster of its own with."""
    _KNOWN[address] = security


def security_of(where: Any) -> Any:
    """Return what a scheduler is reached with: a cluster's own, that of a known address, or what Dask is configured with."""
    if isinstance(where, str):
        return _KNOWN.get(where)
    return getattr(where, "security", None)
