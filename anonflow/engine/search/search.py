"""The search: stretches of the table first, then run after run, the most promising first, until its time is over."""

from __future__ import annotations

import math
import re
import threading
import time
from collections.abc import Callable, Mapping, Sequence
from dataclasses import replace
from os import PathLike
from typing import Any

from pydantic import ValidationError

from anonflow.algorithms.anonymize import Anonymization, within
from anonflow.algorithms.diversity.target import check_diversity
from anonflow.algorithms.registry import REGISTRY
from anonflow.analysis.models import Design
from anonflow.criteria.linkable import linked_columns
from anonflow.engine.execution.events import Cancelled, EventStream
from anonflow.engine.execution.plan import refuse_early, spare_records
from anonflow.engine.execution.schedulers import checked_workers
from anonflow.engine.expected import expected_runs
from anonflow.engine.flows.flow import Flow, Run
from anonflow.engine.flows.goal import CHECKED
from anonflow.engine.flows.loader import load_flow
from anonflow.engine.flows.references import check_columns, diversify_problem
from anonflow.engine.flows.registers import with_registers
from anonflow.engine.flows.spec import AnonymizeSpec, DiversifySpec, PartitionSpec
from anonflow.engine.report.attacks import MOST
from anonflow.engine.report.card import judged_risk
from anonflow.engine.run import run
from anonflow.engine.search.best_first import BestFirst, Guess
from anonflow.engine.search.space import BLIND, Space
from anonflow.engine.search.trials import (
    Candidate,
    SearchReport,
    SearchTarget,
    Setup,
    Trial,
    frontier_of,
    picked,
)
from anonflow.engine.staging import staged
from anonflow.engine.storage.storage import table_of
from anonflow.errors import AnonflowError, FlowError, ParameterError
from anonflow.partition import ORDERS
from anonflow.release import publish
from anonflow.release.randomness import checked_seed, derived_seed
from anonflow.risk import AttackContext, attack
from anonflow.risk.attack import ATTACKERS, OF_THE_ROW, attackers_of, usual
from anonflow.risk.attacker import AttackerKind
from anonflow.table import Table
from anonflow.utility import measure
from anonflow.utility.analyses.comparison import originals_of

SHARE = 0.15
"""Share of the time that the stretches may take."""


