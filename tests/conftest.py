"""What every test shares: the folder of real data, and how many examples hypothesis tries."""

from __future__ import annotations

import os
from pathlib import Path

import pytest
from hypothesis import HealthCheck, settings

# The first example of a test may compile a kernel: neither a deadline nor "too slow" says anything then.
_ALWAYS = {"deadline": None, "suppress_health_check": [HealthCheck.too_slow]}
settings.register_profile("moderate", max_examples=40, **_ALWAYS)
settings.register_profile("ci", max_examples=100, derandomize=True, print_blob=True, **_ALWAYS)
settings.load_profile("ci" if os.environ.get("CI") else "moderate")


@pytest.fixture(scope="session")
def data_folder() -> Path:
    """The folder named by ANONFLOW_DATA; without the variable the test is skipped."""
    named = os.environ.get("ANONFLOW_DATA")
    if not named:
        pytest.skip("ANONFLOW_DATA does not name a folder with the data sets")
    folder = Path(named).resolve()
    if not folder.is_dir():
        pytest.fail(f"ANONFLOW_DATA names {named}, which is no folder")
    return folder
