"""Run the notebooks and store what they print, as the tests expect it: `python notebooks/execute.py [NAME ...]`.

Without names all numbered ones. Widgets' states, times and paths of this machine are not stored.
"""

from __future__ import annotations

import argparse
import os
import re
import sys
import time
from pathlib import Path

HERE = Path(__file__).resolve().parent
WIDGET = "application/vnd.jupyter.widget-view+json"
SOLUTION = "hide-cell"
"""The tag of a cell that the site folds away."""
FOLDED = {"outputs_hidden": True, "source_hidden": True}
"""The same for JupyterLab."""


def execute(path: Path) -> float:
    """Run one notebook in place; the seconds it took."""
    import nbformat
    from nbclient import NotebookClient

    notebook = nbformat.read(path, as_version=4)
    begin = time.perf_counter()
    client = NotebookClient(
        notebook,
        timeout=300,
        kernel_name="python3",
        store_widget_state=False,
        record_timing=False,
        resources={"metadata": {"path": str(HERE)}},
    )
    client.execute()
    seconds = time.perf_counter() - begin
    notebook.metadata = nbformat.from_dict(
        {
            "kernelspec": {"display_name": "Python 3", "language": "python", "name": "python3"},
            "language_info": {"name": "python"},
        }
    )
    for at, cell in enumerate(notebook.cells):
        cell.id = f"cell-{at:02d}"
        tags = cell.metadata.get("tags")
        cell.metadata = nbformat.from_dict({"tags": tags} if tags else {})
        if SOLUTION in (tags or ()):
            cell.metadata["jupyter"] = nbformat.from_dict(FOLDED)
        for output in cell.get("outputs", ()):
            output.pop("metadata", None) if output.output_type == "stream" else output.update(metadata={})
            output.get("data", {}).pop(WIDGET, None)
        if "nbval-ignore-output" in (tags or ()):
            cell.outputs = [output for output in cell.get("outputs", ()) if _is_portable(output)]
    text = nbformat.writes(notebook)
    for folder in {str(HERE.parent), str(Path.home()), sys.prefix}:
        if len(folder) > 1 and folder in text:
            raise SystemExit(f"{path.name}: a cell prints a path of this machine; change the cell")
    if re.search(r"ipykernel_\d+", text):
        raise SystemExit(f"{path.name}: a cell warns, with a path of this machine; change the cell")
    path.write_text(text + "\n", encoding="utf-8")
    return seconds


def _is_portable(output: dict) -> bool:
    """Whether an output that differs from run to run may be stored: text and pictures, no scripts."""
    data = output.get("data", {})
    known = {"text/plain", "text/html", "image/svg+xml", "image/png"}
    return {"text/plain"} <= set(data) <= known and not any("<script" in str(text) for text in data.values())


def main() -> None:
    if os.environ.get("PYTHONHASHSEED") != "0":  # the order of sets is part of some outputs
        os.execve(sys.executable, [sys.executable, *sys.argv], {**os.environ, "PYTHONHASHSEED": "0"})
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("names", nargs="*", help="beginnings of file names, such as 03")
    names = parser.parse_args().names
    for path in sorted(HERE.glob("[0-9][0-9]-*.ipynb")):
        if not names or any(path.name.startswith(name) for name in names):
            print(f"{path.name}: {execute(path):.1f} s", flush=True)


if __name__ == "__main__":
    main()
