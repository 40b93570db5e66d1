"""The state of an explorer, without widgets: a table with its roles, the chosen methods, and the runs."""

from __future__ import annotations

import secrets
import threading
from collections.abc import Callable, Iterable
from dataclasses import dataclass
from typing import Any

import pandas as pd

from anonflow import engine
from anonflow.algorithms.anonymize import Anonymization
from anonflow.algorithms.budget import AUTO, GUARANTEES
from anonflow.algorithms.registry import algorithm_named
from anonflow.engine.attempt import Attempt
from anonflow.engine.execution.events import Log, PartitionDone, RunStarted
from anonflow.engine.execution.plan import why_not
from anonflow.engine.execution.result import COLUMNS
from anonflow.engine.first_questions import BESIDE
from anonflow.errors import AnonflowError, ParameterError
from anonflow.table import Column, Schema, Table
from anonflow.table.identification.uniqueness import Uniqueness
from anonflow.table.infer import infer_columns
from anonflow.table.schema import ROLES, did_you_mean

PARTITION = 250
"""The first partition size that is set, if the table has more records."""


@dataclass(frozen=True, eq=False)
class Finished:
    """A run that has ended.

    Attributes
    ----------
    number : int
        The number of the run in this exploration, from 1.
    result : RunResult
        With a `problem` if the run failed; its anonymization is for the owner only.
    """

    number: int
    result: engine.RunResult

    @property
    def name(self) -> str:
        """Return a name such as ``3: greedy, k = 10``."""
        return f"{self.number}: {self.result.algorithm}, k = {self.result.k}"


