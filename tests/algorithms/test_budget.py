"""partition_size="auto": the largest partitions that a budget of seconds allows, recorded and replayed."""

from __future__ import annotations

import functools
import json
import math
from collections.abc import Callable
from dataclasses import replace
from importlib import import_module
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
import pytest
from hypothesis import given
from hypothesis import strategies as st

import anonflow as af
from anonflow import engine
from anonflow.algorithms import REGISTRY, pilots
from anonflow.algorithms import budget as budgeting
from anonflow.algorithms.budget import GUARANTEES, Choice, choose, choose_method
from anonflow.algorithms.freeform.two_phase import two_phase
from anonflow.algorithms.method import Algorithm, Outcome, Partition, Progress
from anonflow.engine.execution import budgets
from anonflow.engine.execution.budgets import choices_in
from anonflow.engine.owner.folder import OwnerFolder
from anonflow.errors import FlowError, InfeasibleError, ParameterError
from anonflow.table import Table
from tests.cases.flow_files import write_flow
from tests.cases.runs import SEED, counted, published, shell, stopped_after
from tests.cases.tables import mixed
from tests.checks import SOON, TAKE_EVERY_KIND, check_result
from tests.strategies import examples, loop

__all__ = ["counted"]

QI = {"role": "quasi-identifier"}


class Clock:
    """Time that passes only when a method works."""

    def __init__(self) -> None:
        self.now = 0.0

    def perf_counter(self) -> float:
        return self.now

    process_time = perf_counter


def numbers(n: int) -> Table:
    return Table(pd.DataFrame({"a": np.arange(n)}), {"a": QI | {"kind": "numeric"}})


@pytest.fixture
def clock(monkeypatch: pytest.MonkeyPatch) -> Clock:
    """The clock of pilots and deadlines; a pause of the machine is no time of a method."""
    clock = Clock()
    for module in (budgeting, pilots):
        monkeypatch.setattr(module, "time", clock)
    return clock


def one_class(part: Partition) -> Outcome:
    return Outcome.of_classes(part.records, np.zeros(part.n, np.int64))


def fit(clock: Clock, seconds: Callable[[int], float], n: int, budget: float, k: int = 2) -> Choice:
    """The choice for a method that takes so many seconds for a partition, on one worker."""

    def run(part: Partition, k: int) -> Outcome:
        assert part.n >= k
        clock.now += seconds(part.n)
        return one_class(part)

    method = Algorithm("timed", run, "clustering", "", "k-anonymity", "", "")
    records = numbers(n).records
    return choose(method, records, k, budget, 1, size="auto", order="lexicographic", loss="ncp", options={})


def whole(seconds: Callable[[int], float], n: int, size: int) -> float:
    full, rest = divmod(n, size)
    return full * seconds(size) + (seconds(rest) if rest else 0.0)


SHAPES: dict[str, Callable[[int], float]] = {
    "linear": lambda size: 1e-4 * size,
    "square": lambda size: 1e-6 * size**2,
    "cube": lambda size: 1e-8 * size**3,
    "overhead": lambda size: 0.002 + 1e-7 * size**2,
}


@pytest.mark.parametrize("shape", ["square", "cube", "overhead"])
def test_the_largest_that_fits(shape: str, clock: Clock) -> None:
    seconds, n = SHAPES[shape], 20_000
    before = 0
    for budget in (2.0, 4.0, 8.0, 16.0):
        clock.now = 0.0
        choice = fit(clock, seconds, n, budget)
        assert choice.size is not None
        assert choice.fits
        assert whole(seconds, n, choice.size) + clock.now <= budget
        if choice.size < n:
            assert whole(seconds, n, 4 * choice.size) + clock.now > 0.5 * budget
        assert clock.now <= 0.2 * budget
        assert choice.size >= before
        before = choice.size


def test_the_whole_table_where_it_fits(clock: Clock) -> None:
    for shape in SHAPES.values():
        assert fit(clock, shape, 500, 100.0).size == 500
    assert fit(clock, SHAPES["linear"], 20_000, 30.0).size == 20_000


def test_a_budget_too_small_for_any(clock: Clock) -> None:
    choice = fit(clock, SHAPES["square"], 20_000, 1e-3, k=5)
    assert not choice.fits
    assert choice.size is not None
    assert choice.size >= 5
    assert choice.expected > choice.budget
    assert "no method keeps the budget of 0.001 s" in choice.sentence()
    assert choice.facts()["fits_budget"] is False


def test_a_stretch_without_a_solution_took_its_time(clock: Clock) -> None:
    def seconds(size: int) -> float:
        if size < 200:
            raise InfeasibleError("no")
        return 1e-6 * size**2

    assert (fit(clock, seconds, 5_000, 4.0).size or 0) > 200


def test_not_beyond_boundary_classes(clock: Clock) -> None:
    rng = np.random.default_rng(0)
    table = Table(
        pd.DataFrame({"a": rng.integers(0, 100, 300)}),
        {"a": QI | {"kind": "numeric", "boundary": {"width": 25}}},
    )
    anon = af.anonymize(table, "greedy", k=3, partition_size="auto", budget=9.0)
    check_result(anon, 3)
    assert anon.parameters["partition_size"] == 300


