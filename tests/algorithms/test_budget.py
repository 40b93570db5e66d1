"""partition_size="auto": the largest partitions that a budget of seconds allows, recorded and replayed."""

from __future__ import annotations

import json
import math
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
import pytest

import anonflow as af
from anonflow import engine
from anonflow.algorithms import REGISTRY
from anonflow.algorithms import budget as module
from anonflow.algorithms.budget import Effort, Fitted, fitting_effort, fitting_size
from anonflow.algorithms.method import Algorithm, Outcome, Partition
from anonflow.engine.execution import partition_budget
from anonflow.engine.owner.folder import OwnerFolder
from anonflow.errors import FlowError, InfeasibleError, ParameterError
from anonflow.table import Table
from tests.cases.flow_files import write_flow
from tests.cases.runs import SEED, counted, published, shell, stopped_after
from tests.cases.tables import mixed
from tests.checks import check_result

__all__ = ["counted"]

QI = {"role": "quasi-identifier"}


class Clock:
    """Time that passes only when a method works."""

    def __init__(self) -> None:
        self.now = 0.0

    def perf_counter(self) -> float:
        return self.now


def numbers(n: int) -> Table:
    return Table(pd.DataFrame({"a": np.arange(n)}), {"a": QI | {"kind": "numeric"}})


def fit(
    monkeypatch: pytest.MonkeyPatch, seconds: Callable[[int], float], n: int, budget: float, k: int = 2
) -> Fitted:
    """The choice for a method that takes so many seconds for a partition, on one worker."""
    clock = Clock()
    monkeypatch.setattr(module, "time", clock)

    def run(part: Partition, k: int) -> Outcome:
        assert part.n >= k
        clock.now += seconds(part.n)
        return None  # type: ignore[return-value]

    method = Algorithm("timed", run, "freeform", "", "k-regular", "", "")
    records = numbers(n).records
    return fitting_size(method, records, k, budget, 1, order="lexicographic", loss="ncp", options={})


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
def test_the_largest_that_fits(shape: str, monkeypatch: pytest.MonkeyPatch) -> None:
    seconds, n = SHAPES[shape], 20_000
    before = 0
    for budget in (1.0, 2.0, 4.0, 8.0, 16.0):
        found = fit(monkeypatch, seconds, n, budget)
        taken = sum(time for _, time in found.pilots)
        assert found.fits
        assert whole(seconds, n, found.size) + taken <= budget
        if found.size < n:
            assert whole(seconds, n, 3 * found.size) + taken > 0.5 * budget
        assert taken <= 0.3 * budget
        assert found.size >= before
        before = found.size


def test_the_whole_table_where_it_fits(monkeypatch: pytest.MonkeyPatch) -> None:
    for shape in SHAPES.values():
        assert fit(monkeypatch, shape, 500, 100.0).size == 500
    assert fit(monkeypatch, SHAPES["linear"], 20_000, 30.0).size == 20_000


def test_a_budget_too_small_for_any(monkeypatch: pytest.MonkeyPatch) -> None:
    found = fit(monkeypatch, SHAPES["square"], 20_000, 1e-3, k=5)
    assert not found.fits
    assert found.size >= 5
    assert found.expected > found.budget
    assert "no partition size keeps the budget of 0.001 s" in found.sentence()
    assert found.facts()["fits_budget"] is False


def test_time_never_falls_as_a_partition_grows() -> None:
    pilots = [(32, 0.02), (64, 0.01), (128, 0.05), (256, 0.04)]
    times = [module._seconds(pilots, size) for size in range(2, 1200)]
    assert (np.diff(times) >= 0).all()
    assert times[-1] > 4 * 0.05


def test_a_partition_without_a_solution_took_its_time(monkeypatch: pytest.MonkeyPatch) -> None:
    def seconds(size: int) -> float:
        if size < 100:
            raise InfeasibleError("no")
        return 1e-6 * size**2

    assert fit(monkeypatch, seconds, 5_000, 4.0).size > 100