class Exploration:
    """A table, the methods that are to be run on it, and the finished runs.

    Parameters
    ----------
    table : Table or pandas.DataFrame
        The roles and kinds of a frame are guessed (:meth:`Schema.infer`).
    k : int
    methods : iterable of str
    partition_size : int, optional
        None is the whole table.

    Raises
    ------
    ParameterError
        If `table` has another type, or a method or k is unknown.
    SchemaError, DataError
        If a frame has no column.

    Notes
    -----
    A background thread makes the runs one after the other, each as a flow of one run by :func:`anonflow.engine.start`,
    so that finished runs stay when the others are cancelled. Listeners may be called from that thread.
    """

    def __init__(
        self,
        table: Table | pd.DataFrame,
        *,
        k: int = 10,
        methods: Iterable[str] = ("greedy", "mondrian"),
        partition_size: int | None = PARTITION,
    ) -> None:
        if isinstance(table, pd.DataFrame):
            table = Table(table, Schema.infer(table))
        if not isinstance(table, Table):
            raise ParameterError("explorer takes an anonflow.Table or a pandas DataFrame")
        self._whole = table
        self._columns: dict[str, Column] = {
            name: table.schema[name] for name in map(str, table.frame.columns)
        }
        self._first = dict(self._columns)
        self.table: Table | None = table
        self._coding: tuple[str, ...] = ()
        self._unique: Uniqueness | None = None
        self._lock = threading.RLock()
        self._listeners: list[Callable[[], None]] = []
        self._thread: threading.Thread | None = None
        self._at_work = False
        self._attempt: Attempt | None = None
        self._stop = threading.Event()
        self.finished: tuple[Finished, ...] = ()
        self.progress: dict[str, float] = {}
        self.status = "Choose what to run."
        self._chosen: int | None = None
        self._k = 0
        self._methods: tuple[str, ...] = ()
        self._size: int | None = None
        self.k = min(k, max(2, table.n)) if isinstance(k, int) else k
        self.methods = methods
        self.partition_size = partition_size if partition_size is None or partition_size < table.n else None

    # ---------------------------------------------------------------------------------- what is asked

    def listen(self, listener: Callable[[], None]) -> None:
        """Call `listener` after every change."""
        self._listeners.append(listener)

    def _tell(self) -> None:
        for listener in self._listeners:
            listener()

    @property
    def k(self) -> int:
        """The number of records among which each record is hidden, at least 2."""
        return self._k

    @k.setter
    def k(self, value: int) -> None:
        if isinstance(value, bool) or not isinstance(value, int) or value < 2:
            raise ParameterError("k must be a whole number of at least 2")
        self._k = value
        self._tell()

    @property
    def methods(self) -> tuple[str, ...]:
        """Names of the methods that are run, in order."""
        return self._methods

    @methods.setter
    def methods(self, names: Iterable[str]) -> None:
        if isinstance(names, str):
            names = [names]
        self._methods = tuple(algorithm_named(name).name for name in dict.fromkeys(names))
        self._tell()

    @property
    def partition_size(self) -> int | None:
        """Records in a partition; None is the whole table."""
        return self._size

    @partition_size.setter
    def partition_size(self, value: int | None) -> None:
        if value is not None and (isinstance(value, bool) or not isinstance(value, int) or value < 2):
            raise ParameterError(
                "partition_size is a whole number of at least 2, or None for the whole table"
            )
        self._size = value
        self._tell()

    @property
    def roles(self) -> dict[str, str]:
        """Column -> role, of the published columns."""
        return {name: column.role for name, column in self._columns.items()}

    def set_role(self, name: str, role: str) -> None:
        """Set the role of a column; a quasi-identifier keeps its kind from the table's schema, or gets one guessed from its values.

        Parameters
        ----------
        name : str
        role : {"quasi-identifier", "sensitive", "insensitive", "identifier"}

        Raises
        ------
        ParameterError
            If there is no such column or role.
        """
        if name not in self._columns:
            raise ParameterError(f"unknown column {name!r}{did_you_mean(name, tuple(self._columns))}")
        if role not in ROLES:
            raise ParameterError(f"unknown role {role!r}{did_you_mean(role, ROLES)}")
        if self._columns[name].role == role:
            return
        self._columns[name] = self._column(name, role)
        self._code()
        self._tell()

    def _column(self, name: str, role: str) -> Column:
        first = self._first[name]
        if role != "quasi-identifier":
            return Column(name, role)
        if first.role == role:
            return first
        # a name such as "salary" is better evidence than the values, so the kind is left open
        guess = infer_columns(self._whole.frame[[name]])[name]
        entry = {"role": role, "kind": guess.get("kind", "categorical")}
        entry |= {key: guess[key] for key in ("missing", "hierarchy") if key in guess}
        return Schema({name: entry})[name]

    def _code(self) -> None:
        self._unique = None
        try:
            schema = Schema(self._columns, folder=self._whole.schema.folder)
            self.table, self._coding = Table(self._whole.frame, schema), ()
        except AnonflowError as error:
            self.table, self._coding = None, error.problems

    # --------------------------------------------------------------------------------- what it means

    @property
    def unique(self) -> Uniqueness | None:
        """Return how unique the records are on the quasi-identifiers, or None if the roles are invalid."""
        if self._unique is None and self.table is not None:
            self._unique = Uniqueness(self.table.frame, self.table.qi_columns)
        return self._unique

    @property
    def problems(self) -> tuple[str, ...]:
        """Return a sentence for each problem of the request; empty if all methods can run."""
        if self.table is None:
            return self._coding
        if not self._methods:
            return ("no method is chosen; choose at least one",)
        problems = []
        for name in self._methods:
            try:
                reason = why_not(self._flow(name).runs[0], self.table.records)
            except AnonflowError as error:
                reason = "; ".join(error.problems)
            if reason is not None:
                problems.append(f"{name}: {reason}")
        return tuple(problems)

    def _flow(self, method: str) -> engine.Flow:
        """Return a flow of one run over the table in memory."""
        table = self.table
        assert table is not None
        return engine.Flow.for_table(
            table, [method], [self._k], partition_size=self._size, name="exploration"
        )

    # -------------------------------------------------------------------------------------- the runs

    @property
    def running(self) -> bool:
        """Whether runs are in progress."""
        thread = self._thread
        return self._at_work and thread is not None and thread.is_alive()

    def start(self) -> None:
        """Run every method with this k in the background; each result appears in ``finished``.

        Raises
        ------
        ParameterError
            If the request has problems; the message has the sentences of ``problems``.
        """
        if self.running:
            return
        if self.problems:
            raise ParameterError.collected("this cannot run", self.problems)
        self._start([self._flow(name) for name in self._methods])

    def find(self, seconds: float) -> None:
        """Run the method that loses least in a time, and two that make classes of equal rows; the run of least loss is chosen.

        Parameters
        ----------
        seconds : float
            For each of them.

        Raises
        ------
        ParameterError
            If the roles are invalid, or it is no time.
        """
        if self.running:
            return
        if self.table is None:
            raise ParameterError.collected("this cannot run", self._coding)
        settings: dict[str, Any] = {"budget": seconds, "name": "exploration"}
        auto = engine.Flow.for_table(self.table, [AUTO], [self._k], guarantee=GUARANTEES[0], **settings)
        beside = [
            engine.Flow.for_table(self.table, [name], [self._k], partition_size=AUTO, **settings)
            for name in BESIDE
        ]
        self._start([auto, *beside])

    def _start(self, flows: list[engine.Flow]) -> None:
        self._stop.clear()
        self.progress = {flow.runs[0].name: 0.0 for flow in flows}
        self.status = "Starting."
        self._at_work = True
        self._thread = threading.Thread(
            target=self._work, args=(flows,), name="anonflow-explorer", daemon=True
        )
        self._thread.start()
        self._tell()

    def cancel(self) -> None:
        """Stop the runs as soon as possible, and keep those that are finished."""
        with self._lock:
            self._stop.set()
            attempt = self._attempt
        if attempt is not None:
            attempt.cancel()

    def wait(self, timeout: float | None = None) -> None:
        """Wait until all runs are over, and the listeners were told.

        Raises
        ------
        TimeoutError
            If they are not over after `timeout` seconds.
        """
        thread = self._thread
        if thread is threading.current_thread() and not self._at_work:
            return  # in a listener that is told of the end
        if thread is not None:
            thread.join(timeout)
            if thread.is_alive():
                raise TimeoutError("the runs are not over yet")

    def _work(self, flows: list[engine.Flow]) -> None:
        before = len(self.finished)
        try:
            for flow in flows:
                if self._stop.is_set():
                    break
                result = self._run_one(flow)
                if result is not None:
                    self.finished = (*self.finished, Finished(len(self.finished) + 1, result))
                    self._tell()
        finally:
            new = [run for run in self.finished[before:] if run.result.anonymization is not None]
            if new:
                self._chosen = min(new, key=lambda run: run.result.measures["gcp"]).number
            summary = f"{len(self.finished) - before} of {len(flows)} runs are done"
            self.status = f"Cancelled; {summary}." if self._stop.is_set() else f"{summary}."
            self.progress = {}
            # a listener that reads ``running`` must read False; who waits, waits until the listeners were told
            self._at_work = False
            self._tell()

    def _run_one(self, flow: engine.Flow) -> engine.RunResult | None:
        run, table = flow.runs[0], self.table
        assert table is not None
        with self._lock:
            if self._stop.is_set():
                return None
            self._attempt = Attempt(flow, run, table, secrets.randbits(128))

        def heard(event: engine.Event | None) -> None:
            if event is None:
                self.status = f"{run.name}: compiling, once on this machine."
            elif isinstance(event, RunStarted):
                self.status = f"{run.name} is running."
            elif isinstance(event, PartitionDone):
                self.progress = {**self.progress, run.name: event.done / event.of}
            elif isinstance(event, Log):
                self.status = f"{run.name}: {event.message}."
            else:
                return
            self._tell()

        return self._attempt.result(heard)

    # ------------------------------------------------------------------------------------ the results

    @property
    def runs(self) -> pd.DataFrame:
        """Return a row for each finished run, by its number: algorithm, k, records, gcp, usefulness, ..., partition size."""
        rows = []
        for run in self.finished:
            anonymization = run.result.anonymization
            size = None if anonymization is None else anonymization.parameters["partition_size"]
            rows.append({**run.result.row(), "partition": "whole table" if size is None else str(size)})
        frame = pd.DataFrame(rows, columns=[*COLUMNS, "partition"])
        frame.index = pd.Index([run.number for run in self.finished], name="run", dtype="int64")
        return frame

    @property
    def shown(self) -> Finished | None:
        """Return the chosen run; by default the run of the last comparison with the least loss."""
        return next((run for run in self.finished if run.number == self._chosen), None)

    @property
    def chosen(self) -> Anonymization | None:
        """Return the anonymization of the chosen run, for the owner only, or None if there is no run."""
        run = self.shown
        return None if run is None else run.result.anonymization

    def choose(self, number: int) -> None:
        """Choose a run by its number.

        Raises
        ------
        ParameterError
            If there is no such run, or it has no result.
        """
        chosen = next((run for run in self.finished if run.number == number), None)
        if chosen is None or chosen.result.anonymization is None:
            raise ParameterError("there is no such run with a result; explorer.runs has their numbers")
        self._chosen = number
        self._tell()
