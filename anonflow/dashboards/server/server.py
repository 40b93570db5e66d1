"""The server: local for one user, or for several users behind a login."""

from __future__ import annotations

import importlib
import logging
import os
import secrets
import shutil
import signal
import socket
import weakref
from collections.abc import Callable, Mapping, Sequence
from contextlib import suppress
from functools import partial
from typing import Any

import panel as pn
from panel.io.notifications import NotificationAreaBase
from tornado.ioloop import PeriodicCallback

from anonflow import strict_yaml
from anonflow.dashboards.app import App, extension, scheduler, serve_styles, step_of
from anonflow.dashboards.components.theme import Theme
from anonflow.dashboards.server.accounts import Accounts
from anonflow.dashboards.server.gateway import LEAVING, Gateway, PackedFiles
from anonflow.dashboards.server.metrics import Figures
from anonflow.dashboards.server.seats import Seat, Seats
from anonflow.dashboards.server.server_settings import LOOPBACK, ServerSettings
from anonflow.dashboards.server.workers import SharedCluster
from anonflow.dashboards.session.draft_spec import NO_FLOW, DraftSpec
from anonflow.dashboards.session.files.folders import SessionFolders
from anonflow.dashboards.session.files.table_sources import TableReading
from anonflow.dashboards.session.opener import NOTHING_OPENED
from anonflow.dashboards.session.share_link import flow_words
from anonflow.dashboards.session.workspace import Workspace
from anonflow.dashboards.work.fair_queue import FairQueue, local_line
from anonflow.dashboards.work.user_limits import HOSTED, local_limits
from anonflow.errors import AnonflowError, ParameterError, unforeseen
from anonflow.hierarchy.wording import plural

LOG = logging.getLogger("anonflow.dashboards")

BODY = 1 << 20
"""Bytes of a request, at most: uploads come by websocket, and no page sends more than a password."""

LOST = 30.0
"""Seconds after which a session ends whose page is closed or lost."""

LOOK = 5.0
"""Seconds between two looks at lost sessions."""

NEW = "new"
"""What the address of a page says that begins without a table, beside those that are open."""

SWEEP = 60.0
"""Seconds between two looks at what lost servers left."""


