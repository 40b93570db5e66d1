"""What the process that starts a run holds does not depend on where its tasks are done."""

from __future__ import annotations

import pytest

from tests.cases.scale import peaks


@pytest.mark.slow
def test_processes_take_no_more_of_the_client_than_threads() -> None:
    """Fault: 100,000 x 10 in memory on processes, which took two to four times what threads take."""
    held = peaks(100_000)
    assert held["processes"] < 1.25 * held["threads"], held
