"""Pages and tables that are read off the package, so that they cannot fall behind it.

Directives: ``algorithm-table``, ``algorithm-options``, ``flow-keys``, ``column-keys``, ``criterion-table``,
``measure-list``, ``attacker-table``, ``dataset-table``, ``error-table``, ``cli-commands``, ``paper-summaries``. Each writes Markdown,
which is parsed in its place.
"""

from __future__ import annotations

import json
import re
from collections.abc import Callable
from pathlib import Path
from typing import Any

import typer
from docutils import nodes
from sphinx.util.docutils import SphinxDirective

from anonflow import datasets, errors, risk, utility
from anonflow.algorithms.registry import REGISTRY
from anonflow.cli.command_line import app as shell
from anonflow.criteria import CRITERIA
from anonflow.engine.flows.json_schema import flow_schema
from anonflow.table.schema import COLUMN_KEYS, KINDS, MISSING_RULES

Lines = list[str]

WORKBOOKS = Path(__file__).resolve().parents[2] / "notebooks" / "papers"
"""The papers' workbooks as they are stored."""


def _table(header: list[str], rows: list[list[str]]) -> Lines:
    cells = [[cell.replace("|", "\\|").replace("\n", " ") for cell in row] for row in rows]
    return ["| " + " | ".join(row) + " |" for row in [header, ["---"] * len(header), *cells]]


def _code(text: Any) -> str:
    return f"`{text}`"


def algorithm_table() -> Lines:
    """Return name, guarantee, time and when, in the registry's order."""
    rows = [[_code(m.name), m.guarantee, m.complexity, m.summary] for m in REGISTRY.values()]
    return _table(["name", "guarantee", "time", "when"], rows)


def algorithm_options() -> Lines:
    """Return a section for each method: paper, its options with what they may be, and what its function says."""
    lines: Lines = []
    for method in REGISTRY.values():
        lines += [f"### `{method.name}`", "", f"{method.summary}.", ""]
        lines += [f"*{method.family}*, guarantees **{method.guarantee}**. {method.paper}.", ""]
        rows = [
            [_code(one.name), one.label, one.value_words(), _code(one.default)]
            for one in method.options.values()
        ]
        lines += [*_table(["option", "in the form", "value", "default"], rows), ""] if rows else []
        where = f"{method.run.__module__}.{method.run.__name__}"
        lines += ["```{eval-rst}", f".. autofunction:: {where}", "```", ""]
    return lines


def _kind(entry: dict[str, Any], parts: dict[str, Any]) -> str:
    """Return what a value may be, in words."""
    if "$ref" in entry:
        return "a mapping, see below"
    if "const" in entry:
        return _code(entry["const"])
    if "enum" in entry:
        return "one of " + ", ".join(_code(one) for one in entry["enum"])
    if "anyOf" in entry:
        some = [one for one in entry["anyOf"] if one.get("type") != "null"]
        return " or ".join(_kind(one, parts) for one in some)
    kind = entry.get("type")
    if isinstance(kind, list):
        return " or ".join(_kind({"type": one}, parts) for one in kind)
    words = {
        "string": "text",
        "integer": "a whole number",
        "number": "a number",
        "boolean": "`true` or `false`",
        "array": "a list",
        "object": "a mapping",
    }
    text = words.get(str(kind), "a value")
    limits = [
        f"{sign} {entry[key]}"
        for key, sign in (
            ("minimum", "≥"),
            ("exclusiveMinimum", ">"),
            ("maximum", "≤"),
            ("exclusiveMaximum", "<"),
        )
        if key in entry
    ]
    return " ".join([text, ", ".join(limits)]).strip()


def _keys(entry: dict[str, Any], parts: dict[str, Any]) -> Lines:
    required = set(entry.get("required", ()))
    rows = []
    for key, one in entry["properties"].items():
        if "_" in key and key.replace("_", "-") in entry["properties"]:
            continue  # an option under its other spelling
        default = one.get("default")
        named = parts.get(str(one.get("$ref", "")).rpartition("/")[2], {})
        told = str(one.get("description", named.get("description", ""))) + (
            f" Default: `{default}`."
            if default not in (None, [], ()) and not isinstance(default, dict)
            else ""
        )
        rows.append([_code(key) + (" (needed)" if key in required else ""), _kind(one, parts), _plain(told)])
    return _table(["key", "value", "meaning"], rows)


def _plain(text: str) -> str:
    """Return a docstring's double backticks as Markdown's."""
    return re.sub(r"``([^`]+)``", r"`\1`", text).strip()


