"""The server without a browser: who gets in under which name, who has to wait, and what is left of a session."""

from __future__ import annotations

import fcntl
import gc
import re
import shutil
import threading
from collections.abc import Callable
from pathlib import Path
from types import SimpleNamespace

import pytest

pytest.importorskip("panel", reason="the dashboards are an extra")
from bokeh.server.session import ServerSession
from bokeh.util.token import generate_jwt_token, get_session_id

from anonflow.cli.dashboard import dashboard
from anonflow.dashboards import Limits, Workspace
from anonflow.dashboards.data.screen import DataScreen
from anonflow.dashboards.server import server
from anonflow.dashboards.server.accounts import Accounts, LoginThrottle, add_account, hashed
from anonflow.dashboards.server.server_settings import ServerSettings
from anonflow.dashboards.session.files.folders import SessionFolders
from anonflow.dashboards.session.opener import NOTHING_OPENED
from anonflow.engine.flows.spec import SourceSpec
from anonflow.errors import ParameterError
from tests.cases.drafts import put_at, value_at
from tests.dashboards.server.running import PASSWORD, WAIT, Running, sign_in, until

# ------------------------------------------------------------------------------------- names and pages


def test_only_who_asks_under_a_known_name_gets_anything(running: Callable[..., Running]) -> None:
    item = running(hosts=("anon.example",), open_to_all=True, workers=0)
    port = item.port
    for host in (
        "127.0.0.1",
        f"127.0.0.1:{port}",
        "localhost:1",
        "anon.example",
        "ANON.example:8443",
        "[::1]:5",
    ):
        assert item.ask(path="/health", Host=host)[0] == 200, host
    for host in (
        "evil.test",
        f"evil.test:{port}",
        "anon.example.evil.test",
        "127.0.0.1.evil.test",
        "x@127.0.0.1",
    ):
        for path in ("/", "/health", "/static/js/bokeh.min.js", "/autoload.js", "/nothing"):
            assert item.ask(path=path, Host=host)[0] in (400, 421), (host, path)
    assert item.server.sessions == 0


def test_a_rebound_name_opens_no_websocket(running: Callable[..., Running]) -> None:
    item = running()
    port = item.port
    token = item.token()
    for host, origin in (
        (f"evil.test:{port}", f"http://evil.test:{port}"),
        (f"evil.test:{port}", f"http://127.0.0.1:{port}"),
        (f"127.0.0.1:{port}", f"http://evil.test:{port}"),
        (f"127.0.0.1:{port}", "null"),
    ):
        assert item.websocket(token, Host=host, Origin=origin) in ("403", "421"), (host, origin)
    assert item.websocket(token, Host=f"127.0.0.1:{port}", Sec_Fetch_Site="cross-site") == "403"
    assert item.websocket(token, Host=f"127.0.0.1:{port}", Origin=f"http://127.0.0.1:{port}") == "open"


def test_every_answer_has_the_headers_that_keep_others_out(running: Callable[..., Running]) -> None:
    item = running()
    for path in ("/", "/health", "/nothing", "/static/js/bokeh.min.js"):
        _, headers, body = item.ask(path=path)
        assert headers["X-Frame-Options"] == "DENY"
        assert headers["X-Content-Type-Options"] == "nosniff"
        assert "frame-ancestors 'none'" in headers["Content-Security-Policy"]
        assert "default-src 'self'" in headers["Content-Security-Policy"]
        assert "Server" not in headers
        assert "Traceback" not in body
    assert item.ask(path="/nothing")[0] == 404


# --------------------------------------------------------------------------------------------- signing in


def test_scripts_are_packed_and_pages_are_not(running: Callable[..., Running], stay: None) -> None:
    """The length of a packed page would tell something of the token in it."""
    item = running()
    for path, packed in (("/static/js/bokeh.min.js", True), ("/", False)):
        status, headers, _ = item.ask(path=path, Accept_Encoding="gzip")
        assert status == 200
        assert ("Content-Encoding" in headers) is packed
        assert "Content-Encoding" not in item.ask(path=path)[1]


