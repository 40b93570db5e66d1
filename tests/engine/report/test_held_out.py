"""Who is held out for the three questions: people with all their rows, and whole households."""

from __future__ import annotations

import warnings
from typing import Any

import numpy as np
import pandas as pd
import pytest

import anonflow as af
from anonflow.engine.report import held_out as room

SCHEMA = {
    "person": {"role": "unit"},
    "age": {"role": "quasi-identifier", "kind": "numeric"},
    "city": {"role": "quasi-identifier", "kind": "categorical"},
    "ill": {"role": "sensitive"},
}


@pytest.mark.parametrize(
    ("more", "column"), [({}, "person"), ({"home": {"role": "household"}}, "home")], ids=["units", "homes"]
)
def test_a_control_has_no_row_in_the_release(
    more: dict[str, Any], column: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    rng = np.random.default_rng(1)
    person = np.repeat(np.arange(40), 3)
    frame = pd.DataFrame(
        {
            "person": person,
            "home": person // 4,
            "age": rng.integers(20, 80, 120),
            "city": rng.choice(list("ab"), 120),
            "ill": rng.choice(list("xyz"), 120),
        }
    )
    sides: list[pd.Series] = []

    def look(table: af.Table, release: pd.DataFrame, controls: af.Table, rng: Any) -> tuple[()]:
        sides.extend(frame.loc[each.frame.index, column] for each in (table, controls))
        return ()

    monkeypatch.setattr(room, "three_questions", look)
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        anonymization = af.anonymize(af.Table(frame, SCHEMA | more), k=3, seed=2**100)
        room.held_out(anonymization, anonymization.release(seed=2**101), 2**100)
    inside, outside = sides
    assert len(inside) == len(outside) == 60
    assert not set(inside) & set(outside)
