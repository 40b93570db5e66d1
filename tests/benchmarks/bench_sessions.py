"""Fifty users on one server: what they wait for a page and for an answer while ten runs wait, and what an idle session holds.

Each user is a browser's requests without the browser: the page of the screen Protect over HTTP, a websocket of its own, the
whole document over it, and then another k, typed again some seconds after each answer: the server counts the records at risk, checks the draft, and sends what
changed. That is the answer that is waited for. The clients are in a process of their own, so that they do not take the server's
turn. A thread of the server looks how late its event loop is, and where it is while it is late.
"""

from __future__ import annotations

import asyncio
import http.client
import json
import os
import re
import statistics
import subprocess
import sys
import tempfile
import time
from collections.abc import Iterator
from multiprocessing import get_context
from pathlib import Path
from typing import Any

import psutil

from anonflow import datasets
from tests.benchmarks.measuring import row

RUNS = 10
MIB = 1 << 20
WAIT = 120.0
THINKS = 2.5
"""Seconds, on average, between an answer and what the same user changes next."""
TITLE = "title"
"""The attribute of a model that has the words above a field."""


def frames(kind: str) -> list[str]:
    """A message of the websocket's protocol without content: header, metadata, content."""
    header = {"msgid": os.urandom(8).hex(), "msgtype": kind}
    return [json.dumps(header), "{}", "{}"]


async def answered(connection: Any, kind: str, answer: str) -> str:
    """Send a message, and wait for its answer; its content."""
    for frame in frames(kind):
        await connection.write_message(frame)
    return await until(connection, answer)


async def until(connection: Any, kind: str, text: str = "") -> str:
    """Read until a message of a kind with a text has come; its content. Buffers follow a message as pairs of frames."""
    while True:
        header = await asyncio.wait_for(connection.read_message(), WAIT)
        assert header is not None, "the server has closed the connection"
        if isinstance(header, bytes) or '"msgtype"' not in header:
            continue
        await asyncio.wait_for(connection.read_message(), WAIT)
        content = await asyncio.wait_for(connection.read_message(), WAIT)
        if json.loads(header)["msgtype"] == kind and text in content:
            return str(content)


def models(content: Any) -> Iterator[dict[str, Any]]:
    """All models in a message's content."""
    if isinstance(content, dict):
        if "attributes" in content and "id" in content:
            yield content
        content = list(content.values())
    for inner in content if isinstance(content, list) else ():
        yield from models(inner)


def model_with(content: str, attribute: str, words: str) -> str:
    """The id of a model by the words that one of its attributes begins with."""
    return next(
        model["id"]
        for model in models(json.loads(content))
        if str(model.get("attributes", {}).get(attribute, "")).startswith(words)
    )


async def change(connection: Any, model: str, attribute: str, value: Any) -> None:
    """Send what a widget sends when somebody has changed it."""
    await send(connection, {"kind": "ModelChanged", "model": {"id": model}, "attr": attribute, "new": value})


async def happens(connection: Any, name: str, values: dict[str, Any]) -> None:
    """Send what happened in a browser, such as a click."""
    event = {"type": "event", "name": name, "values": {"type": "map", "entries": list(values.items())}}
    await send(connection, {"kind": "MessageSent", "msg_type": "bokeh_event", "msg_data": event})


async def unfolded(connection: Any, document: str) -> str:
    """Click on what unfolds the field of k, as a browser does; the id of the field, of which there is no model before."""
    await happens(connection, "document_ready", {})  # nothing that happens earlier is heard
    await happens(
        connection,
        "button_click",
        {"model": {"id": model_with(document, "label", "Choose k and methods myself")}},
    )
    return model_with(await until(connection, "PATCH-DOC", "or type k"), TITLE, "or type k")


async def send(connection: Any, event: dict[str, Any]) -> None:
    """Send a change of the document."""
    header, metadata, _ = frames("PATCH-DOC")
    for frame in (header, metadata, json.dumps({"events": [event]})):
        await connection.write_message(frame)


