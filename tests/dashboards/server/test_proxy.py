"""Who signed in at a proxy in front: believed from that proxy alone, and tested with a real nginx where there is one."""

from __future__ import annotations

import base64
import hashlib
import http.client
import json
import os
import re
import shutil
import socket
import subprocess
import time
from collections.abc import Callable
from pathlib import Path

import pytest

pytest.importorskip("panel", reason="the dashboards are an extra")
from bokeh.util.token import get_token_payload
from tornado.httputil import HTTPHeaders, HTTPServerRequest, RequestStartLine
from tornado.web import Application

from anonflow.dashboards.server.gateway import Gateway
from anonflow.dashboards.server.server_settings import ServerSettings
from anonflow.errors import ParameterError
from tests import ROOT
from tests.dashboards.server.running import Running, sign_in, until

HEADER = "X-Forwarded-User"
SSO = {"proxied": True, "trust_header": HEADER, "workers": 0}


def test_a_websocket_comes_from_the_host_and_port_of_its_page() -> None:
    """A proxy on another port than 443 passes the port on, or the server is told of it."""
    name, other = "anon.example.org", "anon.example.org:8443"

    def is_own(hosts: list[str], host: str, origin: str) -> bool:
        line = RequestStartLine("GET", "/ws", "HTTP/1.1")
        settings = ServerSettings(hosts=tuple(hosts))
        gateway = Gateway(Application(), settings, None, lambda: True, b"secret")
        assert gateway.is_ours(host)
        headers = HTTPHeaders(
            {"Host": host, "Upgrade": "websocket", "Connection": "Upgrade", "Origin": origin}
        )
        return gateway._own_page(HTTPServerRequest(start_line=line, headers=headers))

    assert is_own([name], name, f"https://{name}")
    assert is_own([name], other, f"https://{other}")
    assert not is_own([name], name, f"https://{other}")
    assert is_own([name, other], name, f"https://{other}")
    assert not is_own([name, other], other, f"https://{name}:9000")
    assert not is_own([name], other, f"ftp://{other}")


def test_no_cookie_stands_in_a_page(
    running: Callable[..., Running],
    stay: None,
    users: Path,
) -> None:
    """A page's token is in its HTML: a copy of the page must not sign anybody in, nor open what a lost server left."""
    server = running(users=users, workers=0)
    signed = sign_in(server)[1]["Set-Cookie"].partition(";")[0]
    token = server.token(Cookie=f"{signed}; another-app=its-secret", Authorization="Basic c2VjcmV0")
    payload = json.dumps(get_token_payload(token))
    key = server.cookie.partition("=")[2]
    for secret in (key, signed.partition("=")[2].strip('"'), "its-secret", "c2VjcmV0"):
        assert secret not in payload
    assert get_token_payload(token)["cookies"]["anonflow-user"] == "anna"
    address = f"http://127.0.0.1:{server.port}"
    assert server.websocket(token, Origin=address, Cookie=signed) == "open"
    bert = sign_in(server, "bert")[1]["Set-Cookie"].partition(";")[0]
    assert server.websocket(token, Origin=address, Cookie=bert) == "403"  # the same browser, and another user


def test_a_user_is_who_the_proxy_says(running: Callable[..., Running], stay: None, tmp_path: Path) -> None:
    server = running(**SSO, owner=tmp_path / "owner")
    address = f"http://127.0.0.1:{server.port}"
    assert server.ask()[0] == 403
    assert "proxy" in server.ask()[2]
    assert server.ask(path="/login")[0] == 403
    assert server.ask(path="/health")[0] == 200
    token = server.token(X_Forwarded_User="anna@example.org")
    assert get_token_payload(token)["cookies"]["anonflow-user"] == "anna@example.org"
    (workspace,) = server.server._workspaces
    assert workspace.owner == tmp_path / "owner" / "anna@example.org"
    assert server.websocket(token, Origin=address) == "403"
    assert server.websocket(token, Origin=address, X_Forwarded_User="ben") == "403"
    assert server.websocket(token, Origin=address, X_Forwarded_User="anna@example.org") == "open"
    for name in ("", "..", "../x", "a/b", "a, b", "a b", "é", "x" * 200, "-a", "a\tb"):
        assert server.ask(X_Forwarded_User=name)[0] in (400, 403), name