class TargetSearch:
    """A search for a target, in the thread that calls :meth:`run`; another thread may :meth:`cancel` it.

    Parameters
    ----------
    flow : Flow
        With its table in memory. Its loss, boundaries, order, diversity and criteria hold for every run.
    target : SearchTarget
    space : Space
    seed : int, bytes or str, optional
        A secret: each run has it, so that the same settings with this seed give the same bits.
    workers : int, optional
    scheduler : str, optional
    watch : callable, optional
        Called with each :class:`Trial` as it ends, in the thread of the search.

    Raises
    ------
    ParameterError
        If a formula of the target names columns that the table does not have, or the table is too small for every k.

    Notes
    -----
    The next candidate depends on measured seconds, so another search may try others. The report has the trials and the
    pick, and a run of the pick repeats it bit by bit.
    """

    def __init__(
        self,
        flow: Flow,
        target: SearchTarget,
        space: Space,
        *,
        seed: int | bytes | str | None = None,
        workers: int | None = None,
        scheduler: str | None = None,
        watch: Callable[[Trial], None] | None = None,
    ) -> None:
        if flow.table is None:
            raise ParameterError("search: the table must be in memory")
        self.flow = replace(flow, path=None, published=None)
        self.table: Table = flow.table
        form = flow.spec.publish.report
        self.target = target = replace(target, below=None if form is None else form.limit)
        self.seed = checked_seed(seed)
        self.trials: list[Trial] = []
        self.doing = ""
        self._space = space
        self._workers = checked_workers(workers)
        self._scheduler = scheduler
        self._watch = watch or (lambda trial: None)
        self._stopped = threading.Event()
        self._lock = threading.RLock()  # a signal may cancel in the middle of anything
        self._events: EventStream | None = None
        self._check_formulas()
        step = self.flow.spec.steps.diversify
        if target.disclosure is not None:
            _check_disclosure(self.table, target.disclosure)
            sensitive = self.table.sensitive
            if step is None and not space.diversities and len(sensitive) == 1:
                space = replace(space, diversities=({}, _of_disclosure(sensitive[0], target.disclosure)))
        self._candidates = space.candidates(self.table.n, target, step is not None)

    publishing = False
    """A search writes no files."""

    ends_itself = True
    """After :meth:`cancel` the search ends by itself, with its trials so far."""

    @property
    def opening(self) -> str:
        """The work before the first trial, in words."""
        seconds = 2 * SHARE * self.target.seconds
        return f"timing methods on some of the {self.table.n:,} records, for about {seconds:.2g} s at most"

    def cancel(self) -> None:
        """End the search as soon as possible; its trials are kept."""
        self._stopped.set()
        with self._lock:
            if self._events is not None:
                self._events.cancel()

    def run(self) -> SearchReport:
        """Search until the time is over, nothing promising is left, or :meth:`cancel` is called.

        Raises
        ------
        InfeasibleError
            If not even the whole table has the diversity that the flow wants.
        ParameterError
            If the sensitive column or an option is none.
        """
        begin = time.perf_counter()
        self._refuse_diversities()
        self._refuse_methods()
        order = BestFirst(self.target, self._candidates, self._guesses(begin))
        ended = "nothing else is expected to be better"
        while not self._stopped.is_set():
            seconds_left = self.target.seconds - (time.perf_counter() - begin)
            chosen = order.next(seconds_left) if seconds_left > 0 else None
            if chosen is None:
                if seconds_left <= 0 or (order.waiting and order.next(float("inf")) is not None):
                    ended = "its time is over"
                break
            candidate, expected = chosen
            trial = self._try(candidate, expected.seconds, seconds_left)
            if trial is None:
                break
            order.add(trial)
            self._keep(trial)
        if self._stopped.is_set():
            ended = "it was stopped"
        self.doing = ""
        return SearchReport(
            self.target,
            tuple(self.trials),
            picked(self.target, self.trials),
            time.perf_counter() - begin,
            len(order.waiting),
            ended,
            self._space.ks[0] if len(self._space.ks) == 1 else None,
        )

    def _refuse_diversities(self) -> None:
        """Leave out the candidates whose diversity not even the whole table has; refuse if none is left.

        Each reason is a trial without result, of the smallest k. How many records a run may suppress, and how large its classes
        are, depends on the method and on k: each such case is judged by itself.
        """
        problems: dict[Any, AnonflowError | None] = {}
        refused: dict[Any, Candidate] = {}
        candidates = []
        for candidate in sorted(self._candidates, key=lambda candidate: candidate.k):
            diversity = tuple(pair for pair in candidate.setup.diversity if pair not in BLIND)
            flow = flow_of(self.flow, candidate)
            case = diversity, candidate.k, spare_records(flow, self.table.records)
            if case not in problems:
                try:
                    refuse_early(flow, self.table)
                    problems[case] = None
                except AnonflowError as error:
                    problems[case] = error
                    refused.setdefault((diversity, error.message), candidate)
            if problems[case] is None:
                candidates.append(candidate)
        if not candidates:
            raise next(error for error in problems.values() if error is not None)
        for (_, message), candidate in refused.items():
            self._keep(Trial(candidate, problem=message))
        accepted = set(candidates)
        self._candidates = tuple(candidate for candidate in self._candidates if candidate in accepted)

    def _refuse_methods(self) -> None:
        """Leave out the methods that refuse the table or their options, each as a trial without result, whatever time is left."""
        boundaries = self.flow.runs[0].anonymize.boundaries
        refused: dict[tuple[str, str], str | None] = {}
        for candidate in self._candidates:
            setup = candidate.setup
            if setup.timed_as in refused:
                continue
            method = REGISTRY[setup.algorithm].under(dict(setup.options))
            try:
                records = within(self.table.records, method, boundaries)
                check_columns(method, dict(setup.options), records.domains)
                problem = None
            except AnonflowError as error:
                problem = error.message
            refused[setup.timed_as] = problem
            if problem is not None:
                self._keep(Trial(candidate, problem=problem))
        self._candidates = tuple(
            candidate for candidate in self._candidates if refused[candidate.setup.timed_as] is None
        )

    def _keep(self, trial: Trial) -> None:
        """Keep a trial; the records of dominated trials are deleted."""
        self.trials.append(trial)
        best = {*frontier_of(self.trials), picked(self.target, self.trials)}
        for at, past_trial in enumerate(self.trials):
            if (
                at not in best
                and past_trial.result is not None
                and past_trial.result.anonymization is not None
            ):
                self.trials[at] = replace(past_trial, result=replace(past_trial.result, anonymization=None))
        self._watch(trial)

    def _guesses(self, begin: float) -> dict[Setup, Guess]:
        """Return the estimate for each setup from stretches of the table; a method that refuses these is a trial without result."""
        setups = dict.fromkeys(candidate.setup for candidate in self._candidates)
        k = min((candidate.k for candidate in self._candidates), default=0)
        share = SHARE * self.target.seconds
        runs = [run_of(self.flow, Candidate(setup, k)) for setup in setups]
        seconds = share / max(1, len({setup.timed_as for setup in setups}))
        answers = expected_runs(self.table, runs, workers=self._workers, seconds=seconds)
        guesses: dict[Setup, Guess] = {}
        problems = set()
        for setup in setups:
            if self._stopped.is_set() or (guesses and time.perf_counter() - begin > 2 * share):
                break
            self.doing = f"timing {setup.algorithm} on some records"
            expected = next(answers)
            if expected.loss is not None and expected.elapsed is not None:
                guesses[setup] = Guess(k, expected.loss, expected.elapsed)
            elif (setup.timed_as, expected.problem) not in problems:
                problems.add((setup.timed_as, expected.problem))
                self._keep(Trial(Candidate(setup, k), problem=expected.problem))
        return guesses

    def _try(self, candidate: Candidate, expected: float, seconds_left: float) -> Trial | None:
        """Run a candidate and measure it; None if the search was stopped meanwhile."""
        events = EventStream()
        with self._lock:
            self._events = events
        # looked at after the stream is there: a stop before would have had nothing to cancel
        if self._stopped.is_set():
            return None
        self.doing = f"running {candidate.name}"
        late = threading.Timer(seconds_left, events.cancel)
        late.daemon = True
        late.start()
        begin = time.perf_counter()

        def ended(**facts: Any) -> Trial:
            return Trial(candidate, seconds=time.perf_counter() - begin, expected=expected, **facts)

        try:
            report = run(
                flow_of(self.flow, candidate), seed=self.seed, workers=self._workers, scheduler=self._scheduler,
                events=events,
            )  # fmt: skip
            (result,) = report.results
            if result.anonymization is None:
                return ended(problem=result.problem)
            if not result.ok:
                return ended(problem="; ".join(report.problems), result=replace(result, anonymization=None))
            events.check()
            self.doing = f"attacking {candidate.name}"
            loss = float(result.measures["gcp"])
            risk = self._risk(result.anonymization)
            events.check()
            disclosure = None
            if self.target.disclosure is not None:
                disclosure = largest_disclosure(result.anonymization, self.seed)
                events.check()
            signs = None
            if self.target.signs and self.target.shortfall(loss, risk, disclosure=disclosure) == 0.0:
                signs = self._keeps_signs(result.anonymization)
            trial = ended(loss=loss, risk=risk, signs=signs, disclosure=disclosure, result=result)
            answer = self._without(trial, result.anonymization, events)
            return trial if answer is None else replace(trial, without=answer[0], risk_without=answer[1])
        except Cancelled:
            if self._stopped.is_set():
                return None
            return ended(problem="was not over when the time of the search was")
        except MemoryError:
            return ended(problem="there is not enough memory; use smaller partitions")
        except AnonflowError as error:
            return ended(problem=error.message)
        finally:
            late.cancel()
            with self._lock:
                self._events = None

    def _risk(self, anonymization: Anonymization) -> float:
        """Return the risk of a result: what the card of the flow's report judges, where that has a threshold."""
        if self.target.below is None or anonymization.table.n > MOST:
            return largest_risk(anonymization, self.seed)
        named = self.flow.spec.steps.attack
        chosen = attackers_of(with_registers(self.flow, named)) if named else []
        chosen = [attacker for attacker in chosen if attacker.name in OF_THE_ROW]
        search_seed = derived_seed(self.seed, "search")
        release = publish(anonymization, search_seed, rehearsal=True)
        attacks = (
            attack(anonymization.table, release, chosen, k=anonymization.k, seed=search_seed)
            if chosen
            else None
        )
        return judged_risk(anonymization, release, attacks, self.seed)

    def _without(
        self, trial: Trial, anonymization: Anonymization, events: EventStream
    ) -> tuple[tuple[str, ...], float] | None:
        """Return columns without which a trial meets the target, and its risk then; None if it does with them, or no columns do.

        The generalized records depend on quasi-identifiers alone, so leaving out other columns changes nothing else. The column
        that identifies people best goes first. Columns that the flow or the target names stay.
        """
        below = self.target.below
        if below is None or trial.risk is None or trial.risk < below or self.table.n > MOST:
            return None
        loss = float(trial.loss or 0.0)
        if any(other.without and float(other.loss or 0.0) <= loss for other in self.trials):
            return None
        if largest_risk(anonymization, self.seed) >= below:
            return None
        named = repr((self.flow.spec.steps.model_dump(), trial.candidate.setup.diversity, self.target.signs))
        free = [
            name
            for name in self.table.other_columns
            if self.table.schema[name].role != "weight"
            and not re.search(rf"(?<!\w){re.escape(repr(name)[1:-1])}(?!\w)", named)
        ]
        columns: list[str] = []
        while True:
            events.check()
            lean = replace(anonymization, table=self.table.without(columns)) if columns else anonymization
            release = publish(lean, derived_seed(self.seed, "search"), rehearsal=True)
            context = AttackContext.of(lean.table, release, lean.k, seed=self.seed)
            links = linked_columns(context.evidence, None, [])
            if not links or links[-1].largest < below:
                break
            single = [link for link in links if link.column in free]
            if not single:
                return None
            columns.append(max(single, key=lambda link: (link.largest, link.mean)).column)
            free.remove(columns[-1])
        risk = self._risk(lean)
        signs = self._keeps_signs(lean) if self.target.signs else None
        if not columns or self.target.shortfall(loss, risk, signs, trial.disclosure) > 0.0:
            return None
        return tuple(columns), risk

    def _keeps_signs(self, anonymization: Anonymization) -> bool:
        return all(
            measure(self.table, anonymization, {"regression": {"formula": formula}})["regression-signs"]
            == 1.0
            for formula in self.target.signs
        )

    def _check_formulas(self) -> None:
        """Refuse formulas that cannot be computed on the originals."""
        if not self.target.signs:
            return
        originals = originals_of(self.table)
        for formula in self.target.signs:
            Design.of(formula, [originals]).fit(originals)


