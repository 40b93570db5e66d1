"""A file of 120 MB through the file input: it goes to disk as it arrives, is read, or is refused in a sentence."""

from __future__ import annotations

from collections.abc import Callable
from contextlib import suppress
from pathlib import Path
from typing import Any

import pytest

from tests.browser.conftest import Served, ready, upload

ROWS = 80_000
SIZE = 120_000_000
MIB = 1 << 20


@pytest.fixture(scope="module")
def large(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A CSV file of 120 MB."""
    path = tmp_path_factory.mktemp("large") / "large.csv"
    line = f"{{}},{{}},{'x' * (SIZE // ROWS - 8)}\n"
    with path.open("w") as file:
        file.write("age,town,note\n")
        for number in range(ROWS):
            file.write(line.format(20 + number % 60, 100 + number % 900))
    assert path.stat().st_size >= SIZE * 0.99
    return path


def held(served: Served, quantity: str) -> int:
    """Bytes of memory that the server's process holds now (VmRSS), or held at the most (VmHWM)."""
    status = Path(f"/proc/{served.process.pid}/status").read_text()
    return 1024 * int(status.partition(f"{quantity}:")[2].split()[0])


def has_arrived(served: Served, large: Path) -> bool:
    """Whether all of the file is on the server's disk: what is held from then on is for reading it."""
    for path in served.log.parent.glob("anonflow-sessions-*/**/*"):
        with suppress(FileNotFoundError):
            if path.stat().st_size == large.stat().st_size:
                return True
    return False


def test_it_is_taken_in_bounded_memory(
    new_page: Callable[..., Any], serve: Callable[..., Served], large: Path
) -> None:
    served = serve("--max-upload-mb", "130")
    page = new_page()
    page.goto(served.url)
    ready(page)
    before = held(served, "VmRSS")
    most, looks = before, 0
    upload(page, large)
    status = page.locator("[role=status]").first
    for _ in range(1200):
        now = held(served, "VmRSS")
        if has_arrived(served, large):
            break
        # looked at afterwards: what is held while the file is read does not count
        if "Reading" in status.inner_text() or page.get_by_text("80,000 records").count():
            break
        most, looks = max(most, now), looks + 1
        page.wait_for_timeout(100)
    assert looks, "the file was there before anybody looked"
    assert most < before + 80 * MIB, "what arrives goes to disk"
    page.get_by_text("80,000 records, 3 columns").first.wait_for(timeout=240_000)
    assert held(served, "VmHWM") < before + 6 * SIZE
    assert not page.errors, page.errors
    assert served.get("health")[0] == 200


def test_it_is_refused_before_it_is_sent(
    new_page: Callable[..., Any], serve: Callable[..., Served], large: Path
) -> None:
    served = serve("--max-upload-mb", "10")
    page = new_page()
    page.goto(served.url)
    ready(page)
    before = held(served, "VmRSS")
    upload(page, large)
    page.get_by_text("File is too large").first.wait_for()
    page.get_by_text("Maximum file size is").first.wait_for()
    page.wait_for_timeout(1000)
    assert held(served, "VmHWM") < before + 50 * MIB
    assert "Open a table to begin" in page.locator("[role=status]").first.inner_text()