def test_nothing_but_health_and_the_login_is_open(running: Callable[..., Running], users: Path) -> None:
    item = running(users=users, workers=0)
    token = "any"
    assert item.ask(path="/health")[::2] == (200, '{"ok": true}')
    assert item.ask(path="/login")[0] == 200
    status, headers, _ = item.ask()
    assert (status, headers["Location"]) == (302, "/login")
    for path in ("/static/js/bokeh.min.js", "/autoload.js", "/ws", "/metadata", "/components/x/y/z/w"):
        assert item.ask(path=path)[0] == 403, path
    assert item.websocket(token, Origin=f"http://127.0.0.1:{item.port}") == "403"
    status, headers, _ = sign_in(item)
    assert status == 303
    cookie = headers["Set-Cookie"]
    assert "HttpOnly" in cookie
    assert "SameSite=Lax" in cookie
    signed = cookie.partition(";")[0]
    token = item.token(Cookie=signed)
    assert item.ask(path="/static/js/bokeh.min.js", Cookie=signed)[0] == 200
    assert item.websocket(token, Cookie=signed, Origin=f"http://127.0.0.1:{item.port}") == "open"
    forged = signed.replace("|", "|0", 1)
    assert item.ask(Cookie=forged)[0] == 302
    assert item.ask(Cookie='anonflow-user="anna"')[0] == 302
    address = f"http://127.0.0.1:{item.port}"
    assert (
        item.ask(path="/logout", Cookie=signed)[0] == 200
    )  # a page with a button: looking at it changes nothing
    assert item.ask("POST", "/logout", "", Cookie=signed, Origin="http://evil.test")[0] == 403
    assert item.ask(path="/static/js/bokeh.min.js", Cookie=signed)[0] == 200
    status, headers, _ = item.ask("POST", "/logout", "", Cookie=signed, Origin=address)
    assert status == 303
    assert 'anonflow-user=""' in headers["Set-Cookie"]


def test_a_wrong_password_says_nothing_and_makes_one_wait(
    running: Callable[..., Running], users: Path
) -> None:
    item = running(users=users, workers=0, https=True)
    for throttle in item.server._gateway.throttles.values():
        throttle._clock = lambda: 0.0  # however long the guesses take, nobody has waited
    wrong = sign_in(item, password="wrong")
    unknown = sign_in(item, name="nobody", password="wrong")
    assert wrong[0] == unknown[0] == 403
    assert wrong[2] == unknown[2]
    assert sign_in(item, Origin="http://evil.test")[0] == 403
    assert "Secure" in sign_in(item)[1]["Set-Cookie"]
    assert [sign_in(item, password=f"guess {n}")[0] for n in range(7)] == [403] * 6 + [429]
    status, headers, text = sign_in(item)
    assert status == 429  # also the right one: guessing costs
    assert int(headers["Retry-After"]) >= 1
    assert "Try again" in text
    assert PASSWORD not in text


def test_spaces_at_its_ends_are_part_of_a_password(
    running: Callable[..., Running], quick_hashes: None, tmp_path: Path
) -> None:
    add_account(tmp_path / "users", "anna", " two spaces  ")
    item = running(users=tmp_path / "users", workers=0)
    assert sign_in(item, password="two spaces")[0] == 403
    assert sign_in(item, password=" two spaces  ")[0] == 303


@pytest.mark.parametrize("proxied", [True, False])
def test_a_proxy_is_believed_only_where_there_is_one(
    running: Callable[..., Running], users: Path, proxied: bool
) -> None:
    item = running(users=users, workers=0, proxied=proxied)
    assert sign_in(item, password="wrong", X_Real_IP="192.0.2.7")[0] == 403
    waiting = item.server._gateway.throttles["address"]._wrong
    assert list(waiting) == ["192.0.2.7" if proxied else "127.0.0.1"]


