"""Run a flow: load, cut, compute the graph, combine, draw, verify, and only after that publish."""

from __future__ import annotations

import os
import time
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager, nullcontext, suppress
from dataclasses import replace
from os import PathLike
from pathlib import Path, PurePosixPath
from typing import Any

from anonflow.algorithms.diversity.target import Targets
from anonflow.algorithms.pilots import LOOK
from anonflow.drawing.countdown import LONG, rough
from anonflow.engine import publish
from anonflow.engine.context import Session, checked_executor, checked_keep
from anonflow.engine.countdowns import for_who_reads
from anonflow.engine.execution.budgets import fit_flow, is_fitted, opens
from anonflow.engine.execution.events import (
    Event,
    EventStream,
    Expectation,
    FlowDone,
    FlowStarted,
    OverBudget,
    RunDone,
    RunStarted,
)
from anonflow.engine.execution.plan import (
    BoundaryClasses,
    FlowPlan,
    first_of_each_method,
    plan_flow,
    refuse_large_partitions,
)
from anonflow.engine.execution.result import RunReport, RunResult
from anonflow.engine.execution.schedulers import Executor
from anonflow.engine.execution.tasks import match
from anonflow.engine.execution.totals import with_findings
from anonflow.engine.expected import expected_of
from anonflow.engine.flows.addresses import beside, is_address, removed, shown_address
from anonflow.engine.flows.flow import Flow
from anonflow.engine.flows.loader import load_flow
from anonflow.engine.flows.registers import check_registers
from anonflow.engine.owner.folder import OwnerFolder
from anonflow.engine.owner.last_release import LastRelease
from anonflow.engine.owner.resume import DAYS
from anonflow.engine.partitions import Partitions
from anonflow.engine.report import pdf
from anonflow.engine.second_compiler import second_compiler
from anonflow.engine.staging import staged
from anonflow.engine.storage.storage import Storage, storage_of
from anonflow.engine.targets import check_targets, held_targets
from anonflow.errors import AnonflowError, FlowError, ParameterError
from anonflow.kernels import jit
from anonflow.release import Release
from anonflow.release.tables import check_package
from anonflow.system import total_memory
from anonflow.table import Table
from anonflow.table.files.csv_form import AUTO
from anonflow.table.files.csv_reading import csv_form
from anonflow.table.files.metadata_file import metadata_path
from anonflow.whole_file import remove_drafts

AT_ONCE = 5_000
"""Records of a partition beyond which a run says how long it is expected to take."""