def run_of(flow: Flow, candidate: Candidate) -> Run:
    """Return a candidate as a run of a flow, with the loss, boundaries and order of the flow's own."""
    base, setup = flow.runs[0], candidate.setup
    settings = AnonymizeSpec(
        algorithm=setup.algorithm,
        k=candidate.k,
        loss=base.anonymize.loss,
        boundaries=base.anonymize.boundaries,
        **dict(setup.options),
    )
    return Run(0, candidate.name, settings, PartitionSpec(order=base.partition.order, size=setup.size))


def flow_of(flow: Flow, candidate: Candidate) -> Flow:
    """Return the flow that runs a candidate alone, over a table in memory, and publishes nothing."""
    candidate_run = run_of(flow, candidate)
    steps = flow.spec.steps
    diversify, diversity = steps.diversify, dict(candidate.setup.diversity)
    if diversity:
        base = {} if diversify is None or "criterion" in diversity else diversify.model_dump()
        diversify = DiversifySpec.model_validate({**base, **diversity})
    steps = steps.model_copy(
        update={
            "anonymize": candidate_run.anonymize,
            "diversify": diversify,
            "draw": None,
            "attack": (),
            "measure": ("gcp",),
        }
    )
    spec = flow.spec.model_copy(update={"steps": steps, "partition": candidate_run.partition, "matrix": None})
    return replace(flow, path=None, spec=spec, runs=(candidate_run,), published=None, target=None, space=None)


