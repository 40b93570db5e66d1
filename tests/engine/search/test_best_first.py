"""The order of a search, in a world of formulas: nothing is run, and a second lasts no time."""

from __future__ import annotations

import math
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from anonflow.engine.search.best_first import BestFirst, Guess, ladder
from anonflow.engine.search.space import Space
from anonflow.engine.search.trials import Candidate, SearchTarget, Setup, Trial, frontier_of, picked
from anonflow.errors import ParameterError
from tests.naive import search as naive

LEVEL = st.sampled_from([0.05, 0.1, 0.2, 0.4])
POINTS = st.lists(
    st.tuples(LEVEL, LEVEL, st.sampled_from([True, False, None]), st.one_of(st.none(), LEVEL)),
    min_size=1,
    max_size=8,
)
LIMIT = st.one_of(st.none(), LEVEL)


def trial_of(
    loss: float | None, risk: float | None, signs: bool | None = None, disclosure: float | None = None
) -> Trial:
    problem = None if loss is not None else "none"
    return Trial(Candidate(Setup("greedy"), 2), loss, risk, signs, problem=problem, disclosure=disclosure)


@given(points=POINTS, loss=LIMIT, risk=LIMIT, signs=st.booleans(), disclosure=LIMIT)
def test_the_pick_is_the_one_that_no_other_is_preferred_to(
    points: list[Any], loss: float | None, risk: float | None, signs: bool, disclosure: float | None
) -> None:
    if loss is None and risk is None and disclosure is None and not signs:
        return
    target = SearchTarget(loss, risk, ("a ~ b",) if signs else (), disclosure=disclosure)
    trials = [trial_of(*point) for point in points]
    assert picked(target, trials) == naive.pick(points, loss, risk, signs, disclosure)
    assert set(frontier_of(trials)) == naive.frontier(points)


def test_what_has_no_result_is_neither_picked_nor_on_the_frontier() -> None:
    trials = [trial_of(None, None), trial_of(0.9, 0.5), trial_of(None, None)]
    assert picked(SearchTarget(loss=0.1), trials) == 1
    assert frontier_of(trials) == [1]
    assert picked(SearchTarget(loss=0.1), [trials[0]]) is None


def world(loss: dict[str, float], speed: dict[str, float]) -> Any:
    """Loss grows with the square root of k, seconds with k; a method's level and speed."""

    def run(candidate: Candidate) -> tuple[float, float, float]:
        name = candidate.setup.algorithm
        return loss[name] * math.sqrt(candidate.k), 1 / candidate.k, speed[name] * candidate.k / 10

    return run


def searched(
    target: SearchTarget, candidates: list[Candidate], run: Any, seconds: float, wrong: float = 1.0
) -> list[Trial]:
    guesses = {}
    for candidate in candidates:
        loss, _, took = run(Candidate(candidate.setup, 10))
        guesses[candidate.setup] = Guess(10, loss * wrong, took)
    order = BestFirst(target, candidates, guesses)
    while (chosen := order.next(seconds)) is not None:
        candidate, expected = chosen
        loss, risk, took = run(candidate)
        order.add(Trial(candidate, loss, risk, None, took, expected.seconds))
        seconds -= took
    return order.trials


SETUPS = [Setup("mondrian"), Setup("greedy"), Setup("hungarian")]
RUN = world(
    {"mondrian": 0.06, "greedy": 0.04, "hungarian": 0.03}, {"mondrian": 0.1, "greedy": 1.0, "hungarian": 10.0}
)


def test_a_ladder_ascends_whatever_the_order_of_its_steps() -> None:
    assert ladder(5, 100, (64, 9, 100, 40, 33, 20, 2, 128, 5)) == (5, 9, 20, 33, 40, 64, 100)


@pytest.mark.parametrize(
    "target",
    [
        SearchTarget(loss=0.12),
        SearchTarget(risk=0.09),
        SearchTarget(loss=0.15, risk=0.09),
        SearchTarget(loss=0.001),
    ],
)
@pytest.mark.parametrize("wrong", [1.0, 0.2, 5.0])
def test_with_enough_time_it_picks_what_exhaustive_search_picks(target: SearchTarget, wrong: float) -> None:
    ks = ladder(2 if target.risk is None else 12, 100, (2, 5, 10, 20, 50, 100))
    candidates = [Candidate(setup, k) for setup in SETUPS for k in ks]
    trials = searched(target, candidates, RUN, math.inf, wrong)
    exhaustive = [Trial(each, *RUN(each)[:2]) for each in candidates]
    at, best = picked(target, trials), picked(target, exhaustive)
    assert at is not None
    assert best is not None
    assert trials[at].shortfall(target) <= exhaustive[best].shortfall(target)
    pair = [(trial.loss, trial.risk) for trial in (trials[at], exhaustive[best])]
    # a k between those of the ladder may be better still
    assert min(pair) == pair[0] or pair[0][1] < pair[1][1]
    assert len({trial.candidate for trial in trials}) == len(trials)


