"""The commands: each reads its arguments, calls the package, and shows the result."""

from __future__ import annotations

import json
import os
import secrets
from collections.abc import Callable, Sequence
from dataclasses import replace
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any, NamedTuple

import typer

from anonflow import strict_yaml
from anonflow.cli.interrupts import INTERRUPTS
from anonflow.cli.streams import number, say, say_json, table_text, warnings_told
from anonflow.errors import AnonflowError, FlowError, ParameterError, SchemaError, printable
from anonflow.hierarchy.wording import plural, verb_of
from anonflow.whole_file import failing_as, write_whole

if TYPE_CHECKING:
    from anonflow.engine.execution.result import RunReport
    from anonflow.engine.search.trials import SearchReport
    from anonflow.large_arrays import Arrays
    from anonflow.table.files.csv_head import CsvShape

TABLE_FILE = "A table in a file of CSV, Parquet, SPSS, Stata, SAS or Excel."

Delimiter = Annotated[str, typer.Option(help="The delimiter of a CSV file; auto detects it.", metavar="MARK")]
Encoding = Annotated[str, typer.Option(help="The encoding of a CSV file; auto detects it.")]
SourceKeys = Annotated[
    list[str] | None,
    typer.Option(
        "--source",
        help="A key of a CSV source, instead of what a flow says: header, names, skip and footer (of a workbook, too), comment, index, decimal or "
        "thousands, such as skip=2; may repeat.",
        metavar="KEY=VALUE",
    ),
]
DelimiterOrFlows = Annotated[
    str | None,
    typer.Option(
        help="The delimiter of a CSV file; without it, the flow's, or it is detected.", metavar="MARK"
    ),
]
EncodingOrFlows = Annotated[
    str | None, typer.Option(help="The encoding of a CSV file; without it, the flow's, or it is detected.")
]
AsJson = Annotated[bool, typer.Option("--json", help="Answer in JSON.")]
FlowFile = Annotated[Path, typer.Argument(help="The flow file.", metavar="FLOW")]
SeedFile = Annotated[
    Path | None, typer.Option(help="A file with a secret seed: at least 32 hexadecimal digits.")
]
Settings = Annotated[
    list[str] | None,
    typer.Option(
        "--set",
        help="Set a key of the flow, such as steps.anonymize.k=20, or KEY='${env:NAME}'; may repeat.",
        metavar="KEY=VALUE",
    ),
]


def run(
    flow: FlowFile,
    scheduler: Annotated[
        str | None,
        typer.Option(
            help="threads, processes, or tcp://HOST:PORT of a Dask cluster; without it, the scheduler of the flow."
        ),
    ] = None,
    workers: Annotated[int | None, typer.Option(help="Number of threads or processes.")] = None,
    seed_file: SeedFile = None,
    replay: Annotated[
        Path | None, typer.Option(help="The owner's folder of an earlier run, to repeat it.")
    ] = None,
    fresh: Annotated[
        bool, typer.Option("--fresh", help="Start again, and ignore the results of an unfinished run.")
    ] = False,
    again: Annotated[
        bool,
        typer.Option(
            "--again", help="Release an unchanged flow once more, with another draw of the same people."
        ),
    ] = False,
    keep: Annotated[
        str,
        typer.Option(help="How long the owner's folder keeps results, such as 12h or 7d; 0 keeps nothing."),
    ] = "7d",
    settings: Settings = None,
    quiet: Annotated[bool, typer.Option("--quiet", "-q", help="No progress.")] = False,
    log_level: Annotated[
        str, typer.Option(help="The least serious messages to show: debug, info, warning or error.")
    ] = "info",
    as_json: Annotated[
        bool, typer.Option("--json", help="Answer in JSON; progress as lines of JSON, on the standard error.")
    ] = False,
) -> int:
    """Run a flow: anonymize, draw, verify, measure, publish. Picks up where an earlier run stopped; of a released flow that has not changed, does nothing."""
    from anonflow import engine
    from anonflow.cli.show import LEVELS, JsonLines, ProgressDisplay
    from anonflow.engine.duration import seconds_of
    from anonflow.engine.execution.events import EventStream, Log
    from anonflow.engine.flows.loader import load_flow

    if log_level not in LEVELS:
        raise ParameterError(f"--log-level is one of {', '.join(LEVELS)}")
    if seed_file is not None and replay is not None:
        raise ParameterError("--replay takes its seed from the owner's folder; leave --seed-file out")
    seed = None if seed_file is None else engine.read_seed_file(seed_file)
    events = EventStream()
    with (
        JsonLines(log_level) if as_json else ProgressDisplay(quiet, log_level) as progress,
        warnings_told(lambda text: progress(Log(level="warning", message=text))),
    ):
        INTERRUPTS.follow(events)
        report = engine.run(
            load_flow(flow, settings) if settings else flow,
            seed=seed,
            scheduler=scheduler,
            workers=workers,
            replay=replay,
            fresh=fresh,
            again=again,
            keep=seconds_of(keep),
            on_event=progress,
            events=events,
        )
    if as_json:
        _say_report(report, flow=report.flow)
    else:
        _show_report(report)
    return 0 if report.ok else 1


def _say_report(report: RunReport, flow: str | None = None) -> None:
    """Return a report as JSON; for a flow, with its published files."""
    answer: dict[str, Any] = {"ok": report.ok, "runs": json.loads(report.runs.to_json(orient="records"))}
    if flow is not None:
        attacks = [] if report.attacks is None else json.loads(report.attacks.to_json(orient="records"))
        answer |= {
            "flow": flow,
            "unchanged": bool(report.unchanged),
            "published": [_near(path) for path in report.published],
            "owner": None if report.owner is None else _near(report.owner),
            "attacks": attacks,
            "warnings": [
                *report.warnings,
                *report.remarks,
                *([report.unchanged] if report.unchanged else []),
            ],
        }
    answer |= {"problems": list(report.problems), "seconds": report.seconds}
    say_json(json.dumps(answer, indent=2))


