"""Local clusters that only their own process can use: TLS with a new certificate for each cluster."""

from __future__ import annotations

from typing import Any

_KNOWN: dict[str, Any] = {}
"""Scheduler address -> the security settings with which this process reaches it."""


def guarded() -> dict[str, Any]:
    """Return the settings of a local cluster that no other account of the machine can reach.

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
    """Store the security settings of a cluster of this process."""
    _KNOWN[address] = security


def security_of(where: Any) -> Any:
    """Return the security settings for a scheduler: a cluster's own, those of a known address, or Dask's configuration."""
    if isinstance(where, str):
        return _KNOWN.get(where)
    return getattr(where, "security", None)