async def opened(port: int) -> tuple[Any, str, float]:
    """Open a page with its websocket, and take the whole document; the connection, the document, and the seconds that it took."""
    from tornado.httpclient import HTTPRequest
    from tornado.websocket import websocket_connect

    begin = time.perf_counter()

    def page() -> tuple[str, str]:
        connection = http.client.HTTPConnection("127.0.0.1", port, timeout=WAIT)
        connection.request("GET", "/?screen=protect")
        answer = connection.getresponse()
        text = answer.read().decode()
        cookie = re.match(r"anonflow-session=[0-9a-f]{64}", answer.getheader("Set-Cookie") or "")
        token = re.search(r'"token":"([^"]+)"', text)
        connection.close()
        assert cookie is not None
        assert token is not None
        return cookie[0], token[1]

    cookie, token = await asyncio.to_thread(page)
    request = HTTPRequest(f"ws://127.0.0.1:{port}/ws", headers={"Cookie": cookie})
    connection = await websocket_connect(request, subprotocols=["bokeh", token])
    await until(connection, "ACK")
    document = await answered(connection, "PULL-DOC-REQ", "PULL-DOC-REPLY")
    return connection, document, time.perf_counter() - begin


async def users(port: int, many: int, rounds: int, server: Any) -> dict[str, list[float]]:
    """All users come one after the other; then each sends a message now and then, while runs are waiting."""
    pages, connections, documents = [], [], []
    for _ in range(many):
        connection, document, seconds = await opened(port)
        connections.append(connection)
        documents.append(document)
        pages.append(seconds)
    memory = server.memory_info().rss
    fields = [
        await unfolded(connection, document)
        for connection, document in zip(connections, documents, strict=True)
    ]
    server_runs(port, server)
    waits: list[float] = []
    slowest: list[float] = []

    async def user(connection: Any, field: str, number: int) -> None:
        own = []
        for at in range(rounds):
            # not all at once, and the same each time
            await asyncio.sleep(2 * THINKS * ((number * 7 + at * 13) % many) / many)
            begin = time.perf_counter()
            k = 51 + (number + at) % 40  # never the one that is there already: of that nothing is sent
            await change(connection, field, "value", k)
            await until(connection, "PATCH-DOC", f"fewer than {k - 1} others")
            own.append(time.perf_counter() - begin)
        waits.extend(own)
        slowest.append(statistics.median(own))

    late = asyncio.create_task(opened(port))
    await asyncio.gather(
        *(user(*pair, number) for number, pair in enumerate(zip(connections, fields, strict=True)))
    )
    connection, _, seconds = await late
    for each in (*connections, connection):
        each.close()
    return {"pages": pages, "late": [seconds], "waits": waits, "users": slowest, "memory": [float(memory)]}


def server_runs(port: int, server: Any) -> None:
    """Tell the server to begin its runs, and to look how late it is: files that it looks for."""
    Path(tempfile.gettempdir(), f"anonflow-bench-{port}-look").touch()
    Path(tempfile.gettempdir(), f"anonflow-bench-{port}").touch()


SERVER = """
import json, sys, threading, time, tempfile
from pathlib import Path
from anonflow.dashboards.server.server import Server
from anonflow.dashboards.server.server_settings import ServerSettings

server = Server(ServerSettings(port=0, start=Path(sys.argv[1]), workers=1))

def runs():
    flag = Path(tempfile.gettempdir(), f"anonflow-bench-{server.port}")
    while not flag.exists():
        time.sleep(0.05)
    seats = list(server.seats._seats)[:int(sys.argv[2])]
    for seat in seats:
        seat.workspace.turns.later(seat.workspace.start)
    flag.unlink()

def stack(thread):
    # without a switch in between: to walk frames that another thread ends crashes the interpreter
    interval, names = sys.getswitchinterval(), []
    sys.setswitchinterval(1.0)
    try:
        frame = sys._current_frames()[thread]
        while frame is not None:
            names.append((frame.f_code.co_filename, frame.f_code.co_name))
            frame = frame.f_back
    finally:
        sys.setswitchinterval(interval)
    return names[::-1]

def look(loop, main):
    # how late is the event loop, and where is it while it is late
    places, longest = {}, 0.0
    out = Path(tempfile.gettempdir(), f"anonflow-bench-{server.port}-held")
    while True:
        heard = threading.Event()
        begin = time.perf_counter()
        loop.add_callback(heard.set)
        while not heard.wait(0.05):
            calls = stack(main)
            own = [f"{file.rpartition('anonflow/')[2]}:{name}" for file, name in calls if "anonflow/" in file]
            name = " > ".join(own[-4:]) or calls[-1][1]
            places[name] = places.get(name, 0.0) + 0.05
        took = time.perf_counter() - begin
        if took > longest or took > 0.3:
            longest = max(longest, took)
            worst = sorted(places.items(), key=lambda item: -item[1])[:12]
            new = out.with_suffix(".new")
            new.write_text(json.dumps({"longest": longest, "places": worst}))
            new.replace(out)
        time.sleep(0.02)

def watch():
    flag = Path(tempfile.gettempdir(), f"anonflow-bench-{server.port}-look")
    while not flag.exists():
        time.sleep(0.05)
    flag.unlink()
    look(server._server.io_loop, threading.main_thread().ident)

threading.Thread(target=runs, daemon=True).start()
threading.Thread(target=watch, daemon=True).start()
server.run(lambda: print(server.port, flush=True))
"""