def _show_report(report: RunReport, several: bool | None = None) -> None:
    from anonflow.loss.costs import at_most_above, rounded_down

    if report.unchanged:
        say(report.unchanged)
        for path in report.published:
            say(f"published already: {_near(path)}")
        return
    header = ["method", "k", "records", "GCP", "usefulness", "suppressed", "checks passed", "seconds"]
    rows = []
    bounded = any("lower-bound" in result.measures for result in report.results)
    if bounded:
        header[4:4] = ["no release below", "above the least"]
    for result in report.results:
        row = result.row()
        swept = [
            "on the whole table" if (key, value) == ("partition.size", None) else str(value)
            for key, value in result.values.items()
            if key not in _NAMED
        ]
        rows.append(
            [
                " ".join([result.algorithm, *swept]),
                str(result.k),
                str(result.records),
                number(row["gcp"]),
                number(row["usefulness"]),
                str(result.suppressed),
                result.checks,
                f"{result.seconds:.2f}",
            ]
        )
        if bounded:
            rows[-1][4:4] = [
                number(rounded_down(result.measures.get("lower-bound"))),
                at_most_above(result.measures.get("lower-bound-excess")) or "-",
            ]
    say(table_text(header, rows, right=range(1, len(header))))
    say("seconds: those of a method on each partition, added up")
    if several is None:
        for path in report.published:
            say(f"published {_near(path)}")
        if report.attacks is not None:
            for sentence in report.attacks["sentence"]:
                say(f"- {sentence}")
        if report.card is not None:
            say(f"release card: {report.card.headline()}")
            for line in report.card.failing:
                say(f"- {line.sentence()}")
        if report.owner is not None:
            say(f"for the owner alone: {_near(report.owner)}")
        say(f"{report.seconds:.1f} s in all")
    for text in (*report.problems, *report.remarks):
        say(f"anonflow: {text}", err=True)
    if not report.ok and several is None:
        say("anonflow: nothing was published", err=True)


_NAMED = ("anonymize.algorithm", "anonymize.k")


def _near(path: Path | str) -> str:
    """Return a path as seen from here; an address as it is."""

    if isinstance(path, str):
        return path

    try:
        near = os.path.relpath(path)
    except (OSError, ValueError):
        return str(path)
    return near if len(near) < len(str(path)) else str(path)


def plan(
    flow: FlowFile,
    seconds: Annotated[
        float, typer.Option(help="How many seconds each method may run on samples of the table.")
    ] = 2.0,
    workers: Annotated[int | None, typer.Option(help="Number of threads.")] = None,
    settings: Settings = None,
    as_json: AsJson = False,
) -> int:
    """Show what a flow will do, with the time and memory that its runs are expected to take, from short stretches of its table."""
    from anonflow.engine.expected import read_and_expect
    from anonflow.engine.flows.loader import load_flow

    if not 0 < seconds < float("inf"):
        raise ParameterError("--seconds is a number above 0, such as 2")
    loaded = load_flow(flow, settings or ())
    steps = loaded.outline()
    answers = read_and_expect(loaded, workers=workers, seconds=seconds)
    if as_json:
        runs = [
            {
                "run": estimate.name,
                "seconds": estimate.seconds,
                "memory": estimate.memory,
                "records": estimate.largest,
                "problem": estimate.problem,
            }
            for estimate in answers
        ]
        named = [{"step": step, "what": sentence} for step, sentence in steps]
        say_json(json.dumps({"flow": loaded.name, "steps": named, "runs": runs}, indent=2))
        return 0
    say(table_text(["step", "what it does"], [list(step) for step in steps]))
    rows = [
        [
            estimate.name,
            number(estimate.seconds),
            "" if estimate.memory is None else f"{estimate.memory / (1 << 20):,.0f}",
            estimate.problem or f"from up to {estimate.largest:,} records",
        ]
        for estimate in answers
    ]
    say(table_text(["run", "seconds expected", "MiB expected", ""], rows, right=(1, 2)))
    return 0


def validate(
    flows: Annotated[list[Path], typer.Argument(help="Flow files.", metavar="FLOW...")],
    as_json: AsJson = False,
) -> int:
    """Check flow files, and show every problem with its line and column."""
    from anonflow.engine.flows.loader import load_flow

    status, answers = 0, []
    for path in flows:
        answer: dict[str, Any] = {"file": str(path), "ok": False, "flow": None, "runs": 0, "problems": []}
        answers.append(answer)
        try:
            flow = load_flow(path)
        except AnonflowError as error:
            answer["problems"] = list(error.problems)
            for problem in () if as_json else error.problems:
                say(problem, err=True)
            status = max(status, error.exit_status)
        else:
            answer |= {"ok": True, "flow": flow.name, "runs": len(flow.runs)}
            if as_json:
                continue
            identifiers = plural(len(flow.schema.quasi_identifiers), "quasi-identifier")
            say(f"{path}: {flow.name}, {plural(len(flow.runs), 'run')}, {identifiers}")
    if as_json:
        say_json(json.dumps(answers, indent=2))
    return status


def schema(
    file: Annotated[Path | None, typer.Argument(help=TABLE_FILE, metavar="FILE")] = None,
    flow: Annotated[
        bool, typer.Option("--flow", help="Instead, the JSON Schema of flow files, for an editor.")
    ] = False,
    answers: Annotated[
        bool, typer.Option("--answers", help="Instead, the JSON Schema of what --json answers.")
    ] = False,
    as_json: AsJson = False,
    output: Annotated[
        Path | None, typer.Option("--output", "-o", help="Write it to this file, which must not exist.")
    ] = None,
    delimiter: Delimiter = "auto",
    encoding: Encoding = "auto",
    source: SourceKeys = None,
) -> int:
    """Guess the schema of a table, as a file to edit; or show the JSON Schema of flows, or of what --json answers."""
    if flow + answers + (file is not None) != 1:
        raise ParameterError("schema takes a table's FILE, or --flow, or --answers")
    if output is not None:
        from anonflow.engine.targets import check_targets

        if output.exists():
            raise ParameterError(f"{output}: exists already; name another file")
        check_targets([output], {})
    if file is not None:
        text = _guessed_schema(file, delimiter, encoding, shape_of(source), as_json)
    else:
        text = _flow_schema() if flow else _answers_schema()
    if output is None and (as_json or file is None):
        say_json(text.removesuffix("\n"))
    elif output is None:
        say(text, nl=False)
    else:
        write_new(output, text)
    return 0