def test_what_meets_the_target_comes_first_and_what_takes_too_long_not_at_all() -> None:
    candidates = [Candidate(setup, k) for setup in SETUPS for k in (2, 5, 12, 50)]
    trials = searched(SearchTarget(loss=0.22, risk=0.09), candidates, RUN, 5.0)
    assert trials[0].candidate.setup.algorithm in ("mondrian", "greedy")
    assert trials[0].shortfall(SearchTarget(loss=0.22, risk=0.09)) == 0
    assert sum(trial.seconds for trial in trials) <= 5.0
    assert all(trial.candidate.setup.algorithm != "hungarian" for trial in trials)


def test_a_better_answer_comes_before_the_rest_of_the_frontier() -> None:
    """With time for the slow method at one k only, it is spent on the k of the answer, not on larger ones."""
    ks = (12, 20, 50, 100)
    candidates = [Candidate(setup, k) for setup in SETUPS for k in ks]
    trials = searched(SearchTarget(risk=0.09), candidates, RUN, 16.0)
    at = picked(SearchTarget(risk=0.09), trials)
    assert at is not None
    assert trials[at].candidate == Candidate(Setup("hungarian"), 12)
    trials = searched(SearchTarget(loss=0.22), candidates, RUN, 60.0)
    at = picked(SearchTarget(loss=0.22), trials)
    assert at is not None
    assert trials[at].candidate == Candidate(Setup("hungarian"), 50)


def test_between_a_k_that_meets_the_loss_and_one_that_does_not_the_middle_is_tried() -> None:
    candidates = [Candidate(SETUPS[1], k) for k in (2, 50)]
    target = SearchTarget(loss=0.15)
    trials = searched(target, candidates, RUN, math.inf)
    at = picked(target, trials)
    assert at is not None
    # 0.04 * sqrt(14) is just below 0.15
    assert trials[at].candidate.k == 14


def test_a_setup_that_discloses_less_is_tried_although_it_loses_more() -> None:
    plain, diverse = Setup("mondrian"), Setup("mondrian", diversity=(("criterion", "alpha-k-anonymity"),))
    candidates = [Candidate(setup, k) for setup in (plain, diverse) for k in (5, 10, 20)]

    def run(candidate: Candidate) -> Trial:
        is_diverse = candidate.setup == diverse
        loss = (0.2 if is_diverse else 0.1) * math.sqrt(candidate.k / 5)
        return Trial(
            candidate, loss, 1 / candidate.k, seconds=1.0, disclosure=0.5 if is_diverse else 4 / candidate.k
        )

    for seconds, target, best in (
        (
            math.inf,
            SearchTarget(disclosure=0.6),
            Candidate(plain, 7),
        ),  # between 5, which discloses all, and 10
        (math.inf, SearchTarget(disclosure=0.6, risk=0.2, loss=0.15), Candidate(plain, 7)),
    ):
        order = BestFirst(target, candidates, {setup: Guess(5, 0.1, 1.0) for setup in (plain, diverse)})
        while (chosen := order.next(seconds)) is not None:
            order.add(run(chosen[0]))
        at = picked(target, order.trials)
        assert at is not None
        assert order.trials[at].candidate == best
        assert diverse in {trial.candidate.setup for trial in order.trials}


def test_a_setup_that_lost_its_signs_keeps_no_other_from_being_tried() -> None:
    flat, kept = Setup("mondrian"), Setup("greedy")
    target = SearchTarget(signs=("a ~ b",))
    order = BestFirst(
        target,
        [Candidate(flat, 5), Candidate(kept, 4), Candidate(kept, 5)],
        {flat: Guess(5, 0.1, 1.0), kept: Guess(5, 0.3, 1.0)},
    )
    order.add(Trial(Candidate(flat, 5), 0.1, 0.2, False, 1.0))
    order.add(Trial(Candidate(kept, 4), 0.27, 0.25, True, 1.0))
    chosen = order.next(math.inf)
    assert chosen is not None
    assert chosen[0] == Candidate(kept, 5)


def test_a_setup_without_a_solution_is_not_tried_with_larger_ks() -> None:
    candidates = [Candidate(SETUPS[0], k) for k in (2, 5, 10)]
    order = BestFirst(SearchTarget(risk=0.09), candidates, {SETUPS[0]: Guess(2, 0.1, 1.0)})
    order.add(Trial(candidates[1], problem="no solution"))
    assert list(order.waiting) == candidates[:1]


