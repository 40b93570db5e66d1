"""The gateway before the server: every request passes it, static files and websockets too.

Requests under a foreign host name (DNS rebinding), from a foreign page, or without a sign-in are refused.
"""

from __future__ import annotations

import asyncio
import hashlib
import ipaddress
import re
import secrets
import weakref
import zlib
from collections.abc import Callable, Iterable, Mapping
from http.cookies import Morsel
from importlib.resources import files
from typing import Any
from urllib.parse import parse_qs

from bokeh.util.token import check_token_signature, get_token_payload
from tornado.httputil import HTTPHeaders, HTTPServerRequest, ResponseStartLine
from tornado.routing import Router
from tornado.web import (
    Application,
    GZipContentEncoding,
    RequestHandler,
    create_signed_value,
    decode_signed_value,
)

from anonflow.dashboards.server.accounts import Accounts, LoginThrottle, SignedIn, network_of
from anonflow.dashboards.server.server_settings import ServerSettings
from anonflow.engine.duration import in_words

COOKIE = "anonflow-user"
KEY = "anonflow-session"
"""The cookie with the browser's key to its sessions, which is a secret."""
LEAVING = "anonflow-leaving"
"""The cookie in which a page that is about to go says its number; no secret."""
DAYS = 1.0
"""How long a user stays signed in."""

GUESSES = 4
"""Passwords that are checked at the same time; each takes memory."""

_KEY = re.compile("[0-9a-f]{64}")
_NUMBER = re.compile("[0-9a-f]{16}")
_FORWARDED = re.compile(r"[A-Za-z0-9][A-Za-z0-9._@+-]{0,127}")
"""A user's name in a proxy's header."""
PASSED_ON = ("Forwarded", "X-Forwarded-For", "X-Forwarded-Host", "X-Forwarded-Proto", "X-Real-Ip", "Via")
"""Headers of a request that a proxy passed on."""

LOCAL = ("localhost", "127.0.0.1", "[::1]")

POLICY = (
    "default-src 'self'; script-src 'self' 'unsafe-inline' 'unsafe-eval' blob:; style-src 'self' 'unsafe-inline'; "
    "img-src 'self' data: blob:; font-src 'self' data:; connect-src 'self' {sockets} data: blob:; "
    "worker-src 'self' blob:; object-src 'none'; base-uri 'none'; form-action 'self'; frame-ancestors 'none'"
)
"""Panel's pages run inline scripts and compile some of their own; but they may load nothing from another host."""

FILES = ("/static/", "/components/")
"""Where scripts and styles lie, the same for everybody."""


class PackedFiles(GZipContentEncoding):
    """Scripts and styles go to browsers packed. Pages do not: the length of what is packed would tell something of their secrets."""

    def __init__(self, request: HTTPServerRequest) -> None:
        super().__init__(request)
        self._gzipping = self._gzipping and request.path.startswith(FILES)