def largest_risk(anonymization: Anonymization, seed: int) -> float:
    """Return the largest probability with which an attacker points at the right row of a person.

    The attackers are those who know everybody's quasi-identifiers, and no other columns. The release is drawn for this purpose, and
    not published.
    """
    return _largest(anonymization, seed, lambda kind: kind.points_at_row and not kind.of_other_columns)


def largest_disclosure(anonymization: Anonymization, seed: int) -> float:
    """Return the largest probability with which an attacker guesses a sensitive value of a person, of all sensitive columns.

    The release is drawn for this purpose, and not published.
    """
    return _largest(anonymization, seed, lambda kind: kind.of_each_column)


def _largest(anonymization: Anonymization, seed: int, counts: Callable[[type[AttackerKind]], bool]) -> float:
    """Return the largest probability with which an attacker who counts wins against a person."""
    search_seed = derived_seed(seed, "search")
    context = AttackContext.of(anonymization.table, anonymization, anonymization.k, seed=search_seed)
    attackers = usual(context, publishable=True)
    return max(attacker.attack(context).worst for attacker in attackers if counts(ATTACKERS[attacker.name]))


def _of_disclosure(column: str, most: float) -> dict[str, Any]:
    """Return the step diversify that gives no value of a column more than a share among the rows that may be a person's."""
    return {"criterion": "alpha-k-anonymity", "column": column, "alpha": most}


