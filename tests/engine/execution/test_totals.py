"""The loss of each published column, on the values that its published cells show."""

from __future__ import annotations

import numpy as np
import pandas as pd
import pytest

from anonflow.algorithms.method import Outcome
from anonflow.engine.execution.tasks import measure
from anonflow.engine.execution.totals import published_losses
from anonflow.table import Table
from tests.strategies import city_tree


@pytest.mark.parametrize(
    ("labels", "loss"),
    [
        # West is two of six values, the blank is shown as it is, and Kansas is two of six
        ([0, 0, 1, 1, 2, 2], (2 * 1 / 5 + 2 * 0 + 2 * 1 / 5) / 6),
        # nobody sees whether there is a blank: West is two of five, and all others are published as *
        ([0, 0, 1, 1, 1, 1], (2 * 1 / 4 + 4 * 1) / 6),
    ],
)
def test_a_blank_counts_among_the_values_of_a_hierarchy_where_it_is_shown(
    labels: list[int], loss: float
) -> None:
    frame = pd.DataFrame({"city": ["San Diego", "Los Angeles", None, None, "Wichita", "Topeka"]})
    schema = {"city": {"role": "quasi-identifier", "kind": "hierarchy", "hierarchy": city_tree()}}
    table = Table(frame, schema)
    outcome = Outcome.of_classes(table.records, np.array(labels))
    (column,) = published_losses(table.records.domains, measure(table.records, outcome), table.n)
    assert column.loss == pytest.approx(loss)


def test_shown_integers_that_floats_cannot_tell_apart_lose_nothing() -> None:
    """Two rows show 2^53 + 3 to 2^53 + 4, which is one float; the other two are * throughout."""
    numbers = pd.DataFrame({"number": [2**53, 2**53 + 8, 2**53 + 3, 2**53 + 4]})
    table = Table(numbers, {"number": {"role": "quasi-identifier", "kind": "numeric"}})
    outcome = Outcome.of_classes(table.records, np.array([0, 0, 1, 1]))
    (column,) = published_losses(table.records.domains, measure(table.records, outcome), table.n)
    assert column.loss == pytest.approx(2 * 1 / 4)
