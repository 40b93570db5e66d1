"""``anonflow dashboard``: the screens in a browser, for oneself or for others."""

from __future__ import annotations

import gc
import sys
from pathlib import Path
from typing import Annotated, Any

import typer

from anonflow.cli.streams import say
from anonflow.errors import ParameterError
from anonflow.hierarchy.wording import plural


def dashboard(
    file: Annotated[
        Path | None,
        typer.Argument(help="A table or a flow to begin with.", metavar="[FILE]", show_default=False),
    ] = None,
    port: Annotated[
        int, typer.Option(help="The port to listen on; 0 takes a free one.", min=0, max=65535)
    ] = 5006,
    address: Annotated[str, typer.Option(help="The address of the interface to listen on.")] = "127.0.0.1",
    host_name: Annotated[
        list[str] | None,
        typer.Option(help="A name that browsers reach the server by; may repeat.", metavar="NAME"),
    ] = None,
    users: Annotated[
        Path | None, typer.Option(help="The file of the users who may sign in.", metavar="FILE")
    ] = None,
    add_user: Annotated[
        str | None,
        typer.Option(help="Ask for a password, put this user into --users FILE, and end.", metavar="NAME"),
    ] = None,
    open_to_all: Annotated[bool, typer.Option("--open", help="Let others in without signing in.")] = False,
    max_sessions: Annotated[int | None, typer.Option(help="Users at the same time.", min=1)] = None,
    max_upload_mb: Annotated[float | None, typer.Option(help="Of an uploaded file.", min=0.001)] = None,
    max_rows: Annotated[int | None, typer.Option(help="Records of a table.", min=2)] = None,
    max_seconds: Annotated[float | None, typer.Option(help="Of one run.", min=0.1)] = None,
    max_running: Annotated[
        int | None, typer.Option(help="Runs at the same time, of all users.", min=1)
    ] = None,
    workers: Annotated[
        int | None,
        typer.Option(help="Worker processes that all users share; 0 is threads.", min=0, max=1024),
    ] = None,
    https: Annotated[
        bool, typer.Option("--https", help="A proxy in front speaks https: cookies are for https only.")
    ] = False,
    behind_proxy: Annotated[
        bool,
        typer.Option("--behind-proxy", help="A proxy in front names the browser's address in X-Real-IP."),
    ] = False,
    proxy_address: Annotated[
        list[str] | None,
        typer.Option(
            help="The address or network of that proxy, this machine without it; may repeat.",
            metavar="ADDRESS",
        ),
    ] = None,
    trust_header: Annotated[
        str | None,
        typer.Option(
            help="The header in which that proxy names who signed in there, such as X-Forwarded-User.",
            metavar="HEADER",
        ),
    ] = None,
    metrics: Annotated[
        bool, typer.Option("--metrics", help="Answer /metrics for Prometheus: sessions, queue, runs, memory.")
    ] = False,
    metrics_from: Annotated[
        list[str] | None,
        typer.Option(
            help="An address or network that may read /metrics, this machine without it; may repeat.",
            metavar="ADDRESS",
        ),
    ] = None,
    log_format: Annotated[
        str, typer.Option(help="Format of the log: text, or json, a line of JSON for each entry.")
    ] = "text",
    owner: Annotated[
        Path | None,
        typer.Option(
            help="Keep marks of the people in releases here, so that a second release warns; FILE's owner/ without it.",
            metavar="FOLDER",
        ),
    ] = None,
    keep: Annotated[
        str,
        typer.Option(
            help="How long a session is kept after its page was closed, or the server ended; 0 keeps nothing."
        ),
    ] = "1h",
    sessions: Annotated[
        Path | None,
        typer.Option(
            help="Keep the sessions here, where they outlive the server; in the temporary folder without it.",
            metavar="FOLDER",
        ),
    ] = None,
    no_browser: Annotated[bool, typer.Option("--no-browser", help="Open no browser.")] = False,
) -> int:
    """Open the dashboards in a browser; with --users, --host-name or --address, serve them to others."""
    try:
        from dataclasses import replace

        from anonflow.dashboards.server.accounts import add_account
        from anonflow.dashboards.server.json_log import log_as_json
        from anonflow.dashboards.server.server import Server
        from anonflow.dashboards.server.server_settings import ServerSettings
        from anonflow.dashboards.work.user_limits import HOSTED, MEGABYTE, local_limits
        from anonflow.engine.duration import seconds_of
    except ModuleNotFoundError as error:
        raise ParameterError(
            f"the dashboards need the package {error.name}; install them with: pip install 'anonflow[app]'"
        ) from None
    if log_format not in ("text", "json"):
        raise ParameterError("--log-format is text or json")
    if log_format == "json":
        log_as_json()
    if add_user is not None:
        if users is None:
            raise ParameterError("--add-user needs --users FILE, the file to put the user into")
        add_account(users, add_user, _password(add_user))
        say(f"{add_user} may sign in", err=True)
        return 0
    settings = ServerSettings(
        start=file,
        address=address,
        port=port,
        hosts=tuple(host_name or ()),
        users=users,
        workers=workers,
        https=https,
        proxied=behind_proxy,
        proxies=tuple(proxy_address) if proxy_address else ServerSettings.proxies,
        trust_header=trust_header,
        metrics=metrics,
        metrics_readers=tuple(metrics_from) if metrics_from else ServerSettings.metrics_readers,
        open_to_all=open_to_all,
        owner=owner,
        keep=seconds_of(keep),
        sessions=sessions,
    )
    own_limits: dict[str, Any] = {
        "sessions": max_sessions,
        "upload_bytes": None if max_upload_mb is None else int(max_upload_mb * MEGABYTE),
        "rows": max_rows,
        "seconds": max_seconds,
        "running": max_running,
    }
    base = HOSTED if settings.hosted else local_limits()
    limits = replace(base, **{name: value for name, value in own_limits.items() if value is not None})
    server = Server(replace(settings, limits=limits))

    def ready() -> None:
        say(f"anonflow: the dashboards are at {server.url}", err=True)
        if not settings.hosted and not no_browser:
            typer.launch(server.url)

    # the collector would look through all that was imported, each time while everybody's pages wait for 0.2 s
    gc.collect()
    gc.freeze()
    server.run(ready)
    if server.left:
        say(
            f"anonflow: {plural(server.left, 'session')} with work in them can go on for {keep} when the dashboards are started again; "
            f"until then their tables lie in {server.folders.home}. --keep 0 keeps nothing",
            err=True,
        )
    return 0


def _password(name: str) -> str:
    """Read a password from the terminal or a line of the standard input; never from the command line, which others can see."""
    if sys.stdin.isatty():
        return str(typer.prompt(f"Password of {name}", hide_input=True, confirmation_prompt=True, err=True))
    return sys.stdin.readline().rstrip("\r\n")