def write_new(output: Path, text: str) -> None:
    """Write a text to a file that must not exist, completely or not at all.

    Parameters
    ----------
    output : pathlib.Path
    text : str

    Raises
    ------
    ParameterError, DataError
        If the file exists, or may not be written.
    AnonflowError
        If the disk is full.
    """
    with failing_as(output, output):
        try:
            stream = output.open("x", encoding="utf-8", newline="\n")
        except FileExistsError:
            raise ParameterError(f"{output}: exists already; name another file") from None
        try:
            with stream:
                stream.write(text)
        except BaseException:  # Ctrl-C, too
            output.unlink(missing_ok=True)
            raise


def _flow_schema() -> str:
    from anonflow.engine.flows.json_schema import flow_schema

    return json.dumps(flow_schema(), indent=2) + "\n"


def _answers_schema() -> str:
    from anonflow.cli.answers import answers_schema

    return json.dumps(answers_schema(), indent=2) + "\n"


def _guessed_schema(file: Path, delimiter: str, encoding: str, shape: CsvShape, as_json: bool) -> str:
    from anonflow.table import Schema
    from anonflow.table.files.read import read_frame
    from anonflow.table.infer import advise, entries_of, rows_of

    delimiter, encoding = found_form(file, delimiter, encoding, shape)
    frame = read_frame(file, delimiter=delimiter, encoding=encoding, shape=shape)
    advice = advise(frame, shape)
    columns = entries_of(advice)
    head = "# A first guess: check every role and kind. Identifiers are not published.\n"
    if any(entry["role"] == "quasi-identifier" for entry in columns.values()):
        columns = Schema(columns).to_mapping()
    else:  # no schema yet, and the reasons say what to look at
        head += "# No column looks like a quasi-identifier: give this role to those that others may know.\n"
    if as_json:
        why = {str(column): str(reason) for column, *_, reason in rows_of(advice)}
        return json.dumps({"columns": columns, "reasons": why}, indent=2) + "\n"
    reasons = [f"# {printable(column)}: {why}\n" for column, *_, why in rows_of(advice)]
    return head + "".join(reasons) + strict_yaml.dumps({"columns": columns}, error=SchemaError)


def shape_of(keys: Sequence[str] | None) -> CsvShape:
    """Return the shape of a CSV file from the texts of ``--source``.

    Parameters
    ----------
    keys : sequence of str or None
        Such as ``header=false``, ``skip=2``, ``names=age,sex``.

    Raises
    ------
    ParameterError
        If one is no such text.
    """
    from anonflow.table.files.csv_head import CsvShape
    from anonflow.table.forms.number_forms import DECIMALS, THOUSANDS

    signs: dict[str, tuple[str, ...]] = {"decimal": DECIMALS, "thousands": THOUSANDS}
    read: dict[str, Any] = {}
    for text in keys or ():
        key, _, value = text.partition("=")
        if key == "header" and value in ("true", "false"):
            read[key] = value == "true"
        elif key in ("skip", "footer") and value.isdecimal():
            read[key] = int(value)
        elif key == "names" and value:
            read[key] = value.split(",")
        elif (key in ("comment", "index") and value) or value in signs.get(key, ()):
            read[key] = value
        else:
            raise ParameterError(
                "--source takes header=false, names=NAME,NAME, skip=LINES, footer=ROWS, comment=MARK, index=drop or index=NAME, "
                "decimal=SIGN, thousands=SIGN"
            )
    return CsvShape.of(read)


class FileForm(NamedTuple):
    """What the caller says of a CSV file; None where the flow says it, or where it is detected."""

    delimiter: str | None
    encoding: str | None
    keys: Sequence[str] | None = None


def found_form(file: Path, delimiter: str, encoding: str, shape: CsvShape | None = None) -> tuple[str, str]:
    """Return the delimiter and the encoding of a CSV file; report an unusual form.

    Parameters
    ----------
    file : pathlib.Path
        One that is no CSV file has what is given.
    delimiter, encoding : str
        ``auto`` is detected.
    shape : CsvShape, optional

    Returns
    -------
    delimiter, encoding : str
    """
    from anonflow.table.files.csv_form import AUTO
    from anonflow.table.files.csv_head import PLAIN
    from anonflow.table.files.csv_reading import csv_form, is_csv

    if not is_csv(file) or AUTO not in (delimiter, encoding):
        return delimiter, encoding
    form = csv_form(file, delimiter=delimiter, encoding=encoding, shape=shape or PLAIN)
    if form.unusual and form.columns:  # without any, the reader says what is wrong
        say(form.sentence(file), err=True)
    return form.delimiter, form.encoding


def prepare(
    file: Annotated[Path, typer.Argument(help=TABLE_FILE, metavar="FILE")],
    schema: Annotated[Path, typer.Option(help="The schema, or the flow it is in.", metavar="FILE")],
    as_json: AsJson = False,
    delimiter: DelimiterOrFlows = None,
    encoding: EncodingOrFlows = None,
    source: SourceKeys = None,
) -> int:
    """Show what each step under `prepare` changes in a table: cells, rows, distinct values; never a value."""
    from anonflow.table.files.read import read_frame

    steps = _schema(schema).preparation
    if not steps:
        raise ParameterError(f"{schema}: has no steps under 'prepare:'; add some, or do not run prepare")
    changes = steps.changes(read_frame(file, **_form(schema, file, FileForm(delimiter, encoding, source))))
    rows = changes.to_dict("records")
    if as_json:
        say_json(json.dumps(rows, indent=2))
        return 0
    header = ["step", "cells changed", "rows removed", "distinct before", "after"]
    keys = ("changed", "removed", "distinct", "left")
    lines = [[str(row["step"]), *(f"{row[key]:,}" for key in keys)] for row in rows]
    say(table_text(header, lines, right=range(1, len(header))))
    return 0


