"""``anonflow init``: a flow for a table, from a few answers."""

from __future__ import annotations

import json
import os
import re
import sys
from collections.abc import Mapping
from pathlib import Path
from typing import Annotated, Any

import typer

from anonflow.cli.commands import (
    TABLE_FILE,
    AsJson,
    Delimiter,
    Encoding,
    SourceKeys,
    found_form,
    shape_of,
    write_new,
)
from anonflow.cli.streams import say, say_json
from anonflow.errors import FlowError, ParameterError, printable

USUAL_K = 10

USUAL_FORM = {"delimiter": ",", "encoding": "utf-8"}
"""The usual form of a CSV file, which a flow need not name."""

SECONDS = 10.0
"""Of the method auto."""


def init(
    file: Annotated[Path, typer.Argument(help=TABLE_FILE, metavar="FILE")],
    output: Annotated[
        Path | None,
        typer.Option("--output", "-o", help="The flow; NAME.flow.yaml without it.", metavar="FILE"),
    ] = None,
    k: Annotated[
        int | None, typer.Option("--k", help="The k: among how many people each person is hidden.", min=2)
    ] = None,
    algorithm: Annotated[
        str, typer.Option(help="A method, or auto: the one that loses least in ten seconds.")
    ] = "auto",
    role: Annotated[
        list[str] | None,
        typer.Option(
            help="Of some columns, such as age,sex=quasi-identifier; may repeat.", metavar="COLUMNS=ROLE"
        ),
    ] = None,
    publish: Annotated[
        Path | None, typer.Option(help="Where the release goes; out/NAME.csv without it.", metavar="FILE")
    ] = None,
    yes: Annotated[
        bool, typer.Option("--yes", help="Ask no questions, and guess what no option gives.")
    ] = False,
    as_json: AsJson = False,
    delimiter: Delimiter = "auto",
    encoding: Encoding = "auto",
    source_keys: SourceKeys = None,
) -> int:
    """Make a flow for a table; ask what others can know of each column, and for k. Then: anonflow run."""
    from anonflow import strict_yaml
    from anonflow.algorithms.budget import AUTO
    from anonflow.algorithms.registry import algorithm_named
    from anonflow.engine.flows.loader import load_flow
    from anonflow.engine.flows.spec import flow_name, form_of
    from anonflow.engine.targets import check_targets
    from anonflow.table import Schema
    from anonflow.table.files.csv_reading import is_csv
    from anonflow.table.files.read import read_frame
    from anonflow.table.infer import advise, entries_of, kind_of, read_cells, rows_of
    from anonflow.table.schema import UNPUBLISHED

    output = output or Path(f"{file.stem}.flow.yaml")
    if output.exists():
        raise ParameterError(f"{output}: exists already; name another file")
    check_targets([output], {file: "the table"})
    for path in (file, output, publish):
        if path is not None and not _is_text(str(path)):
            raise ParameterError(
                f"{path}: a flow cannot name it, because its name is no text in this locale; rename it, or set LANG=C.UTF-8"
            )
    if algorithm != AUTO:
        algorithm_named(algorithm)
    if publish is not None and publish.suffix.lower() not in (".csv", ".parquet"):
        raise ParameterError(f"--publish: {publish}: ends neither in .csv nor in .parquet; name such a file")
    shape = shape_of(source_keys)
    form = found_form(file, delimiter, encoding, shape)
    frame = read_frame(file, delimiter=form[0], encoding=form[1], shape=shape)
    advice = advise(frame, shape)
    entries, reasons = entries_of(advice), {str(column): str(why) for column, *_, why in rows_of(advice)}
    named = {name: chosen for text in role or () for name, chosen in _named_roles(text, entries).items()}
    asks = not yes and sys.stdin is not None and sys.stdin.isatty()
    if asks:
        named = _asked_roles(
            {**{name: str(entry["role"]) for name, entry in entries.items()}, **named}, reasons
        )
    for name, chosen in named.items():
        if chosen != entries[name]["role"]:
            cells, keys = read_cells(frame[name], shape)
            kind = kind_of(cells) if chosen == "quasi-identifier" else {}
            entries[name] = {"role": chosen, **kind, **(keys if chosen not in UNPUBLISHED else {})}
    if k is None:
        k = _asked_k() if asks else USUAL_K
    anonymize: dict[str, Any] = {"algorithm": algorithm, "k": k}
    if algorithm == AUTO:
        anonymize |= {"guarantee": "k-regular", "budget": SECONDS}
    source = {form_of(file): _beside(file, output)}
    if is_csv(file):
        usual = {"delimiter": form[0], "encoding": form[1]}
        source |= {
            key: value for key, value in usual.items() if value != USUAL_FORM[key]
        } | shape.to_mapping()
    unit = next((name for name, entry in entries.items() if entry.get("role") == "unit"), None)
    rows = 1 if unit is None else int(frame[unit].value_counts().max())
    target = Path("out") / f"{file.stem}.csv" if publish is None else Path(_beside(publish, output))
    flow = {
        "flow": flow_name(file.stem),
        "version": 1,
        "table": {"source": source, "columns": Schema(entries).to_mapping()},
        "steps": [{"anonymize": anonymize}, {"draw": {}}, {"verify": ["covers", "guarantee"]}],
        "publish": {
            "table": target.as_posix(),
            "report": {"file": target.with_suffix(".html").as_posix(), "threshold": _threshold(k, rows)},
        },
    }
    text = (
        f"# A flow for {printable(file.name)}. Check every role: a quasi-identifier is what others can know of a person.\n"
        "# Identifiers are not published; sensitive columns are published as they are.\n"
        "# If a person's row can be named with the probability `threshold`, the run publishes nothing and says what to do.\n"
        + (f"# Its size: a person with {rows:,} rows may be named by any of them.\n" if rows > 1 else "")
        + "".join(f"# {printable(name)}: {why}\n" for name, why in reasons.items())
        + strict_yaml.dumps(flow, error=FlowError)
    )
    write_new(output, text)
    try:
        load_flow(output)
    except FlowError as error:
        output.unlink()
        # the flow is no longer there, so that its lines would say nothing
        texts = (re.sub(r":[0-9]+:[0-9]+: ", ": ", problem, count=1) for problem in error.problems)
        raise FlowError.collected(f"{output}: is not written", list(dict.fromkeys(texts))) from None
    guessed = [name for name, entry in entries.items() if entry["role"] in UNPUBLISHED and name not in named]
    if guessed and not asks:
        columns = ", ".join(printable(name) for name in guessed)
        say(f"left out of the release by guess: {columns}; to publish one, add --role COLUMNS=ROLE", err=True)
    if as_json:
        say_json(json.dumps({"flow": str(output)}, indent=2))
        return 0
    say(f"wrote {output}; check the roles in it, then: anonflow run {output}")
    return 0


