"""A page as a PDF, printed by a browser of this machine that contacts no other machine."""

from __future__ import annotations

import shutil
import subprocess
import tempfile
from pathlib import Path

from anonflow.errors import DataError, FlowError
from anonflow.system import is_root

BROWSERS = (
    "chromium",
    "chromium-browser",
    "google-chrome",
    "google-chrome-stable",
    "chrome",
    "microsoft-edge",
    "msedge",
)
"""Programs that can print a page without a window, by their names on the path."""

_SECONDS = 300  # a browser that takes longer hangs, and is ended


def browser() -> str:
    """Return the program that prints.

    Raises
    ------
    FlowError
        If there is none.
    """
    for name in BROWSERS:
        program = shutil.which(name)
        if program is not None:
            return program
    raise FlowError(
        "publish: report: pdf: needs Chromium, Chrome or Edge on the path to print the page; install one, or leave pdf out "
        "and print the page from any browser"
    )


def printed(page: str) -> bytes:
    """Return a page as a PDF of A4 sheets.

    Parameters
    ----------
    page : str
        HTML that loads nothing.

    Returns
    -------
    bytes

    Raises
    ------
    FlowError
        If no browser is there.
    DataError
        If it does not print.

    Notes
    -----
    The page is in a folder of its own that only this user may read, and so are the browser's files. A page
    has no scripts; as root, Chromium runs without its sandbox or not at all.
    """
    program = browser()
    with tempfile.TemporaryDirectory(prefix="anonflow-pdf-") as place:
        source, target = Path(place) / "page.html", Path(place) / "page.pdf"
        source.write_text(page, encoding="utf-8", newline="\n")
        as_root = is_root()
        command = [
            program, "--headless", "--disable-gpu", "--no-first-run", "--disable-extensions", "--disable-dev-shm-usage",
            "--no-pdf-header-footer", f"--user-data-dir={place}/profile", f"--print-to-pdf={target}",
            *(["--no-sandbox"] if as_root else []), source.as_uri(),
        ]  # fmt: skip
        try:
            process = subprocess.run(command, capture_output=True, timeout=_SECONDS, check=False)
        except (OSError, subprocess.TimeoutExpired) as error:
            raise DataError(
                f"the report could not be printed as a PDF by {Path(program).name}: {type(error).__name__}; leave pdf out"
            ) from None
        if not target.is_file() or not target.stat().st_size:
            raise DataError(
                f"the report could not be printed as a PDF: {Path(program).name} ended with status {process.returncode}; "
                "leave pdf out, and print the page from a browser"
            )
        return target.read_bytes()
