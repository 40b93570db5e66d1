"""Sessions of the hosted dashboard: fixation, sign-out by a link, cookies kept after it, lock-out, timing of passwords.

Figures: a cookie was good for a day after its owner had signed out; a picture on another page signed people out; 100
guesses from anywhere locked a named account. None of these may be so. An unknown name and a wrong password must take
equally long: each costs one hash of the same settings.
"""

from __future__ import annotations

import asyncio
from collections.abc import Iterator
from pathlib import Path
from types import SimpleNamespace

import pytest

pytest.importorskip("panel")
from argon2.exceptions import VerifyMismatchError
from tornado.httpclient import HTTPRequest
from tornado.websocket import websocket_connect

from anonflow.dashboards.server import accounts as module
from anonflow.dashboards.server.accounts import Accounts, SignedIn, add_account, network_of
from tests.dashboards.server.running import PASSWORD, Running, sign_in, until


@pytest.fixture
def server(quick_hashes: None, tmp_path: Path) -> Iterator[Running]:
    add_account(tmp_path / "users", "anna", PASSWORD)
    add_account(tmp_path / "users", "ben", PASSWORD)
    server = Running(users=tmp_path / "users", workers=0)
    yield server
    server.stop()


def cookie(answer: tuple[int, dict[str, str], str]) -> str:
    assert answer[0] == 303
    return answer[1]["Set-Cookie"].partition(";")[0]


def origin_of(server: Running) -> str:
    return f"http://127.0.0.1:{server.port}"


@pytest.mark.machine
def test_a_cookie_is_worth_nothing_after_signing_out(server: Running) -> None:
    signed = cookie(sign_in(server))
    token = server.token(Cookie=signed)
    other = cookie(sign_in(server))
    assert server.ask("POST", "/logout", "", Cookie=signed, Origin=origin_of(server))[0] == 303
    assert server.ask(Cookie=signed)[0] == 302
    assert server.websocket(token, Cookie=signed, Origin=origin_of(server)) == "403"
    assert (
        server.ask(path="/static/js/bokeh.min.js", Cookie=other)[0] == 200
    )  # another browser of the same user


@pytest.mark.machine
def test_signing_out_closes_what_is_open(server: Running) -> None:
    """A page that stays open in another window is cut off: its websocket had gone on for as long as it was open."""
    signed = cookie(sign_in(server))
    token = server.token(Cookie=signed)
    sent = {"Cookie": "; ".join(filter(None, (signed, server.cookie))), "Origin": origin_of(server)}

    async def go() -> bool:
        request = HTTPRequest(f"ws://127.0.0.1:{server.port}/ws", headers=sent)
        connection = await websocket_connect(request, subprotocols=["bokeh", token])
        hello = await connection.read_message()
        out = await asyncio.to_thread(
            server.ask, "POST", "/logout", "", Cookie=signed, Origin=origin_of(server)
        )
        assert out[0] == 303
        while await asyncio.wait_for(connection.read_message(), 300) is not None:
            pass  # what was under way
        connection.close()
        return hello is not None

    assert asyncio.run(go())


@pytest.mark.machine
def test_a_removed_user_is_signed_out_when_the_file_is_read_again(server: Running) -> None:
    signed = cookie(sign_in(server))
    users = server.server.settings.users
    add_account(users, "carl", PASSWORD)
    assert sign_in(server, name="carl")[0] == 303  # without a restart
    assert server.ask(Cookie=signed)[0] == 200
    users.write_text(
        "".join(line for line in users.read_text().splitlines(True) if not line.startswith("anna:"))
    )
    server.server._server.io_loop.add_callback(server.server._sweep)
    until(lambda: server.ask(Cookie=signed)[0] == 302)
    assert sign_in(server)[0] == 403


@pytest.mark.machine
def test_no_other_page_signs_anybody_out(server: Running) -> None:
    signed = cookie(sign_in(server))
    assert server.ask(path="/logout", Cookie=signed)[0] == 200
    assert server.ask("POST", "/logout", "", Cookie=signed, Origin="http://evil.test")[0] == 403
    assert server.ask("POST", "/logout", "", Cookie=signed, Sec_Fetch_Site="cross-site")[0] == 403
    assert server.ask(path="/static/js/bokeh.min.js", Cookie=signed)[0] == 200


@pytest.mark.machine
def test_an_id_that_a_browser_brings_is_not_taken_over(server: Running) -> None:
    planted = cookie(sign_in(server, name="ben"))
    own = cookie(sign_in(server, Cookie=planted))
    assert own != planted
    assert (
        server.ask(path="/static/js/bokeh.min.js", Cookie=planted)[0] == 403
    )  # ended when anna signed in with it
    assert server.ask(path="/static/js/bokeh.min.js", Cookie=own)[0] == 200


@pytest.mark.machine
def test_guesses_from_elsewhere_lock_nobody_out(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(Accounts, "allow", lambda self, name, password: password == PASSWORD)
    add_account(tmp_path / "users", "anna", PASSWORD)
    server = Running(users=tmp_path / "users", workers=0, proxied=True)
    try:
        for guess in range(110):
            sign_in(server, password="wrong", X_Real_IP=f"192.0.2.{guess % 250}")
        assert sign_in(server, X_Real_IP="198.51.100.1")[0] == 303
        # and one network that guesses waits, whatever address of it
        answers = {sign_in(server, password="wrong", X_Real_IP=f"2001:db8::{n:x}")[0] for n in range(12)}
        assert answers == {403, 429}
    finally:
        server.stop()


def test_the_work_of_an_answer_names_nobody(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """A name that nobody has costs a hash as dear as a user's."""
    add_account(tmp_path / "users", "anna", PASSWORD)
    accounts = Accounts(tmp_path / "users")
    costs: list[tuple[str, ...]] = []
    verify = module._ARGON2.verify

    def noted(hashed: str, password: str) -> bool:
        *settings, salt, digest = hashed.split("$")
        with pytest.raises(VerifyMismatchError):  # it was computed: what is no hash is refused at once
            verify(hashed, password)
        costs.append((*settings, str(len(salt)), str(len(digest)), password))
        return False

    monkeypatch.setattr(module, "_ARGON2", SimpleNamespace(verify=noted))
    for name in ("anna", "nobody"):
        assert not accounts.allow(name, "wrong password")
    anna, nobody = costs
    assert anna == nobody
    assert anna[1] == "argon2id"


def test_sessions_end_by_themselves() -> None:
    now = [0.0]
    sessions = SignedIn(10.0, lambda: now[0])
    number = sessions.begin("anna")
    assert sessions.user(number) == "anna"
    assert sessions.user("another") is None
    now[0] = 10.0
    assert sessions.user(number) is None
    for _ in range(SignedIn.MOST + 5):
        sessions.begin("ben")
    assert len(sessions._users) == SignedIn.MOST


@pytest.mark.parametrize(
    ("address", "network"),
    [
        ("192.0.2.7", "192.0.2.7"),
        ("::ffff:192.0.2.7", "192.0.2.7"),
        ("2001:db8::7", "2001:db8::/64"),
        ("x", "x"),
    ],
)
def test_the_network_of_an_address(address: str, network: str) -> None:
    assert network_of(address) == network
