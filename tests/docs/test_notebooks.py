"""The notebooks as they are stored: numbered, introduced, listed, run, and without a trace of the machine."""

from __future__ import annotations

import re
from functools import cache
from itertools import pairwise
from pathlib import Path
from typing import Any

import pytest

from tests import ROOT

NOTEBOOKS = sorted((ROOT / "notebooks").glob("*.ipynb"))
KILOBYTES = 200

TITLES = (
    "quickstart",
    "schemas-hierarchies-missing-values",
    "freeform-generalization",
    "comparing-methods",
    "k-concealment-and-diversity",
    "boundaries-and-patterns",
    "verifying-and-attacking",
    "flows-and-clusters",
    "explorer-and-dashboard",
    "compute-with-a-release",
    "risk-first",
    "households-and-weights",
    "the-signed-report",
    "a-register-every-year",
)
FOLDED = {"tags": ["hide-cell"], "jupyter": {"outputs_hidden": True, "source_hidden": True}}


@cache
def stored(path: Path) -> Any:
    nbformat = pytest.importorskip("nbformat")
    return nbformat.read(path, as_version=4)


def cells_of(path: Path, kind: str) -> list[Any]:
    return [cell for cell in stored(path).cells if cell.cell_type == kind]


def test_they_are_numbered_without_a_gap() -> None:
    assert [path.stem for path in NOTEBOOKS] == [f"{at:02d}-{title}" for at, title in enumerate(TITLES, 1)]


def test_each_opens_with_what_the_reader_will_be_able_to_do(subtests: pytest.Subtests) -> None:
    for path in NOTEBOOKS:
        with subtests.test(path.stem):
            first = stored(path).cells[0]
            assert first.cell_type == "markdown"
            lines = first.source.splitlines()
            assert re.match(rf"# {path.stem[:2]} \w", lines[0])
            assert re.fullmatch(r"Time: about \d+ minutes\.", lines[2])
            assert "After this notebook you can" in lines
            assert sum(line.startswith("- ") for line in lines) >= 3


def test_each_ends_with_an_exercise_whose_solution_is_folded_away(subtests: pytest.Subtests) -> None:
    """The site folds a cell by its tag, JupyterLab by its other metadata, but for its first line; no other cell is folded."""
    for path in NOTEBOOKS:
        with subtests.test(path.stem):
            cells = stored(path).cells
            assert cells[-2].source.startswith("## Exercise")
            for before, cell in pairwise(cells):
                if before.source.startswith("## Exercise"):
                    assert cell.cell_type == "code"
                    assert cell.outputs
                    assert "You are right if" in before.source.replace("\n", " ")
                    assert cell.metadata == FOLDED
                    assert cell.source.startswith("# A solution\n")
                else:
                    assert "hide-cell" not in cell.metadata.get("tags", ())


def test_no_cell_is_longer_than_a_screen(subtests: pytest.Subtests) -> None:
    for path in NOTEBOOKS:
        with subtests.test(path.stem):
            assert max(len(cell.source.splitlines()) for cell in stored(path).cells) <= 30


def test_each_is_stored_as_it_ran(subtests: pytest.Subtests) -> None:
    """Every cell was run, in order, without a failure; there is something to see."""
    for path in NOTEBOOKS:
        with subtests.test(path.stem):
            code = cells_of(path, "code")
            assert [cell.execution_count for cell in code] == list(range(1, len(code) + 1))
            outputs = [output for cell in code for output in cell.outputs]
            assert {output.output_type for output in outputs} <= {"stream", "display_data", "execute_result"}
            assert not [output for output in outputs if output.get("name") == "stderr"]
            assert sum(bool(cell.outputs) for cell in code) >= len(code) // 2


def test_nothing_of_the_machine_is_stored(subtests: pytest.Subtests) -> None:
    for path in NOTEBOOKS:
        with subtests.test(path.stem):
            text = path.read_text(encoding="utf-8")
            assert not re.search(r"/(?:tmp|home|root|Users|usr|var)/\w", text)
            assert not re.search(r"ipykernel_\d|\\\\Users\\\\|[A-Z]:\\\\\\\\", text)
            assert not re.search(r'"iopub\.|"shell\.execute', text)
            metadata = stored(path).metadata
            assert set(metadata) == {"kernelspec", "language_info"}
            assert metadata.kernelspec.name == "python3"


def test_they_are_small_and_ask_nobody(subtests: pytest.Subtests) -> None:
    for path in NOTEBOOKS:
        with subtests.test(path.stem):
            text = path.read_text(encoding="utf-8")
            assert len(text) < 1000 * KILOBYTES
            assert "<script" not in text
            assert "application/javascript" not in text
            shown = [cell.source for cell in cells_of(path, "code")]
            assert not [
                source
                for source in shown
                if re.search(r"adult\(|cmc\(|dataset: (adult|cmc)|https?://", source)
            ]


def test_their_links_lead_somewhere(subtests: pytest.Subtests) -> None:
    for path in NOTEBOOKS:
        with subtests.test(path.stem):
            for cell in cells_of(path, "markdown"):
                for link in re.findall(r"\]\(([^)#]+)\)", cell.source):
                    assert (path.parent / link).exists(), link


def test_readme_and_site_lead_to_them() -> None:
    """The site lists every notebook that there is, by its first heading."""
    assert "`notebooks/`" in (ROOT / "README.md").read_text(encoding="utf-8")
    assert "```{notebooks}" in (ROOT / "docs" / "tutorials" / "index.md").read_text(encoding="utf-8")


def test_ci_checks_what_they_print() -> None:
    """Results are compared, not only exceptions: nbval in its strict mode, with a fixed hash seed."""
    run = (ROOT / ".ci" / "run").read_text(encoding="utf-8")
    (line,) = [line for line in run.splitlines() if "--nbval" in line]
    assert "--nbval " in line
    assert "--nbval-lax" not in line
    assert "--nbval-sanitize-with notebooks/sanitize.cfg" in line
    assert "PYTHONHASHSEED=0" in run
    for path in NOTEBOOKS:
        ignored = [
            cell for cell in cells_of(path, "code") if "nbval-ignore-output" in cell.metadata.get("tags", ())
        ]
        assert len(ignored) <= 2, path.name
