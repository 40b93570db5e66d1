"""Figures of a server for its operator, in Prometheus' format: counts and sizes, never users or data."""

from __future__ import annotations

import mmap
import time
from dataclasses import dataclass
from pathlib import Path


@dataclass(frozen=True)
class Figures:
    """The figures of ``/metrics``."""

    healthy: bool
    """Whether runs can be computed."""
    sessions: int
    """Open ones."""
    most_sessions: int | None
    """The cap, if there is one."""
    waiting: int
    running: int
    ended: int
    """Runs in the queue, at work, and over since the server began."""
    slots: int
    """Runs that are worked on at the same time, at the most."""
    workers: int
    """Worker processes that are there."""
    worker_bytes: int
    """Memory of the worker processes together."""

    def text(self) -> str:
        """In the text format of Prometheus, version 0.0.4."""
        rows: list[tuple[str, str, str, float | None]] = [
            ("anonflow_healthy", "gauge", "Whether runs can be computed.", int(self.healthy)),
            ("anonflow_sessions", "gauge", "Open sessions.", self.sessions),
            (
                "anonflow_sessions_limit",
                "gauge",
                "Sessions at the same time, at the most.",
                self.most_sessions,
            ),
            ("anonflow_runs_waiting", "gauge", "Runs in the queue.", self.waiting),
            ("anonflow_runs_running", "gauge", "Runs that are worked on.", self.running),
            ("anonflow_runs_slots", "gauge", "Runs at the same time, at the most.", self.slots),
            ("anonflow_runs_ended_total", "counter", "Runs that are over, however they ended.", self.ended),
            ("anonflow_workers", "gauge", "Worker processes.", self.workers),
            (
                "anonflow_workers_resident_memory_bytes",
                "gauge",
                "Memory of the worker processes.",
                self.worker_bytes,
            ),
            ("process_resident_memory_bytes", "gauge", "Memory of the server process.", resident_memory()),
            ("process_start_time_seconds", "gauge", "When the server began, since 1970.", _STARTED),
        ]
        return "".join(
            f"# HELP {name} {help_text}\n# TYPE {name} {kind}\n{name} {value:.15g}\n"
            for name, kind, help_text, value in rows
            if value is not None
        )


_STARTED = round(time.time(), 3)


def resident_memory() -> int | None:
    """Return bytes of memory that this process holds; None where the system does not say."""
    try:
        pages = int(Path("/proc/self/statm").read_text(encoding="ascii").split()[1])
    except (OSError, ValueError, IndexError):
        return None
    return pages * mmap.PAGESIZE