def test_not_beyond_boundary_classes() -> None:
    rng = np.random.default_rng(0)
    table = Table(
        pd.DataFrame({"a": rng.integers(0, 100, 300)}),
        {"a": QI | {"kind": "numeric", "boundary": {"width": 25}}},
    )
    anon = af.anonymize(table, "greedy", k=3, partition_size="auto", budget=9.0)
    check_result(anon, 3)
    assert anon.parameters["partition_size"] == 300


def fit_effort(
    monkeypatch: pytest.MonkeyPatch, n: int, budget: float, workers: int = 1, **more: Any
) -> Effort:
    """The choice for a method that takes 1 ms for a record and 0.5 ms for each record and unit of effort."""
    clock = Clock()
    monkeypatch.setattr(module, "time", clock)

    def run(part: Partition, k: int, *, kicks: int = 3, threads: int | None = None) -> Outcome:
        assert threads == 1
        clock.now += part.n * (1e-3 + 5e-4 * kicks)
        return None  # type: ignore[return-value]

    method = Algorithm("timed", run, "freeform", "", "k-regular", "", "", effort="kicks")
    settings: dict[str, Any] = {"size": None, "options": {}} | more
    return fitting_effort(method, numbers(n).records, 2, budget, workers, loss="ncp", **settings)


@pytest.mark.parametrize("workers", [1, 2])
@pytest.mark.parametrize("size", [None, 5_000])
def test_as_many_kicks_as_fit(monkeypatch: pytest.MonkeyPatch, size: int | None, workers: int) -> None:
    before = 0
    for budget in (40.0, 80.0, 160.0):
        found = fit_effort(monkeypatch, 20_000, budget, workers, size=size)
        pilots = sum(seconds for _, _, seconds in found.pilots)
        left = budget - pilots
        assert 20_000 * (1e-3 + 5e-4 * found.value) / workers <= left
        assert 20_000 * (1e-3 + 5e-4 * (found.value + 2)) / workers > 0.8 * left
        assert found.facts()["fits_budget"]
        assert found.value > before
        before = found.value


def test_no_kicks_where_the_budget_is_too_small(monkeypatch: pytest.MonkeyPatch) -> None:
    found = fit_effort(monkeypatch, 20_000, 1.0)
    assert found.value == 0
    assert found.facts()["fits_budget"] is False


def test_a_budget_and_an_effort_exclude_each_other(monkeypatch: pytest.MonkeyPatch) -> None:
    with pytest.raises(ParameterError, match="leave one of the two out"):
        fit_effort(monkeypatch, 100, 1.0, options={"kicks": 2})
    with pytest.raises(ParameterError, match="partition_size='auto'"):
        af.anonymize(mixed(30), "greedy", k=3, budget=1.0)


def test_the_effort_that_a_budget_chose_is_recorded_and_replayed() -> None:
    people = mixed(200)
    anon = af.anonymize(people, "two-phase", k=3, budget=2.0, seed=7)
    assert anon.parameters["budget"] == 2.0
    kicks = anon.parameters["kicks"]
    again = af.anonymize(people, "two-phase", k=3, kicks=kicks, seed=7)
    assert (anon.matches == again.matches).all()


@pytest.mark.parametrize("algorithm", sorted(REGISTRY))
def test_every_method_takes_a_budget(algorithm: str) -> None:
    people = mixed(60)
    anon = af.anonymize(people, algorithm, k=3, partition_size="auto", budget=1.0, seed=7)
    check_result(anon, 3)
    size = anon.parameters["partition_size"]
    assert 3 <= size <= 60
    assert anon.parameters["budget"] == 1.0
    assert anon.facts["pilots"][0][0] <= 60
    assert isinstance(anon.facts["fits_budget"], bool)