class Gateway(Router):
    """A router before an application.

    A page's token contains the cookies of its request, and anyone with a copy of the page has the token. So the
    application gets the user's name and a hash of the browser's key, never a cookie.

    Parameters
    ----------
    settings : ServerSettings
        Hosts, proxies, and what a browser keeps.
    accounts : Accounts or None
        None lets every allowed request in.
    healthy : callable
        Whether the server can work; the answer of ``/health``.
    token_secret : bytes
        What the tokens are signed with that open websockets.
    revoke : callable
        Called with a key that has become invalid.
    metrics : callable
        What ``/metrics`` says, where there is such a page.
    """

    def __init__(
        self,
        inside: Application,
        settings: ServerSettings,
        accounts: Accounts | None,
        healthy: Callable[[], bool],
        token_secret: bytes,
        revoke: Callable[[str], None] = lambda key: None,
        metrics: Callable[[], str] = lambda: "",
    ) -> None:
        self.inside = inside
        self.settings = settings
        self.hosts = {name.lower() for name in (settings.address, *settings.hosts, *LOCAL)}
        self.accounts = accounts
        # an address may have several users, so it waits later than a name with it. A name alone never waits: otherwise
        # an attacker at another address could lock its user out; how many guesses there are in all is bounded by their
        # memory
        self.throttles = {"pair": LoginThrottle(5), "address": LoginThrottle(20)}
        self.signed_in = SignedIn(DAYS * 86400)
        self._sockets: dict[str, weakref.WeakSet[Any]] = {}
        self.guessing = asyncio.Semaphore(GUESSES)
        self._token_secret = token_secret
        self._revoke = revoke
        self._proxies = _networks(settings.proxies if settings.proxied else ())
        self._metrics_readers = _networks(settings.metrics_readers)
        self._secret = secrets.token_bytes(32)
        self._pages = Application(
            [
                (
                    r"/health",
                    _MachinePage,
                    {"content": lambda: (200, {"ok": True}) if healthy() else (503, {"ok": False})},
                ),
                (r"/metrics", _MachinePage, {"content": lambda: (200, metrics())}),
                (r"/login", _Login, {"gateway": self}),
                (r"/logout", _Logout, {"gateway": self}),
            ],
            default_handler_class=_Refused,
            default_handler_args={"status": 404, "sentence": "There is no such page."},
        )

    # ---------------------------------------------------------------------------------- every request

    def find_handler(self, request: HTTPServerRequest, **kwargs: Any) -> Any:
        """Return the handler of a request, if it may pass."""
        self._with_headers(request)
        if not self.is_ours(request.host):
            return self._refuse(request, 421, "This server does not have that name.")
        if not self._own_page(request):
            return self._refuse(request, 403, "A page of another site sent this request.")
        self._without_strangers_headers(request)
        path = request.path.rstrip("/") or "/"
        if path == "/health" or (self.accounts is not None and path in ("/login", "/logout")):
            return self._pages.find_handler(request, **kwargs)
        if path == "/metrics" and self.settings.metrics:
            if any(name in request.headers for name in PASSED_ON):
                return self._refuse(
                    request, 403, "This page answers only direct requests, not requests through a proxy."
                )
            if not _is_in(_peer(request), self._metrics_readers):
                return self._refuse(request, 403, "Only the addresses of --metrics-from may read this page.")
            return self._pages.find_handler(request, **kwargs)
        user = self.user_of(request)
        if user is None and self.settings.trust_header is not None:
            return self._refuse(request, 403, "Sign in at the proxy in front of this server.")
        if user is None and self.accounts is not None:
            if request.method in ("GET", "HEAD") and path == "/" and not _is_websocket(request):
                return self._pages.get_handler_delegate(request, _ToLogin)
            return self._refuse(request, 403, "Sign in first.")
        if _names_a_session(request):
            return self._refuse(request, 403, "An address cannot open another user's session.")
        if _is_websocket(request):
            if not self._is_its_own(request):
                return self._refuse(
                    request, 403, "This session was opened in another browser; reload the page."
                )
            if self.accounts is not None:
                self._remember_socket(request)
        elif request.method == "GET" and path == "/":
            self._with_key(request)
        self._without_secrets(request)
        return self.inside.find_handler(request, **kwargs)

    def is_ours(self, host: str | None) -> bool:
        """Return whether a Host header names this server."""
        if not host or not re.fullmatch(r"(\[[0-9A-Fa-f:.]+\]|[A-Za-z0-9._-]+)(:\d{1,5})?", host):
            return False
        whole = host.lower()
        name = whole if whole.endswith("]") else re.sub(r":\d+$", "", whole)
        return whole in self.hosts or name in self.hosts

    def user_of(self, request: HTTPServerRequest) -> str | None:
        """Return who signed in, here or at the proxy; None for nobody."""
        if self.settings.trust_header is not None:
            named = request.headers.get_list(self.settings.trust_header)
            return named[0] if len(named) == 1 and _FORWARDED.fullmatch(named[0]) else None
        number = self._number(request)
        return None if number is None else self.signed_in.user(number)

    def cookie_for(self, name: str) -> str:
        """Return the signed value of the cookie of a new session of a user."""
        return create_signed_value(self._secret, COOKIE, self.signed_in.begin(name)).decode("ascii")

    def _without_strangers_headers(self, request: HTTPServerRequest) -> None:
        """Drop a proxy's headers where no trusted proxy sent them."""
        peer = _peer(request)
        if _is_in(peer, self._proxies):
            return
        if self.settings.trust_header is not None and self.settings.trust_header in request.headers:
            del request.headers[self.settings.trust_header]
        if peer:
            # else whoever guesses passwords would choose the address by which the throttle counts
            request.remote_ip = peer

    def _without_secrets(self, request: HTTPServerRequest) -> None:
        """Drop cookies before the request goes inside: the token in the page would hold them."""
        cookies = self._identity(request)
        request.cookies.clear()
        for name, value in cookies.items():
            request.cookies[name] = _morsel(name, value)
        for header in ("Cookie", "Authorization", "Proxy-Authorization"):
            if header in request.headers:
                del request.headers[header]

    def _identity(self, request: HTTPServerRequest) -> dict[str, str]:
        """Return the identity of a request for the application: a name, and a hash of the browser's key."""
        key = request.cookies.get(KEY)
        cookies = {COOKIE: self.user_of(request) or ""}
        if key is not None and _KEY.fullmatch(key.value):
            cookies[KEY] = hashlib.sha256(key.value.encode("ascii")).hexdigest()
        leaving = request.cookies.get(LEAVING)
        if leaving is not None and _NUMBER.fullmatch(leaving.value):
            cookies[LEAVING] = leaving.value
        return cookies

    @staticmethod
    def user_told(cookies: Mapping[str, str]) -> str:
        """Return the owner of a session, or an empty text."""
        return cookies.get(COOKIE, "")

    @staticmethod
    def key_told(cookies: Mapping[str, str]) -> str:
        """Return what the folders of a browser's sessions are found by; of a user, where users sign in. Empty for nobody."""
        return f"{cookies.get(COOKIE, '')} {cookies[KEY]}" if KEY in cookies else ""

    def _with_key(self, request: HTTPServerRequest) -> None:
        """Give a browser a key, in a cookie that scripts cannot read, before its session begins."""
        present = request.cookies.get(KEY)
        key = (
            present.value if present is not None and _KEY.fullmatch(present.value) else secrets.token_hex(32)
        )
        request.cookies[KEY] = _morsel(KEY, key)
        # a page may be open for a day before its session is left; how long that is kept is the server's to say
        end = f"; Max-Age={int(DAYS * 86400 + self.settings.keep)}" if self.settings.keep else ""
        cookie = (
            f"{KEY}={key}; Path=/; HttpOnly; SameSite=Lax{end}{'; Secure' if self.settings.https else ''}"
        )
        _on_answer(request, lambda status, headers: headers.add("Set-Cookie", cookie))

    def _is_its_own(self, request: HTTPServerRequest) -> bool:
        """Return whether a websocket is opened by the browser that the session was begun by, as its signed token says."""
        protocols = [part.strip() for part in request.headers.get("Sec-WebSocket-Protocol", "").split(",")]
        try:
            if not check_token_signature(protocols[1], self._token_secret, True):
                return False
            cookies = get_token_payload(protocols[1]).get("cookies", {})
        except (IndexError, ValueError, TypeError, AttributeError, zlib.error):
            return False
        identity = self._identity(request)
        return (
            KEY in identity
            and isinstance(cookies, dict)
            and all(
                secrets.compare_digest(str(cookies.get(name, "")).encode(), identity[name].encode())
                for name in (KEY, COOKIE)
            )
        )

    def forget(self, request: HTTPServerRequest) -> None:
        """Revoke the key of a request, and delete data of lost servers under it."""
        self._revoke(self.key_told(self._identity(request)))

    def sign_out(self, request: HTTPServerRequest) -> None:
        """End a request's session: its cookie is no longer valid, and its open connections are closed."""
        number = self._number(request)
        if number is not None:
            self.signed_in.end(number)
            self._close_ended()

    def renew_accounts(self) -> None:
        """Read the file of users again if it has changed; who was removed, or has another password, is signed out."""
        changed = frozenset() if self.accounts is None else self.accounts.renew()
        if changed:
            self.signed_in.end_of(changed)
            self._close_ended()

    def _close_ended(self) -> None:
        """Close the open connections of sessions that have ended."""
        for number in [number for number in self._sockets if self.signed_in.user(number) is None]:
            for stream in list(self._sockets.pop(number)):
                stream.close()

    def _number(self, request: HTTPServerRequest) -> str | None:
        """Return the id of a user's session that a request's cookie has; None where its signature is not ours, or old."""
        cookie = request.cookies.get(COOKIE)
        value = cookie and decode_signed_value(self._secret, COOKIE, cookie.value, max_age_days=DAYS)
        return None if not value else value.decode("utf-8", "replace")

    def _remember_socket(self, request: HTTPServerRequest) -> None:
        number = self._number(request)
        stream = getattr(request.connection, "stream", None)
        if number is None or stream is None:
            return
        self._close_ended()
        self._sockets.setdefault(number, weakref.WeakSet()).add(stream)

    def _own_page(self, request: HTTPServerRequest) -> bool:
        """Return whether a request comes from a page of this server, as far as browsers say where it comes from."""
        if not _is_websocket(request) and request.method in ("GET", "HEAD"):
            return True
        origin = request.headers.get("Origin")
        if origin is None:
            return request.headers.get("Sec-Fetch-Site", "same-origin") in ("same-origin", "none")
        scheme, _, host = origin.lower().partition("://")
        # another port of this machine is another program's; behind a proxy, Host may be another name than the browser's
        return scheme in ("http", "https") and host in {request.host.lower(), *(self.hosts - set(LOCAL))}

    def _refuse(self, request: HTTPServerRequest, status: int, sentence: str) -> Any:
        return self._pages.get_handler_delegate(request, _Refused, {"status": status, "sentence": sentence})

    def _with_headers(self, request: HTTPServerRequest) -> None:
        """Set security headers on every response."""
        host = request.host if self.is_ours(request.host) else ""
        policy = POLICY.format(sockets=f"ws://{host} wss://{host}" if host else "")
        page = not request.path.startswith(FILES)

        def add(status: int, headers: HTTPHeaders) -> None:
            headers["X-Content-Type-Options"] = "nosniff"
            headers["X-Frame-Options"] = "DENY"
            # no-referrer would have browsers say "Origin: null" when the login is sent
            headers["Referrer-Policy"] = "same-origin"
            headers["Cross-Origin-Opener-Policy"] = "same-origin"
            headers["Cross-Origin-Resource-Policy"] = "same-origin"
            headers["Content-Security-Policy"] = policy
            headers["Permissions-Policy"] = "camera=(), geolocation=(), microphone=()"
            # pages show data of their user: no cache may keep them
            if page and status == 200:
                headers["Cache-Control"] = "no-store"
            if self.settings.https:
                headers["Strict-Transport-Security"] = "max-age=31536000"
            headers.pop("Server", None)

        _on_answer(request, add)