def test_a_request_has_no_large_body(running: Callable[..., Running], users: Path) -> None:
    item = running(users=users, workers=0)
    # announced, not sent: what arrives after the answer would reset the connection, and the answer with it
    assert item.ask("POST", "/login", "", Content_Length=str(2 << 20))[0] == 400


def test_who_comes_without_a_name_shares_the_owners_folder_with_strangers() -> None:
    at_home, opened = ServerSettings(), ServerSettings(open_to_all=True, hosts=("anon.example",))
    assert not at_home.shares_owner("")
    assert opened.shares_owner("")
    assert not opened.shares_owner("anna")


def test_accounts_are_hashes_that_only_their_owner_reads(quick_hashes: None, tmp_path: Path) -> None:
    path = tmp_path / "users"
    add_account(path, "anna", PASSWORD)
    add_account(path, "ben", "another password")
    add_account(path, "anna", "changed password")
    text = path.read_text()
    assert PASSWORD not in text
    assert path.stat().st_mode & 0o777 == 0o600
    accounts = Accounts(path)
    assert len(accounts) == 2
    assert accounts.allow("anna", "changed password")
    assert accounts.allow("ben", "another password")
    assert not accounts.allow("anna", PASSWORD)
    assert not accounts.allow("carl", PASSWORD)
    assert hashed("x") != hashed("x")  # salted
    refused = [("anna:b", PASSWORD), ("", PASSWORD), ("a\nb", PASSWORD)]
    refused += [("anna", "short"), ("anna", "x" * 1025), ("anna", "with a\ttab in it")]
    for name, password in refused:
        with pytest.raises(ParameterError):
            add_account(path, name, password)
    path.chmod(0o644)
    with pytest.raises(ParameterError, match="chmod 600"):
        Accounts(path)
    path.chmod(0o600)
    path.write_text("anna:plain text\n")
    with pytest.raises(ParameterError, match="line 1"):
        Accounts(path)
    with pytest.raises(ParameterError, match="cannot be read"):
        Accounts(tmp_path / "none")


def test_patience_doubles_and_forgets() -> None:
    now = [0.0]
    patience = LoginThrottle(free=2, longest=10.0, clock=lambda: now[0])
    waits = []
    for _ in range(6):
        patience.failed("anna")
        waits.append(patience.wait("anna"))
    assert waits == [0, 0, 2, 4, 8, 10]
    assert patience.wait("ben") == 0
    now[0] = 11.0
    assert patience.wait("anna", "ben") == 0
    patience.passed("anna")
    patience.failed("anna")
    assert patience.wait("anna") == 0
    for number in range(LoginThrottle.MOST + 10):
        patience.failed(str(number))
    assert len(patience._wrong) == LoginThrottle.MOST


# --------------------------------------------------------------------------------------------- sessions


def test_sessions_are_counted_capped_and_leave_nothing_behind(
    running: Callable[..., Running], monkeypatch: pytest.MonkeyPatch
) -> None:
    item = running(limits=Limits(sessions=2))
    seen: list[Workspace] = []
    original = item.server._workspace

    def remember() -> Workspace:
        seen.append(original())
        return seen[-1]

    item.server._workspace = remember  # type: ignore[method-assign]
    with monkeypatch.context() as patched:  # however long the three take, none is lost before the next
        patched.setattr(ServerSession, "milliseconds_since_last_unsubscribe", 0.0)
        for _ in range(3):
            item.token()
        assert item.server.sessions == 2
        assert len(seen) == 2
        assert seen[0].folder != seen[1].folder
        assert all(workspace.folder.is_dir() for workspace in seen)
        (seen[0].folder / "upload.csv").write_text("a person's cell")
    until(lambda: all(workspace.closed for workspace in seen))  # nobody opened their websockets
    assert item.server.sessions == 0
    assert not any(workspace.folder.exists() for workspace in seen)
    monkeypatch.setattr(ServerSession, "milliseconds_since_last_unsubscribe", 0.0)
    item.token()
    assert item.server.sessions == 1