def run(
    flow: str | PathLike[str] | Flow,
    *,
    seed: int | bytes | str | None = None,
    scheduler: str | None = None,
    workers: int | None = None,
    replay: str | PathLike[str] | None = None,
    fresh: bool = False,
    again: bool = False,
    keep: float = DAYS * 86400.0,
    on_event: Callable[[Event], None] | None = None,
    events: EventStream | None = None,
    source: Any = None,
    results: Path | None = None,
) -> RunReport:
    """Run a flow, or resume an earlier run of it that stopped; do nothing if it was released, and nothing has changed.

    Parameters
    ----------
    flow : path or Flow
    seed : bytes, str or int, optional
        A secret of at least 128 random bits that makes the same run again: 16 bytes, 32 hexadecimal digits or an
        integer; new ones from the operating system without it. It is kept in the owner's folder.
    scheduler : str, optional
        ``threads``, ``processes``, or the address of a running Dask scheduler, such as
        ``tcp://10.0.0.5:8786``; what the flow says without it. The result does not depend on it, nor on `workers`.
    workers : int, optional
    replay : path, optional
        The owner's folder of an earlier run: its seed is used, and the flow and its source must be the same.
    fresh : bool, optional
        Whether to start over: the results and the seed of a run that did not finish are left unused.
    again : bool, optional
        Whether to release once more, with another draw, a flow that was released and has not changed. Without it nothing is
        computed then, and the report says so. If a published file is not as it was, the same release is made again from
        its seed.
    keep : float, optional
        Seconds that partitions' results stay in the owner's folder after a run is published; a week without
        it. A flow that did not come from a file keeps nothing.
    on_event : callable, optional
        Called with every :class:`Event`.
    events : EventStream, optional
        The events of this run: other threads may follow them, or cancel the run.
    source : Dask DataFrame, or frame that speaks Arrow's PyCapsule interface, optional
        A frame instead of the flow's source, whose file need not exist; it is processed in pieces, part by part, unless the flow
        says ``pieces: false``.
    results : path, optional
        A folder of the owner's. The results of partitions are stored there, and those that are there, of the same flow, table and seed, are
        not computed again. For flows that did not come from a file, which have no owner's folder.

    Returns
    -------
    RunReport
        If a check failed or a run is infeasible among others, it says so and nothing was published.

    Raises
    ------
    FlowError, SchemaError, HierarchyError, DataError, ParameterError
        If the flow, or what it names, cannot be used, or was released with another seed; DataError if a file that it names
        changes during the run, or has changed since the run that is picked up.
    InfeasibleError
        If the flow has a single run and no release can meet it.
    Cancelled
        If it was cancelled.
    AnonflowError
        If something cannot be written, or a task failed.

    Notes
    -----
    With ``processes``, a script must guard its start by ``if __name__ == "__main__":``, as for every Python
    program that starts processes.
    """
    countdowns = for_who_reads() if on_event is None and events is None else None
    events = events or EventStream()
    listener = countdowns or on_event
    if listener is not None:
        events.listen(listener)
    if again and replay is not None:
        raise ParameterError("a replay makes the same release again; leave --again out, again=True in Python")
    ok = False
    begin = time.perf_counter()
    try:
        loaded = flow if isinstance(flow, Flow) else load_flow(flow, another_source=source is not None)
        if loaded.space is not None:
            raise FlowError(
                f"{loaded.name}: has a target, and nothing is picked yet; search first: anonflow search FLOW --output PICKED"
            )
        checked_executor(loaded, scheduler, workers)  # also where nothing is to be done
        owner = nullcontext() if loaded.path is None else OwnerFolder(loaded.owner_folder).locked()
        with owner, staged(loaded, source) as staged_flow:
            last = None if again or replay is not None else LastRelease.of(staged_flow)
            if last is not None:
                last.check_seed(seed)
                if last.is_whole:
                    last.tidy(checked_keep(keep))
                    ok = True
                    return last.report(time.perf_counter() - begin)
                last.check_version()
                seed, replay = None, last.owner.path
            session = Session(
                staged_flow,
                events,
                seed=seed,
                scheduler=scheduler,
                workers=workers,
                replay=replay,
                fresh=fresh,
                keep=keep,
                results=results,
                waiting=(lambda: None) if countdowns is None else countdowns.wait,
            )
            for file in () if last is None else last.lost:
                session.warn(f"{file}: is not as it was released; the same release is written again")
            try:
                report = _Runner(session, listener is not None).run()
            except AnonflowError as error:
                if not error.labels or session.owner is None:
                    raise
                place = session.owner.write_labels(error.labels)
                problems = [*error.problems, f"{place}: has these labels, for the owner alone"]
                raise error.collected(error.message, problems).with_labels(error) from None
        ok = report.ok
        return report
    finally:
        events.emit(FlowDone(ok=ok, seconds=time.perf_counter() - begin))
        events.close()