def flow_keys() -> Lines:
    """Return every key of a flow, from its JSON Schema."""
    made = flow_schema()
    parts = made["$defs"]
    lines = ["## The flow", "", *_keys(made, parts), ""]
    steps = made["properties"]["steps"]["items"]
    lines += ["## `steps`", "", "A list; each item has one key.", "", *_keys(steps, parts), ""]
    titles = {
        "TableSpec": "`table`",
        "SourceSpec": "`table: source`",
        "UnitsSpec": "`table: units`",
        "PartitionSpec": "`partition`",
        "AnonymizeSpec": "`anonymize`",
        "DiversifySpec": "`diversify`",
        "EarlierSpec": "`earlier`",
        "PublishSpec": "`publish`",
        "ReportSpec": "`publish: report`",
        "RunSpec": "`run`",
        "TargetSpec": "`target`",
        "TriedSpec": "`target: tried`",
    }
    unknown = set(parts) - set(titles) - {"DrawSpec"}
    if unknown:
        raise LookupError(f"parts of a flow that the documentation does not name: {sorted(unknown)}")
    for name, title in titles.items():
        lines += [
            f"## {title}",
            "",
            _plain(parts[name].get("description", "")),
            "",
            *_keys(parts[name], parts),
            "",
        ]
    return lines


def column_keys() -> Lines:
    """Return the keys of a column, and what each kind does about missing values."""
    entry = flow_schema()["$defs"]["TableSpec"]["properties"]["columns"]["additionalProperties"]
    rows = [
        [_code(key) + (" (needed)" if key in entry["required"] else ""), _kind(one, {}), COLUMN_KEYS[key]]
        for key, one in entry["properties"].items()
    ]
    rules = [[_code(kind), ", ".join(_code(one) for one in MISSING_RULES[kind])] for kind in KINDS]
    return [
        *_table(["key", "value", "meaning"], rows),
        "",
        *_table(["kind", "`missing` may be (the first is the default)"], rules),
    ]


def criterion_table() -> Lines:
    """Return the criteria and their parameters."""
    rows = [
        [
            _code(name),
            one.sentence,
            ", ".join(_code(option) for option in one.options) or "none besides k",
        ]
        for name, one in CRITERIA.items()
    ]
    return _table(["criterion", "what holds", "parameters"], rows)


def measure_list() -> Lines:
    """Return the names that `measure` takes, what each is, and which of two numbers is better."""
    same: dict[str, list[str]] = {}
    for name, one in utility.MEASURES.items():
        same.setdefault(one.sentence, []).append(name)
    rows = []
    for sentence, names in same.items():
        one = utility.MEASURES[names[0]]
        options = ", ".join(_code(option) for option in one.options)
        needs = f" Needs {one.extra}." if one.extra else ""
        parts = "".join(f" Also {_code(f'{names[0]}-{part}')}." for part in one.parts)
        rows.append(
            [
                ", ".join(map(_code, names)),
                sentence + parts + needs,
                one.better or "neither",
                one.cost,
                options,
            ]
        )
    return _table(["measure", "what", "better", "cost", "options"], rows)


def attacker_table() -> Lines:
    """Attackers: the name and the first line of what is said about it."""
    rows = [
        [_code(name), _code(kind.__name__), _plain((kind.__doc__ or "").strip().splitlines()[0])]
        for name, kind in risk.ATTACKERS.items()
    ]
    return _table(["name", "class", "who"], rows)


def dataset_table() -> Lines:
    """Tables to start with."""
    frame = datasets.describe()
    rows = [
        [_code(one["name"]), str(one["rows"]), str(one["columns"]), str(one["origin"])]
        for one in frame.to_dict("records")
    ]
    return _table(["name", "rows", "columns", "where it is from"], rows)


def error_table() -> Lines:
    """Error classes, what each says, and the status a shell command ends with."""
    named = [getattr(errors, name) for name in errors.__all__ if name != "AnonflowError"]
    kinds = [errors.AnonflowError, *(kind for kind in named if issubclass(kind, errors.AnonflowError))]
    rows = [
        [_code(kind.__name__), (kind.__doc__ or "").strip().splitlines()[0], str(kind.exit_status)]
        for kind in kinds
    ]
    return _table(["error", "raised for", "exit status"], rows)