@pytest.mark.slow
@pytest.mark.parametrize("opened", [False, True], ids=["never opened", "opened"])
def test_nothing_of_a_session_stays_in_memory(
    running: Callable[..., Running], tmp_path: Path, monkeypatch: pytest.MonkeyPatch, opened: bool
) -> None:
    from anonflow import datasets

    monkeypatch.setattr(server, "LOST", 0.2)
    monkeypatch.setattr(server, "LOOK", 0.1)
    datasets.census_like(40, seed=1).to_csv(tmp_path / "people.csv", index=False)
    item = running(start=tmp_path / "people.csv")
    for _ in range(3):
        token = item.token()
        if opened:
            assert item.websocket(token, Origin=f"http://127.0.0.1:{item.port}") == "open"
    until(lambda: item.server.sessions == 0)

    def are_gone() -> bool:
        gc.collect()
        return len(item.server._workspaces) == 0

    until(are_gone)


def test_an_address_opens_no_session_of_somebody_else(running: Callable[..., Running], stay: None) -> None:
    item = running()
    address = f"http://127.0.0.1:{item.port}"
    token = item.token()
    session = get_session_id(token)
    for path in (
        f"/?bokeh-session-id={session}",
        f"/?bokeh-token={token}",
        f"/?%62okeh-session-id={session}",
    ):
        assert item.ask(path=path)[0] == 403
        assert item.ask(path=path, Cookie=item.cookie)[0] == 403
    assert item.ask(Bokeh_Session_Id=session)[0] == 403
    assert item.server.sessions == 1
    own, item.cookie = item.cookie, ""
    assert item.websocket(token, Origin=address) == "403"  # the token alone, as from a page that was sent on
    item.cookie = f"anonflow-session={'0' * 64}"
    assert item.websocket(token, Origin=address) == "403"
    forged = generate_jwt_token(
        session, extra_payload={"cookies": {"anonflow-session": "0" * 64}}, expiration=600
    )
    assert item.websocket(forged, Origin=address) in ("403", "closed")
    item.cookie = own
    assert item.websocket(token, Origin=address) == "open"


@pytest.mark.slow
def test_a_lost_session_is_gone_on_with_by_its_browser_alone(
    running: Callable[..., Running], stay: None, users: Path, tmp_path: Path
) -> None:
    folders = SessionFolders(home=tmp_path / "sessions")
    item = running(users=users, workers=0)
    item.server.folders = folders
    item.server._gateway._revoke = folders.revoke

    def signed_in() -> str:
        return sign_in(item)[1]["Set-Cookie"].partition(";")[0]

    def begun(cookie: str) -> Workspace:
        before = set(item.server._workspaces)
        item.token(Cookie=cookie)
        (workspace,) = set(item.server._workspaces) - before
        return workspace

    def lost() -> str:
        """What a killed server leaves: a folder whose lock nobody holds; and the cookie of the browser."""
        first = begun(signed_in())
        first.opener.open_dataset("nursery")
        first.draft.set_ks([7])
        fcntl.flock(first.place._lock, fcntl.LOCK_UN)
        return item.cookie

    key = lost()
    assert begun(signed_in()).data.frame is None  # another browser
    assert begun(f"{signed_in()}; anonflow-session={'0' * 64}").data.frame is None
    assert begun(f"{sign_in(item, 'bert')[1]['Set-Cookie'].partition(';')[0]}; {key}").data.frame is None
    resumed = begun(f"{signed_in()}; {key}")
    assert len(resumed.data.frame) == 12_960
    assert resumed.data.ks == [7]
    assert "open again" in resumed.starts.status
    assert begun(f"{signed_in()}; {key}").data.frame is None  # it is held
    key, cookie = lost(), signed_in()
    item.ask("POST", "/logout", "", Cookie=f"{cookie}; {key}", Origin=f"http://127.0.0.1:{item.port}")
    assert begun(f"{signed_in()}; {key}").data.frame is None


