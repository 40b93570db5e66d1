"""af.anonymize: what every method is called through."""

from __future__ import annotations

import signal
import sys
import threading
from dataclasses import replace
from typing import Any

import numpy as np
import pandas as pd
import pytest
from hypothesis import given
from hypothesis import strategies as st

from anonflow.algorithms import REGISTRY, algorithms, anonymize
from anonflow.algorithms.anonymize import CHECKED, assemble, groups_of_partitions
from anonflow.algorithms.assembly import Assembly, gathered
from anonflow.algorithms.diversity.diversify import diversity_rng
from anonflow.algorithms.method import Outcome
from anonflow.algorithms.solve import partition_rng
from anonflow.errors import AnonflowError, InfeasibleError, ParameterError
from anonflow.generalization import Generalization
from anonflow.table import Table
from tests.checks import SOON, TAKE_EVERY_KIND
from tests.strategies import city_tree, examples, loop


def people(n: int = 60) -> Table:
    rng = np.random.default_rng(5)
    frame = pd.DataFrame(
        {
            "age": rng.integers(18, 90, n),
            "job": rng.choice(["clerk", "nurse", "smith", "cook"], n),
            "city": rng.choice(["San Diego", "Wichita", "Lincoln"], n),
            "zip": rng.choice(["9412", "9413", "8001"], n),
            "pay": rng.choice(["low", "high"], n),
        },
        index=np.arange(n) * 7 + 3,
    )
    return Table(
        frame,
        {
            "age": {"role": "quasi-identifier", "kind": "numeric"},
            "job": {"role": "quasi-identifier", "kind": "categorical"},
            "city": {"role": "quasi-identifier", "kind": "hierarchy", "hierarchy": city_tree()},
            "zip": {"role": "quasi-identifier", "kind": "positions"},
            "pay": {"role": "sensitive"},
        },
    )


@pytest.mark.parametrize("name", TAKE_EVERY_KIND)
def test_bits_do_not_depend_on_workers(name: str) -> None:
    table = people()
    runs = [anonymize(table, name, k=3, partition_size=12, seed=11, workers=workers) for workers in (1, 3)]
    item, three = (run.generalization for run in runs)
    assert (item.lo == three.lo).all()
    assert (item.hi == three.hi).all()
    assert (item.bits == three.bits).all()
    assert runs[0].loss() == runs[1].loss()


@pytest.mark.parametrize("name", TAKE_EVERY_KIND)
def test_the_owner_sees_row_i_beside_original_i(name: str) -> None:
    table = people()
    anon = anonymize(table, name, k=3, seed=1, **SOON.get(name, {}))
    frame = anon.frame()
    assert list(frame.columns) == ["age", "job", "city", "zip"]
    assert frame.index.equals(table.index)
    assert all(isinstance(cell, str) for cell in frame.to_numpy().ravel())
    assert anon.generalization.covers(Generalization.of(table.records)).all()
    assert (anon.matches is not None) == (anon.guarantee == "k-regular")
    assert 0 <= anon.loss("gcp") <= 1
    assert name in repr(anon)


@pytest.mark.parametrize("name", TAKE_EVERY_KIND)
@loop("loss", ["ncp", "gcp", "lm", "entropy", "height", "suppressions"])
def test_every_method_takes_every_loss(name: str, loss: str) -> None:
    anon = anonymize(people(24), name, k=2, loss=loss)
    assert np.isfinite(anon.loss(loss))


@loop(
    ("arguments", "error", "words"),
    [
        ({"algorithm": "gredy"}, ParameterError, "did you mean 'greedy'"),
        ({"k": 1}, ParameterError, "at least 2"),
        ({"k": True}, ParameterError, "at least 2"),
        ({"k": 2.5}, ParameterError, "at least 2"),
        ({"k": "10"}, ParameterError, "at least 2"),
        ({"k": 61}, InfeasibleError, "at most 60"),
        ({"loss": "ncpp"}, ParameterError, "ncp"),
        ({"partition_size": 2}, ParameterError, "smaller than k"),
        ({"partition_size": 0}, ParameterError, "whole number"),
        ({"partition_size": 12.5}, ParameterError, "whole number"),
        ({"order": "sideways", "partition_size": 20}, ParameterError, "order"),
        ({"seed": -1}, ParameterError, "seed"),
        ({"seed": 1.5}, ParameterError, "seed"),
        ({"colour": "red"}, ParameterError, "unknown option 'colour'"),
    ],
)
def test_parameters_outside_their_domain_are_refused(
    arguments: dict[str, Any], error: type[AnonflowError], words: str
) -> None:
    with pytest.raises(error, match=words):
        anonymize(people(), **{"k": 3, **arguments})