class Server:
    """The dashboards, served.

    Attributes
    ----------
    port : int
        What is listened on.
    sessions : int
        How many a page shows.
    line : FairQueue
        The queue of the runs of all sessions.
    left : int
        How many sessions with work in them it left for the next server, once it is closed.

    Raises
    ------
    ParameterError
        If others could come in without signing in and nobody said that they may, if the file of accounts or what is
        to be opened cannot be used, or the port is taken.
    """

    def __init__(self, settings: ServerSettings) -> None:
        self.settings = settings
        hosted = settings.hosted
        settings.check()
        accounts = None if settings.users is None else Accounts(settings.users)
        if hosted and accounts is None and settings.trust_header is None and not settings.open_to_all:
            raise ParameterError(
                "others can reach this server without signing in; add --users FILE or --trust-header, or --open to allow "
                "this"
            )
        self.limits = settings.limits or (HOSTED if hosted else local_limits())
        if settings.start is not None and not settings.start.is_file():
            raise ParameterError(f"{settings.start}: does not exist; name a table or a flow")
        workers = settings.workers
        if workers is None:
            workers = os.cpu_count() or 1 if hosted else 0
        self._workspaces: weakref.WeakSet[Workspace] = weakref.WeakSet()
        self._reading = TableReading()
        self.left = 0
        self.cluster: SharedCluster | None = None
        self.folders = SessionFolders(settings.keep, settings.sessions)
        self.folders.sweep()
        extension()
        pn.config.design = Theme
        # what is made once in a process, its first user would wait for: the words of links, and what reads tooltips
        flow_words()
        importlib.import_module("markdown_it")
        self.seats = Seats(settings.keep, self._without_page)
        self._server = self._listen(accounts)
        try:
            # after the port: no workers for a server that cannot listen
            self.cluster = SharedCluster(workers) if workers else None
        except BaseException:
            self._server.stop()
            raise
        if self.cluster is not None:
            self.cluster.warm()
            self.line = FairQueue(self.limits.running or workers)
        elif self.limits.running is not None:
            self.line = FairQueue(self.limits.running)
        else:
            self.line = local_line()

    def _listen(self, accounts: Accounts | None) -> Any:
        settings = self.settings
        logging.getLogger("bokeh.server.util").setLevel(logging.ERROR)
        token_secret = secrets.token_bytes(32)
        family = socket.AF_INET6 if ":" in settings.address else socket.AF_INET
        try:
            if settings.port:  # test with a socket of our own whether the port is taken, and close it again
                socket.create_server((settings.address, settings.port), family=family).close()
            server = pn.io.server.get_server(
                {"/": self._session},
                port=settings.port,
                address=settings.address,
                # who may open a websocket is the gateway's to say: Bokeh lets in whoever repeats the Host as Origin
                websocket_origin="*",
                title="anonflow",
                start=False,
                show=False,
                verbose=False,
                http_server_kwargs={"xheaders": settings.proxied, "max_body_size": BODY},
                unused_session_lifetime_milliseconds=int(LOST * 1000),
                check_unused_sessions_milliseconds=int(LOOK * 1000),
                session_token_expiration=3600,
                # a token says whose session it opens, so nobody else may write one
                sign_sessions=True,
                secret_key=token_secret,
                keep_alive_milliseconds=15_000,
            )
        except OSError as error:
            why = error.strerror or type(error).__name__
            raise ParameterError(
                f"cannot listen on {settings.address}:{settings.port}: {why}; choose another --port"
            ) from None
        self._gateway = Gateway(
            server._tornado,
            settings,
            accounts,
            lambda: self.healthy,
            token_secret,
            self._revoke,
            lambda: self.figures().text(),
        )
        server._tornado.add_transform(PackedFiles)
        server._http.request_callback = self._gateway
        return server

    # ----------------------------------------------------------------------------------------- sessions

    def _session(self) -> Any:
        """Return the app over a workspace, the user's last one if its page is gone; or the message that the server is full."""
        serve_styles()
        document, key = pn.state.curdoc, self._key()
        seat, seat_number, leaving = None, self._named("table"), self._cookies().get(LEAVING, "")
        if not self._is_fresh():
            seat = next((seat for seat in self.seats.of_key(key) if seat_number in seat.names), None)
            if seat is None and seat_number not in self.folders.lost(key):
                seat = self.seats.free_of(key, leaving)
        for other in self.seats.of_key(key):
            if seat_number and other.number == leaving and other is not seat and other.document is not None:
                self._end(other.document)  # this page stands in its place
        if seat is not None:
            self.seats.take_up(seat, document, scheduler())
        else:
            most = self.limits.sessions
            if most is not None and self.sessions >= most:
                return pn.pane.HTML(
                    "<h2>This server is full</h2><p>It already has as many users as it can serve. "
                    "Reload this page in a few minutes.</p>"
                )
            while most is not None and self.sessions + self.seats.kept >= most and self.seats.make_room():
                pass
            workspace = self._workspace()
            again = (
                self.settings.start is not None and not self._is_fresh() and not workspace.opener.is_resumed
            )
            seat = self.seats.add(key, workspace, document, workspace.draft.spec if again else NO_FLOW)
        LOG.info("a session begins", extra={"sessions": self.sessions})
        page_seat = seat
        pn.state.on_session_destroyed(lambda context: self._end(document))
        app = App(
            workspace=seat.workspace,
            # who signed in at a proxy signs out there
            user=self._user() if self.settings.users else "",
            kept=self.settings.keep,
            step=step_of(pn.state.session_args),
            tables=partial(self._tables, page_seat) if key and self.settings.keep else None,
        )
        app.bar.number, app.bar.folder = seat.number, seat.workspace.place.number

        def mark_seen(action: str) -> None:
            if page_seat.document is document and action == "here":
                page_seat.seen = True

        app.bar.listen(mark_seen)

        def moved() -> None:
            context = document.session_context
            if context is not None and not context.destroyed:
                document.add_next_tick_callback(app.give_up)  # that page may be shown still: in its own turn

        seat.moved = moved
        return app

    def _named(self, name: str) -> str:
        """Return what the address of the page says of something."""
        values = (pn.state.session_args or {}).get(name)
        return values[0].decode("ascii", "replace") if values else ""

    def _is_fresh(self) -> bool:
        """Whether the page begins anew: with what a link has, or without a table."""
        return bool(self._named("c")) or self._named("table") == NEW

    def _tables(self, page_seat: Seat) -> list[tuple[str, str, str]]:
        """Return the other tables of a page's browser: what its address says of each, its name, and what there is of it."""
        listed = []
        for seat in self.seats.of_key(page_seat.key):
            if seat is not page_seat and seat.workspace.data.frame is not None:
                runs = plural(len(seat.workspace.runs.finished), "run")
                runs += ", running" if seat.workspace.starts.running else ""
                runs += "" if seat.is_free else ", in another tab"
                listed.append((seat.number, seat.workspace.data.table_name, runs))
        for number, flow in self.folders.lost(page_seat.key).items():
            with suppress(AnonflowError):
                source = DraftSpec.of(strict_yaml.loads(flow).data).table.source
                listed.append((number, source.file or source.dataset or "", "on disk"))
        return listed

    def _without_page(self, change: Callable[[], None]) -> None:
        """Apply a change that arrives while no page shows its workspace."""

        def now() -> None:
            try:
                change()
            except Exception as error:  # the event loop would log its words
                LOG.error(unforeseen(error))

        self._server.io_loop.add_callback(now)

    def _revoke(self, key: str) -> None:
        self.seats.revoke(key)
        self.folders.revoke(key)

    @property
    def sessions(self) -> int:
        """How many sessions a page shows."""
        return self.seats.shown

    def _workspace(self) -> Workspace:
        cluster, key, number = self.cluster, self._key(), self._named("table")
        # a page whose folder is gone takes no folder of the browser's other pages: these ask for theirs
        resumes = not self._is_fresh() and (not number or number in self.folders.lost(key))
        workspace = Workspace(
            place=self.folders.begin(key, resumes, number),
            schedule=scheduler(),
            line=self.line,
            scheduler="threads" if cluster is None else cluster.address,
            freed=None if cluster is None else cluster.sweep,
            limits=self.limits,
            owner=self.settings.owner_of(self._user()),
            shares_owner=self.settings.shares_owner(self._user()),
            aside=True,
        )
        self._workspaces.add(workspace)
        try:
            self._begin(workspace)
        except AnonflowError as error:
            workspace.starts.status, workspace.opener.not_opened = NOTHING_OPENED, error.problems
        return workspace

    def _begin(self, workspace: Workspace) -> None:
        start = self.settings.start
        link = self._named("c")
        if workspace.opener.is_resumed:
            workspace.opener.resume()
        elif link:
            workspace.opener.open_link(link)
        elif self._is_fresh():
            pass
        elif start is not None and start.suffix.lower() in (".yaml", ".yml"):
            workspace.opener.open_own_flow(start)
        elif start is not None:
            copy = workspace.folder / f"begin-{start.name}"
            shutil.copy2(start, copy)
            workspace.opener.read_file(start.name, copy, reading=self._reading)()

    def _cookies(self) -> Mapping[str, str]:
        context = pn.state.curdoc.session_context if pn.state.curdoc is not None else None
        request = getattr(context, "request", None)
        return {} if request is None else request.cookies

    def _user(self) -> str:
        return self._gateway.user_told(self._cookies())

    def _key(self) -> str:
        return self._gateway.key_told(self._cookies())

    def _end(self, document: Any) -> None:
        workspace = self.seats.leave(document)
        if workspace is not None:
            workspace.close()
        _forget_notifications(document)
        LOG.info("a session ends", extra={"sessions": self.sessions})

    # ---------------------------------------------------------------------------------------- the server

    @property
    def port(self) -> int:
        """The port on which the server listens."""
        return int(self._server.port)

    @property
    def url(self) -> str:
        """The address of the server for a browser on this machine."""
        name = self.settings.address if self.settings.address in LOOPBACK else "127.0.0.1"
        return f"http://{f'[{name}]' if ':' in name else name}:{self.port}/"

    @property
    def healthy(self) -> bool:
        """Whether runs can be computed."""
        return self.cluster is None or self.cluster.healthy

    def figures(self) -> Figures:
        """Return how many sessions, runs and bytes there are now."""
        workers, worker_bytes = (0, 0) if self.cluster is None else self.cluster.memory
        return Figures(
            healthy=self.healthy,
            sessions=self.sessions,
            most_sessions=self.limits.sessions,
            waiting=self.line.waiting,
            running=self.line.busy,
            ended=self.line.ended,
            slots=self.line.slots,
            workers=workers,
            worker_bytes=worker_bytes,
        )

    def run(
        self,
        ready: Callable[[], None] | None = None,
        signals: Sequence[int] = (signal.SIGINT, signal.SIGTERM),
    ) -> None:
        """Serve until a signal comes; then end every session and the workers.

        Parameters
        ----------
        ready : callable, optional
            Called when requests are answered.
        signals : sequence of int
            Those that end it; none outside the main thread.
        """
        loop = self._server.io_loop
        sweeper = PeriodicCallback(self._sweep, SWEEP * 1000)
        # a signal comes between any two steps, so its handler only tells the loop to stop
        before = {
            number: signal.signal(number, lambda *a: loop.add_callback_from_signal(loop.stop))
            for number in signals
        }
        try:
            self._server.start()
            loop.add_callback(sweeper.start)
            if ready is not None:
                loop.add_callback(ready)
            loop.start()
        finally:
            sweeper.stop()
            self.close()
            for number, handler in before.items():
                signal.signal(number, handler)

    def _sweep(self) -> None:
        self._gateway.renew_accounts()
        self.seats.sweep()
        self.folders.sweep()

    def stop(self) -> None:
        """End :meth:`run`, from any thread."""
        self._server.io_loop.add_callback(self._server.io_loop.stop)

    def close(self) -> None:
        """End every session and the workers; the folders of sessions with work in them stay for the next server."""
        stay = self.seats.with_work if self.settings.keep else []
        self.left = len(stay)
        for workspace in list(self._workspaces):
            workspace.close(keep=workspace in stay)
        self._server.stop(wait=False)
        if self.cluster is not None:
            self.cluster.close()


def _forget_notifications(document: Any) -> None:
    """Take the notifications of a page that is gone from Panel's list of views.

    Panel takes away the view of the page alone, and by that of its notifications all of the page stays in memory.
    """
    views = getattr(pn.state, "_views", {})
    for name, (view, _, shown_in, _) in list(views.items()):
        if shown_in is document and isinstance(view, NotificationAreaBase):
            views.pop(name, None)