def test_each_page_of_a_browser_goes_on_with_its_own_table(
    running: Callable[..., Running], tmp_path: Path
) -> None:
    """Two pages waited for a server that was stopped; the first that asked took the table of the other."""
    home = tmp_path / "sessions"
    item = running(workers=0, sessions=home)
    item.token()
    cookie, (seat,) = item.cookie, item.server.seats._seats
    opened = {}
    for k in (3, 4):
        workspace = Workspace(place=SessionFolders(home=home).begin(seat.key, resume=False))
        workspace.opener.open_dataset("census_like", n=30, seed=1)
        workspace.draft.set_ks([k])
        opened[workspace.place.number] = k
        workspace.close(keep=True)
    ks = []
    for number in ("0" * 16, *opened):
        before = set(item.server._workspaces)
        item.token(Cookie=cookie, path=f"/?screen=data&table={number}")
        (workspace,) = set(item.server._workspaces) - before
        ks.append(workspace.data.ks)
    assert ks == [[], *([k] for k in opened.values())], "a page whose folder is gone takes no other's"


def test_the_cookie_outlives_a_long_session(running: Callable[..., Running]) -> None:
    """What is kept is kept from the moment on that the server is lost, which may be a day after the page was opened."""
    for keep, least in ((1.0, 86_401), (3600.0, 90_000)):
        cookie = running(keep=keep).ask()[1]["Set-Cookie"]
        assert int(re.search(r"Max-Age=(\d+)", cookie)[1]) >= least
    assert "Max-Age" not in running(keep=0.0).ask()[1]["Set-Cookie"]


def test_a_bug_in_what_a_thread_changes_is_logged_without_its_words(
    running: Callable[..., Running], stay: None, caplog: pytest.LogCaptureFixture
) -> None:
    def broken() -> None:
        raise ValueError("Jane Doe")

    item = running()
    item.token()
    (workspace,) = item.server._workspaces
    workspace.turns.later(broken)
    until(lambda: "ValueError at test_serving.py" in caplog.text)
    item.server.line.join("somebody", broken, lambda: None)
    until(lambda: caplog.text.count("ValueError at test_serving.py") == 2)
    assert "Jane Doe" not in caplog.text


@pytest.mark.parametrize("keep", [0.0, 3600.0])
def test_a_server_that_ends_leaves_the_folders_of_sessions_with_work(keep: float, tmp_path: Path) -> None:
    home = tmp_path / "sessions"
    item = Running(keep=keep, sessions=home)
    for _ in range(2):
        item.token()
    first, second = item.server._workspaces
    done = threading.Event()

    def work() -> None:
        first.opener.open_dataset("census_like", n=30, seed=1)
        put_at(first.draft, ("flow",), "work")
        done.set()

    first.turns.later(work)
    assert done.wait(WAIT)
    folders = [workspace.place.path for workspace in (first, second)]
    assert {folder.parent for folder in folders} == {home}
    item.stop()
    assert [folder.exists() for folder in folders] == [bool(keep), False]
    assert item.server.left == bool(keep)
    shutil.rmtree(folders[0], True)


def test_a_session_begins_with_a_table_a_flow_or_a_link(
    running: Callable[..., Running], stay: None, tmp_path: Path
) -> None:
    from anonflow import datasets

    datasets.census_like(40, seed=1).to_csv(tmp_path / "people.csv", index=False)
    item = running(start=tmp_path / "people.csv")
    item.token()
    (workspace,) = item.server._workspaces
    assert len(workspace.data.frame) == 40
    assert (tmp_path / "people.csv").exists()  # a copy was taken
    text = workspace.draft.text()
    (tmp_path / "flow.yaml").write_text(text)
    two = running(start=tmp_path / "flow.yaml")
    assert two.server is not None
    two.token()
    (other,) = two.server._workspaces
    assert len(other.data.frame) == 40
    assert value_at(other.draft, ("steps",)) == value_at(workspace.draft, ("steps",))
    assert (tmp_path / "people.csv").exists()
    with pytest.raises(ParameterError, match="does not exist"):
        Running(start=tmp_path / "nothing.csv")
    (tmp_path / "flow.yaml").write_text(text.replace("algorithm: greedy", "algorithm: gredy"))
    three = running(start=tmp_path / "flow.yaml")
    assert three.server is not None
    three.token()
    (unread,) = three.server._workspaces
    assert unread.starts.status == NOTHING_OPENED
    assert "gredy" in " ".join(unread.opener.not_opened)
    screen = DataScreen(workspace=unread)
    assert screen.wrong.visible
    assert "gredy" in screen.wrong.object