def _on_answer(request: HTTPServerRequest, change: Callable[[int, HTTPHeaders], None]) -> None:
    """Have `change` called with the status and the headers of the answer, before they are written."""
    connection: Any = request.connection
    write = connection.write_headers

    def write_headers(line: ResponseStartLine, headers: HTTPHeaders, chunk: bytes | None = None) -> Any:
        change(line.code, headers)
        return write(line, headers, chunk)

    connection.write_headers = write_headers


def _morsel(name: str, value: str) -> Morsel[str]:
    morsel: Morsel[str] = Morsel()
    morsel.set(name, value, value)
    return morsel


def _peer(request: HTTPServerRequest) -> str:
    """Return the address that a connection comes from, whatever its headers say; empty where there is none."""
    address = getattr(getattr(request.connection, "context", None), "address", None)
    return str(address[0]) if isinstance(address, tuple) and address else ""


def _networks(texts: Iterable[str]) -> list[ipaddress.IPv4Network | ipaddress.IPv6Network]:
    return [ipaddress.ip_network(text, strict=False) for text in texts]


def _is_in(peer: str, networks: Iterable[ipaddress.IPv4Network | ipaddress.IPv6Network]) -> bool:
    try:
        address = ipaddress.ip_address(peer.partition("%")[0])
    except ValueError:
        return False
    if address.version == 6 and address.ipv4_mapped is not None:
        address = address.ipv4_mapped
    return any(address in network for network in networks)


