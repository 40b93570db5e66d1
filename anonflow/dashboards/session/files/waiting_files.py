"""Uploaded files that wait for what goes with them: a table for its flow, its hierarchies and its codebooks."""

from __future__ import annotations

import math
import os
import shutil
import time
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path
from typing import Literal

from anonflow.dashboards.session.files.paths import safe_name

Use = Literal["flow", "hierarchy", "perhaps a hierarchy"]

TOGETHER = 20.0
"""Seconds within which files are taken to have been dropped together."""


@dataclass
class _File:
    name: str
    use: Use
    since: float


class WaitingFiles:
    """Files that wait, each in a place that no flow can name.

    Parameters
    ----------
    home : pathlib.Path
        A private folder.
    clock : callable, optional
        Returns the seconds since some moment.
    """

    def __init__(self, home: Path, clock: Callable[[], float] = time.monotonic) -> None:
        self._home, self._clock = home, clock
        self._files: dict[Path, _File] = {}
        self._last = -math.inf

    def arrive(self) -> bool:
        """Take note that a file was dropped; return whether another was, shortly before."""
        last, self._last = self._last, self._clock()
        return self._last - last < TOGETHER

    def put(self, name: str, path: Path, use: Use, copied: bool = False) -> Path:
        """Put a file, or a copy of it, among them, in place of another one of this name; return its place."""
        place = self._home / f"shelved-{safe_name(name)}"
        if copied:
            shutil.copyfile(path, place)
            os.chmod(place, 0o600)
        else:
            path.replace(place)
        self._files[place] = _File(name, use, self._clock())
        return place

    def files(self, *uses: Use) -> dict[str, Path]:
        """Return the places of files by their names, of some uses or of all; those that were put there first come first."""
        return {file.name: place for place, file in self._files.items() if not uses or file.use in uses}

    def is_old(self, place: Path) -> bool:
        """Return whether a file was not dropped together with one that is dropped now."""
        return self._clock() - self._files[place].since > TOGETHER

    def use_as(self, place: Path, use: Use) -> None:
        """Give a file another use."""
        self._files[place].use = use

    def wait_anew(self) -> None:
        """Take all files as dropped now."""
        for file in self._files.values():
            file.since = self._clock()

    def forget(self, place: Path) -> None:
        """Delete a file."""
        self._files.pop(place, None)
        place.unlink(missing_ok=True)