def _users(port: int, many: int, rounds: int, process: int, answer: Any) -> None:
    try:
        answer.put(asyncio.run(users(port, many, rounds, psutil.Process(process))))
    except BaseException as error:  # who waits for the answer would wait for ever
        answer.put({"failed": [type(error).__name__]})
        raise


def measured(many: int, records: int, rounds: int) -> dict[str, list[float]]:
    """Start a server, drive its users from another process, and end it."""
    with tempfile.TemporaryDirectory() as home:
        source = Path(home) / "people.csv"
        datasets.census_like(records, seed=1).to_csv(source, index=False)
        process = subprocess.Popen(
            [sys.executable, "-c", SERVER, str(source), str(min(RUNS, many))],
            stdout=subprocess.PIPE,
            text=True,
        )
        try:
            assert process.stdout is not None
            port = int(process.stdout.readline())
            before = psutil.Process(process.pid)
            opened_once, _ = asyncio.run(_one(port))
            held = before.memory_info().rss
            context = get_context("spawn")
            queue = context.SimpleQueue()
            clients = context.Process(target=_users, args=(port, many, rounds, process.pid, queue))
            clients.start()
            answer: dict[str, list[float]] = queue.get()
            clients.join()
            assert "failed" not in answer, answer
            answer["memory"] = [(answer["memory"][0] - held) / many]
            del opened_once
            place = Path(tempfile.gettempdir(), f"anonflow-bench-{port}-held")
            answer["held"] = [0.0]
            if place.exists():
                late = json.loads(place.read_text())
                place.unlink()
                answer["held"] = [late["longest"]]
                for name, seconds in late["places"]:
                    print(f"the event loop is held {seconds:.2f} s in {name}", file=sys.stderr)
            return answer
        finally:
            process.terminate()
            process.communicate(timeout=WAIT)


async def _one(port: int) -> tuple[None, float]:
    """One user who comes and goes first: what is loaded once is no session's."""
    connection, document, seconds = await opened(port)
    await change(connection, await unfolded(connection, document), "value", 7)
    await until(connection, "PATCH-DOC", "fewer than 6 others")
    connection.close()
    return None, seconds


def run(small: bool) -> list[dict[str, Any]]:
    """How long users wait, the fairest and the least fair of them, and the memory of an idle session."""
    many, records, rounds = (4, 300, 2) if small else (50, 3_000, 10)
    figures = measured(many, records, rounds)
    waits, users_ = sorted(figures["waits"]), figures["users"]
    name = f"{many} users, {min(RUNS, many)} runs of {records:,} records waiting"
    limit = None if small else 1.0
    return [
        row(f"{name}: another k is answered, median", statistics.median(waits), "s"),
        row(
            f"{name}: another k is answered, 95 of 100", waits[int(0.95 * (len(waits) - 1))], "s", most=limit
        ),
        row(f"{name}: another k is answered, slowest", waits[-1], "s", most=limit),
        row(f"{name}: the event loop is held, longest", figures["held"][0], "s"),
        row(
            f"{name}: median of the user who waits longest / of the one who waits least",
            max(users_) / min(users_),
            "",
        ),
        row(f"{name}: a page opens meanwhile", figures["late"][0], "s"),
        row(
            f"{many} users come one after the other: a page opens, median",
            statistics.median(figures["pages"]),
            "s",
        ),
        row(
            f"{many} idle sessions with {records:,} records each: memory of one",
            figures["memory"][0] / MIB,
            "MiB",
        ),
    ]