def test_a_server_that_others_reach_needs_a_login_or_a_word() -> None:
    for settings in ({"address": "0.0.0.0"}, {"hosts": ("anon.example",)}, {"proxied": True}):
        with pytest.raises(ParameterError, match="--users"):
            Running(**settings)


def test_a_taken_port_is_said(running: Callable[..., Running]) -> None:
    item = running()
    with pytest.raises(ParameterError, match="choose another --port"):
        Running(port=item.port)


def test_the_table_that_sessions_begin_with_is_read_once_for_each_version_of_its_file(
    running: Callable[..., Running], stay: None, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """A page opens on the event loop that all users share: reading and judging the columns takes longest of it."""
    from anonflow import datasets
    from anonflow.dashboards.session.files import table_sources

    frame, path = datasets.census_like(40, seed=1), tmp_path / "people.csv"
    frame.to_csv(path, index=False)
    guesses = []

    def counted(rows, **options):
        guesses.append(len(rows))
        return advise(rows, **options)

    advise = table_sources.advise
    monkeypatch.setattr(table_sources, "advise", counted)
    item = running(start=path)
    for _ in range(3):
        item.token()
    first, second, third = item.server._workspaces
    assert guesses == [40]
    assert first.data.frame is second.data.frame is third.data.frame
    assert (
        len({each.folder for each in (first, second, third)}) == 3
    )  # the file itself is copied for each of them
    first.data.set_column("Age", role="insensitive")
    assert value_at(second.draft, ("table", "columns", "Age", "role")) == "quasi-identifier"
    assert second.data.source == third.data.source == SourceSpec(csv="people.csv")
    frame.head(30).to_csv(path, index=False)
    item.token()
    assert guesses == [40, 30]
    assert sorted(len(each.data.frame) for each in item.server._workspaces) == [30, 40, 40, 40]


def test_a_page_of_another_port_or_scheme_opens_no_websocket(running: Callable[..., Running]) -> None:
    """Attack: a page of another program on this machine, which the browser gives the name localhost, too."""
    item = running(hosts=("anon.example", "anon.example:8443"), open_to_all=True, workers=0)
    host, token = f"localhost:{item.port}", item.token()
    for origin in (
        "http://localhost:7777",
        f"http://127.0.0.1:{item.port}",
        "http://localhost",
        f"ftp://localhost:{item.port}",
        f"localhost:{item.port}",
        "http://anon.example:7777",
        "ftp://anon.example",
        "http://[::1",
    ):
        assert item.websocket(token, Host=host, Origin=origin) == "403", origin
    for origin in (f"http://{host}", "https://anon.example", "https://anon.example:8443"):
        assert item.websocket(item.token(), Host=host, Origin=origin) == "open", origin


def test_the_collector_does_not_look_through_what_was_imported(monkeypatch: pytest.MonkeyPatch) -> None:
    held: list[int] = []
    fake = SimpleNamespace(run=lambda ready: held.append(gc.get_freeze_count()), left=0)
    monkeypatch.setattr("anonflow.dashboards.server.server.Server", lambda settings: fake)
    before, imported = gc.get_freeze_count(), [[] for _ in range(100)]
    assert dashboard(no_browser=True) == 0
    assert held[0] >= before + len(imported)
