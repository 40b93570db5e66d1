"""Figures of a server for its operator, in Prometheus' format: counts and sizes, never users or data."""

from __future__ import annotations

import mmap
import time
from dataclasses import dataclass, field, fields
from pathlib import Path
from typing import Any


def _figure(name: str, description: str, kind: str = "gauge") -> Any:
    return field(metadata={"name": name, "about": description, "kind": kind})


@dataclass(frozen=True)
class Figures:
    """The figures of ``/metrics``; None is not said."""

    healthy: bool = _figure("anonflow_healthy", "Whether runs can be computed.")
    sessions: int = _figure("anonflow_sessions", "Open sessions.")
    most_sessions: int | None = _figure("anonflow_sessions_limit", "Sessions at the same time, at the most.")
    waiting: int = _figure("anonflow_runs_waiting", "Runs in the queue.")
    running: int = _figure("anonflow_runs_running", "Runs that are worked on.")
    slots: int = _figure("anonflow_runs_slots", "Runs at the same time, at the most.")
    ended: int = _figure("anonflow_runs_ended_total", "Runs that are over, however they ended.", "counter")
    workers: int = _figure("anonflow_workers", "Worker processes.")
    worker_bytes: int = _figure("anonflow_workers_resident_memory_bytes", "Memory of the worker processes.")

    def text(self) -> str:
        """In the text format of Prometheus, version 0.0.4."""
        rows = [
            (part.metadata["name"], part.metadata["kind"], part.metadata["about"], getattr(self, part.name))
            for part in fields(self)
        ]
        rows += [
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
