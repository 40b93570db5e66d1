"""Run a flow: load, cut, compute the graph, combine, draw, verify, and only then publish."""

from __future__ import annotations

import itertools
import os
import time
import warnings
from collections.abc import Callable, Iterator
from os import PathLike
from typing import TYPE_CHECKING, Any

import numpy as np

from anonflow.algorithms.anonymize import Anonymization, within
from anonflow.algorithms.budget import Fitted
from anonflow.algorithms.registry import algorithm_named
from anonflow.criteria.asked import read_criteria
from anonflow.criteria.verifier import verify
from anonflow.engine import record, source
from anonflow.engine.attacks import attacked
from anonflow.engine.combine import combine, infeasible, refuse_early, with_findings
from anonflow.engine.events import (
    Event,
    EventStream,
    FlowDone,
    FlowStarted,
    PartitionDone,
    RunDone,
    RunStarted,
    StepDone,
    StepStarted,
)
from anonflow.engine.fitting import fit_flow, is_fitted, sizes_of
from anonflow.engine.flow import Flow
from anonflow.engine.graph import (
    Plan,
    RunPlan,
    compile_flow,
    first_of_each_method,
    plan_flow,
    settings_of,
    why_not,
)
from anonflow.engine.loader import load_flow
from anonflow.engine.owner import OwnerFolder, check_target, write_whole
from anonflow.engine.result import RunReport, RunResult
from anonflow.engine.resume import DAYS, Keeper
from anonflow.engine.schedulers import is_scheduler, stream
from anonflow.engine.tasks import Failed, PartitionResult, match
from anonflow.errors import AnonflowError, InfeasibleError, ParameterError
from anonflow.kernels import jit
from anonflow.release import Release, publish, write_release
from anonflow.table import Table

if TYPE_CHECKING:
    import pandas as pd

__all__ = ["run"]