def test_only_tables_are_anonymized() -> None:
    with pytest.raises(ParameterError, match="Table"):
        anonymize(pd.DataFrame({"a": [1]}), k=2)  # type: ignore[arg-type]


def test_the_registry_is_a_frame_with_one_row_a_method() -> None:
    frame = algorithms()
    assert frame["name"].tolist() == list(REGISTRY)
    assert not frame.isna().any().any()


def test_suppressed_records_share_a_class_and_cover_everything() -> None:
    table = people(6)
    halves = [np.array([4, 0, 2]), np.array([1, 3, 5])]
    outcomes = []
    for half in halves:
        hidden = np.array([False, False, True])
        labels = np.array([9, 9, 4])
        outcomes.append(Outcome.of_classes(table.records.take(half), labels, hidden, rounds=2, word="same"))
    whole = gathered(table.domains, outcomes, halves, table.n)
    anon = assemble(table, REGISTRY["greedy"], 2, halves, whole, {})
    assert anon.suppressed.tolist() == [False, False, True, False, False, True]
    assert anon.classes is not None
    assert anon.classes[2] == anon.classes[5]
    assert anon.classes[4] == anon.classes[0] != anon.classes[1] == anon.classes[3]
    assert (anon.frame().iloc[[2, 5]] == "*").all().all()
    assert anon.facts == {"rounds": 4, "word": "same"}


def test_a_partition_with_more_matches_pads_the_others() -> None:
    table = people(5)
    parts = [np.array([4, 0]), np.array([1, 2, 3])]
    two = np.array([[0, 1], [1, 0]])
    three = np.array([[0, 1, 2], [1, 2, 0], [2, 0, 1]])
    outcomes = [
        Outcome.of_matches(table.records.take(part), m) for part, m in zip(parts, (two, three), strict=True)
    ]
    whole = gathered(table.domains, outcomes, parts, table.n)
    anon = assemble(table, REGISTRY["greedy"], 2, parts, whole, {})
    assert anon.matches is not None
    assert anon.matches.tolist() == [[0, 4, -1], [1, 2, 3], [2, 3, 1], [3, 1, 2], [4, 0, -1]]


@examples(60)
@given(data=st.data(), together=st.integers(1, 12), listed=st.booleans())
def test_partitions_are_put_together_as_one_after_the_other(
    data: st.DataObject, together: int, listed: bool
) -> None:
    """Some at a time, in any order, with lists of several widths and numbers of several types, against a loop over records."""
    sizes = data.draw(st.lists(st.integers(0, 4), min_size=1, max_size=8))
    table = people(sum(sizes) + data.draw(st.integers(1, 3)))
    rng = np.random.default_rng(data.draw(st.integers(0, 999)))
    parts = np.split(rng.permutation(table.n)[: sum(sizes)], np.cumsum(sizes)[:-1])
    outcomes = []
    for part in parts:
        records = table.records.take(part)
        hidden = rng.random(len(part)) < 0.3
        width, labels = int(rng.integers(1, 4)), rng.integers(-2, 3, len(part))
        matches = rng.integers(-1, max(len(part), 1), (len(part), width)).astype(
            rng.choice([np.int8, np.int32])
        )
        outcome = Outcome.of_classes(records, labels, hidden, steps=1)
        outcomes.append(replace(outcome, classes=None, matches=matches) if listed else outcome)
    assembly = Assembly(table.domains, table.n, parts)
    cuts = [0, *sorted(data.draw(st.sets(st.integers(1, len(parts)), max_size=3)) - {len(parts)}), len(parts)]
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr("anonflow.algorithms.assembly.TOGETHER", together)
        for at in rng.permutation(len(cuts) - 1).tolist():
            assembly.add(cuts[at], outcomes[cuts[at] : cuts[at + 1]])
    whole = assembly.whole()

    assert whole.facts == {"steps": len(parts)}
    cells = whole.generalization.with_suppressed(whole.suppressed)
    placed = np.concatenate(parts).tolist()
    assert whole.suppressed.tolist() == [
        position not in placed
        or any(
            bool(outcome.suppressed[part.tolist().index(position)])
            for part, outcome in zip(parts, outcomes, strict=True)
            if position in part
        )
        for position in range(table.n)
    ]
    classes: dict[tuple[int, int], set[int]] = {}
    for number, (part, outcome) in enumerate(zip(parts, outcomes, strict=True)):
        for i, position in enumerate(part.tolist()):
            if not outcome.suppressed[i]:
                for ours, theirs in (
                    (cells.lo, outcome.generalization.lo),
                    (cells.hi, outcome.generalization.hi),
                ):
                    assert ours[:, position].tolist() == theirs[:, i].tolist()
                assert cells.bits[:, position].tolist() == outcome.generalization.bits[:, i].tolist()
            if outcome.matches is not None and whole.matches is not None:
                row = [-1 if j < 0 else int(part[j]) for j in outcome.matches[i].tolist()]
                assert whole.matches[position].tolist() == row + [-1] * (whole.matches.shape[1] - len(row))
            if outcome.classes is not None and whole.classes is not None and not outcome.suppressed[i]:
                classes.setdefault((number, int(outcome.classes[i])), set()).add(int(whole.classes[position]))
    assert (whole.matches is None, whole.classes is None) == (not listed, listed)
    if whole.classes is not None:
        # partitions one after the other, labels of a partition ascending, and suppressed records last
        assert [classes[key] for key in sorted(classes)] == [{number} for number in range(len(classes))]
        assert set(whole.classes[whole.suppressed].tolist()) == {len(classes)}


