"""Rounds of a method inside a flow: told while they go on, and where a cancel is looked for."""

from __future__ import annotations

from pathlib import Path

import pytest

from anonflow import engine
from anonflow.engine.execution.events import Cancelled, Event, EventStream, RoundDone
from tests.cases.flow_files import write_flow
from tests.cases.runs import SEED, published
from tests.cases.workers import Workers

CHAINS = "{algorithm: k-member, k: 3, improve: chains, rounds: 4, kicks: 2}"


def test_rounds_are_told_and_change_nothing(tmp_path: Path) -> None:
    path = write_flow(tmp_path, anonymize=CHAINS, partition="{size: 30}")
    events: list[Event] = []
    assert engine.run(path, seed=SEED, on_event=events.append).ok
    rounds = [event for event in events if isinstance(event, RoundDone)]
    assert {event.partition for event in rounds} == {0, 1}
    assert all(event.done <= event.of == 8 for event in rounds)
    for partition in (0, 1):
        losses = [event.loss for event in rounds if event.partition == partition]
        assert losses == sorted(losses, reverse=True)
        assert 0 < losses[-1] < 1
    first = published(tmp_path)
    assert engine.run(path, seed=SEED, again=True).ok
    assert published(tmp_path) == first


def test_rounds_that_nobody_hears_in_another_process_change_nothing(tmp_path: Path, workers: Workers) -> None:
    path = write_flow(tmp_path, anonymize=CHAINS, partition="{size: 30}")
    assert engine.run(path, seed=SEED, on_event=lambda event: None).ok
    first = published(tmp_path)
    events: list[Event] = []
    settings = {"scheduler": "processes", "workers": 1, "on_event": events.append}
    assert engine.run(path, seed=SEED, again=True, **settings).ok
    assert not any(isinstance(event, RoundDone) for event in events)
    assert workers.sent
    assert published(tmp_path) == first


def test_a_cancel_stops_a_method_between_two_rounds(tmp_path: Path) -> None:
    path = write_flow(tmp_path, anonymize=CHAINS, partition="{}")
    stream = EventStream()
    seen: list[RoundDone] = []

    def listen(event: Event) -> None:
        if isinstance(event, RoundDone):
            seen.append(event)
            stream.cancel()

    with pytest.raises(Cancelled):
        engine.run(path, on_event=listen, events=stream, workers=1)
    assert [event.done for event in seen] == [1]
    assert not (tmp_path / "out").exists()