def run(
    flow: str | PathLike[str] | Flow,
    *,
    seed: int | None = None,
    scheduler: str | None = None,
    workers: int | None = None,
    replay: str | PathLike[str] | None = None,
    fresh: bool = False,
    keep: float = DAYS * 86400.0,
    on_event: Callable[[Event], None] | None = None,
    events: EventStream | None = None,
) -> RunReport:
    """Run a flow to its end, or pick up where an earlier run of it stopped.

    Parameters
    ----------
    flow : path or Flow
    seed : int, optional
        A secret of at least 128 random bits that makes the same run again; new ones from the operating
        system without it. It is kept in the owner's folder.
    scheduler : str, optional
        ``threads``, ``processes``, or the address of a running Dask scheduler, such as
        ``tcp://10.0.0.5:8786``; what the flow says without it. The result does not depend on it, nor on `workers`.
    workers : int, optional
    replay : path, optional
        The owner's folder of an earlier run: its seed is used, and the flow and its source must be the same.
    fresh : bool, optional
        Whether to start over: the results and the seed of a run that did not finish are left unused.
    keep : float, optional
        Seconds that partitions' results stay in the owner's folder after a run is published; a week without
        it. A flow that did not come from a file keeps nothing.
    on_event : callable, optional
        Called with every :class:`Event`.
    events : EventStream, optional
        Followed, or cancelled, from other threads.

    Returns
    -------
    RunReport
        If a check failed or a run is infeasible among others, it says so and nothing was published.

    Raises
    ------
    FlowError, SchemaError, HierarchyError, DataError, ParameterError
        If the flow, or what it names, cannot be used.
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
    events = events or EventStream()
    if on_event is not None:
        events.listen(on_event)
    ok = False
    begin = time.perf_counter()
    try:
        loaded = flow if isinstance(flow, Flow) else load_flow(flow)
        report = _Runner(loaded, events, seed, scheduler, workers, replay, fresh, keep).run()
        ok = report.ok
        return report
    finally:
        events.emit(FlowDone(ok=ok, seconds=time.perf_counter() - begin))
        events.close()


class _Runner:
    """One run of a flow, from its check to its publication."""

    def __init__(
        self,
        flow: Flow,
        events: EventStream,
        seed: int | None,
        scheduler: str | None,
        workers: int | None,
        replay: str | PathLike[str] | None,
        fresh: bool,
        keep: float,
    ) -> None:
        self.flow = flow
        self.events = events
        self.began = time.time()
        self.clock = time.perf_counter()
        self.scheduler = scheduler or flow.spec.run.scheduler
        if not is_scheduler(self.scheduler):
            raise ParameterError(
                "unknown scheduler; known are threads, processes, and an address such as tcp://HOST:8786"
            )
        self.workers = workers if workers is not None else flow.spec.run.workers
        if self.workers is not None and not 1 <= self.workers <= 1024:
            raise ParameterError("workers is a number of at least 1 and at most 1024")
        self.owner = OwnerFolder(flow.owner_folder) if flow.path is not None else None
        self.replayed = replay is not None
        if replay is not None:
            if seed is not None:
                raise ParameterError("a replay takes its seed from the owner's folder; leave the seed out")
            seed = record.replayed_seed(flow, OwnerFolder(replay))
        earlier = {} if replay is None else record.replayed_sizes(OwnerFolder(replay))
        if seed is not None and (isinstance(seed, bool) or not isinstance(seed, int) or seed < 0):
            raise ParameterError("a seed must be a whole number of at least 0")
        if isinstance(keep, bool) or not isinstance(keep, int | float) or not keep >= 0:
            raise ParameterError("keep is a number of seconds of at least 0")
        self.warnings: list[str] = []
        # a replay shows that the same comes out again, so it does everything again
        self.keeper = (
            None
            if self.owner is None or self.replayed
            else Keeper(flow, self.owner, fresh, float(keep), self._warn)
        )
        if seed is None and self.keeper is not None:
            seed = self.keeper.seed()
            earlier = self.keeper.sizes
        self.sizes = earlier
        self.fitted: dict[int, Fitted] = {}
        self.seed = int.from_bytes(os.urandom(16), "big") if seed is None else seed
        self.seconds: dict[str, float] = {}
        self.compiles = False

    def run(self) -> RunReport:
        flow = self.flow
        self.events.emit(
            FlowStarted(
                flow=flow.name,
                runs=tuple(one.name for one in flow.runs),
                scheduler=self.scheduler,
                workers=self.workers or os.cpu_count() or 1,
            )
        )
        self._check_targets()
        jit.announce(self._announce)
        table = self._step("load", lambda: source.read(flow))
        self._tell_about(table)
        refuse_early(flow, table)
        if is_fitted(flow):
            self._step("fit", lambda: self._fit(table))
        plan = self._step("cut", lambda: self._plan(table))
        if self.compiles:
            self._step("compile", lambda: self._warm_up(table, plan))
        try:
            results = self._compute(table, plan)
        except BaseException:
            if self.keeper is not None:
                self.keeper.stopped(self.seed)
            raise
        release = None
        if all(result.ok for result in results):
            results, release = self._release(table, results)
        attacks = None
        if release is not None and all(result.ok for result in results):
            attacks = self._attack(table, release, results)
        report = RunReport(
            flow.name,
            tuple(results),
            release,
            owner=None if self.owner is None else self.owner.path,
            warnings=tuple(self.warnings),
            attacks=attacks,
        )
        if not report.ok:
            object.__setattr__(report, "release", None)
            object.__setattr__(report, "owner", None)
            object.__setattr__(report, "seconds", time.perf_counter() - self.clock)
            return report
        self.events.check()
        if self.keeper is not None:
            self.keeper.publishing(self.seed)
        report = self._step("publish", lambda: self._publish(table, report))
        if self.keeper is not None:
            self.keeper.finished()
        return report

    # --------------------------------------------------------------------------------- preparation

    def _check_targets(self) -> None:
        """What cannot be written is found before the work starts."""
        for target in (self.flow.table_path, self.flow.report_path):
            if target is not None:
                check_target(target)
        if self.owner is not None:
            self.owner.check()

    def _step(self, name: str, work: Callable[[], Any], run: int | None = None) -> Any:
        self.events.check()
        self.events.emit(StepStarted(step=name, run=run))
        begin = time.perf_counter()
        result = work()
        seconds = time.perf_counter() - begin
        self.seconds[name] = self.seconds.get(name, 0.0) + seconds
        self.events.emit(StepDone(step=name, seconds=seconds, run=run))
        return result

    def _tell_about(self, table: Table) -> None:
        if table.unnamed:
            self._warn(
                f"{len(table.unnamed)} columns are not named by the flow and not published: "
                + ", ".join(table.unnamed[:10])
                + (", ..." if len(table.unnamed) > 10 else "")
            )
        if table.dropped:
            self._warn(f"{table.dropped} records with a missing value are left out, as the flow says")

    def _announce(self) -> None:
        self.compiles = True
        self.events.log("compiling kernels: the first run takes some seconds more")

    def _warm_up(self, table: Table, plan: Plan) -> None:
        """Compile on a few records, so that the seconds of the methods are theirs alone."""
        for settings, one in first_of_each_method(self.flow, plan, self.seed):
            few = plan.orders[one.order][: 4 * settings.k]
            match(settings, table.records.take(few), 0)
            self.events.check()

    def _warn(self, message: str) -> None:
        self.warnings.append(message)
        self.events.log(message, "warning")

    def _plan(self, table: Table) -> Plan:
        """Orders and cuts; in a matrix, a k that no partition can meet is a run without a result."""
        if len(self.flow.runs) == 1:
            return plan_flow(self.flow.runs, table.records, self.seed)
        feasible = [one for one in self.flow.runs if why_not(one, table.records) is None]
        return plan_flow(feasible, table.records, self.seed)

    def _fit(self, table: Table) -> None:
        """Partition sizes that a budget leaves open become numbers; they are kept for a run that takes this up."""
        self.flow, self.fitted = fit_flow(self.flow, table, self.workers, self.sizes)
        for number, found in self.fitted.items():
            said = f"{self.flow.runs[number].name}: {found.sentence()}"
            (self.events.log if found.fits else self._warn)(said)
        if self.keeper is not None:
            self.keeper.sizes = sizes_of(self.flow)

    # ------------------------------------------------------------------------------------ the graph

    def _compute(self, table: Table, plan: Plan) -> list[RunResult]:
        graph, leaves = compile_flow(self.flow, plan, table.records, self.seed)
        plans = {one.run.number: one for one in plan.runs}
        waiting = {number: len(one.cuts) for number, one in plans.items()}
        arrived: dict[int, dict[int, PartitionResult]] = {number: {} for number in plans}
        results: dict[int, RunResult] = {}
        for one in self.flow.runs:
            if one.number in plans:
                partitions = waiting[one.number]
                self.events.emit(RunStarted(run=one.number, name=one.name, partitions=partitions))
            else:
                problem = why_not(one, table.records) or ""
                results[one.number] = self._told(infeasible(one, problem, table.n))
        names, found = self._find(table, plan)
        begin = time.perf_counter()
        self.events.emit(StepStarted(step="anonymize", tasks=len(leaves)))
        combining = 0.0
        broken: list[AnonflowError] = []
        left = tuple(key for key, at in leaves.items() if at not in found)
        earlier = ((at, result) for at, result in found.items())
        now = ((leaves[key], result) for key, result in self._stream(graph, left))
        for (number, partition), result in itertools.chain(earlier, now):
            if self._broke(plans[number], partition, result, broken):
                continue
            if (number, partition) not in found and self.keeper is not None:
                self.keeper.add(names[number, partition], result, self.seed)
            arrived[number][partition] = result
            self._tell_partition(plans[number], partition, result, len(arrived[number]))
            if len(arrived[number]) == waiting[number]:
                start = time.perf_counter()
                parts = arrived.pop(number)
                ordered = [parts[p] for p in range(len(parts))]
                results[number] = self._told(
                    combine(self.flow, table, plan, plans[number], ordered, self.seed)
                )
                combining += time.perf_counter() - start
        if broken:
            raise broken[0]
        seconds = time.perf_counter() - begin
        self.seconds["anonymize"], self.seconds["combine"] = seconds - combining, combining
        self.events.emit(StepDone(step="anonymize", seconds=seconds))
        return [results[one.number] for one in self.flow.runs]

    def _stream(self, graph: dict[str, Any], left: tuple[str, ...]) -> Iterator[tuple[str, Any]]:
        if left:
            yield from stream(graph, left, self.scheduler, self.workers, self.events)

    def _find(
        self, table: Table, plan: Plan
    ) -> tuple[dict[tuple[int, int], str], dict[tuple[int, int], PartitionResult]]:
        """What an earlier run left that this one needs."""
        if self.keeper is None:
            return {}, {}
        settings = {one.run.number: settings_of(self.flow, one.run, self.seed) for one in plan.runs}
        seen = {
            one.run.number: within(
                table.records, algorithm_named(one.run.anonymize.algorithm), one.run.anonymize.boundaries
            )
            for one in plan.runs
        }
        names, found = self.keeper.find(settings, plan, seen)
        if found:
            self.events.log(f"{len(found)} of {len(names)} partitions are there from an earlier run")
        return names, found

    def _told(self, result: RunResult) -> RunResult:
        self.events.emit(RunDone(run=result.number, ok=result.ok, row=result.row()))
        return result

    def _broke(
        self, plan: RunPlan, partition: int, result: PartitionResult, broken: list[AnonflowError]
    ) -> bool:
        """Whether a partition broke, by a bug or for want of memory: the others go on, to be kept.

        Wrong parameters, and the infeasible where there is one run, end the flow at once.
        """
        failed = result.matched
        if not isinstance(failed, Failed):
            return False
        error = failed.error
        if isinstance(error, InfeasibleError) and len(self.flow.runs) > 1:
            return False
        if error is not None and type(error) is not AnonflowError:
            raise error
        where = f"partition {partition} of run {plan.run.name!r}"
        if error is None:
            error = AnonflowError(f"{where}: {failed.message}; this is a bug in anonflow, please report it")
            error.add_note(failed.trace)
        else:
            error = AnonflowError(f"{where}: {error.message}")
        broken.append(error)
        self.events.log(f"{where}: {failed.message}; the other partitions go on", "error")
        return True

    def _tell_partition(self, plan: RunPlan, partition: int, result: PartitionResult, done: int) -> None:
        if isinstance(result.matched, Failed):
            return
        assert result.measured is not None
        measured = result.measured
        weights = np.array([d.weight for d in result.matched.outcome.generalization.domains])
        cells = measured.records * float(weights.sum())
        self.events.emit(
            PartitionDone(
                run=plan.run.number,
                partition=partition,
                done=done,
                of=len(plan.cuts),
                records=measured.records,
                seconds=result.matched.seconds,
                loss=float(measured.costs @ weights / cells) if cells else 0.0,
            )
        )

    # ------------------------------------------------------------------------------ draw and publish

    def _release(self, table: Table, results: list[RunResult]) -> tuple[list[RunResult], Release | None]:
        """Draw the published run's assignment and verify what would be published."""
        picked = self.flow.published
        if picked is None or not self.flow.draws(picked):
            return results, None
        result = results[picked.number]
        anonymization = result.anonymization
        assert anonymization is not None
        if self.owner is not None and self.owner.has_release and not self.replayed:
            self._warn(
                "this flow has been released before: who has two draws of one table can intersect them; "
                "publish one of them only"
            )
        release = self._step("draw", lambda: self._draw(anonymization), picked.number)
        promised = result.guarantee if release.certificate is None else release.certificate.criterion
        asked = read_criteria(self.flow.criteria, promised)
        checked = self._step(
            "verify",
            lambda: verify(table, release, asked, result.k, certificate=release.certificate),
            picked.number,
        )
        results[picked.number] = with_findings(result, checked.findings)
        return results, release

    def _draw(self, anonymization: Anonymization) -> Release:
        with warnings.catch_warnings(record=True) as said:
            warnings.simplefilter("always")
            release = publish(anonymization, seed=self.seed)
        for warning in said:
            self._warn(str(warning.message))
        return release

    def _attack(self, table: Table, release: Release, results: list[RunResult]) -> pd.DataFrame | None:
        assert self.flow.published is not None
        number = self.flow.published.number
        return self._step(
            "attack", lambda: attacked(self.flow, table, release, results[number].k, self.seed), number
        )

    def _publish(self, table: Table, report: RunReport) -> RunReport:
        """The owner's things first, then what is published: each file whole, by rename."""
        flow, published = self.flow, []
        html = None
        seconds = time.perf_counter() - self.clock
        if flow.report_path is not None:
            from anonflow.engine.report import render

            html = render(flow, table, report, seconds)
        if self.owner is not None:
            self.owner.make()
            if not self.replayed:
                self.owner.set_earlier_aside()
            self.owner.write_seed(self.seed)
            if report.release is not None and report.release.certificate is not None:
                self.owner.write_certificate(report.release.certificate)
        if flow.table_path is not None and report.release is not None:
            release = report.release
            flow.table_path.parent.mkdir(parents=True, exist_ok=True)
            write_whole(flow.table_path, lambda path: write_release(release, path))
            published.append(flow.table_path)
        if flow.report_path is not None and html is not None:
            flow.report_path.parent.mkdir(parents=True, exist_ok=True)
            write_whole(flow.report_path, lambda path: path.write_text(html, encoding="utf-8"))
            published.append(flow.report_path)
        seconds = time.perf_counter() - self.clock
        if self.owner is not None:
            self.owner.write_record(
                record.of_run(
                    flow,
                    self.owner,
                    report,
                    published,
                    self.began,
                    seconds,
                    self.seconds,
                    self.scheduler,
                    self.workers,
                    self.fitted,
                )
            )
        object.__setattr__(report, "published", tuple(published))
        object.__setattr__(report, "seconds", seconds)
        return report
