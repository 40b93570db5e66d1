"""The settings of a server, and what contradicts itself in them."""

from __future__ import annotations

import ipaddress
import re
from collections.abc import Sequence
from dataclasses import dataclass, field
from pathlib import Path

from anonflow.dashboards.session.files.folders import KEPT
from anonflow.dashboards.work.user_limits import Limits
from anonflow.errors import ParameterError

LOOPBACK = ("127.0.0.1", "localhost", "::1")

_NOT_TRUSTED = {"accept", "accept-encoding", "accept-language", "authorization", "cache-control", "connection", "content-length",
                "content-type", "cookie", "date", "forwarded", "host", "origin", "referer", "upgrade", "user-agent", "via",
                "x-forwarded-for", "x-forwarded-host", "x-forwarded-port", "x-forwarded-proto", "x-real-ip",
                "x-request-id", "x-scheme"}  # fmt: skip
"""Headers that every browser or proxy sends, and that name no user."""


@dataclass(frozen=True)
class ServerSettings:
    """The settings of a server."""

    start: Path | None = None
    """A table or a flow that every session begins with."""
    address: str = "127.0.0.1"
    """Of the interface that is listened on."""
    port: int = 5006
    """The port to listen on; 0 takes a free one."""
    hosts: tuple[str, ...] = ()
    """Allowed host names of the server, besides its own address."""
    users: Path | None = field(default=None, repr=False)
    """The file of accounts; without it there is no login."""
    limits: Limits | None = None
    """Those of a hosted server, or what a machine of one's own can show, without it."""
    workers: int | None = None
    """Worker processes that all sessions share; 0 runs everything on threads of the server. As many as there
    are processors on a hosted server, 0 at home, without it."""
    https: bool = False
    """Whether a proxy in front speaks https with the browsers."""
    proxied: bool = False
    """Whether a proxy in front says who asks, in X-Real-IP or X-Forwarded-For."""
    proxies: tuple[str, ...] = ("127.0.0.1", "::1")
    """Addresses and networks of that proxy: what others say in headers is not believed."""
    trust_header: str | None = None
    """The header in which that proxy names who signed in there, such as X-Forwarded-User."""
    metrics: bool = False
    """Whether ``/metrics`` tells its operator how many sessions, runs and bytes there are."""
    metrics_readers: tuple[str, ...] = ("127.0.0.1", "::1")
    """Addresses and networks that may read it."""
    open_to_all: bool = False
    """Whether others may come in without signing in."""
    owner: Path | None = None
    """Where keyed marks of the people of releases are kept, so that a second release of them warns; of a server with
    accounts, each user's in a folder of their own. Beside what is opened at home, as a flow's, without it."""
    keep: float = KEPT
    """Seconds that a session is kept after its page was closed, and uploads if this server is lost, to go on with;
    0 is not at all."""
    sessions: Path | None = None
    """The folder of the sessions, with their uploads; below the temporary folder, which a service manager or a container may empty with each stop,
    without it."""

    def owner_of(self, user: str) -> Path | None:
        """Return the owner's folder of a user's releases; None where nothing is kept."""
        if self.owner is None:
            return None if self.start is None or self.hosted else self.start.parent / "owner"
        return self.owner / user if user else self.owner

    def shares_owner(self, user: str) -> bool:
        """Return whether strangers' releases are kept in the same owner's folder: on a server to which people come without a name."""
        return self.hosted and not user

    @property
    def hosted(self) -> bool:
        """Whether others than the user who started it may use it."""
        return bool(self.users or self.hosts or self.proxied or self.address not in LOOPBACK)

    def check(self) -> None:
        """Refuse networks that are none, and contradictory settings of a proxy.

        Raises
        ------
        ParameterError
            If there are some.
        """
        _check_networks("--proxy-address", self.proxies)
        _check_networks("--metrics-from", self.metrics_readers)
        _check_proxy(self)


def _check_networks(option: str, networks: Sequence[str]) -> None:
    """Refuse anything but addresses and networks, and the network of all addresses."""
    for text in networks:
        try:
            network = ipaddress.ip_network(text, strict=False)
        except ValueError:
            raise ParameterError(
                f"{option} {text!r} is not an address or network, such as 10.0.0.7"
            ) from None
        if not network.prefixlen:
            raise ParameterError(f"{option} {text!r} covers every address; name single addresses or networks")


def _check_proxy(settings: ServerSettings) -> None:
    """Refuse contradictory settings of a proxy: a header that is trusted without one, or beside accounts of our own."""
    header = settings.trust_header
    if header is None:
        return
    if re.fullmatch(r"[A-Za-z][A-Za-z0-9-]{0,63}", header) is None or header.lower() in _NOT_TRUSTED:
        raise ParameterError(
            f"--trust-header {header!r} names no user; take a header such as X-Forwarded-User"
        )
    if not settings.proxied:
        raise ParameterError("--trust-header needs --behind-proxy: anybody can send a header")
    if settings.users is not None:
        raise ParameterError("--trust-header and --users are two ways to sign in; take one of them")