def test_from_another_address_no_header_is_believed(running: Callable[..., Running]) -> None:
    server = running(**SSO, proxies=("10.0.0.7", "192.0.2.0/24"))
    assert server.ask(X_Forwarded_User="anna")[0] == 403
    two = running(**SSO, proxies=("127.0.0.0/8",))
    assert two.ask(X_Forwarded_User="anna")[0] == 200


@pytest.mark.parametrize(
    ("settings", "text"),
    [
        ({"trust_header": HEADER}, "--behind-proxy"),
        ({"trust_header": "Cookie", "proxied": True}, "names no user"),
        ({"trust_header": "a b", "proxied": True}, "names no user"),
        ({"trust_header": "", "proxied": True}, "names no user"),
        ({"trust_header": HEADER, "proxied": True, "users": Path("x")}, "take one of them"),
        ({"trust_header": "X-Forwarded-Proto", "proxied": True}, "names no user"),
        ({"proxied": True, "proxies": ("10.0.0.300",)}, "not an address or network"),
        ({"proxied": True, "proxies": ("0.0.0.0/0",)}, "--proxy-address '0.0.0.0/0' covers every address"),
        ({"proxied": True, "proxies": ("::/0",)}, "covers every address"),
        (
            {"metrics": True, "metrics_readers": ("everybody",)},
            "--metrics-from 'everybody' is not an address",
        ),
    ],
)
def test_what_cannot_be_said_of_a_proxy(settings: dict[str, object], text: str) -> None:
    with pytest.raises(ParameterError, match=text):
        Running(**settings)


def test_figures_for_the_operator(running: Callable[..., Running], stay: None, users: Path) -> None:
    """How many and how much, without a name; only for who asks the server itself."""
    assert running(workers=0).ask(path="/metrics")[0] == 404
    server = running(users=users, workers=0, metrics=True, proxied=True)
    server.token(Cookie=sign_in(server)[1]["Set-Cookie"].partition(";")[0])
    status, headers, text = server.ask(path="/metrics")
    assert status == 200
    assert headers["Content-Type"].startswith("text/plain; version=0.0.4")
    assert "anna" not in text
    lines = [line for line in text.splitlines() if not line.startswith("#")]
    assert all(re.fullmatch(r"[a-z_]+ [0-9.e+]+", line) for line in lines), text
    figures = {name: float(value) for name, value in (line.split() for line in lines)}
    assert figures["anonflow_sessions"] == 1
    assert figures["anonflow_healthy"] == 1
    assert figures["anonflow_runs_waiting"] == figures["anonflow_runs_running"] == 0
    assert figures["process_resident_memory_bytes"] > 1 << 20
    for name in figures:
        assert f"# HELP {name} " in text
        assert re.search(rf"# TYPE {name} (gauge|counter)\n", text)
    ended = figures["anonflow_runs_ended_total"]
    server.server.line.join("anna", lambda: None, lambda: None)
    until(lambda: f"anonflow_runs_ended_total {ended + 1:.15g}\n" in server.ask(path="/metrics")[2])
    for header in ("X_Real_IP", "X_Forwarded_For", "Via", "Forwarded"):
        assert server.ask(path="/metrics", **{header: "192.0.2.1"})[0] == 403
    assert server.ask(path="/metrics", Host="evil.test")[0] == 421


def test_figures_are_for_named_addresses(running: Callable[..., Running], users: Path) -> None:
    """Who reaches a server that listens to a network is not told how many use it."""
    assert running(users=users, workers=0, metrics=True).ask(path="/metrics")[0] == 200
    server = running(users=users, workers=0, metrics=True, metrics_readers=("10.0.0.7",))
    assert server.ask(path="/metrics")[0] == 403
    assert server.ask(path="/metrics", X_Forwarded_For="10.0.0.7")[0] == 403


