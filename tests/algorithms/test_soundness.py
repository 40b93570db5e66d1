"""A method with a bug: whatever is wrong with its result, nobody gets it."""

from __future__ import annotations

import re
from collections.abc import Callable
from dataclasses import replace
from pathlib import Path
from typing import Annotated, Any

import numpy as np
import pytest

import anonflow as af
from anonflow import engine
from anonflow.algorithms.method import Outcome, Partition
from anonflow.algorithms.registry import REGISTRY
from anonflow.algorithms.soundness import NEAR
from anonflow.engine.execution import batches
from anonflow.errors import BUG, AnonflowError
from anonflow.generalization import Generalization
from anonflow.option import Option
from tests.cases.flow_files import people, write_flow

Method = Callable[[Partition, int], Outcome]


def ring(n: int, k: int) -> np.ndarray:
    """The k-regular graph in which a record matches itself and the k - 1 after it."""
    return ((np.arange(n)[:, None] + np.arange(k)) % n).astype(np.int32)


def blocks(n: int, k: int) -> np.ndarray:
    """Classes of k records, the last of more."""
    return np.minimum(np.arange(n) // k, n // k - 1)


def matched(part: Partition, k: int) -> Outcome:
    return Outcome.of_matches(part.records, ring(part.n, k))


def classed(part: Partition, k: int) -> Outcome:
    return Outcome.of_classes(part.records, blocks(part.n, k))


def covered(part: Partition, k: int) -> Outcome:
    return replace(matched(part, k), matches=None, facts={"guarantee": "(k,k)"})


def of(change: Callable[[np.ndarray, int], Any]) -> Method:
    """A method whose matches are wrong, and whose generalized records are those of its matches."""

    def run(part: Partition, k: int) -> Outcome:
        return Outcome.of_matches(part.records, change(ring(part.n, k), k))

    return run


def entry(row: int, column: int, value: int) -> Method:
    def change(matches: np.ndarray, k: int) -> np.ndarray:
        matches[row, column] = value
        return matches

    return of(change)


def alone(part: Partition, k: int) -> Outcome:
    """A suppressed record that others match all the same."""
    matches = ring(part.n, k)
    matches[3, 1:] = -1
    suppressed = np.arange(part.n) == 3
    boxes = Generalization.join_of(part.records, matches).with_suppressed(suppressed)
    return Outcome(boxes, matches=matches, suppressed=suppressed)


def small_class(part: Partition, k: int) -> Outcome:
    labels = blocks(part.n, k)
    labels[:1] = labels.max() + 1
    return Outcome.of_classes(part.records, labels)


def generalized(right: Method, change: Callable[[Partition, Generalization], Generalization]) -> Method:
    """A method with a wrong generalization, whose loss is wrong for that."""

    def run(part: Partition, k: int) -> Outcome:
        outcome = right(part, k)
        return replace(outcome, generalization=change(part, outcome.generalization))

    return run


def own(part: Partition, boxes: Generalization) -> Generalization:
    return Generalization.of(part.records)


def wider(part: Partition, boxes: Generalization) -> Generalization:
    return boxes.with_suppressed(np.ones(boxes.n, bool))


def turned(part: Partition, boxes: Generalization) -> Generalization:
    return boxes.take(np.roll(np.arange(boxes.n), boxes.n // 2))


def beyond(part: Partition, boxes: Generalization) -> Generalization:
    return replace(boxes, hi=boxes.hi + part.records.domains[0].size)


def costly(part: Partition, k: int) -> Outcome:
    outcome = matched(part, k)
    return replace(outcome, facts={"cost": 0.5, "lower_bound": 0.0})


def rounded(part: Partition, k: int) -> Outcome:
    """A loss that is wrong by the rounding of a sum over its 40 records."""
    outcome = matched(part, k)
    cost = float(af.loss.record_costs(outcome.generalization, part.loss).sum()) + 0.5 * NEAR * part.n
    return replace(outcome, facts={"cost": cost, "lower_bound": 0.0})


def short(part: Partition, k: int) -> Outcome:
    outcome = matched(part, k)
    return replace(outcome, suppressed=np.zeros(part.n + 1, bool))


BROKEN: dict[str, tuple[str, Method, str]] = {
    "a double edge": ("greedy", of(lambda m, k: m[:, [0, *range(1, k - 1), 1]]), "twice"),
    "its own record missing": ("greedy", of(lambda m, k: np.roll(m, -1, axis=0)), "its own"),
    "an irregular graph": ("greedy", entry(0, 1, 9), "3-regular"),
    "a match too few": ("greedy", of(lambda m, k: m[:, : k - 1]), "3-regular"),
    "a match too many": ("greedy", of(lambda m, k: ring(len(m), k + 1)), "3-regular"),
    "a row that is not full": ("greedy", entry(0, 2, -1), "3-regular"),
    "a match of a suppressed record": ("greedy", alone, "3-regular"),
    "matches in columns": ("greedy", lambda part, k: replace(matched(part, k), matches=ring(part.n, k).T), "table"),
    "matches that are no records": (
        "greedy",
        lambda part, k: replace(matched(part, k), matches=ring(part.n, k) + np.int32(1)),
        "does not exist",
    ),
    "narrow generalized records": ("greedy", generalized(matched, own), "of its matches"),
    "wide generalized records": ("greedy", generalized(matched, wider), "of its matches"),
    "others' generalized records": ("greedy", generalized(matched, turned), "not covered"),
    "a generalized record beyond its domain": ("greedy", generalized(matched, beyond), "domain"),
    "the loss of another result": ("optimal", costly, "loss"),
    "a record too many": ("greedy", short, "records"),
    "a small class": ("k-member", small_class, "fewer than 3"),
    "a class of several generalized records": ("k-member", generalized(classed, own), "several"),
    "wide classes": ("k-member", generalized(classed, wider), "of its matches or class"),
    "labels of no type": (
        "k-member", lambda part, k: replace(classed(part, k), classes=blocks(part.n, k) * 0.5), "labels",
    ),
    "few equal records": ("k-member", lambda part, k: replace(matched(part, k), matches=None), "fewer than 3"),
    "records that cover few": ("k-concealment", generalized(covered, own), "covers fewer"),
}  # fmt: skip


RIGHT = {"greedy": matched, "k-member": classed, "k-concealment": covered, "optimal": rounded}


def broken(monkeypatch: pytest.MonkeyPatch, name: str, method: Method) -> None:
    monkeypatch.setitem(REGISTRY, name, replace(REGISTRY[name], run=method, together=None))


def table(n: int = 40) -> af.Table:
    import pandas as pd

    header, *rows = (line.split(",") for line in people(n))
    frame = pd.DataFrame(rows, columns=header).astype({"age": int})
    columns = {
        "age": {"role": "quasi-identifier", "kind": "numeric"},
        "city": {"role": "quasi-identifier", "kind": "categorical"},
        "income": {"role": "sensitive"},
    }
    return af.Table(frame[[*columns]], columns)


@pytest.mark.parametrize(("name", "method"), RIGHT.items())
def test_what_is_right_passes(name: str, method: Method, monkeypatch: pytest.MonkeyPatch) -> None:
    broken(monkeypatch, name, method)
    anon = af.anonymize(table(), name, k=3)
    assert anon.n == 40


@pytest.mark.parametrize("fault", BROKEN)
def test_what_is_wrong_is_not_returned(fault: str, monkeypatch: pytest.MonkeyPatch) -> None:
    name, method, words = BROKEN[fault]
    broken(monkeypatch, name, method)
    for call in (
        lambda: af.anonymize(table(), name, k=3),
        lambda: af.anonymize(table(), name, k=3, partition_size=10, workers=2),
        lambda: af.compare(table(), [name], k=3),
    ):
        with pytest.raises(AnonflowError, match=words) as caught:
            call()
        assert type(caught.value) is AnonflowError
        assert caught.value.exit_status == 3
        assert re.match(f"(partition 0 of run '[^']+': )?{name} made a wrong result", str(caught.value))
        assert BUG in str(caught.value)


def wrong_once(monkeypatch: pytest.MonkeyPatch, fault: str, call: int) -> tuple[str, str]:
    """Put a method in place that is wrong in one of its calls; returns its name, and what is wrong."""
    name, method, words = BROKEN[fault]
    calls = iter(range(1_000))
    broken(monkeypatch, name, lambda part, k: (method if next(calls) == call else RIGHT[name])(part, k))
    return name, words


@pytest.mark.parametrize("fault", BROKEN)
def test_one_wrong_partition_of_several_that_are_checked_together(
    fault: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """In memory the result is refused; a run names the partition, and keeps the results of the others."""
    name, words = wrong_once(monkeypatch, fault, 7)
    with pytest.raises(AnonflowError, match=words) as caught:
        af.anonymize(table(400), name, k=3, partition_size=10, workers=1)
    assert str(caught.value).startswith(f"{name} made a wrong result")
    wrong_once(monkeypatch, fault, 2)
    monkeypatch.setattr(batches, "SHARE", 1)
    path = write_flow(tmp_path, anonymize=f"{{algorithm: {name}, k: 3}}", partition="{size: 10}")
    with pytest.raises(AnonflowError, match=words) as caught:
        engine.run(path, workers=1)
    assert str(caught.value).startswith(f"partition 2 of run '{name} k=3': {name} made a wrong result")


@pytest.mark.parametrize(
    "fault", ["a double edge", "its own record missing", "a small class", "wide generalized records"]
)
@pytest.mark.parametrize(
    "source", ["{csv: people.csv}", "{csv: people.csv, pieces: 20}"], ids=["in memory", "in pieces"]
)
def test_what_is_wrong_is_not_published(
    fault: str, source: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    name, method, words = BROKEN[fault]
    broken(monkeypatch, name, method)
    path = write_flow(tmp_path, anonymize=f"{{algorithm: {name}, k: 3}}", source=source)
    with pytest.raises(AnonflowError, match=words) as caught:
        engine.run(path)
    assert BUG in str(caught.value)
    assert f"of run '{name} k=3'" in str(caught.value)
    assert not (tmp_path / "out").exists()


def mutual(
    part: Partition, k: int, *, both_ways: Annotated[bool, Option("Both ways", symmetric=True)] = False
) -> Outcome:
    """Neighbours on either side: an odd number of records has no symmetric graph of an even degree."""
    near = np.concatenate([[0], *([d, -d] for d in range(1, k // 2 + 1))])
    return Outcome.of_matches(part.records, ((np.arange(part.n)[:, None] + near) % part.n).astype(np.int32))


def test_a_degree_more_is_right_for_matches_both_ways_whatever_the_option_is_called(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    method = replace(REGISTRY["greedy"], name="mutual", run=mutual, together=None, effort=None)
    monkeypatch.setitem(REGISTRY, "mutual", method)
    matches = af.anonymize(table(9), "mutual", k=4, both_ways=True).matches
    assert matches is not None
    assert matches.shape == (9, 5)
    with pytest.raises(AnonflowError, match="mutual made a wrong result"):
        af.anonymize(table(9), "mutual", k=4)