def fit_effort(
    clock: Clock,
    n: int,
    budget: float,
    workers: int = 1,
    begin: float = 1e-3,
    unit: float = 5e-4,
    noise: float = 0.0,
    linear: bool = True,
    k: int = 2,
    **more: Any,
) -> Choice:
    """The choice for a method that takes 1 ms for a record and 0.5 ms for each record and unit of effort."""
    calls = iter(range(10**6))

    def run(part: Partition, k: int, *, kicks: int = 3, threads: int | None = None) -> Outcome:
        assert threads == 1
        clock.now += part.n * (begin + unit * kicks) * (1.0 + noise * (next(calls) % 2))
        return one_class(part)

    method = Algorithm("timed", run, "clustering", "", "k-anonymity", "", "", effort="kicks", linear=linear)
    settings: dict[str, Any] = {"size": None, "options": {}} | more
    clock.now = 0.0
    return choose(
        method, numbers(n).records, k, budget, workers, order="lexicographic", loss="ncp", **settings
    )


@pytest.mark.parametrize(("size", "workers"), [(None, 1), (None, 2), (5_000, 1)])
def test_as_many_kicks_as_fit(size: int | None, workers: int, clock: Clock) -> None:
    before = 0
    for budget in (50.0, 80.0, 160.0):
        choice = fit_effort(clock, 20_000, budget, workers, size=size)
        kicks = choice.options["kicks"]
        left = budget - clock.now
        assert 20_000 * (1e-3 + 5e-4 * kicks) / workers <= left
        assert 20_000 * (1e-3 + 5e-4 * (kicks + 2)) / workers > 0.8 * left
        assert choice.facts()["fits_budget"]
        assert kicks > before
        before = kicks


@pytest.mark.parametrize(("k", "shared"), [(2, 2), (50, 1)])
def test_threads_share_the_kicks_of_a_start_that_is_alone(k: int, shared: int, clock: Clock) -> None:
    """As of k-member: kicks took half of a budget on two processors. A block of 256 classes is one thread's."""
    for budget in (60.0, 160.0):
        choice = fit_effort(clock, 20_000, budget, 2, linear=False, k=k)
        kicks, left = choice.options["kicks"], budget - clock.now
        assert 20_000 * (1e-3 + 5e-4 * kicks / shared) <= left
        assert 20_000 * (1e-3 + 5e-4 * (kicks + 2) / shared) > 0.6 * left


@pytest.mark.parametrize("budget", [30.0, 60.0, 150.0])
def test_what_comes_before_the_effort_is_raised_first(budget: float, clock: Clock) -> None:
    """Rounds from 1 to 8, then kicks: 10 us for a record and round, 50 us for a record and kick."""

    def run(part: Partition, k: int, *, rounds: int = 8, kicks: int = 3) -> Outcome:
        assert kicks == 0 or rounds == 8
        clock.now += part.n * (1e-4 + 1e-4 * rounds + 2e-4 * kicks)
        return one_class(part)

    method = Algorithm("timed", run, "clustering", "", "k-anonymity", "", "", effort="kicks", linear=True)
    method = replace(method, effort_before={"rounds": 1})
    n = 100_000
    choice = choose(
        method, numbers(n).records, 2, budget, 1, size=None, order="lexicographic", loss="ncp", options={}
    )
    rounds, kicks = choice.options["rounds"], choice.options["kicks"]
    assert (1 <= rounds < 8 and kicks == 0) if budget < 80.0 else (rounds == 8 and kicks >= 0)
    assert 0.6 * budget < clock.now + n * (1e-4 + 1e-4 * rounds + 2e-4 * kicks) <= budget
    named = choose(
        method, numbers(n).records, 2, budget, 1,
        size=None, order="lexicographic", loss="ncp", options={"rounds": 8},
    )  # fmt: skip
    assert named.options["rounds"] == 8


def replayed(table: Table, anon: Any, **more: Any) -> Any:
    """The run with what a budget chose."""
    chosen = {name: anon.parameters[name] for name in ("start", "rounds", "kicks") if name in anon.parameters}
    assert "kicks" in chosen
    return af.anonymize(table, "two-phase", k=3, seed=7, **chosen, **more)


@pytest.mark.parametrize("seconds", [4.0, 16.0])
def test_a_budget_ends_the_run_itself(seconds: float, clock: Clock, monkeypatch: pytest.MonkeyPatch) -> None:
    """A timed part of the table took longer than the whole does: the run makes more rounds, and they are repeated."""
    table = mixed(300)

    def fit(*inputs: Any, **settings: Any) -> Choice:
        options = {"rounds": 1, "kicks": 3}
        return Choice("two-phase", None, options, 20.0, 19.0, open_effort="kicks", left=seconds)

    def watch(progress: Progress) -> None:
        clock.now += 1.0

    monkeypatch.setattr(import_module("anonflow.algorithms.anonymize"), "choose", fit)
    anon = af.anonymize(table, "two-phase", k=3, budget=20.0, seed=7, watch=watch)
    assert anon.facts["rounds"] == clock.now == seconds - 1, "3 % are for what comes after"
    kicks = anon.parameters["kicks"]
    assert kicks == anon.facts["kicks"]
    assert kicks > 3 if seconds > 10 else (anon.parameters["rounds"], kicks) == (3, 0)
    assert f"kicks={kicks}" in anon.facts["picked"]
    assert np.array_equal(replayed(table, anon).matches, anon.matches)


