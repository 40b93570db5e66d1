"""An upload as a browser sends it."""

from __future__ import annotations

from types import SimpleNamespace

from anonflow.dashboards.components.upload import DiskDropper


def send(
    dropper: DiskDropper, name: str, data: bytes, size: int = 50, chunks: list[int] | None = None
) -> None:
    """What a browser sends: events with chunks numbered from 1."""
    pieces = [data[at : at + size] for at in range(0, len(data), size)] or [b""]
    for at in chunks or range(1, len(pieces) + 1):
        event = SimpleNamespace(
            event_name="upload_event",
            data={
                "name": name,
                "chunk": at,
                "total_chunks": len(pieces),
                "type": "text/csv",
                "data": pieces[at - 1],
            },
        )
        dropper._process_event(event)