def _is_text(name: str) -> bool:
    """Return whether a name can be written to a file: bytes that the locale does not know cannot."""
    try:
        name.encode()
    except UnicodeEncodeError:
        return False
    return True


def _named_roles(text: str, columns: Mapping[str, Any]) -> dict[str, str]:
    """Return the roles that an answer such as age,sex=sensitive gives, by column; the first letters of a role are enough."""
    from anonflow.strict_yaml import unknown
    from anonflow.table.schema import ROLES

    names, equals, value = text.rpartition("=")
    if not equals:
        raise ParameterError("--role takes COLUMNS=ROLE, such as age,sex=quasi-identifier")
    several = [names] if names in columns else [name.strip() for name in names.split(",")]
    for name in several:
        if name not in columns:
            raise ParameterError(f"--role: {unknown(name, tuple(columns), 'column')}")
    fitting = [role for role in ROLES if role.startswith(value.strip().lower())]
    if value not in ROLES and len(fitting) != 1:
        raise ParameterError(f"--role: {unknown(value, ROLES, 'role')}")
    return dict.fromkeys(several, value if value in ROLES else fitting[0])


def _asked_roles(guesses: Mapping[str, str], reasons: Mapping[str, str]) -> dict[str, str]:
    """Return the roles of all columns: the guesses, but for those that a person changes, many columns with one answer."""
    roles = dict(guesses)
    for name, role in roles.items():
        say(f"{printable(name)}: {role}{f'; {reasons[name]}' if reasons.get(name) else ''}", err=True)
    question = "Roles to change, such as age,sex=sensitive; Enter when all are right"
    while answer := str(typer.prompt(question, default="", show_default=False, err=True)).strip():
        try:
            changed = _named_roles(answer, roles)
        except ParameterError as error:
            say(f"  {error}", err=True)
        else:
            roles |= changed
            say(f"  {', '.join(map(printable, changed))}: {next(iter(changed.values()))}", err=True)
    return roles


def _threshold(k: int, rows: int) -> float:
    """Return the smallest whole percentage above the probability that the method allows for a person with so many rows."""
    return min(1.0, (int(100 * (1 - (1 - 1 / k) ** rows) + 1e-9) + 1) / 100)


def _asked_k() -> int:
    while True:
        k = int(
            typer.prompt(
                "Among how many people should each person be hidden (k)", default=USUAL_K, type=int, err=True
            )
        )
        if k >= 2:
            return k
        say("  at least 2", err=True)


def _beside(file: Path, output: Path) -> str:
    """Return a file's path relative to the flow's folder."""
    return Path(os.path.relpath(file.resolve(), output.resolve().parent)).as_posix()