def _check_disclosure(table: Table, most: float) -> None:
    """Refuse a disclosure of no column, or below what a guess without any quasi-identifier reaches.

    Raises
    ------
    ParameterError
    """
    if not table.sensitive:
        raise ParameterError(
            "target: disclosure needs a sensitive column; give the column whose values are to be kept secret this role"
        )
    for name in table.sensitive:
        overall = check_diversity(table, "p-sensitivity", name, p=1).overall
        common = float(overall.max() / overall.sum())
        if common > most:
            raise ParameterError(
                f"target: disclosure {most:g} is less than the share of the most frequent value of {name!r} in the whole "
                f"table; no release hides that: raise it to at least {math.ceil(common * 1000) / 1000:g}"
            )


def search(
    table: Table,
    target: SearchTarget | Mapping[str, Any],
    *,
    algorithms: Sequence[str] = (),
    k: int | Sequence[int] = (),
    partition_size: int | Sequence[int | None] | None = (),
    options: Mapping[str, Mapping[str, Any]] | None = None,
    diversify: Mapping[str, Any] | Sequence[Mapping[str, Any]] | None = None,
    order: str = "lexicographic",
    loss: str = "ncp",
    boundaries: bool = True,
    seed: int | bytes | str | None = None,
    workers: int | None = None,
    watch: Callable[[Trial], None] | None = None,
) -> SearchReport:
    """Search methods, k, partition sizes and ways to diversity for a release that meets a target, the most promising first.

    Parameters
    ----------
    table : Table
        n records.
    target : mapping
        ``loss``: the GCP at most; ``risk``: the probability, at most, with which somebody who knows everybody's
        quasi-identifiers and the method points at a person's row; ``disclosure``: the probability, at most, with which the same
        attacker guesses a sensitive value of a person; ``signs``: formulas of regressions whose coefficients keep
        their signs; ``time``: a duration such as ``"90s"``, by default two minutes (``"2m"``).
    algorithms : sequence of str, optional
        Names of :func:`anonflow.algorithms`; by default all that suit the table.
    k : int or sequence of int, optional
        The values that are tried; by default from the smallest that the risk allows up to 100.
    partition_size : int, None, or sequence of them, optional
        Records in a partition; None is the whole table. Without it 100, 250, 1,000 and the whole table.
    options : mapping, optional
        Algorithm -> its own options.
    diversify : mapping or list of mappings, optional
        As the step of a flow: ``{"criterion": "l-diversity", "l": 3}``; every run has this diversity, or one of the list, in
        which an empty mapping is none.
    order : {"lexicographic", "input", "random"}
        What partitions are cut along.
    loss : str
        The information loss that methods keep low.
    boundaries : bool
        Whether the boundaries and limits of the schema hold.
    seed : bytes, str or int, optional
        A secret seed, the same for every run.
    workers : int, optional
        Threads.
    watch : callable, optional
        Called with each trial as it ends.

    Returns
    -------
    SearchReport
        ``anonymization`` is the result that was picked, ``runs`` a row for each trial, ``ok`` whether the target is met.

    Raises
    ------
    ParameterError
        If the target, a name or an option is invalid, or the table is too small for every k.
    InfeasibleError
        If not even the whole table has the diversity.

    Notes
    -----
    Each method is first run on stretches of 64 to 4,096 records, for at most 15% of the time: this estimates its loss
    and its seconds. Then the candidate runs that is expected to come nearest to the target; once a trial meets it,
    the candidates that are expected to lower the loss at their risk by the most for each second. A candidate that is expected to take
    more seconds than are left is not run. The trials depend on measured seconds; :func:`anonflow.anonymize` repeats the
    pick bit by bit, with the seed and the settings of the report.
    """
    if not isinstance(table, Table):
        raise ParameterError("search takes an anonflow.Table; make one with af.Table(frame, schema)")
    goal = SearchTarget.of(target)
    several = tuple(diversify) if isinstance(diversify, list | tuple) else ()
    for step in several:
        if not isinstance(step, Mapping) or step:
            _diversity(step, table)
    space = Space(
        _listed(algorithms, str, "algorithms"),
        _listed(k, int, "k"),
        _listed(partition_size, int, "partition_size"),
        dict(options or {}),
        several,
    )
    if order not in ORDERS:
        raise ParameterError(f"search: order is one of {', '.join(ORDERS)}")
    named: Any = order
    flow = Flow.for_table(
        table, [CHECKED[0]], [CHECKED[1]], loss=loss, boundaries=boundaries, order=named, name="search"
    )
    if diversify is not None and not several:
        steps = flow.spec.steps.model_copy(update={"diversify": _diversity(diversify, table)})
        flow = replace(flow, spec=flow.spec.model_copy(update={"steps": steps}))
    return TargetSearch(flow, goal, space, seed=seed, workers=workers, watch=watch).run()