def test_a_table_too_small_for_kicks_takes_a_budget() -> None:
    anon = af.anonymize(mixed(40), "two-phase", k=3, budget=0.2, seed=7)
    assert np.array_equal(replayed(mixed(40), anon).matches, anon.matches)


@given(seed=st.integers(0, 2**16), rounds=st.integers(1, 12), more=st.integers(1, 4))
@examples(8)
def test_a_run_that_ends_early_is_one_with_less_effort(seed: int, rounds: int, more: int) -> None:
    answers = iter([*[False] * rounds, *[True] * 100])

    def run(rounds: int, kicks: int, is_over: Callable[[], bool] | None = None) -> Outcome:
        part = Partition(mixed(90).records, "ncp", np.random.default_rng(seed), is_over=is_over)
        return two_phase(part, 3, rounds=rounds, kicks=kicks)

    ended = run(8, 12 + more, lambda: next(answers))
    assert ended.facts["rounds"] == rounds
    kicks = ended.facts["kicks"]
    whole = run(8 if kicks else rounds, kicks)
    assert ended.facts == whole.facts
    assert np.array_equal(ended.matches, whole.matches)


def test_no_kicks_where_the_budget_is_too_small(clock: Clock) -> None:
    choice = fit_effort(clock, 20_000, 1.0)
    assert choice.options["kicks"] == 0
    assert choice.facts()["fits_budget"] is False


@pytest.mark.parametrize("budget", [2.0, 5.0, 15.0])
@pytest.mark.parametrize("slower", [1.0, 4.0])
def test_partitions_that_differ_keep_the_budget(budget: float, slower: float, clock: Clock) -> None:
    """The first kick comes with rounds that take eight times as long, and longer on some partitions: as with class chains."""
    n = 30_000

    def seconds(part: Partition, kicks: int) -> float:
        factor = slower if part.records.codes[:, 0].mean() < 0.6 * n else 1.0
        rounds = 4e-5 if kicks else 0.0
        return part.n * (1e-5 + factor * (rounds + 5e-6 * kicks))

    def run(part: Partition, k: int, *, kicks: int = 3) -> Outcome:
        clock.now += seconds(part, kicks)
        return one_class(part)

    method = Algorithm("timed", run, "clustering", "", "k-anonymity", "", "", effort="kicks", linear=True)
    records = numbers(n).records
    choice = choose(
        method, records, 2, budget * slower, 1, size=5_000, order="lexicographic", loss="ncp", options={}
    )
    parts = [records.take(np.arange(start, start + 5_000)) for start in range(0, n, 5_000)]
    generator = np.random.default_rng(0)

    def whole(kicks: int) -> float:
        return sum(seconds(Partition(part, "ncp", generator), kicks) for part in parts)

    kicks = choice.options["kicks"]
    assert clock.now + whole(kicks) <= 1.2 * budget * slower
    assert clock.now + whole(2 * kicks + 2) > 0.8 * budget * slower


def test_a_further_unit_of_effort_takes_time_even_if_noise_hides_it(clock: Clock) -> None:
    """Eight kicks seem to take no longer than one, by chance; no budget is spent many times over."""

    def run(part: Partition, k: int, *, kicks: int = 3) -> Outcome:
        clock.now += part.n * (1e-5 + 4e-5 * min(kicks, 1))
        return one_class(part)

    method = Algorithm("timed", run, "clustering", "", "k-anonymity", "", "", effort="kicks", linear=True)
    choice = choose(
        method, numbers(5_000).records, 2, 5.0, 1, size=None, order="lexicographic", loss="ncp", options={}
    )
    assert 5_000 * (1e-5 + 4e-5 + 4e-5 / 16 * (choice.options["kicks"] - 1)) <= 5.0


@pytest.mark.parametrize(("budget", "chosen"), [(30.0, {"start": "quick"}), (3000.0, {})])
def test_a_slow_start_is_taken_only_where_it_fits(
    clock: Clock, budget: float, chosen: dict[str, str]
) -> None:
    """Its time grows with the square of the records, which small pilots do not show."""

    def run(part: Partition, k: int, *, start: str = "auto", kicks: int = 3) -> Outcome:
        begin = 1e-4 * part.n if start == "quick" else 1e-6 * part.n**2
        clock.now += begin + 1e-4 * kicks * part.n
        return one_class(part)

    def slow_or_quick(k: int, n: int, options: Any) -> Any:
        return None if "start" in options else ({"start": "slow"}, {"start": "quick"})

    method = Algorithm("timed", run, "clustering", "", "k-anonymity", "", "", effort="kicks", linear=True)
    method = replace(method, slow_or_quick=slow_or_quick)
    n = 20_000
    fit = functools.partial(
        choose, method, numbers(n).records, 2, budget, 1, size=None, order="lexicographic", loss="ncp"
    )
    choice = fit(options={})
    kicks = choice.options["kicks"]
    assert {name: value for name, value in choice.options.items() if name != "kicks"} == chosen
    run_of = 1e-4 * n if chosen else 1e-6 * n**2
    assert 0.5 * budget < clock.now + run_of + 1e-4 * kicks * n <= budget
    assert kicks > 0
    assert fit(options={"start": "slow"}).options["start"] == "slow"