Original = Annotated[
    Path | None,
    typer.Option(help="The original table; without it, only the published rows are checked.", metavar="FILE"),
]
ReleaseFile = Annotated[Path, typer.Option(help="The published table.", metavar="FILE")]
SchemaFile = Annotated[Path, typer.Option(help="The schema, or the flow it is in.", metavar="FILE")]
AnotherTool = Annotated[
    bool,
    typer.Option("--another-tool", help="Another tool made the release: other notations, deleted records."),
]
Register = Annotated[
    Path | None, typer.Option(help="People of the population, with the quasi-identifiers.", metavar="FILE")
]
K = Annotated[int | None, typer.Option("--k", help="At least 2.")]
Keys = Annotated[
    list[str] | None,
    typer.Option(
        help="Columns that others may know, such as age,sex; may be given several times, each a set by itself.",
        metavar="COLUMNS",
    ),
]


def verify(
    release: ReleaseFile,
    schema: SchemaFile,
    original: Original = None,
    k: K = None,
    criterion: Annotated[
        list[str] | None, typer.Option(help="A criterion to check; may be given several times.")
    ] = None,
    keys: Keys = None,
    certificate: Annotated[
        Path | None, typer.Option(help="The owner's certificate: checks faster.", metavar="FILE")
    ] = None,
    algorithm: Annotated[
        str | None,
        typer.Option(
            help="Run this method again, and look whether rows were drawn: with its usual options and --partition-size."
        ),
    ] = None,
    partition_size: Annotated[
        int, typer.Option(help="Of --algorithm: records in a partition; 0 is the whole table.", min=0)
    ] = 0,
    another_tool: AnotherTool = False,
    as_json: AsJson = False,
    delimiter: DelimiterOrFlows = None,
    encoding: EncodingOrFlows = None,
    source: SourceKeys = None,
) -> int:
    """Check a release, against its original or alone, for criteria such as k-anonymity and k-regularity."""

    from anonflow import criteria as verifier
    from anonflow.engine.storage.storage import arrays_for
    from anonflow.release import Certificate

    if certificate is not None and original is None:
        raise ParameterError("--certificate is checked against the original: give --original, too")
    if algorithm is not None and (original is None or another_tool):
        raise ParameterError("--algorithm runs the method on the original: give --original, too")
    form = FileForm(delimiter, encoding, source)
    with arrays_for(original) as arrays:
        proof = None if certificate is None else Certificate.load(certificate, arrays)
        table = _table_or_schema(original, schema, form, arrays, lambda: _seed_beside(certificate))
        rows_of = _rows_of(release, another_tool or original is None, form, table)
        answer = verifier.verify(table, rows_of, criterion or None, k, proof, another_tool=another_tool)
        if keys:
            promised = [finding.parameters for finding in answer if finding.criterion == "key-sets"]
            # the reading of * is that of the release's promise, where it is one of sets
            reading = {key: value for key, value in (*promised, {})[0].items() if key in ("hidden", "rows")}
            sets = {"key-sets": {"sets": _key_sets(keys), **reading}}
            of_sets = verifier.verify(table, rows_of, sets, answer.k, proof, another_tool=another_tool)
            sentences = {finding.sentence() for finding in answer}
            others = (other for other in of_sets.findings if other.sentence() not in sentences)
            answer = replace(answer, findings=(*answer.findings, *others))
        if algorithm is not None:
            remarks = _replayed(table, release, algorithm, answer.k, partition_size)
            answer = replace(answer, remarks=answer.remarks + remarks)
    if as_json:
        say_json(json.dumps(answer.to_mapping(), indent=2))
    else:
        rows = [
            [other.criterion, other.verdict, "-" if other.holds is None else str(other.failed), other.detail]
            for other in answer
        ]
        say(table_text(["criterion", "verdict", "records failing", "how"], rows, right=[2]))
    for other in answer:
        if not other.holds:
            say(f"anonflow: {other.sentence()}", err=True)
    for remark in answer.remarks:
        say(f"anonflow: {remark}", err=True)
    return 0 if answer else 1


def _rows_of(release: Path, any_form: bool, form: FileForm, table: Any) -> Any:
    """Return the path of a release, so that the description beside it is read, too; its rows if its form is not anonflow's."""
    from anonflow.table.files.csv_reading import is_csv

    if any_form and is_csv(release):
        detected = found_form(release, form.delimiter or "auto", form.encoding or "auto")
        if detected != (",", "utf-8"):
            return _published(release, FileForm(*detected), table)
    return release


def _replayed(
    table: Any, release: Path, algorithm: str, k: int | None, partition_size: int
) -> tuple[str, ...]:
    """Return the test of a release's rows by running the method again."""
    from anonflow.algorithms import anonymize
    from anonflow.risk import own_rows_test
    from anonflow.table.published.release_forms import plain_release

    if k is None:
        raise ParameterError("--algorithm needs --k, the k of the release")
    frame = plain_release(release, table.schema)
    if len(frame) != table.n:  # the check fails in any case
        return ()
    anonymization = anonymize(table, algorithm, k, partition_size=partition_size or None)
    return own_rows_test(table, frame, anonymization).remarks()