class _Runner:
    """The steps of a run, one after the other; the storage knows where the table is."""

    def __init__(self, session: Session, is_heard: bool) -> None:
        self.session = session
        self.is_heard = is_heard
        self.compiles = False
        self.targets: Targets | None = None

    def run(self) -> RunReport:
        session = self.session
        flow = session.flow
        session.events.emit(
            FlowStarted(
                flow=flow.name,
                runs=tuple(run.name for run in flow.runs),
                scheduler=session.scheduler,
                workers=session.partition_workers,
                plan=tuple(flow.outline()),
            )
        )
        with self._held_targets():
            return self._run()

    def _run(self) -> RunReport:
        session, flow = self.session, self.session.flow
        self._say_form()
        jit.announce(self._announce)
        memory = flow.spec.run.memory_bytes
        with (
            second_compiler() if self.compiles else nullcontext(),
            storage_of(session) as storage,
            Executor(
                session.scheduler,
                session.partition_workers,
                session.events,
                memory,
                flow.spec.run.wait_seconds,
            ) as executor,
        ):
            if not storage.in_memory:
                executor.begin()  # while a large table is read
            table = session.step("load", storage.load)
            session.tell_about(table.unnamed, table.dropped, table.filtered)
            self.targets = storage.refuse_early()
            if flow.spec.steps.attack:
                with session.fingerprint.others_read():
                    check_registers(flow)
            if flow.earlier:
                return self._again(storage)
            if is_fitted(flow):
                session.step("fit", lambda: self._fit(storage, table))
            plan = session.step("cut", lambda: self._plan(storage, table))
            if self.compiles:
                session.step("compile", lambda: self._warm_up(table, plan))
            if storage.in_memory:
                self._say_how_long(table, plan)
            work = Partitions(session, storage, executor, plan, table)
            results = work.compute()
            report = self._publish(table, results, self._draw(storage, results))
        return report if storage.in_memory else report.without_rows()

    def _again(self, storage: Storage) -> RunReport:
        """Return the report of a flow whose people were published before: it has one run, which is not cut."""
        events = self.session.events
        (run,) = self.session.flow.runs
        events.emit(RunStarted(run=run.number, name=run.name, partitions=1))
        result = self.session.step("match", storage.again, run.number)
        for sentence in result.said:
            events.log(sentence, "info")
        events.emit(RunDone(run=run.number, ok=result.ok, row=result.row()))
        results = [result]
        release = self._draw(storage, results)
        return self._publish(storage.table, results, release)

    def _draw(self, storage: Storage, results: list[RunResult]) -> Release | None:
        """Return the release of the run that is published, if every check passed."""
        session = self.session
        picked = session.flow.published
        if picked is None or not session.flow.draws(picked) or not all(result.ok for result in results):
            return None
        number = picked.number
        publish.warn_of_earlier(session, storage.table)
        if session.resume_store is not None:
            session.resume_store.drawing(session.seed)
        release, findings = storage.draw(results[number])
        results[number] = with_findings(results[number], findings)
        return release if results[number].ok else None

    def _publish(self, table: Table, results: list[RunResult], release: Release | None) -> RunReport:
        """Publish only if every check passed; otherwise there is no release."""
        session = self.session
        picked = session.flow.published
        attacks = None
        if picked is not None and release is not None:
            attacks = publish.attack(session, table, release, results[picked.number])
        report = RunReport(
            session.flow.name,
            tuple(results),
            release,
            owner=None if session.owner is None else session.owner.path,
            attacks=attacks,
            warnings=tuple(session.warnings),
        )
        if report.ok and picked is not None and release is not None:
            report = publish.with_card(session, table, report, results[picked.number])
        if not report.ok:
            if picked is not None and session.flow.draws(picked) and report.results[picked.number].failing:
                session.refused()
            return replace(
                report,
                release=None,
                owner=None,
                seconds=time.perf_counter() - session.clock,
                warnings=tuple(session.warnings),
            )
        session.events.check()
        report = session.step("publish", lambda: publish.write_all(session, table, report, release))
        publish.write_record(session, report)
        if session.resume_store is not None:
            session.resume_store.finished()
        return report

    @contextmanager
    def _held_targets(self) -> Iterator[None]:
        """Check before the work starts that all targets can be written, and hold them for the length of the run."""
        flow = self.session.flow
        targets: list[str | Path] = [
            target
            for target in (flow.table_path and flow.table_target, flow.report_path, flow.pdf_path)
            if target is not None
        ]
        if flow.pdf_path is not None:
            pdf.browser()
        description = None if flow.table_path is None else metadata_path(flow.table_path)
        if description is not None and flow.table_path is not None:
            targets.append(description)
            check_package(flow.table_path)
        check_targets(targets, {} if flow.source_path is None else {flow.source_path: "the source"})
        owner = self.session.owner
        if owner is not None:
            owner.check()
        addresses = [upload for target in flow.targets if is_address(target) for upload in _uploads(target)]
        with held_targets([*targets, *addresses]):
            if owner is not None:
                owner.remove_drafts()
                for target in targets:
                    remove_drafts(target)
                self._remove_drafts_of_unfinished(owner, addresses)
            if self.session.resume_store is not None:
                self.session.resume_store.targets = targets
            yield

    def _remove_drafts_of_unfinished(self, owner: OwnerFolder, held: Sequence[str]) -> None:
        """Remove what a killed run left beside its targets, which the flow may name no longer: it may be of another draw.

        `held` are the addresses that this run holds.
        """
        unfinished = owner.unfinished() or {}
        lists = (unfinished.get(key) for key in ("targets", "addresses"))
        targets, addresses = (entries if isinstance(entries, list) else [] for entries in lists)
        for name in targets:
            target = Path(os.path.normpath(owner.path / str(name)))
            with suppress(AnonflowError), held_targets([target]):  # unless somebody else writes it now
                remove_drafts(target)
        for upload in (upload for address in addresses for upload in _uploads(str(address))):
            # its store may not answer any more, or somebody else may write it now
            with suppress(AnonflowError), nullcontext() if upload in held else held_targets([upload]):
                removed(upload, part=True)

    def _say_form(self) -> None:
        """Detect what the source leaves to be detected, and report it."""
        flow, path = self.session.flow, self.session.flow.source_path
        source = flow.spec.table.source
        if source.csv is None or path is None or AUTO not in (source.delimiter, source.encoding):
            return
        form = csv_form(
            path,
            delimiter=source.delimiter,
            encoding=source.encoding,
            shape=source.csv_form["shape"],
            opener=self.session.fingerprint.open,
        )
        self.session.events.log(form.sentence(source.csv), "info" if form.columns > 1 else "warning")

    def _announce(self) -> None:
        self.compiles = True
        self.session.events.log("compiling kernels: the first run takes some seconds more")

    def _warm_up(self, table: Table, plan: FlowPlan) -> None:
        """Compile on a few records, so that the methods' seconds do not include compilation."""
        for settings, method_plan in first_of_each_method(self.session.flow, plan, self.session.seed):
            _, few, _ = method_plan.order.rows(0, min(4 * settings.k, table.n)).load(table.domains)
            match(settings, few, 0)
            self.session.events.check()

    def _say_how_long(self, table: Table, plan: FlowPlan) -> None:
        """Say how long runs on a table at once are expected to take: until one is done, nothing else tells."""
        flow, session = self.session.flow, self.session
        largest = {run_plan.run.number: int(run_plan.cuts.lengths[0].max()) for run_plan in plan.runs}
        runs = [run for run in flow.runs if largest.get(run.number, 0) > AT_ONCE and not opens(run)]
        if not runs or not self.is_heard:
            return
        expected = expected_of(
            replace(flow, runs=tuple(runs)).over(table),
            workers=session.workers,
            seconds=LOOK,
            stopped=lambda: session.events.cancelled,
        )
        session.events.check()
        waits = {run.name: run.elapsed for run in expected if run.elapsed is not None}
        if not waits:
            return
        seconds = max(max(waits.values()), sum(waits.values()) / session.partition_workers)
        if seconds > LONG:
            (first, wait), *others = ((name, max(1.0, rough(wait))) for name, wait in waits.items())
            names = [f"{first} is expected to take about {wait:,.0f} s"]
            names += [f"{name} about {wait:,.0f} s" for name, wait in others]
            less = "partition: {size: 250} takes" if flow.path is not None else "partitions of 250 take"
            message = f"{', '.join(names)} on {max(largest.values()):,} records at once; {less} less time"
            session.events.emit(Expectation(level="info", message=message, seconds=seconds))

    def _plan(self, storage: Storage, table: Table) -> FlowPlan:
        """Return orders and cuts; in a matrix, a k that no partition can meet is a run without a result."""
        plan = plan_flow(
            self.session.flow, table.n, BoundaryClasses.of(table.records), storage.order, self.targets
        )
        named = self.session.flow.spec.run.memory
        allowed = "this machine has" if named is None else f"run: memory: {named} allows"
        refuse_large_partitions(plan, table.domains, self._memory, allowed)
        return plan

    @property
    def _memory(self) -> int:
        """Return the bytes that a worker may use."""
        return self.session.flow.spec.run.memory_bytes or total_memory()

    def _fit(self, storage: Storage, table: Table) -> None:
        """Replace budgets by numbers, and store these for a run that resumes this one."""
        session = self.session
        session.flow, session.choices, fitted = fit_flow(
            session.flow,
            table.domains,
            table.n,
            BoundaryClasses.of(table.records),
            storage.order,
            session.workers,
            session.earlier,
            self._memory,
        )
        for number, choice in fitted.items():
            sentence = f"{session.flow.runs[number].name}: {choice.sentence()}"
            if choice.fits:
                session.events.log(sentence)
            else:
                session.warnings.append(sentence)
                session.events.emit(OverBudget(level="warning", message=sentence))
        if session.resume_store is not None:
            session.resume_store.choices = session.choices


def _uploads(address: str) -> list[str]:
    """Return the addresses that publishing to one writes: itself, and that of its description."""
    description = metadata_path(PurePosixPath(shown_address(address)).name)
    return [address] if description is None else [address, beside(address, description.name)]