@given(sizes=st.lists(st.integers(1, 9_000), max_size=40), least=st.integers(1, 40))
def test_groups_of_partitions_are_neighbours(sizes: list[int], least: int) -> None:
    """Every partition is in one group; no group goes on beyond the most records that are checked together."""
    groups = groups_of_partitions([np.empty(size) for size in sizes], least)
    assert [at for group in groups for at in range(len(sizes))[group]] == list(range(len(sizes)))
    for group in groups:
        assert sum(sizes[group][1:]) <= CHECKED


def test_partitions_that_have_not_begun_when_a_run_is_interrupted_never_begin(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    gate, begun = threading.Event(), []

    def interrupted(*settings: Any, **more: Any) -> None:
        begun.append(1)
        if len(begun) > 1:
            gate.wait(300)
        raise KeyboardInterrupt

    module = sys.modules[anonymize.__module__]
    monkeypatch.setattr(module, "solve", interrupted)
    monkeypatch.setattr(module, "solve_together", lambda *settings: None)
    for workers in (1, 2):
        begun.clear()
        gate.clear()
        with pytest.raises(KeyboardInterrupt):
            anonymize(people(60), "greedy", k=2, partition_size=2, workers=workers)
        gate.set()
        assert len(begun) <= workers  # of 30


@pytest.mark.machine
@pytest.mark.parametrize("workers", [1, 2])
def test_ctrl_c_does_not_wait_for_a_kernel(monkeypatch: pytest.MonkeyPatch, workers: int) -> None:
    """A kernel of a whole table runs for minutes, and nothing can stop it."""
    returned = threading.Event()
    threads: list[threading.Thread] = []

    def kernel(*settings: Any, **more: Any) -> None:
        threads.append(threading.current_thread())
        signal.pthread_kill(threading.main_thread().ident, signal.SIGINT)
        returned.wait(300)

    monkeypatch.setattr(sys.modules[anonymize.__module__], "solve", kernel)
    # a shell that starts the tests in the background has the signal ignored
    before = signal.signal(signal.SIGINT, signal.default_int_handler)
    try:
        with pytest.raises(KeyboardInterrupt):
            anonymize(people(60), "greedy", k=2, workers=workers)
    finally:
        signal.signal(signal.SIGINT, before)
    assert not returned.is_set()
    assert len(threads) == 1
    assert threads[0].is_alive()
    assert threads[0].daemon
    returned.set()
    threads[0].join()


def test_random_choices_depend_on_the_seed_the_partition_and_its_records() -> None:
    """With the same seed, choices for other records do not tell what the choices for these were."""
    records = [people(n).records for n in (12, 12, 13)]
    for generator in (partition_rng, diversity_rng):
        draws = [
            generator(entropy, partition, each).integers(2**62)
            for entropy, partition, each in (
                (1, 0, records[0]),
                (1, 0, records[1]),
                (1, 0, records[2]),
                (1, 1, records[0]),
                (2, 0, records[0]),
            )
        ]
        assert draws[0] == draws[1]
        assert len(set(draws)) == 4