def describe(
    received: Annotated[
        Path | None,
        typer.Argument(
            help="A published table, with its description beside it: what a receiver sees.",
            metavar="[RELEASE]",
        ),
    ] = None,
    release: Annotated[
        Path | None,
        typer.Option(
            help="A published table of any origin: show its classes, risks and diversity.", metavar="FILE"
        ),
    ] = None,
    schema: Annotated[
        Path | None, typer.Option(help="The schema, or the flow it is in.", metavar="FILE")
    ] = None,
    original: Original = None,
    register: Register = None,
    threshold: Annotated[float, typer.Option(help="Count the rows with a greater risk.")] = 0.09,
    as_json: AsJson = False,
    delimiter: DelimiterOrFlows = None,
    encoding: EncodingOrFlows = None,
    source: SourceKeys = None,
) -> int:
    """Show what a receiver of RELEASE sees; with --release and --schema, show the classes, risks and diversity of any release."""
    from anonflow import risk as room

    if (received is None) == (release is None):
        raise ParameterError("describe takes a RELEASE, or --release with --schema")
    if received is not None:
        if original is not None or register is not None:
            raise ParameterError("--original and --register go with --release; a receiver has neither")
        return _describe_received(received, schema, as_json)
    if schema is None or release is None:
        raise ParameterError("--release needs --schema")

    form = FileForm(delimiter, encoding, source)
    table = _table_or_schema(original, schema, form)
    people = None if register is None else _published(register, form)
    rows_of = _published(release, form, table)
    description = room.describe(table, rows_of, register=people, threshold=threshold)
    if as_json:
        say_json(description.to_json())
    else:
        rows = [
            [
                line.name,
                line.column,
                number(line.value, 0 if float(line.value).is_integer() else 4),
                line.unseen,
            ]
            for line in description
        ]
        say(table_text(["figure", "column", "value", "not seen"], rows, right=[2]))
    for remark in description.remarks:
        say(f"anonflow: {remark}", err=True)
    return 0


def _describe_received(path: Path, schema: Path | None, as_json: bool) -> int:
    """Return the receiver's view of a release."""
    from anonflow.release import read_release

    summary = read_release(path, None if schema is None else _schema(schema)).summary()
    if as_json:
        say_json(summary.to_json())
        return 0
    rows = [
        [
            column.name,
            column.role,
            column.cells,
            *(
                "-" if share is None else f"{share:.1%}"
                for share in (column.exact, column.generalized, column.hidden)
            ),
            "published" if column.domain else "not published",
        ]
        for column in summary.columns
    ]
    say(summary.headline())
    say(
        table_text(
            ["column", "role", "cells", "exact", "generalized", "hidden", "what * stands for"],
            rows,
            right=[3, 4, 5],
        )
    )
    for title, sentences in (("can be answered:", summary.can), ("cannot be answered:", summary.cannot)):
        if sentences:
            say(title)
        for sentence in sentences:
            say(f"- {sentence}")
    return 0


def attack(
    release: ReleaseFile,
    schema: SchemaFile,
    k: K = None,
    original: Original = None,
    attacker: Annotated[
        list[str] | None,
        typer.Option(help="An attacker; may be given several times. Without it, all that can be tried."),
    ] = None,
    register: Register = None,
    keys: Keys = None,
    earlier: Annotated[
        list[str] | None,
        typer.Option(
            help="A folder owner/ of earlier releases of these people, the oldest first, or a file of one; may be given several times.",
            metavar="FOLDER",
        ),
    ] = None,
    another_tool: AnotherTool = False,
    as_json: AsJson = False,
    delimiter: DelimiterOrFlows = None,
    encoding: EncodingOrFlows = None,
    source: SourceKeys = None,
) -> int:
    """Try attackers on a release, with its original or without, and show how often each succeeds."""
    from anonflow import risk as room

    form = FileForm(delimiter, encoding, source)
    table = _table_or_schema(original, schema, form)
    people = None if register is None else _published(register, form)
    rows_of = _rows_of(release, another_tool or original is None, form, table)
    seen = room.attack(
        table,
        rows_of,
        attacker or None,
        k=k,
        earlier=earlier,
        register=people,
        another_tool=another_tool,
        sets=_key_sets(keys) if keys else None,
    )
    if as_json:
        say_json(seen.to_json(orient="records", indent=2))
        return 0
    rows = [
        [row["attacker"], str(row["targets"]), number(row["success"]), number(row["worst"]), row["sentence"]]
        for row in seen.to_dict("records")
    ]
    say(table_text(["attacker", "targets", "success", "worst", "in words"], rows, right=[1, 2, 3]))
    return 0


def _key_sets(keys: list[str]) -> list[list[str]]:
    """Return sets of columns from texts such as ``age,sex``; a column with a comma in its name needs a flow."""
    sets = [[name.strip() for name in text.split(",") if name.strip()] for text in keys]
    if not all(sets):
        raise ParameterError("--keys names columns, such as --keys age,sex")
    return sets


_SETS = 20
"""Sets of columns that the command risk shows."""


