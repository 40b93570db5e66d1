"""The one place where a session begins threads."""

from __future__ import annotations

import threading
from collections.abc import Callable


def begin(work: Callable[[], None], name: str) -> None:
    """Begin `work` in a thread of its own, which ends with the process."""
    threading.Thread(target=work, name=name, daemon=True).start()
