"""An upload that goes to disk chunk by chunk, and stops at the cap."""

from __future__ import annotations

import tempfile
from collections.abc import Callable
from pathlib import Path
from typing import Any

import panel as pn

from anonflow.dashboards.work.user_limits import MEGABYTE

INTERRUPTED = "the upload was interrupted; try again"

SIDE_BY_SIDE = 4
"""The most files that are uploaded at once; a browser sends two."""


class DiskDropper(pn.widgets.FileDropper):
    """A place to drop files, each written to a folder as it arrives and passed on when it is complete.

    Chunks of a file come in order, numbered from 1; anything else ends its upload. With ``multiple`` some files may be under
    way side by side, together no larger than one may be; else one. The bytes are never in ``value``, which would hold them
    in memory for as long as the session lives.

    Parameters
    ----------
    workspace : Workspace
        Whose folder files go to when an upload begins, and whose limits hold.
    on_file : callable
        Called with the name that the user gave and the path of the file.
    on_refused : callable
        Called with a sentence when an upload is not taken.
    label : str
        What may be dropped.
    most : int, optional
        Bytes of a file at most, below the limits. The browser knows the cap, and the server counts as well, because a browser may lie.

    Raises
    ------
    ValueError
        If a param of the widget is not one.
    """

    def __init__(
        self,
        workspace: Any,
        on_file: Callable[[str, Path], None],
        on_refused: Callable[[str], None],
        label: str,
        most: int | None = None,
        **params: Any,
    ) -> None:
        self._most = workspace.limits.upload_bytes if most is None else most
        if self._most is not None:
            params.setdefault("max_file_size", f"{max(1, self._most // 1000)}KB")
        super().__init__(
            **{"label": label, "chunk_size": 2_000_000, "sizing_mode": "stretch_width", "css_classes": ["af-dropper"], **params}
        )  # fmt: skip
        self._workspace, self._on_file, self._on_refused = workspace, on_file, on_refused
        self._open: dict[str, tuple[Path, int, int]] = {}

    def _process_event(self, event: Any) -> None:
        data = event.data
        if event.event_name == "delete_event":
            named = data.get("name") if self.multiple and isinstance(data, dict) else None
            self._drop(None if named is None else str(named))
            return
        try:
            name, chunk, total = str(data["name"]), int(data["chunk"]), int(data["total_chunks"])
            block = data["data"]
        except (KeyError, TypeError, ValueError):
            self._refuse(INTERRUPTED)
            return
        block = block.encode() if isinstance(block, str) else bytes(block)
        if chunk == 1:
            self._drop(name if self.multiple else None)
            if len(self._open) >= SIDE_BY_SIDE:
                self._drop(next(iter(self._open)))
            handle, path = tempfile.mkstemp(prefix="upload-", dir=self._workspace.folder)
            with open(handle, "wb"):
                pass
            self._open[name] = Path(path), 0, 0
        if name not in self._open:
            if self._open and not self.multiple:
                self._refuse(INTERRUPTED)
            return  # the rest of a refused file
        place, last, size = self._open[name]
        if chunk != last + 1 or chunk > total:
            self._refuse(INTERRUPTED, name)
            return
        size += len(block)
        together = size + sum(held for other, (_, _, held) in self._open.items() if other != name)
        if self._most is not None and together > self._most:
            self._refuse(
                f"the file is larger than {self._most / MEGABYTE:,.1f} MB, the largest that this server takes; upload "
                f"fewer columns or records, or {self._workspace.limits.elsewhere}",
                name,
            )
            return
        with place.open("ab") as stream:
            stream.write(block)
        self._open[name] = place, chunk, size
        if chunk == total:
            del self._open[name]
            try:
                self._on_file(name, place)
            finally:
                place.unlink(missing_ok=True)

    def _refuse(self, sentence: str, name: str | None = None) -> None:
        self._drop(name)
        self._on_refused(sentence)

    def _drop(self, name: str | None = None) -> None:
        """Delete what has come of a file; of all without a name."""
        for other in [name] if name is not None else list(self._open):
            held = self._open.pop(other, None)
            if held is not None:
                held[0].unlink(missing_ok=True)