def cli_commands() -> Lines:
    """Return every command with its arguments and options, from typer."""
    group = typer.main.get_command(shell)
    lines: Lines = []
    for name, command in group.commands.items():  # type: ignore[attr-defined]
        lines += [f"## `anonflow {name}`", "", str(command.help or "").strip(), ""]
        rows = []
        for one in command.params:
            if one.name == "help":
                continue
            option = one.param_type_name == "option"
            spelled = ", ".join(map(_code, one.opts if option else [one.metavar or one.name.upper()]))
            default = one.default
            shown = "" if default in (None, False, ()) or callable(default) else _code(default)
            if one.required:
                shown = "needed"
            rows.append([spelled, str(getattr(one, "help", "") or ""), shown])
        lines += [*(_table(["argument", "meaning", "default"], rows) if rows else ["No arguments."]), ""]
    return lines


def paper_summaries() -> Lines:
    """Return what each paper's workbook counts in its summary, a row for each paper and reading."""
    header, rows = [], []
    for path in sorted(WORKBOOKS.glob("*.ipynb")):
        cells = json.loads(path.read_text(encoding="utf-8"))["cells"]
        title = "".join(cells[0]["source"]).splitlines()[0].removeprefix("# ")
        (summary,) = (cell for cell in cells if "".join(cell["source"]) == "book.summary()")
        names, *counts = "".join(summary["outputs"][0]["data"]["text/plain"]).splitlines()
        header = ["paper", *names.split(" | ")]
        rows += [[title, *count.split(" | ")] for count in counts]
    return _table(header, rows)


DIRECTIVES: dict[str, Callable[[], Lines]] = {
    made.__name__.replace("_", "-"): made
    for made in (
        algorithm_table,
        algorithm_options,
        flow_keys,
        column_keys,
        criterion_table,
        measure_list,
        attacker_table,
        dataset_table,
        error_table,
        cli_commands,
        paper_summaries,
    )
}


class FromTheCode(SphinxDirective):
    """What the function of the directive's name writes, parsed where it stands."""

    has_content = False

    def run(self) -> list[nodes.Node]:
        """Return the parsed nodes."""
        text = "\n".join(DIRECTIVES[self.name]())
        return self.parse_text_to_nodes(text, allow_section_headings=True)


class Notebooks(SphinxDirective):
    """A table of contents of the notebooks that lie beside the page, in the order of their names, with the time that each takes."""

    has_content = False

    def run(self) -> list[nodes.Node]:
        """Return the parsed nodes."""
        folder = Path(str(self.env.doc2path(self.env.docname))).parent
        self.env.note_dependency(str(folder))  # a new notebook is a new line
        entries = [_entry(path) for path in sorted(folder.glob("*.ipynb"))]
        if not entries:
            return []
        return self.parse_text_to_nodes("\n".join(["```{toctree}", ":maxdepth: 1", *entries, "```"]))


def _entry(path: Path) -> str:
    """Return the heading of a notebook, with the minutes that stand below it, and its page."""
    opening = "".join(json.loads(path.read_text(encoding="utf-8"))["cells"][0]["source"])
    heading = opening.splitlines()[0].removeprefix("# ")
    minutes = re.search(r"^Time: about (\d+) minutes", opening, re.MULTILINE)
    return f"{heading} ({minutes[1]} min) <{path.stem}>" if minutes else path.stem


def without_empty_raises(app: Any, what: str, name: str, item: Any, options: Any, lines: Lines) -> None:
    """Leave out "Raises: None", which the house rules ask of the source and no reader needs."""
    text = "\n".join(lines)
    lines[:] = re.sub(r"\nRaises\n-{3,}\nNone\n*(?=\n|\Z)", "\n", text + "\n").splitlines()


def types_are_text(app: Any, what: str, name: str, item: Any, options: Any, lines: Lines) -> None:
    """Types such as "shape (n,), int64" are words for people: Sphinx would look for something named `n`."""
    for at, line in enumerate(lines):
        found = re.match(r"(\s*:(?:var)?type [^:]+: )(.+)$", line)
        if found and not set("*`") & set(found[2]):
            lines[at] = f"{found[1]}*{found[2]}*"


def setup(app: Any) -> dict[str, bool]:
    """Register the directives."""
    for name in DIRECTIVES:
        app.add_directive(name, FromTheCode)
    app.add_directive("notebooks", Notebooks)
    app.connect("autodoc-process-docstring", without_empty_raises, priority=100)
    app.connect("autodoc-process-docstring", types_are_text, priority=900)  # after napoleon
    return {"parallel_read_safe": True, "parallel_write_safe": True}