def risk(
    file: Annotated[Path, typer.Argument(help=TABLE_FILE, metavar="FILE")],
    schema: SchemaFile,
    columns: Annotated[int, typer.Option(help="The largest number of columns in a set.")] = 3,
    fraction: Annotated[
        float | None,
        typer.Option(help="The sampling fraction of the population; without it, the weight of the schema."),
    ] = None,
    owner: Annotated[
        bool, typer.Option("--owner", help="List the riskiest records by position: for the owner only.")
    ] = False,
    earlier: Annotated[
        list[Path] | None,
        typer.Option(
            help="A folder owner/ of earlier releases: list who is in one, by position: for the owner only; may be given several times.",
            metavar="FOLDER",
        ),
    ] = None,
    as_json: AsJson = False,
    delimiter: DelimiterOrFlows = None,
    encoding: EncodingOrFlows = None,
    source: SourceKeys = None,
) -> int:
    """Show which few columns single people out, and how many are unique in the population, before anything is done."""
    from anonflow import risk as room
    from anonflow.table.sampling_weights import checked_weights

    table = _table(file, schema, FileForm(delimiter, encoding, source), seed=_new_seed)
    sets = room.key_sets(table.frame, table.qi_columns, columns)
    is_population = fraction is not None or table.schema.weight_column is not None
    try:
        people = room.population_risk(table, fraction=fraction) if is_population else None
    except AnonflowError as error:
        if fraction is not None or table.unit is None:
            raise
        checked_weights(table.schema, table.frame)  # wrong ones are refused
        people = None  # the rows of a person have different ones, and the sets need none
        say(f"warning: the population is left out: {error.message}", err=True)
    # shared out among records for simple random samples only, as the models of a population are
    share = people.fraction if people is not None else None
    frame, part, top = sets.frame(), sets.contributions(), sets.riskiest(fraction=share)
    matched = _matched(earlier, table) if earlier else None
    if as_json:
        answer: dict[str, Any] = {"sets": frame.to_dict("records"), "columns": part.to_dict("records")}
        if owner:
            answer["riskiest"] = top.to_dict("records")
        if matched is not None:
            answer["released"] = matched.to_dict("records")
        if people is not None:
            answer["population"] = json.loads(people.frame().to_json(orient="records"))
            answer["expected"] = people.expected
        say_json(json.dumps(answer, indent=2))
        return 0
    say(table_text(list(frame.columns), _text_rows(frame.head(_SETS)), right=range(1, 6)))
    if len(frame) > _SETS:
        say(f"the first {_SETS} of {len(frame)} sets; --json lists all")
    say("")
    say(table_text(list(part.columns), _text_rows(part), right=[1, 2]))
    if owner:
        say("")
        say(table_text(list(top.columns), _text_rows(top), right=range(4)))
    if matched is not None:
        say("")
        say(
            f"{len(matched):,} of {plural(table.n, 'record')} {verb_of(len(matched), 'were')} released before"
        )
        say(table_text(list(matched.columns), _text_rows(matched), right=range(2)))
    if people is not None:
        say("")
        models = people.frame()
        say(table_text(list(models.columns), _text_rows(models), right=range(1, 5)))
        for sentence in people.sentences():
            say(f"- {sentence}")
    return 0


def _matched(folders: list[Path], table: Any) -> Any:
    """Return the records of a table that are in earlier releases from some owner's folders, with the number of these releases."""
    import pandas as pd

    from anonflow.release import Earlier

    for folder in folders:
        if not folder.is_dir():
            raise ParameterError(f"{folder}: is no folder; name the folder owner/ beside a flow")
    lists = pd.concat([Earlier.of(folder).matched(table) for folder in dict.fromkeys(folders)])
    return lists.groupby("position", as_index=False).sum()


def _text_rows(frame: Any) -> list[list[str]]:
    """Return the rows of a frame as the tables show them."""
    return [[number(cell) for cell in row] for row in frame.itertuples(index=False)]


def _published(file: Path, form: FileForm, table: Any = None) -> Any:
    """Return the cells of a published file of this table or schema, or of a register, of any tool."""
    from anonflow.table.published.release_forms import plain_release

    delimiter, encoding = found_form(file, form.delimiter or "auto", form.encoding or "auto")
    return plain_release(file, getattr(table, "schema", table), delimiter=delimiter, encoding=encoding)


def _seed_beside(certificate: Path | None) -> int:
    """Return the seed of the run that a certificate is of."""
    from anonflow.engine.owner.folder import OwnerFolder

    if certificate is None:
        raise ParameterError(
            "the flow's cap keeps rows that a run draws with its seed: only verify with --certificate, the file in the owner's folder, "
            "which has the seed, too, reads the same rows"
        )
    return OwnerFolder(certificate.parent).seed()


def _new_seed() -> int:
    """Return a seed of rows of which nothing is released yet."""
    return secrets.randbits(128)


def _table_or_schema(
    file: Path | None,
    schema: Path,
    form: FileForm,
    arrays: Arrays | None = None,
    seed: Callable[[], int] = lambda: _seed_beside(None),
) -> Any:
    """Return the table of a file; without one its schema."""
    return _schema(schema) if file is None else _table(file, schema, form, arrays, seed=seed)


def _table(
    file: Path, schema: Path, form: FileForm, arrays: Arrays | None = None, *, seed: Callable[[], int]
) -> Any:
    """Return the table of a file, with a schema from a schema file or a flow; `seed` gives that of the rows within a flow's cap."""
    from anonflow.engine.flows.loader import units_of
    from anonflow.engine.flows.source import per_unit
    from anonflow.table import Table
    from anonflow.table.files.read import read_frame

    settings = _form(schema, file, form) | ({} if arrays is None else {"arrays": arrays})
    shape = settings["shape"]
    declared = _schema(schema).with_separators(shape.decimal, shape.thousands)
    document = _document(schema)
    units = units_of(document) if _table_section(document) else None
    if units is None:
        return Table.read(file, declared, **settings)
    of_cap = 0 if units.cap is None else seed()
    named = declared.needed.union((units.unit, *(units.recipes or ())))
    frame = read_frame(file, named=named, **settings)
    try:
        return Table(per_unit(units, frame, of_cap), declared)
    except AnonflowError as error:
        raise error.in_file(file) from None


def _form(schema: Path, file: Path, form: FileForm) -> dict[str, Any]:
    """Return how a file is read: what a flow says of its source holds for it, too, unless the caller says another form."""
    from anonflow.engine.flows.loader import source_of

    document = _document(schema)
    delimiter, encoding, keys = form
    settings: dict[str, Any] = {"shape": shape_of(keys)}
    if _table_section(document).get("source") is not None:
        source = source_of(document)
        if source.csv is not None:
            delimiter, encoding = delimiter or source.delimiter, encoding or source.encoding
        settings |= {"missing": source.missing, "sheet": source.sheet, "labels": source.labels}
        settings["user_missing"] = source.codes == "values"
        if keys is None:
            settings["shape"] = source.csv_form["shape"]
    delimiter, encoding = found_form(file, delimiter or "auto", encoding or "auto", settings["shape"])
    return {**settings, "delimiter": delimiter, "encoding": encoding}