def _is_websocket(request: HTTPServerRequest) -> bool:
    return request.headers.get("Upgrade", "").lower() == "websocket"


def _names_a_session(request: HTTPServerRequest) -> bool:
    """Return whether an address names a session: Bokeh would open it to anyone who has the address."""
    named = {"bokeh-session-id", "bokeh-token"}
    return "Bokeh-Session-Id" in request.headers or not named.isdisjoint(
        parse_qs(request.query, keep_blank_values=True)
    )


def _page(title: str, body: str) -> str:
    source = files("anonflow.dashboards.components").joinpath("style/plain.html").read_text(encoding="utf-8")
    return source.replace("{{ title }}", title).replace("{{ body }}", body)


class _Handler(RequestHandler):
    """A handler whose error pages never contain a traceback."""

    def write_error(self, status_code: int, **kwargs: Any) -> None:
        self.set_header("Content-Type", "text/html; charset=utf-8")
        self.finish(_page(f"Error {status_code}", f"<p>This did not work ({status_code}).</p>"))


class _Refused(_Handler):
    def initialize(self, status: int, sentence: str) -> None:
        self._status, self._sentence = status, sentence

    def prepare(self) -> None:
        self.set_status(self._status)
        self.finish(_page("Refused", f"<p>{self._sentence}</p>"))