def test_the_chosen_number_makes_the_same_again() -> None:
    people = mixed(90)
    auto = af.anonymize(people, "greedy", k=3, partition_size="auto", budget=0.02, seed=1)
    again = af.anonymize(people, "greedy", k=3, partition_size=auto.parameters["partition_size"], seed=1)
    assert (auto.matches == again.matches).all()


@pytest.mark.parametrize("budget", [0, -1.0, math.nan, math.inf, True, "5", None, [5]])
def test_bad_budgets_are_refused(budget: Any) -> None:
    with pytest.raises(ParameterError, match="budget"):
        af.anonymize(numbers(20), "greedy", k=2, partition_size="auto", budget=budget)
    with pytest.raises(ParameterError, match="budget"):
        af.compare(numbers(20), ["greedy"], k=2, partition_size="auto", budget=budget)


def test_a_budget_and_a_size_do_not_go_together() -> None:
    for size in (10, None):
        with pytest.raises(ParameterError, match="a budget goes with partition_size='auto'"):
            af.anonymize(numbers(20), "greedy", k=2, partition_size=size, budget=5.0)
    with pytest.raises(ParameterError, match="or 'auto'"):
        af.anonymize(numbers(20), "greedy", k=2, partition_size="big", budget=5.0)


# ---------------------------------------------------------------------------------------- flows, shell


def chosen(folder: Path) -> list[dict[str, Any]]:
    runs: list[dict[str, Any]] = json.loads((folder / "owner" / "test" / "record.json").read_text())["runs"]
    return runs


def test_a_flow_records_its_choice_and_a_replay_repeats_it(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    path = write_flow(tmp_path, partition="{size: auto, budget: 5}")
    real = partition_budget.fitting_cuts
    monkeypatch.setattr(
        partition_budget,
        "fitting_cuts",
        lambda *a, **b: Fitted(14, 5.0, real(*a, **b).expected, ((32, 0.01),)),
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

    def never(*_: Any, **__: Any) -> Fitted:
        raise AssertionError("a replay times nothing")

    monkeypatch.setattr(partition_budget, "fitting_cuts", never)
    again = af.run(path, replay=tmp_path / "owner" / "test")
    assert again.ok
    assert published(tmp_path) == first
    assert chosen(tmp_path)[0]["partition-size"] == 14


def test_a_run_that_is_picked_up_keeps_its_choice(
    tmp_path: Path, counted: list[int], monkeypatch: pytest.MonkeyPatch
) -> None:
    sizes = iter([6, 9])
    monkeypatch.setattr(partition_budget, "fitting_cuts", lambda *a, **b: Fitted(next(sizes), 5.0, 1.0, ()))
    write_flow(tmp_path, partition="{size: auto, budget: 5}")
    stopped_after(tmp_path, 4, seed=SEED)
    assert OwnerFolder(tmp_path / "owner" / "test").unfinished()["sizes"] == {"0": 6}  # type: ignore[index]
    before = len(counted)
    engine.run(tmp_path / "flow.yaml")
    assert len(counted) <= 10 + 2
    assert before < 10
    assert chosen(tmp_path)[0]["partition-size"] == 6


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
    assert any("no partition size keeps the budget of 1e-06 s" in said for said in report.warnings)


@pytest.mark.parametrize(
    ("partition", "said"),
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
def test_wrong_flows_are_refused(partition: str, said: str, tmp_path: Path) -> None:
    with pytest.raises(FlowError) as caught:
        engine.load_flow(write_flow(tmp_path, partition=partition))
    assert len(caught.value.problems) == 1
    assert said in caught.value.problems[0]
    assert "flow.yaml:9:" in caught.value.problems[0]


def test_from_the_shell(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
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


def test_compare_at_equal_budgets() -> None:
    frame = af.compare(mixed(50), ["greedy", "hungarian"], k=[3], partition_size="auto", budget=3.0)
    assert frame["size"].tolist() == [50, 50]
    assert (frame["checks"] == "2/2").all()
