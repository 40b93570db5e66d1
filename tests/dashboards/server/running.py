"""A server without a browser: on a thread of its own, asked over HTTP."""

from __future__ import annotations

import asyncio
import http.client
import re
import threading
import time
from collections.abc import Callable
from typing import Any
from urllib.parse import urlencode

from tornado.httpclient import HTTPClientError, HTTPRequest
from tornado.websocket import websocket_connect

from anonflow.dashboards.server.server import Server
from anonflow.dashboards.server.server_settings import ServerSettings

WAIT = 300.0
PASSWORD = "correct horse battery"


class Running:
    """A server on a thread of its own."""

    def __init__(self, **settings: Any) -> None:
        self.server: Server | None = None
        self.cookie = ""
        self._error: BaseException | None = None
        ready = threading.Event()

        def work() -> None:
            loop = asyncio.new_event_loop()
            asyncio.set_event_loop(loop)
            try:
                self.server = Server(ServerSettings(**{"port": 0, **settings}))
                self.server.run(ready.set, signals=())
            except BaseException as error:
                self._error = error
                ready.set()
            finally:
                left = asyncio.all_tasks(loop)
                for task in left:
                    task.cancel()
                loop.run_until_complete(asyncio.gather(*left, return_exceptions=True))
                asyncio.set_event_loop(None)
                loop.close()

        self._thread = threading.Thread(target=work, daemon=True)
        self._thread.start()
        assert ready.wait(WAIT)
        if self._error is not None:
            raise self._error

    @property
    def port(self) -> int:
        assert self.server is not None
        return self.server.port

    def ask(
        self, method: str = "GET", path: str = "/", body: str | None = None, **headers: str
    ) -> tuple[int, dict[str, str], str]:
        """Status, headers and body; a header's underscores are dashes."""
        connection = http.client.HTTPConnection("127.0.0.1", self.port, timeout=WAIT)
        sent = {name.replace("_", "-"): value for name, value in headers.items()}
        if body is not None:
            sent.setdefault("Content-Type", "application/x-www-form-urlencoded")
        connection.request(method, path, body=body, headers=sent)
        answer = connection.getresponse()
        text = answer.read().decode("utf-8", "replace")
        connection.close()
        return answer.status, dict(answer.getheaders()), text

    def token(self, **headers: str) -> str:
        """Begin a session, and take the token that its websocket is opened with; the cookie is kept."""
        status, answered, page = self.ask(**headers)
        assert status == 200
        self.cookie = re.match(r"anonflow-session=[0-9a-f]{64}", answered["Set-Cookie"])[0]
        report = re.search(r'"token":"([^"]+)"', page)
        assert report is not None
        return report[1]

    def websocket(self, token: str, port: int | None = None, **headers: str) -> str:
        """Whether a websocket opens: "open", or the status it is refused with. The last session's cookie goes along."""
        sent = {name.replace("_", "-"): value for name, value in headers.items()}
        sent["Cookie"] = "; ".join(filter(None, (sent.get("Cookie"), self.cookie)))

        async def go() -> str:
            request = HTTPRequest(f"ws://127.0.0.1:{port or self.port}/ws", headers=sent)
            try:
                connection = await websocket_connect(request, subprotocols=["bokeh", token])
                answer = await connection.read_message()  # the server says hello
                connection.close()
                while await asyncio.wait_for(connection.read_message(), WAIT) is not None:
                    pass  # until the server has closed its side, too
            except HTTPClientError as error:
                return str(error.code)
            return "open" if answer is not None else "closed"

        return asyncio.run(go())

    def stop(self) -> None:
        assert self.server is not None
        self.server.stop()
        self._thread.join(WAIT)
        assert not self._thread.is_alive()


def until(true: Callable[[], Any]) -> None:
    end = time.monotonic() + WAIT
    while not true():
        assert time.monotonic() < end
        time.sleep(0.05)


def sign_in(server: Running, name: str = "anna", password: str = PASSWORD, **headers: str) -> Any:
    headers.setdefault("Origin", f"http://127.0.0.1:{server.port}")
    return server.ask("POST", "/login", urlencode({"name": name, "password": password}), **headers)