class _MachinePage(_Handler):
    """A page for machines: its status and its content."""

    def initialize(self, content: Callable[[], tuple[int, str | dict[str, Any]]]) -> None:
        self._content = content

    def get(self) -> None:
        status, content = self._content()
        self.set_status(status)
        if isinstance(content, str):
            self.set_header("Content-Type", "text/plain; version=0.0.4; charset=utf-8")
        self.finish(content)

    head = get


class _ToLogin(_Handler):
    def get(self) -> None:
        # a link that restores a configuration goes on after the login
        query = self.request.query
        self.redirect(
            "/login" + (f"?{query}" if re.fullmatch(r"[A-Za-z0-9._~=&%+,-]{1,4000}", query) else "")
        )

    head = get


class _Login(_Handler):
    def initialize(self, gateway: Gateway) -> None:
        self._gateway = gateway

    def get(self) -> None:
        self._form()

    def _form(self, sentence: str = "", status: int = 200) -> None:
        self.set_status(status)
        alert = f'<p class="bad" role="alert">{sentence}</p>' if sentence else ""
        span = self._gateway.settings.keep
        lost = f", and for {in_words(span)} after you leave the page or the server ends" if span else ""
        self.finish(
            _page(
                "Sign in",
                f"""{alert}<form method="post" autocomplete="on">
<label for="name">Name</label><input id="name" name="name" autocomplete="username" required autofocus maxlength="64">
<label for="password">Password</label>
<input id="password" name="password" type="password" autocomplete="current-password" required maxlength="1024">
<button type="submit">Sign in</button></form>
<p class="muted">Tables that you open here stay on this server until your session ends{lost}.</p>""",
            )
        )

    async def post(self) -> None:
        gateway = self._gateway
        name = self.get_body_argument("name", "")[:64]
        password = self.get_body_argument("password", "", strip=False)  # spaces at its ends are part of it
        address = network_of(str(self.request.remote_ip))
        guesses = [
            (gateway.throttles["pair"], f"{name} {address}"),
            (gateway.throttles["address"], address),
        ]
        gateway.renew_accounts()
        assert gateway.accounts is not None
        async with gateway.guessing:
            wait = max(patience.wait(key) for patience, key in guesses)
            if wait > 0:
                self.set_header("Retry-After", str(int(wait) + 1))
                self._form(f"Too many wrong guesses. Try again in {int(wait) + 1} seconds.", 429)
                return
            for patience, key in guesses:  # before the result is known, so that parallel attempts count, too
                patience.failed(key)
            loop = asyncio.get_running_loop()
            allowed = await loop.run_in_executor(None, gateway.accounts.allow, name, password)
        if not allowed:
            self._form("The name or the password is wrong.", 403)
            return
        for patience, key in guesses:
            patience.passed(key)
        gateway.sign_out(self.request)  # a user who signs in again, or as another user, has one session
        self.set_cookie(
            COOKIE,
            gateway.cookie_for(name),
            httponly=True,
            samesite="Lax",
            secure=gateway.settings.https,
            max_age=int(DAYS * 86400),
        )
        query = self.request.query
        self.redirect("/" + (f"?{query}" if query else ""), status=303)


class _Logout(_Handler):
    def initialize(self, gateway: Gateway) -> None:
        self._gateway = gateway

    def get(self) -> None:
        # a link, or a picture on another page, must not sign a user out
        self.finish(_page("Sign out", '<form method="post"><button type="submit">Sign out</button></form>'))

    def post(self) -> None:
        self._gateway.forget(self.request)
        self._gateway.sign_out(self.request)
        self.clear_cookie(KEY, httponly=True, samesite="Lax", secure=self._gateway.settings.https)
        self.clear_cookie(COOKIE, httponly=True, samesite="Lax", secure=self._gateway.settings.https)
        self.redirect("/login", status=303)