def _document(schema: Path) -> Any:
    """Return what a schema file or a flow says."""

    return strict_yaml.read(schema, error=SchemaError)


def _table_section(document: Any) -> dict[str, Any]:
    """Return what a flow says under 'table:'; of another file, nothing."""
    data = document.data
    is_flow = isinstance(data, dict) and isinstance(data.get("table"), dict) and "flow" in data
    return data["table"] if is_flow else {}


def _schema(schema: Path) -> Any:
    """Return the schema of a schema file, or of a flow."""
    from anonflow.table import Schema

    table = _table_section(_document(schema))
    if not table:
        return Schema.read(schema)
    if not isinstance(table.get("columns"), dict):
        raise FlowError(f"{schema}: the flow has no columns under 'table:'")
    try:
        declared = Schema(table["columns"], folder=schema.parent, prepare=table.get("prepare"))
        source = table.get("source")
        signs = source if isinstance(source, dict) else {}
        return declared.with_separators(signs.get("decimal"), signs.get("thousands"))
    except SchemaError as error:
        raise error.in_file(schema) from None


def _measure(text: str) -> str | dict[str, Any]:
    """Parse the value of --measure: a name, or YAML of a name and its options."""

    if not text.lstrip().startswith("{"):
        return text
    data = strict_yaml.loads(text, "--measure", error=ParameterError).data
    if not isinstance(data, dict):
        raise ParameterError("--measure takes a name, or a mapping such as {association: {by: sex}}")
    return data


def compare(
    file: Annotated[Path, typer.Argument(help=TABLE_FILE, metavar="FILE")],
    schema: Annotated[Path, typer.Option(help="The schema, or a flow it is in.", metavar="FILE")],
    k: Annotated[str, typer.Option("--k", help="One or several, such as 5,10.")] = "10",
    algorithms: Annotated[
        str, typer.Option(help="Several, such as greedy,k-member; or auto.")
    ] = "greedy,hungarian,k-member,mondrian",
    partition_size: Annotated[
        str,
        typer.Option(
            help="Records in a partition, such as 250, which takes less time; 0 is the whole table; auto the largest in the budget."
        ),
    ] = "0",
    budget: Annotated[
        float | None,
        typer.Option(help="Seconds for each run: with --partition-size auto, or for the method auto."),
    ] = None,
    guarantee: Annotated[
        str | None, typer.Option(help="Of the method auto: k-regular or k-anonymity.")
    ] = None,
    loss: Annotated[str, typer.Option(help="The information loss to keep low.")] = "ncp",
    bounds: Annotated[
        bool, typer.Option("--bounds", help="Show a GCP that no release with this k can be below.")
    ] = False,
    measure: Annotated[
        list[str] | None,
        typer.Option(
            help="A further measure for --csv and --html; may be given several times. With options: {association: {by: sex}}."
        ),
    ] = None,
    csv: Annotated[
        Path | None, typer.Option(help="Write the table to this CSV file.", metavar="FILE")
    ] = None,
    html: Annotated[
        Path | None,
        typer.Option(help="Write a page with the risk-utility frontier to this HTML file.", metavar="FILE"),
    ] = None,
    quiet: Annotated[bool, typer.Option("--quiet", "-q", help="No progress.")] = False,
    as_json: AsJson = False,
    delimiter: DelimiterOrFlows = None,
    encoding: EncodingOrFlows = None,
    source: SourceKeys = None,
) -> int:
    """Run several methods and show what each costs."""
    from anonflow import engine
    from anonflow.algorithms.budget import AUTO, check_automatic, check_budget
    from anonflow.algorithms.registry import algorithm_named
    from anonflow.cli.show import ProgressDisplay
    from anonflow.engine.report.report import comparison
    from anonflow.engine.targets import check_targets

    try:
        ks = list(dict.fromkeys(int(number) for number in k.split(",")))
    except ValueError:
        raise ParameterError("--k takes whole numbers, such as 5,10") from None
    size: int | str | None = partition_size
    if partition_size != AUTO:
        if not partition_size.isascii() or not partition_size.isdigit():
            raise ParameterError("--partition-size takes a whole number, 0 for the whole table, or auto")
        size = int(partition_size) or None
    names = list(dict.fromkeys(name.strip() for name in algorithms.split(",")))
    for name in names:
        if name == AUTO:
            for _, problem in check_automatic(guarantee, None, budget, {}):
                raise ParameterError(problem)
            check_budget(AUTO, budget)
        else:
            check_budget(size, budget, algorithm_named(name).effort_under({}))
    measures = [_measure(text) for text in measure or ()]
    targets = [target for target in (csv, html) if target is not None]
    if measures and not targets and not as_json:
        raise ParameterError("--measure needs --csv or --html, which its numbers are written to, or --json")
    check_targets(targets, {file: "the table", schema: "the schema"})
    table = _table(file, schema, FileForm(delimiter, encoding, source), seed=_new_seed)
    with ProgressDisplay(quiet) as progress:
        report = engine.compared(
            table, names, ks, partition_size=size, loss=loss, budget=budget, guarantee=guarantee, bounds=bounds,
            measures=measures, on_event=progress,
        )  # fmt: skip
    if as_json:
        _say_report(report)
    else:
        _show_report(report, several=True)
    if targets:
        INTERRUPTS.hold()
    if csv is not None:
        write_whole(csv, lambda path: report.runs.to_csv(path, index=False), make_folders=True)
    if html is not None:
        page = comparison(table, report)
        write_whole(
            html, lambda path: path.write_text(page, encoding="utf-8", newline="\n"), make_folders=True
        )
    return 0 if report.ok else 1