def _diversity(settings: Any, table: Table) -> DiversifySpec:
    """Return the settings of a step diversify as its model."""
    try:
        spec = DiversifySpec.model_validate(dict(settings))
    except (ValidationError, TypeError, ValueError):
        raise ParameterError(
            "search: diversify is a mapping such as {'criterion': 'l-diversity', 'l': 3}"
        ) from None
    _, problem = diversify_problem(spec.criterion, spec.settings, table.schema)
    if problem is not None:
        raise ParameterError(f"search: diversify: {problem}")
    return spec


def search_flow(
    flow: str | PathLike[str] | Flow,
    *,
    target: SearchTarget | None = None,
    seed: int | bytes | str | None = None,
    workers: int | None = None,
    watch: Callable[[Trial], None] | None = None,
    begun: Callable[[TargetSearch], None] | None = None,
) -> tuple[Flow, SearchReport]:
    """Search for the target of a flow that names one and has no pick yet.

    Parameters
    ----------
    flow : path or Flow
    target : SearchTarget, optional
        In place of the flow's.
    seed, workers, watch : optional
        As :func:`search` takes them.
    begun : callable, optional
        Called with the search before it begins, so that it can be stopped.

    Returns
    -------
    flow : Flow
    report : SearchReport
        :func:`anonflow.engine.search.document.picked_document` makes a flow of it that runs what was picked.

    Raises
    ------
    FlowError, DataError, SchemaError, HierarchyError
        If the flow, or what it names, cannot be used; if it has no target, or what it picked already.
    ParameterError, InfeasibleError
        As :func:`search`.
    """
    loaded = flow if isinstance(flow, Flow) else load_flow(flow)
    goal = target or loaded.target
    if loaded.space is None or goal is None:
        raise FlowError(
            f"{loaded.name}: has no target that is still open; write it under target:, such as {{loss: 0.1, time: 2m}}"
        )
    entropy = checked_seed(seed)
    with staged(loaded) as staged_flow, table_of(replace(staged_flow, space=None), entropy) as table:
        work = TargetSearch(
            loaded.over(table), goal, loaded.space, seed=entropy, workers=workers, watch=watch
        )
        if begun is not None:
            begun(work)
        return loaded, work.run()


def _listed(value: Any, kind: type, name: str) -> tuple[Any, ...]:
    """Return one value or several values as a tuple."""
    if value is None or (isinstance(value, kind) and not isinstance(value, bool)):
        return (value,)
    if isinstance(value, str) or not isinstance(value, Sequence):
        raise ParameterError(f"search: {name} is a list, such as {['greedy'] if kind is str else [10, 20]}")
    return tuple(value)