def test_two_phase_names_its_starts_where_it_chooses() -> None:
    choice = REGISTRY["two-phase"].slow_or_quick
    assert choice is not None
    assert choice(3, 50_000, {}) == ({"start": "sparse", "pairs": "all"}, {"start": "dense"})
    assert choice(3, 50_001, {"pairs": "all"}) == ({"start": "sparse", "pairs": "all"}, {"start": "dense"})
    assert choice(3, 50_001, {}) == ({"start": "sparse", "pairs": "sorted"}, {"start": "dense"})
    calls = [(5, 50_001, {}), (3, 50_001, {"start": "sparse"}), (3, 9, {"reciprocal": True})]
    assert [choice(*call) for call in calls] == [None] * 3


def test_a_budget_and_an_effort_exclude_each_other(clock: Clock) -> None:
    with pytest.raises(ParameterError, match="leave one of the two out"):
        fit_effort(clock, 100, 1.0, options={"kicks": 2})
    with pytest.raises(ParameterError, match="partition_size='auto'"):
        af.anonymize(mixed(30), "greedy", k=3, budget=1.0)


@loop("budget", [0.2, 0.01])
def test_the_effort_that_a_budget_chose_is_recorded_and_replayed(budget: float) -> None:
    """The kicks, and where the budget or the machine leaves too little time, the quick start."""
    people = mixed(200)
    anon = af.anonymize(people, "two-phase", k=3, budget=budget, seed=7)
    assert anon.parameters["budget"] == budget
    assert (anon.matches == replayed(people, anon).matches).all()


@pytest.mark.parametrize(
    "algorithm",
    [pytest.param(name, marks=[pytest.mark.slow] * (name == "optimal")) for name in TAKE_EVERY_KIND],
)
def test_every_method_takes_a_budget(algorithm: str) -> None:
    people = mixed(60)
    anon = af.anonymize(
        people, algorithm, k=3, partition_size="auto", budget=0.3, seed=7, **SOON.get(algorithm, {})
    )
    check_result(anon, 3)
    size = anon.parameters["partition_size"]
    assert size is None if REGISTRY[algorithm].whole_table else 3 <= size <= 60
    assert anon.parameters["budget"] == 0.3
    assert anon.facts["pilots"][0][0] <= 60
    assert isinstance(anon.facts["fits_budget"], bool)


def test_the_chosen_number_makes_the_same_again() -> None:
    people = mixed(90)
    auto = af.anonymize(people, "greedy", k=3, partition_size="auto", budget=0.02, seed=1)
    again = af.anonymize(people, "greedy", k=3, partition_size=auto.parameters["partition_size"], seed=1)
    assert (auto.matches == again.matches).all()


@loop("budget", [0, -1.0, math.nan, math.inf, 10**400, True, "5", None, [5]])
def test_bad_budgets_are_refused(budget: Any) -> None:
    with pytest.raises(ParameterError, match="budget"):
        af.anonymize(numbers(20), "greedy", k=2, partition_size="auto", budget=budget)
    with pytest.raises(ParameterError, match="budget"):
        af.compare(numbers(20), ["greedy"], k=2, partition_size="auto", budget=budget)


def test_a_budget_and_a_size_do_not_go_together() -> None:
    for size in (10, None):
        with pytest.raises(ParameterError, match="a budget needs partition_size='auto'"):
            af.anonymize(numbers(20), "greedy", k=2, partition_size=size, budget=5.0)
    with pytest.raises(ParameterError, match="or 'auto'"):
        af.anonymize(numbers(20), "greedy", k=2, partition_size="big", budget=5.0)


# ---------------------------------------------------------------------------------------- flows, shell


def timed_again(*_: Any, **__: Any) -> Choice:
    raise AssertionError("a replay times nothing")


def chosen(folder: Path) -> list[dict[str, Any]]:
    runs: list[dict[str, Any]] = json.loads((folder / "owner" / "test" / "record.json").read_text())["runs"]
    return runs