def test_a_candidate_that_nobody_guessed_of_is_left_out() -> None:
    assert not BestFirst(SearchTarget(loss=0.1), [Candidate(SETUPS[0], 2)], {}).waiting


@pytest.mark.parametrize(
    ("settings", "sentence"),
    [
        ({}, "says nothing to reach"),
        ({"time": "2m"}, "says nothing to reach"),
        ({"loss": 0}, "loss is a number above 0 and at most 1"),
        ({"loss": True}, "loss is a number above 0 and at most 1"),
        ({"risk": 9}, "risk is a number above 0 and at most 1"),
        ({"risk": float("nan")}, "risk is a number above 0 and at most 1"),
        ({"loss": 0.1, "time": "two minutes"}, "a duration is a number and one of s, m, h, d"),
        ({"disclosure": 0}, "disclosure is a number above 0 and at most 1"),
        ({"disclosure": "low"}, "disclosure is a number above 0 and at most 1"),
        ({"loss": 0.1, "time": -1}, "time is a duration above 0"),
        ({"loss": 0.1, "time": "0"}, "time is a duration above 0"),
        ({"signs": "income"}, "signs is a list of formulas"),
        ({"signs": 3}, "signs is a list of formulas"),
        ({"lost": 0.1}, r"unknown key 'lost' \(did you mean 'loss'\?\)"),
        ("loss", "target is a mapping"),
    ],
)
def test_a_target_that_cannot_be_is_refused(settings: Any, sentence: str) -> None:
    with pytest.raises(ParameterError, match=sentence):
        SearchTarget.of(settings)


def test_a_target_says_what_is_wanted() -> None:
    target = SearchTarget.of({"loss": 0.1, "risk": 0.09, "signs": "income ~ age", "time": "90s"})
    assert target == SearchTarget(0.1, 0.09, ("income ~ age",), 90.0)
    assert SearchTarget.of(target) is target
    assert target.sentence() == (
        "a loss (GCP) of at most 0.1, nobody found with a probability above 9%, income ~ age keeps its signs"
    )
    assert SearchTarget.of({"disclosure": 0.5}).sentence() == (
        "no sensitive value guessed with a probability above 50%"
    )


def test_ks_begin_with_what_the_risk_allows() -> None:
    ks = {each.k for each in Space(("greedy",)).candidates(1000, SearchTarget(risk=0.09), False)}
    assert min(ks) == 12
    assert {12, 15, 20, 100} <= ks
    assert {
        each.k for each in Space(("greedy",), (3, 7)).candidates(1000, SearchTarget(loss=0.1), False)
    } == {3, 7}
    with pytest.raises(ParameterError, match="too few for every k"):
        Space(ks=(9,)).candidates(8, SearchTarget(loss=0.1), False)
    for ks in ((), (3,)):
        with pytest.raises(
            ParameterError, match=r"risk 0.09 is less than 1 in 8, .* raise it to at least 0.125"
        ):
            Space(ks=ks).candidates(8, SearchTarget(risk=0.09), False)
        assert Space(ks=ks).candidates(8, SearchTarget(risk=0.125), False)


@pytest.mark.parametrize(
    ("settings", "sentence"),
    [
        ({"algorithms": ("greedi",)}, "greedi"),
        ({"ks": (1,)}, "k must be whole numbers of at least 2"),
        ({"ks": (2.5,)}, "k must be whole numbers of at least 2"),
        ({"sizes": (1,)}, "partition_size must be whole numbers"),
        ({"options": {"greedy": {"fast": True}}}, "unknown option 'fast'"),
    ],
)
def test_a_space_that_cannot_be_is_refused(settings: Any, sentence: str) -> None:
    with pytest.raises(ParameterError, match=sentence):
        Space(**settings)


def test_small_tables_are_tried_with_methods_for_small_tables_and_diversity_in_several_ways() -> None:
    small = {setup.algorithm for setup in Space().setups(100, 2, False)}
    large = {setup.algorithm for setup in Space().setups(10_000, 2, False)}
    assert small - large == {"optimal", "pattern-guided-optimal"}
    assert {setup.diversity for setup in Space(("greedy",)).setups(100, 2, True)} == {(), (("way", "blind"),)}
    listed = Space(
        ("greedy",),
        diversities=(
            {},
            {"criterion": "l-diversity", "l": 3},
            {"criterion": "l-diversity", "l": 2, "way": "blind"},
        ),
    )
    three, two = (
        (("criterion", "l-diversity"), ("l", 3)),
        (("criterion", "l-diversity"), ("l", 2), ("way", "blind")),
    )
    ways = {setup.diversity for setup in listed.setups(100, 2, False)}
    assert ways == {(), three, (*three, ("way", "blind")), two}
    assert {setup.size for setup in Space(("full-domain",)).setups(10_000, 2, False)} == {None}