def search(
    flow: Annotated[Path, typer.Argument(help="The flow file, with a target.", metavar="FLOW")],
    output: Annotated[
        Path | None,
        typer.Option(
            "--output", "-o", help="Write the flow of what was picked here, beside FLOW; it must not exist."
        ),
    ] = None,
    time: Annotated[
        str | None, typer.Option(help="How long, such as 30s or 2m, instead of what the flow says.")
    ] = None,
    workers: Annotated[int | None, typer.Option(help="Threads.")] = None,
    seed_file: SeedFile = None,
    settings: Settings = None,
    csv: Annotated[
        Path | None, typer.Option(help="Write the trials to this CSV file.", metavar="FILE")
    ] = None,
    quiet: Annotated[bool, typer.Option("--quiet", "-q", help="No progress.")] = False,
    as_json: AsJson = False,
) -> int:
    """Search methods, k and partitions for a flow's target; an interruption ends the search and keeps what was tried."""
    from anonflow import engine
    from anonflow.engine.duration import seconds_of
    from anonflow.engine.flows.overrides import overridden
    from anonflow.engine.search.trials import Trial
    from anonflow.engine.targets import check_targets

    document = overridden(strict_yaml.read(flow, error=FlowError), settings or ())
    loaded = engine.flow_from(document, flow)
    if output is not None and output.exists():
        raise ParameterError(f"{output}: exists already; name another file")
    if output is not None and output.resolve().parent != flow.resolve().parent:
        raise ParameterError(f"{output}: what a flow names is relative to it; write it beside {flow}")
    check_targets([file for file in (output, csv) if file is not None], {flow: "the flow"})
    goal = None
    if time is not None and loaded.target is not None:
        goal = replace(loaded.target, seconds=seconds_of(time))
    seed = None if seed_file is None else engine.read_seed_file(seed_file)

    def tell(trial: Trial) -> None:
        if not quiet:
            came = trial.problem or f"loss {number(trial.loss)}, risk {number(trial.risk)}"
            if trial.problem is None and trial.disclosure is not None:
                came += f", disclosure {number(trial.disclosure)}"
            say(f"{trial.candidate.name}: {came}, {trial.seconds:.1f} s", err=True)

    def begun(work: engine.TargetSearch) -> None:
        INTERRUPTS.follow(work)
        if not quiet:
            say(work.opening, err=True)

    _, report = engine.search_flow(loaded, target=goal, seed=seed, workers=workers, watch=tell, begun=begun)
    INTERRUPTS.hold()
    if csv is not None:
        write_whole(csv, lambda path: report.runs.to_csv(path, index=False), make_folders=True)
    if output is not None and report.best is not None:
        write_new(output, strict_yaml.dumps(engine.picked_document(document.data, report)))
    if as_json:
        trials = json.loads(report.runs.to_json(orient="records"))
        answer = {
            "ok": report.ok, "trials": trials, "ended": report.ended, "sentence": report.sentence(),
            "flow": None if output is None or report.best is None else str(output), "seconds": report.seconds,
        }  # fmt: skip
        say_json(json.dumps(answer, indent=2))
    else:
        _show_search(report)
        if output is not None and report.best is not None:
            say(f"to run it: anonflow run {_near(output)}")
    return 0 if report.ok else 1


def _show_search(report: SearchReport) -> None:
    header = ["method", "k", "size", "loss", "risk", "disclosure", "signs", "seconds", "expected", ""]
    rows = []
    for row in report.runs.to_dict("records"):
        marks = [name for name in ("picked", "meets", "frontier") if row[name]]
        rows.append(
            [
                f"{row['algorithm']} {row['options']}".strip(),
                str(row["k"]),
                "whole" if row["size"] != row["size"] or row["size"] is None else str(row["size"]),
                number(row["loss"]),
                number(row["risk"]),
                "" if report.target.disclosure is None else number(row["disclosure"]),
                {True: "kept", False: "lost"}.get(row["signs"], ""),
                f"{row['seconds']:.2f}",
                f"{row['expected']:.2f}",
                row["problem"] or ", ".join(marks),
            ]
        )
    say(table_text(header, rows, right=range(1, 9)))
    say(f"{len(rows)} trials in {report.seconds:.1f} s; {report.ended}")
    say(report.sentence())


def algorithms(
    name: Annotated[str | None, typer.Argument(help="A method, to list its options.", metavar="NAME")] = None,
    as_json: AsJson = False,
) -> int:
    """List the methods, or the options of one."""
    from anonflow.algorithms.registry import REGISTRY, algorithm_named

    if name is not None:
        entries = [
            {
                "option": option.name,
                "value": option.value_words(),
                "default": option.default,
                "meaning": option.sentence,
            }
            for option in algorithm_named(name).options.values()
        ]
        if as_json:
            say_json(json.dumps(entries, indent=2))
        elif entries:
            say(table_text(list(entries[0]), [[str(cell) for cell in row.values()] for row in entries]))
        else:
            say(f"{name} has no options")
        return 0
    fields = ("name", "family", "guarantee", "complexity", "paper", "summary")
    rows = [[str(getattr(method, field)) for field in fields] for method in REGISTRY.values()]
    if as_json:
        say_json(json.dumps([dict(zip(fields, row, strict=True)) for row in rows], indent=2))
    else:
        say(table_text(fields, rows))
    return 0


def datasets(
    as_json: AsJson = False,
) -> int:
    """List the tables to start with."""
    from anonflow import datasets as tables

    frame = tables.describe()
    if as_json:
        say_json(frame.to_json(orient="records", indent=2))
        return 0
    rows = [
        [
            str(row["name"]),
            str(row["rows"]),
            str(row["columns"]),
            "yes" if row["available"] else "fetched",
            row["origin"],
        ]
        for row in frame.to_dict("records")
    ]
    say(table_text(["name", "rows", "columns", "here", "origin"], rows, right=[1, 2]))
    return 0