@pytest.mark.usefixtures("clock")
def test_a_flow_records_its_choice_and_a_replay_repeats_it(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    path = write_flow(tmp_path, partition="{size: auto, budget: 5}")
    real = budgets.choose
    monkeypatch.setattr(
        budgets,
        "choose",
        lambda *a, **b: Choice("greedy", 14, {}, 5.0, real(*a, **b).expected, ((32, 0.01),)),
    )
    report = af.run(path)
    assert report.ok
    run = chosen(tmp_path)[0]
    assert run["partition-size"] == 14
    assert run["budget"] == 5
    assert run["fits-budget"] is True
    assert run["pilots"] == [[32, 0.01]]
    first = published(tmp_path)
    assert report.results[0].anonymization is not None
    assert report.results[0].anonymization.parameters["partition_size"] == 14

    monkeypatch.setattr(budgets, "choose", timed_again)
    again = af.run(path, replay=tmp_path / "owner" / "test")
    assert again.ok
    assert published(tmp_path) == first
    assert chosen(tmp_path)[0]["partition-size"] == 14


def test_a_run_that_is_picked_up_keeps_its_choice(
    tmp_path: Path, counted: list[int], monkeypatch: pytest.MonkeyPatch
) -> None:
    sizes = iter([6, 9])
    monkeypatch.setattr(budgets, "choose", lambda *a, **b: Choice("greedy", next(sizes), {}, 5.0, 1.0))
    write_flow(tmp_path, partition="{size: auto, budget: 5}")
    stopped_after(tmp_path, 4, seed=SEED)
    left = OwnerFolder(tmp_path / "owner" / "test").unfinished()
    assert left is not None
    assert left["choices"]["0"] == {"algorithm": "greedy", "partition-size": 6, "options": {}, "budget": 5.0}
    before = len(counted)
    engine.run(tmp_path / "flow.yaml")
    assert len(counted) <= 10 + 2
    assert before < 10
    assert chosen(tmp_path)[0]["partition-size"] == 6


@pytest.mark.usefixtures("clock")
def test_a_matrix_may_hold_both(tmp_path: Path) -> None:
    path = write_flow(
        tmp_path,
        partition="{budget: 5}",
        publish="{table: out/release.csv, run: {partition.size: auto}}",
        more="matrix: {partition.size: [auto, 20]}\n",
    )
    report = af.run(path)
    assert report.ok
    assert report.results[0].name == "greedy k=3 size=auto"
    first, second = chosen(tmp_path)
    assert first["partition-size"] == 60
    assert second["partition-size"] == 20
    assert "budget" not in second


def test_a_k_that_nobody_can_meet_stays_infeasible(tmp_path: Path) -> None:
    path = write_flow(tmp_path, partition="{size: auto, budget: 5}", anonymize="{algorithm: greedy, k: 61}")
    with pytest.raises(InfeasibleError, match="60 records"):
        af.run(path)


def test_a_flow_says_when_no_size_fits(tmp_path: Path) -> None:
    report = af.run(write_flow(tmp_path, partition="{size: auto, budget: 0.000001}"))
    assert report.ok
    assert any("no method keeps the budget of 1e-06 s" in warning for warning in report.warnings)


@pytest.mark.parametrize(
    ("partition", "text"),
    [
        ("{size: auto}", "'auto' needs a budget in seconds, such as {size: auto, budget: 5}"),
        ("{size: 20, budget: 5}", "'budget' goes with 'size: auto'; leave one of the two out"),
        ("{budget: 5}", "'budget' goes with 'size: auto'; leave one of the two out"),
        ("{size: automatic, budget: 5}", "'size' must be a whole number, or auto"),
        ("{size: 1}", "'size' must be a number of at least 2"),
        ("{size: auto, budget: 0}", "'budget' must be a number greater than 0"),
        ("{size: auto, budget: -3}", "'budget' must be a number greater than 0"),
        ("{size: auto, budget: .inf}", "'budget' must be a number"),
        ("{size: auto, budget: .nan}", "'budget' must be a number"),
        ("{size: auto, budget: yes}", "'budget' must be a number"),
        ("{size: auto, budget: true}", "'budget' must be a number"),
    ],
)
def test_wrong_flows_are_refused(partition: str, text: str, tmp_path: Path) -> None:
    with pytest.raises(FlowError) as caught:
        engine.load_flow(write_flow(tmp_path, partition=partition))
    assert len(caught.value.problems) == 1
    assert text in caught.value.problems[0]
    assert "flow.yaml:9:" in caught.value.problems[0]


@pytest.mark.usefixtures("clock")
def test_the_shell_takes_budgets_and_refuses_wrong_ones(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    path = write_flow(tmp_path)
    about = ["compare", tmp_path / "people.csv", "--schema", path, "--k", "3", "--algorithms", "greedy,nh"]
    status, out, _ = shell(capsys, *about, "--partition-size", "auto", "--budget", "5")
    assert status == 0
    assert "greedy 60" in out
    for wrong in (
        ["--partition-size", "auto"],
        ["--partition-size", "auto", "--budget", "0"],
        ["--partition-size", "20", "--budget", "5"],
        ["--budget", "5"],
        ["--partition-size", "some"],
        ["--partition-size", "-3"],
    ):
        status, out, err = shell(capsys, *about, *wrong)
        assert status == 2
        assert not out
        assert err.count("\n") == 1


@pytest.mark.usefixtures("clock")
def test_compare_at_equal_budgets() -> None:
    frame = af.compare(mixed(50), ["greedy", "hungarian"], k=[3], partition_size="auto", budget=3.0)
    assert frame["size"].tolist() == [50, 50]
    assert (frame["checks"] == "2/2").all()


# ------------------------------------------------------------------------------------ the method auto


class Timed:
    """Methods of the ladders that take so many seconds, whatever they are asked."""

    def __init__(
        self, monkeypatch: pytest.MonkeyPatch, clock: Clock, seconds: dict[str, Callable[..., float]]
    ) -> None:
        self.clock = clock
        for name, lasts in seconds.items():
            monkeypatch.setitem(
                REGISTRY, name, replace(REGISTRY[name], run=self._run(REGISTRY[name].run, lasts))
            )

    def _run(self, real: Callable[..., Outcome], lasts: Callable[..., float]) -> Callable[..., Outcome]:
        def run(part: Partition, k: int, **options: Any) -> Outcome:
            self.clock.now += lasts(part.n, **options)
            if real in (REGISTRY["k-member"].run, REGISTRY["mondrian"].run):
                return one_class(part)
            return Outcome.of_matches(part.records, (np.arange(part.n)[:, None] + np.arange(k)) % part.n)

        return functools.update_wrapper(run, real)


LASTS: dict[str, Callable[..., float]] = {
    "two-phase": lambda n, first=2_000, rounds=8, kicks=10, **_: (
        n * (2e-7 * first + 5e-5 * rounds + 7e-5 * kicks)
    ),
    "greedy": lambda n, **_: 2e-8 * n**2,
    "k-member": lambda n, kicks=0, **_: 3e-9 * n**2 + n * 1e-5 * kicks,
    "mondrian": lambda n, **_: 1e-7 * n,
}


def test_auto_takes_what_loses_least_in_the_seconds(clock: Clock, monkeypatch: pytest.MonkeyPatch) -> None:
    Timed(monkeypatch, clock, LASTS)
    records = numbers(30_000).records

    def chosen(guarantee: str, budget: float) -> Choice:
        clock.now = 0.0
        choice = choose_method(guarantee, records, 5, budget, 1, order="lexicographic", loss="ncp")
        assert choice.expected <= budget or not choice.fits
        return choice

    regular = [chosen("k-regular", budget) for budget in (0.001, 1.5, 5.0, 15.0, 60.0)]
    assert [choice.algorithm for choice in regular] == ["greedy"] * 2 + ["two-phase"] * 3
    assert [choice.fits for choice in regular] == [False] + [True] * 4
    assert "no method keeps the budget of 0.001 s; greedy in partitions of" in regular[0].sentence()
    assert [choice.options.get("first") for choice in regular[2:]] == [250, 500, None]
    assert regular[4].size is None
    assert regular[4].options["kicks"] > 5
    assert regular[2].options["rounds"] < 8
    classes = [chosen("k-anonymity", budget) for budget in (0.015, 0.8, 5.0, 50.0)]
    assert [choice.algorithm for choice in classes] == ["mondrian", "k-member", "k-member", "k-member"]
    assert classes[1].options["kicks"] == 0
    assert classes[3].size == 5_000
    assert classes[3].options["kicks"] > classes[2].options["kicks"] > 0
    assert classes[3].options["rounds"] == 6
    assert all(choice.fits for choice in classes)


@loop("guarantee", GUARANTEES)
def test_auto_keeps_the_budget_of_a_few_records(
    guarantee: str, clock: Clock, monkeypatch: pytest.MonkeyPatch
) -> None:
    """25 records and a second: a dozen pilots, a part of the seconds, and what was chosen fits the rest."""
    clock.now = 0.0
    lasts: dict[str, Callable[..., float]] = {
        name: lambda n, kicks=0, **_: 1e-4 * n * (1 + kicks) for name in LASTS
    }
    timed = Timed(monkeypatch, clock, lasts)
    choice = choose_method(guarantee, numbers(25).records, 3, 1.0, 1, order="lexicographic", loss="ncp")
    assert choice.fits
    assert len(choice.pilots) <= 12
    assert timed.clock.now < 0.4
    assert timed.clock.now + 25 * 1e-4 * (1 + choice.options["kicks"]) <= 1.0


@loop("guarantee", GUARANTEES)
def test_auto_says_what_it_picked_and_the_numbers_make_the_same_again(guarantee: str) -> None:
    people = mixed(90)
    anon = af.anonymize(people, "auto", k=3, guarantee=guarantee, budget=0.2, seed=3)
    check_result(anon, 3)
    assert anon.guarantee == guarantee
    # on a busy machine no method may be fast enough; then the fastest is picked, and the sentence begins with that
    assert f"{anon.algorithm.name} " in anon.facts["picked"]
    assert anon.facts["picked"] in anon.summary()
    again = anon.again(seed=3)
    assert (anon.generalization.lo == again.generalization.lo).all()
    assert (anon.generalization.bits == again.generalization.bits).all()
    assert again.algorithm.name == anon.algorithm.name


@loop(
    ("settings", "text"),
    [
        ({"budget": 1.0}, "needs a guarantee: k-regular or k-anonymity"),
        ({"budget": 1.0, "guarantee": "k-concealment"}, "needs a guarantee"),
        ({"guarantee": "k-regular"}, "needs a budget"),
        ({"guarantee": "k-regular", "budget": -1.0}, "budget must be"),
        ({"guarantee": "k-regular", "budget": 1.0, "partition_size": 20}, "chooses the partition size"),
        ({"guarantee": "k-regular", "budget": 1.0, "kicks": 2}, "leave kicks out"),
        ({"algorithm": "greedy", "guarantee": "k-regular"}, "only the method auto takes a guarantee"),
    ],
)
def test_auto_refuses_what_it_cannot_use(settings: dict[str, Any], text: str) -> None:
    with pytest.raises(ParameterError, match=text):
        af.anonymize(numbers(30), **{"algorithm": "auto", "k": 3, **settings})


def test_classes_with_chains_take_a_budget() -> None:
    anon = af.anonymize(mixed(90), "k-member", k=3, improve="chains", budget=0.1, seed=1)
    check_result(anon, 3)
    assert anon.parameters["kicks"] >= 0
    with pytest.raises(ParameterError, match="partition_size='auto'"):
        af.anonymize(mixed(30), "k-member", k=3, budget=1.0)
    with pytest.raises(ParameterError, match="partition_size='auto'"):
        af.anonymize(mixed(30), "two-phase", k=3, improve="cycles", budget=1.0)


def test_auto_in_a_flow_is_recorded_and_replayed(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    path = write_flow(
        tmp_path, anonymize="{algorithm: auto, guarantee: k-anonymity, budget: 5, k: 3}", partition="{}"
    )
    choice = Choice(
        "k-member", 30, {"improve": "chains", "rounds": 2, "kicks": 3}, 5.0, 1.0, ((32, 0, 0.01),)
    )
    monkeypatch.setattr(budgets, "choose_method", lambda *a, **b: choice)
    report = af.run(path)
    assert report.ok
    assert report.results[0].algorithm == "k-member"
    run = chosen(tmp_path)[0]
    assert run["partition-size"] == 30
    assert run["algorithm"] == "k-member"
    assert run["options"] == {"improve": "chains", "rounds": 2, "kicks": 3}
    assert run["picked"].startswith("k-member in partitions of 30 with improve=chains")
    first = published(tmp_path)
    monkeypatch.setattr(budgets, "choose_method", timed_again)
    assert af.run(path, replay=tmp_path / "owner" / "test").ok
    assert published(tmp_path) == first
    assert chosen(tmp_path)[0]["options"] == run["options"]


def test_an_effort_in_a_flow_is_recorded_and_replayed(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    path = write_flow(
        tmp_path, anonymize="{algorithm: k-member, improve: chains, k: 3, budget: 0.2}", partition="{}"
    )
    assert af.run(path).ok
    run = chosen(tmp_path)[0]
    assert run["partition-size"] is None
    assert run["options"]["kicks"] >= 0
    first = published(tmp_path)
    monkeypatch.setattr(budgets, "choose", timed_again)
    assert af.run(path, replay=tmp_path / "owner" / "test").ok
    assert published(tmp_path) == first


@pytest.mark.parametrize(
    ("anonymize", "partition"),
    [
        ("{algorithm: two-phase, k: 3, budget: 0.1}", "{size: 70}"),
        ("{algorithm: auto, guarantee: k-anonymity, k: 3, budget: 0.1}", "{}"),
        ("{algorithm: greedy, k: 3}", "{size: auto, budget: 0.1}"),
    ],
)
def test_a_budget_in_pieces_is_recorded_and_replayed(
    anonymize: str, partition: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Timed on some rows of the pieces; a replay takes the numbers and times nothing."""
    path = write_flow(
        tmp_path, n=140, source="{csv: people.csv, pieces: 50}", anonymize=anonymize, partition=partition
    )
    report = af.run(path)
    assert report.ok
    assert report.release is None  # it is in files only
    run = chosen(tmp_path)[0]
    assert run["pilots"]
    first = published(tmp_path)
    monkeypatch.setattr(budgets, "choose", timed_again)
    monkeypatch.setattr(budgets, "choose_method", timed_again)
    assert af.run(path, replay=tmp_path / "owner" / "test").ok
    assert published(tmp_path) == first
    assert [chosen(tmp_path)[0][key] for key in ("algorithm", "options", "partition-size")] == [
        run[key] for key in ("algorithm", "options", "partition-size")
    ]


def test_partitions_that_do_not_fit_the_memory_are_refused_before_they_start(
    tmp_path: Path, counted: list[int]
) -> None:
    small = "run: {memory: 200KB}\n"
    path = write_flow(
        tmp_path,
        n=300,
        source="{csv: people.csv, pieces: false}",
        anonymize="{algorithm: two-phase, k: 3, threads: 1}",
        partition="{}",
        more=small,
    )
    with pytest.raises(ParameterError) as refused:
        af.run(path)
    sentence = str(refused.value)
    assert "a partition of 300 records takes about" in sentence
    assert "more than run: memory: 200KB allows; take partitions of at most" in sentence
    assert "\n" not in sentence
    assert counted == []
    most = int(sentence.split("at most ")[1].split(",")[0])
    assert 65 <= most < 300
    limit = REGISTRY["two-phase"].most_records
    domains = numbers(300).records.domains
    assert limit(domains, 300, 3, {"improve": "cycles", "first": 50, "threads": 1}, 200_000) == 300


def test_auto_takes_partitions_that_fit_the_memory(clock: Clock, monkeypatch: pytest.MonkeyPatch) -> None:
    Timed(monkeypatch, clock, LASTS)
    records = numbers(30_000).records

    def most(method: Algorithm, options: Any) -> int:
        return 7_000 if method.name == "two-phase" else 30_000

    choice = choose_method("k-regular", records, 5, 30.0, 1, order="lexicographic", loss="ncp", most=most)
    assert (choice.algorithm, choice.size) == ("two-phase", 7_000)
    method = REGISTRY["two-phase"]
    settings: dict[str, Any] = {"order": "lexicographic", "loss": "ncp", "options": {}}
    whole = choose(method, records, 5, 50.0, 1, size="auto", **settings)
    assert whole.size == 30_000
    capped = choose(method, records, 5, 50.0, 1, size="auto", most=most, **settings)
    assert capped.size <= 7_000


@pytest.mark.parametrize("noise", [0.0, 0.02])
def test_efforts_that_hardly_show_are_timed_with_more_of_them(noise: float, clock: Clock) -> None:
    """2 us for a record and kick beside 1 ms without: a second that is a little shorter by chance overruns no budget."""
    choice = fit_effort(clock, 1_000, 40.0, unit=2e-6, noise=noise)
    kicks = choice.options["kicks"]
    assert 1_000 * (1e-3 + 2e-6 * kicks) <= 40.0
    assert kicks > 1_000


def test_what_a_file_keeps_is_looked_at() -> None:
    good = {"algorithm": "greedy", "partition-size": 20, "options": {}, "budget": 5.0}
    assert choices_in({"0": good})[0].size == 20
    for wrong in (
        good | {"algorithm": "auto"},
        good | {"partition-size": "20"},
        good | {"partition-size": True},
        good | {"options": {"kicks": 3}},
        good | {"options": None},
        "greedy",
    ):
        assert choices_in({"0": wrong}) == {}
    assert choices_in(None) == choices_in({"x": good}) == {}


@pytest.mark.parametrize(
    ("anonymize", "partition", "text"),
    [
        ("{algorithm: auto, k: 3, budget: 5}", "{}", "needs a guarantee: k-regular or k-anonymity"),
        ("{algorithm: auto, k: 3, guarantee: k-regular}", "{}", "needs a budget in seconds"),
        (
            "{algorithm: auto, k: 3, guarantee: k-regular, budget: 5}",
            "{size: 20}",
            "chooses the partition size",
        ),
        ("{algorithm: auto, k: 3, guarantee: k-regular, budget: 5, kicks: 2}", "{}", "leave kicks out"),
        ("{algorithm: auto, k: 3, guarantee: both, budget: 5}", "{}", "'guarantee' must be one of"),
        ("{algorithm: greedy, k: 3, guarantee: k-regular}", "{}", "'guarantee' goes with the method auto"),
        ("{algorithm: greedy, k: 3, budget: 5}", "{}", "'budget' goes with 'size: auto' for greedy"),
        (
            "{algorithm: two-phase, k: 3, budget: 5, kicks: 2}",
            "{}",
            "'budget' and 'kicks' exclude each other",
        ),
        ("{algorithm: greedy, k: 3, budget: 5}", "{size: auto, budget: 5}", "a second budget"),
        ("{algorithm: two-phase, k: 3, budget: 0}", "{}", "'budget' must be a number greater than 0"),
    ],
)
def test_wrong_budgets_in_a_flow(anonymize: str, partition: str, text: str, tmp_path: Path) -> None:
    with pytest.raises(FlowError) as caught:
        engine.load_flow(write_flow(tmp_path, anonymize=anonymize, partition=partition))
    assert [text in problem for problem in caught.value.problems] == [True]


@pytest.mark.slow
def test_auto_from_the_shell(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    path = write_flow(tmp_path)
    about = ["compare", tmp_path / "people.csv", "--schema", path, "--k", "3", "--algorithms", "auto,greedy"]
    status, out, _ = shell(
        capsys, *about, "--partition-size", "auto", "--budget", "1", "--guarantee", "k-anonymity"
    )
    assert status == 0
    assert "auto k=3" in out or "k-member" in out or "mondrian" in out
    for wrong in (["--guarantee", "k-regular"], ["--partition-size", "auto", "--budget", "1"]):
        status, out, err = shell(capsys, *about, *wrong)
        assert status == 2
        assert err.count("\n") == 1
