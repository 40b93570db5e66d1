"""Figures as files of their own (SVG)."""

from __future__ import annotations

import re
from collections.abc import Sequence

from anonflow.engine.execution.result import RunResult
from anonflow.engine.report.report import detail_of, gcp_against_k, risk_and_gcp, runs_with_gcp

INK, PAGE = "#1d2329", "#ffffff"


def svg_file(picture: str) -> bytes:
    """Return a drawing of a page as a file of its own, with its name space and colours."""
    alone = re.sub(
        r"^<svg ", f'<svg xmlns="http://www.w3.org/2000/svg" color="{INK}" ', str(picture).strip(), count=1
    )
    return re.sub(
        r"(</title>)", rf'\1<rect width="100%" height="100%" fill="{PAGE}"/>', alone, count=1
    ).encode()


def figures_of_run(result: RunResult) -> dict[str, bytes]:
    """Return the figures of a run in a published report, by file name: column names and counts, never a value."""
    detail = detail_of(result, several=False)
    drawn = {"loss-by-column": detail["losses"], "cells": detail["cells"], "sizes": detail["sizes"]}
    return {f"{name}.svg": svg_file(picture) for name, picture in drawn.items() if picture}


def figures_of_runs(results: Sequence[RunResult]) -> dict[str, bytes]:
    """Return runs side by side: GCP against k, and the risk-utility frontier; the owner's, who compares."""
    runs = runs_with_gcp(results)
    drawn: dict[str, str] = {}
    if len({run.k for run in runs}) > 1:
        drawn["gcp-against-k"] = gcp_against_k(runs)
    picture, _ = risk_and_gcp(runs)
    if picture:
        drawn["risk-and-utility"] = picture
    return {f"{name}.svg": svg_file(picture) for name, picture in drawn.items()}