NGINX = shutil.which("nginx") or shutil.which("nginx", path="/usr/sbin")


@pytest.mark.skipif(NGINX is None, reason="there is no nginx here")
def test_behind_a_real_proxy(running: Callable[..., Running], stay: None, tmp_path: Path) -> None:
    """The configuration that is delivered, with nginx' own passwords in the place of a single sign-on."""
    server = running(**SSO, hosts=("anonflow.test",), metrics=True)
    # nginx is handed its socket: a port that is only free may be taken meanwhile
    listening = socket.create_server(("127.0.0.1", 0))
    port = listening.getsockname()[1]
    text = (ROOT / "deploy" / "nginx.conf").read_text(encoding="utf-8")
    for old, new in {
        "/tmp/": f"{tmp_path}/",  # first: the others' paths have it, too
        "listen 8080;": f"listen 127.0.0.1:{port};",
        "http://dashboard:5006": f"http://127.0.0.1:{server.port}",
        "/etc/nginx/users": str(tmp_path / "users"),
    }.items():
        assert old in text, old
        text = text.replace(old, new)
    (tmp_path / "nginx.conf").write_text(text)
    password = base64.b64encode(hashlib.sha1(b"secret word").digest()).decode()
    (tmp_path / "users").write_text(f"anna:{{SHA}}{password}\n")
    for path in (tmp_path, tmp_path / "users"):
        path.chmod(0o755 if path.is_dir() else 0o644)
    settings = f"daemon off; error_log {tmp_path}/error.log;"
    if os.geteuid() == 0:  # or its workers would be another user, who may not read this folder
        settings += " user root;"
    process = subprocess.Popen(
        [
            str(NGINX),
            "-e",
            f"{tmp_path}/error.log",
            "-p",
            str(tmp_path),
            "-c",
            str(tmp_path / "nginx.conf"),
            "-g",
            settings,
        ],
        stderr=subprocess.DEVNULL,
        env={**os.environ, "NGINX": f"{listening.fileno()};"},
        pass_fds=(listening.fileno(),),
    )
    listening.close()
    basic = "Basic " + base64.b64encode(b"anna:secret word").decode()

    def ask(path: str = "/", **headers: str) -> tuple[int, str]:
        """Status and body; the cookie is kept."""
        connection = http.client.HTTPConnection("127.0.0.1", port, timeout=300)
        sent = {name.replace("_", "-"): value for name, value in headers.items()}
        connection.request("GET", path, headers={"Host": "anonflow.test", **sent})
        answer = connection.getresponse()
        server.cookie = (answer.headers["Set-Cookie"] or server.cookie).partition(";")[0]
        try:
            return answer.status, answer.read().decode("utf-8", "replace")
        finally:
            connection.close()

    try:
        for _ in range(300):
            assert process.poll() is None, (tmp_path / "error.log").read_text()
            try:
                ask()
            except OSError:
                time.sleep(0.1)
            else:
                break
        assert ask()[0] == 401
        assert ask(X_Forwarded_User="mallory")[0] == 401
        status, page = ask(Authorization=basic, X_Forwarded_User="mallory")
        assert status == 200
        token = re.search(r'"token":"([^"]+)"', page)
        assert get_token_payload(token[1])["cookies"]["anonflow-user"] == "anna"
        assert ask("/metrics", Authorization=basic)[0] in (403, 404)
        assert ask("/health")[0] == 200
        origin = f"http://127.0.0.1:{port}"
        assert server.websocket(token[1], port, Origin=origin, Authorization=basic) == "open"
        assert server.websocket(token[1], port, Origin=origin) == "401"
        assert server.websocket(token[1], port, Origin="http://evil.test", Authorization=basic) == "403"
    finally:
        process.terminate()
        process.wait()


def test_the_settings_have_a_proxy_on_this_machine() -> None:
    assert ServerSettings().proxies == ("127.0.0.1", "::1")
