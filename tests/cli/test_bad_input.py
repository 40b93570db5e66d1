"""Bad input from the shell: the right exit status, a message to act on, no cell's value, nothing written."""

from __future__ import annotations

import gzip
import os
import subprocess
import sys
from collections.abc import Callable
from itertools import groupby
from pathlib import Path

import pandas as pd
import pytest

from anonflow.table.files.opening import MOST_COLUMNS
from tests import ROOT
from tests.cases.flow_files import COLUMNS, everything_in, people, write_flow
from tests.cases.runs import shell

Case = Callable[[Path], list[str]]

SECRET = "Zebra77"
"""Stands in cells; no message may hold it."""

CASES: dict[str, tuple[int, str, Case]] = {}


def case(name: str, status: int, says: str, make: Case) -> None:
    assert name not in CASES
    CASES[name] = (status, says, make)


def flow(**changes: object) -> Case:
    """A case: `run` of a flow that is changed like this."""

    def make(folder: Path) -> list[str]:
        return ["run", str(write_flow(folder, **changes))]  # type: ignore[arg-type]

    return make


def table(lines: list[str], **changes: object) -> Case:
    """A case: `run` of a flow over a CSV file of these lines."""
    return flow(data="\n".join(lines).encode() + b"\n", **changes)


def changed(row: str, at: int = 7) -> list[str]:
    lines = people()
    lines[at] = row
    return lines


def yaml(text: str) -> Case:
    """A case: `run` of a flow file with this text."""

    def make(folder: Path) -> list[str]:
        (folder / "flow.yaml").write_text(text, encoding="utf-8")
        return ["run", str(folder / "flow.yaml")]

    return make


def tree(text: str) -> Case:
    """A case: a hierarchy file with this text over the cities."""

    def make(folder: Path) -> list[str]:
        (folder / "tree.csv").write_text(text, encoding="utf-8")
        return flow(columns=_tree_columns())(folder)

    return make


def _wide(file: Path) -> bool:
    pd.DataFrame({f"c{i}": [1] for i in range(MOST_COLUMNS + 1)}).to_parquet(file)
    return True


def _tree_columns(more: str = "") -> str:
    return (
        "    city: {role: quasi-identifier, kind: hierarchy, hierarchy: tree.csv" + more + "}\n"
        "    age: {role: quasi-identifier, kind: numeric}\n"
    )


GOOD_TREE = "Athens;main;*\nPatras;main;*\nVolos;main;*\nChania;island;*\n"

# ------------------------------------------------------------------------------------ CSV files

case("csv: empty file", 2, "is empty", flow(data=b""))
case("csv: header only", 2, "no rows", flow(data=b"age,city,zip,income\n"))
case("csv: short row", 2, "1 row has more or fewer than 4 cells", table(changed(f"30,{SECRET}")))
case("csv: long row", 2, "1 row has more or fewer", table(changed(f"30,{SECRET},1,low,more")))
case("csv: another delimiter", 2, "delimiter", table([line.replace(",", ";") for line in people()]))
case(
    "csv: latin-1 read as utf-8",
    2,
    "is not utf-8",
    flow(data=("\n".join(changed("30,Crète,1,low"))).encode("latin-1")),
)
case("csv: utf-16", 2, "", flow(data="\n".join(people()).encode("utf-16")))
case("csv: unknown encoding", 2, "unknown encoding", flow(source="{csv: people.csv, encoding: utf-9}"))
case("csv: wrong encoding", 2, "", flow(source="{csv: people.csv, encoding: utf-16}"))
case(
    "csv: a column twice",
    2,
    "columns 1 and 2 have the same name",
    table(["city,city,age,income", *people()[1:]]),
)
case("csv: no header", 2, "header", table(["30,Athens,10431,rich", *people()[1:]]))
case("csv: no header, a value twice", 2, "columns 2 and 4", table(["30,Athens,1,Athens", *people()[1:]]))
case("csv: a column without a name", 2, "no name", table([",city,age,income", *people()[1:]]))
case("csv: an open quote", 2, "people.csv", table(changed(f'30,"{SECRET},10431,low')))
case("csv: binary", 2, "people.csv", flow(data=bytes(range(256)) * 8))
case("csv: not gzip", 2, "people.csv.gz", lambda folder: [
    "run", str(write_flow(folder, source="{csv: people.csv.gz}"))
] if (folder / "people.csv.gz").write_bytes(b"\x1f\x8bnot really") else [])  # fmt: skip
case("csv: half of a gzip file", 2, "people.csv.gz", lambda folder: [
    "run", str(write_flow(folder, source="{csv: people.csv.gz}"))
] if (folder / "people.csv.gz").write_bytes(gzip.compress("\n".join(people(500)).encode())[:200]) else [])  # fmt: skip
case("csv: delimiter of two characters", 2, "delimiter", flow(source="{csv: people.csv, delimiter: '::'}"))
for _name, _mark in (("nothing", '"\\0"'), ("no ASCII", '"¦"'), ("a quote", "'\"'"), ("a line end", '"\\n"')):
    case(f"csv: the delimiter is {_name}", 2, "'delimiter' must be one character of ASCII", flow(
        source=f"{{csv: people.csv, delimiter: {_mark}}}"
    ))  # fmt: skip
case("csv: too many columns", 2, f"has {MOST_COLUMNS + 1} columns, and {MOST_COLUMNS} are the most", table(
    [",".join(f"c{i}" for i in range(MOST_COLUMNS + 1)), "1,2,3"]
))  # fmt: skip
case("csv: no line ends", 2, "see that it has line ends", flow(data=b"\0".join([b"1,"] * 2 * MOST_COLUMNS)))
case("csv: control characters in a name", 2, "known: a\\x1b[2Jge, ci\\u202ety, zip", table(
    ["a\x1b[2Jge,ci\u202ety,zip", *["30,x,1"] * 20],
    columns="    zip: {role: quasi-identifier, kind: numeric}\n    Q: {role: sensitive}\n",
))  # fmt: skip
case("csv: many columns that are not there", 2, "and 1,990 more", flow(columns=(
    "    age: {role: quasi-identifier, kind: numeric}\n"
    + "".join(f"    c{i}: {{role: sensitive}}\n" for i in range(2_000))
)))  # fmt: skip
case("wide parquet: too many columns", 2, f"has {MOST_COLUMNS + 1} columns", lambda folder: [
    "run", str(write_flow(folder, source="{parquet: wide.parquet}"))
] if _wide(folder / "wide.parquet") else [])  # fmt: skip
for _pieces in ("false", "20"):
    case(f"refused with pieces {_pieces}: a missing cell", 2, "'age'", table(
        changed(f",{SECRET},1,low"), source=f"{{csv: people.csv, pieces: {_pieces}}}"
    ))  # fmt: skip
    case(f"refused with pieces {_pieces}: an empty file", 2, "is empty", flow(
        data=b"", source=f"{{csv: people.csv, pieces: {_pieces}}}"
    ))  # fmt: skip
for _rows in (0, 1):
    case(f"table: {_rows} records", 1 if _rows else 2, "at least k = 3" if _rows else "no rows", table(
        people()[: _rows + 1], partition="{}"
    ))  # fmt: skip
case("parquet: a text file", 2, "Parquet", lambda folder: [
    "run", str(write_flow(folder, source="{parquet: people.csv}"))
])  # fmt: skip

# --------------------------------------------------------------------------------------- values

case("numeric: text in a cell", 2, "'age'", table(changed(f"{SECRET},Athens,1,low")))
case("numeric: a missing cell", 2, "'age'", table(changed(f",{SECRET},1,low")))
case("numeric: infinity", 2, "'age'", table(changed("inf,Athens,1,low")))
case("numeric: not a number", 2, "'age'", table(changed("nan,Athens,1,low")))
case("numeric: NA is text", 2, "'age'", table(changed("NA,Athens,1,low")))
case("positions: codes of two lengths", 2, "'zip'", table(
    changed("30,Athens,10431-77,low"),
    columns="    zip: {role: quasi-identifier, kind: positions}\n",
))  # fmt: skip
case("positions: a missing code", 2, "'zip'", table(
    changed(f"30,{SECRET},,low"), columns="    zip: {role: quasi-identifier, kind: positions}\n"
))  # fmt: skip
case("missing: refused", 2, "'city'", table(
    changed("30,,1,low"), columns="    city: {role: quasi-identifier, kind: categorical, missing: refuse}\n"
))  # fmt: skip
case("missing: every record dropped", 2, "missing", table(
    ["age,city,zip,income", *[",Athens,1,low"] * 20],
    columns="    age: {role: quasi-identifier, kind: numeric, missing: drop}\n",
))  # fmt: skip
case("numeric: only missing values", 2, "'age'", table(
    ["age,city,zip,income", *[",Athens,1,low"] * 20],
    columns="    age: {role: quasi-identifier, kind: numeric, missing: suppress}\n",
))  # fmt: skip
case("a column that is not there", 2, "did you mean 'city'", flow(
    columns="    ctiy: {role: quasi-identifier, kind: categorical}\n"
))  # fmt: skip

# ------------------------------------------------------------------------------------ parameters

case("k is 1", 2, "at least 2", flow(anonymize="{algorithm: greedy, k: 1}"))
case("k is 0", 2, "at least 2", flow(anonymize="{algorithm: greedy, k: 0}"))
case("k is negative", 2, "at least 2", flow(anonymize="{algorithm: greedy, k: -3}"))
case("k is a fraction", 2, "whole number", flow(anonymize="{algorithm: greedy, k: 2.5}"))
case("k is text", 2, "whole number", flow(anonymize="{algorithm: greedy, k: ten}"))
case("k is true", 2, "whole number", flow(anonymize="{algorithm: greedy, k: true}"))
case("k is missing", 2, "'k' is missing", flow(anonymize="{algorithm: greedy}"))
case("K for k", 2, "'k' is missing (is it 'K'?)", flow(anonymize="{algorithm: greedy, K: 3}"))
case("algoritm", 2, "'algorithm' is missing (is it 'algoritm'?)", flow(anonymize="{algoritm: greedy, k: 3}"))
case("k greater than the table", 1, "60 records cannot hide among k = 61", flow(
    partition="{}", anonymize="{algorithm: greedy, k: 61}"
))  # fmt: skip
case("k greater than a partition", 2, "smaller than k", flow(anonymize="{algorithm: greedy, k: 21}"))
case("one record", 1, "1 record cannot hide", table(people()[:2]))
case("unknown algorithm", 2, "did you mean 'greedy'", flow(anonymize="{algorithm: greddy, k: 3}"))
case("algorithm is code", 2, "unknown algorithm", flow(anonymize="{algorithm: 'os.system', k: 3}"))
case("unknown option", 2, "unknown option", flow(anonymize="{algorithm: greedy, k: 3, speed: 9}"))
case("unknown loss", 2, "'ncp'", flow(anonymize="{algorithm: greedy, k: 3, loss: nncp}"))
case("unknown criterion", 2, "did you mean 'covers'", flow(steps="  - verify: [cover]\n"))
case("criterion without its column", 2, "l-diversity", flow(steps="  - verify: [l-diversity(m=3)]\n"))
case("unknown measure", 2, "did you mean 'gcp'", flow(steps="  - measure: [gpc]\n"))
case("unknown data set", 2, "did you mean 'adult'", flow(source="{dataset: adlut}"))
case("unknown part of a data set", 2, "part", flow(
    source="{dataset: adult, part: middle}", columns="    age: {role: quasi-identifier, kind: numeric}\n"
))  # fmt: skip
case("data set of no records", 2, "'n'", flow(source="{dataset: census_like, n: 0}"))

# ------------------------------------------------------------------------------------------ YAML

_REST = (
    "version: 1\ntable:\n  source: {dataset: freeform_example}\n  columns:\n"
    "    Age: {role: quasi-identifier, kind: numeric}\nsteps:\n  - anonymize: {algorithm: greedy, k: 2}\n"
)
case("yaml: empty", 2, "a flow is a mapping", yaml(""))
case("yaml: a list", 2, "a flow is a mapping", yaml("- 1\n- 2\n"))
case("yaml: a duplicate key", 2, "duplicate key 'flow'", yaml("flow: a\nflow: b\n" + _REST))
case("yaml: a column twice", 2, "duplicate key 'age'", flow(columns=COLUMNS + "    age: {role: sensitive}\n"))
case("yaml: an unknown key", 2, "did you mean 'table'", yaml("flow: a\ntabel: {}\n" + _REST))
case("yaml: NO is text, not false", 2, "true or false", flow(source="{dataset: adult, complete: NO}"))
case("yaml: 010 is text, not eight", 2, "whole number", flow(anonymize="{algorithm: greedy, k: 010}"))
case("yaml: 1_000 is text", 2, "whole number", flow(partition="{size: 1_000}"))
case("yaml: an anchor", 2, "anchor", yaml("flow: &a x\n" + _REST))
case("yaml: a tag", 2, "tag", yaml("flow: !!python/object/apply:os.system [ls]\n" + _REST))
case("yaml: a tab", 2, "tab", yaml("flow: a\n\tversion: 1\n"))
case("yaml: an open bracket", 2, "flow.yaml:", yaml("flow: [a\n" + _REST))
case("yaml: two documents", 2, "second document", yaml("flow: a\n---\n" + _REST))
case("yaml: a control character", 2, "U+0007", yaml("flow: a\x07\n" + _REST))
case("yaml: the name of a folder above", 2, "flow's name", yaml("flow: ../../x\n" + _REST))
case("yaml: a future version", 2, "version 1", yaml("flow: a\n" + _REST.replace("version: 1", "version: 2")))
case("yaml: no quasi-identifier", 2, "quasi-identifier", flow(columns="    age: {role: sensitive}\n"))
case("yaml: no columns", 2, "columns", flow(columns="    {}\n"))
case("yaml: an unknown role", 2, "did you mean 'sensitive'", flow(columns="    age: {role: sensitiv}\n"))
case("yaml: a weight of 0", 2, "weight", flow(
    columns="    age: {role: quasi-identifier, kind: numeric, weight: 0}\n"
))  # fmt: skip
case("yaml: a boundary of another form", 2, "boundary", flow(
    columns="    age: {role: quasi-identifier, kind: numeric, boundary: 10}\n"
))  # fmt: skip


def _latin_flow(folder: Path) -> list[str]:
    path = write_flow(folder)
    path.write_bytes(path.read_bytes() + "# Crète\n".encode("latin-1"))
    return ["run", str(path)]


case("yaml: not utf-8", 2, "not UTF-8", _latin_flow)

# ----------------------------------------------------------------------------------- hierarchies

case("hierarchy: no such file", 2, "tree.csv", flow(columns=_tree_columns()))
case("hierarchy: empty", 2, "tree.csv", tree(""))
case("hierarchy: a leaf under two parents", 2, "tree.csv", tree(GOOD_TREE + "Athens;island;*\n"))
case("hierarchy: two roots", 2, "tree.csv", tree("Athens;main;*\nChania;island;+\n"))
case("hierarchy: rows of different length", 2, "tree.csv", tree("Athens;main;*\nChania;*\n"))
case("hierarchy: a cycle", 2, "tree.csv", tree("Athens;main;top;main\nChania;top;main;top\n"))
LACKING = "hierarchy: a value that is no leaf"
case(LACKING, 2, "'city'", tree("\n".join(GOOD_TREE.splitlines()[:3]) + "\n"))
case("hierarchy: a boundary that is no node", 2, "boundary", lambda folder: flow(
    columns=_tree_columns(", boundary: [nowhere]")
)(folder) if (folder / "tree.csv").write_text(GOOD_TREE) else [])  # fmt: skip

# -------------------------------------------------------------------------- boundaries, patterns

case("boundary: nothing can be published", 1, "'city'", lambda folder: flow(
    columns=_tree_columns(", boundary: [main, island]"), partition="{}", anonymize="{algorithm: greedy, k: 50}"
)(folder) if (folder / "tree.csv").write_text(GOOD_TREE) else [])  # fmt: skip
case("max-width: nothing can be published", 1, "'age'", table(
    ["age,city,zip,income", *[f"{9 * i},Athens,1,low" for i in range(60)]],
    columns="    age: {role: quasi-identifier, kind: numeric, max-width: 5}\n",
    partition="{}",
))  # fmt: skip
case("max-set: on a number", 2, "'age'", flow(
    columns="    age: {role: quasi-identifier, kind: numeric, max-set: 2}\n"
))  # fmt: skip
case("max-width: negative", 2, "'age'", flow(
    columns="    age: {role: quasi-identifier, kind: numeric, max-width: -1}\n"
))  # fmt: skip


def guided(patterns: str, algorithm: str = "pattern-guided") -> Case:
    return flow(anonymize="{algorithm: " + algorithm + ", k: 3, patterns: " + patterns + "}")


for _method in ("pattern-guided", "pattern-guided-optimal"):
    case(f"{_method}: contradictory", 2, "contradictory patterns: columns 'age' and 'city'", guided(
        "{together: [age, city], never: [city]}", _method
    ))  # fmt: skip
    case(f"{_method}: an unknown column", 2, "did you mean 'city'", guided("[[ctiy]]", _method))
case(
    "patterns: together and at most one",
    2,
    "'age'",
    guided("{together: [age, city], at-most-one-of: [age, city]}"),
)
case("patterns: together and at most too few", 2, "'city'", guided("{together: [age, city], at-most: 1}"))
case("patterns: an unknown predicate", 2, "did you mean 'at-most'", guided("{at-mots: 2}"))
case("patterns: of another length", 2, "characters", guided("['010101']"))
case("patterns: a weight of no column", 2, "no quasi-identifier 'citi'", flow(
    anonymize="{algorithm: pattern-guided, k: 3, weights: {citi: 2}}"
))  # fmt: skip
case("patterns: a proof by what is gone", 2, "'exact' is gone; leave it out", flow(
    anonymize="{algorithm: pattern-guided-optimal, k: 3, exact: two}"
))  # fmt: skip
case("patterns: a local search that is none", 2, "must be true or false", flow(
    anonymize="{algorithm: pattern-guided, k: 3, local_search: 1}"
))  # fmt: skip

# ----------------------------------------------------------------------------------------- paths


def _target(name: str) -> Case:
    def make(folder: Path) -> list[str]:
        (folder / "taken").write_text("")
        (folder / "sub" / "full.csv").mkdir(parents=True)
        return ["run", str(write_flow(folder, publish="{table: " + name + "}"))]

    return make


def _owner_is_a_file(folder: Path) -> list[str]:
    (folder / "owner").write_text("")
    return ["run", str(write_flow(folder))]


def _missing_source(folder: Path) -> list[str]:
    path = write_flow(folder)
    (folder / "people.csv").unlink()
    return ["run", str(path)]


def _owner_is_a_link(folder: Path) -> list[str]:
    (folder / "elsewhere").mkdir()
    (folder / "owner").symlink_to(folder / "elsewhere")
    return ["run", str(write_flow(folder))]


def _link_to_itself(*command: str) -> Case:
    """A case: a command on a CSV file that is a link to itself."""

    def make(folder: Path) -> list[str]:
        (folder / "circle.csv").symlink_to(folder / "circle.csv")
        write_flow(folder, source="{csv: circle.csv}")
        return [*command[:1], str(folder / command[1]), *command[2:]]

    return make


case("path: the source is a link to itself", 2, "no such file", _link_to_itself("run", "flow.yaml"))
case("path: init of a link to itself", 2, "does not exist", _link_to_itself("init", "circle.csv", "--yes"))
case("path: no flow file", 2, "no such file", lambda folder: ["run", str(folder / "none.yaml")])
case("path: the flow is a folder", 2, "a folder", lambda folder: ["run", str(folder)])
case("path: no source file", 2, "no such file", _missing_source)
case("path: the source is a folder", 2, "is not a file", flow(source="{csv: .}"))
case("path: a file where a folder should be", 2, "cannot be written", _target("taken/x.csv"))
case("path: a folder where a file should be", 2, "is a folder", _target("sub/full.csv"))
case("path: the owner's folder is a file", 2, "owner", _owner_is_a_file)
case("path: the owner's folder is a link", 2, "is a link", _owner_is_a_link)
case("path: publish into the owner's folder", 2, "owner's folder", _target("owner/test/x.csv"))
case("path: publish over the source", 2, "written over", _target("people.csv"))
case("path: an unknown ending", 2, "ends in", _target("out/x.xlsx"))
case("path: a null byte", 2, "not a usable path", flow(source='{csv: "a\\0b.csv"}'))

# --------------------------------------------------------------------------------- other commands


def _command(*arguments: str) -> Case:
    def make(folder: Path) -> list[str]:
        write_flow(folder)
        (folder / "seed").write_text("too short")
        return [argument.replace("@", f"{folder}{os.sep}") for argument in arguments]

    return make


case("run: a seed file without an end", 2, "32 hexadecimal", _command(
    "run", "@flow.yaml", "--seed-file", "/dev/zero"
))  # fmt: skip
for _result in ("csv", "html"):
    case(f"compare: {_result} over the table", 2, "written over the table", _command(
        "compare", "@people.csv", "--schema", "@flow.yaml", f"--{_result}", "@people.csv"
    ))  # fmt: skip
    case(f"compare: {_result} over the schema", 2, "written over the schema", _command(
        "compare", "@people.csv", "--schema", "@flow.yaml", f"--{_result}", "@flow.yaml"
    ))  # fmt: skip
    case(f"compare: {_result} to a device", 2, "is not a file", _command(
        "compare", "@people.csv", "--schema", "@flow.yaml", f"--{_result}", "/dev/null"
    ))  # fmt: skip
    case(f"compare: {_result} to where no folder can be", 2, "cannot be written", _command(
        "compare", "@people.csv", "--schema", "@flow.yaml", f"--{_result}", "@people.csv/x"
    ))  # fmt: skip
case("compare: two results in one file", 2, "written over another result", _command(
    "compare", "@people.csv", "--schema", "@flow.yaml", "--csv", "@x", "--html", "@x"
))  # fmt: skip
case("schema: to where no folder can be", 2, "cannot be written", _command(
    "schema", "@people.csv", "-o", "@people.csv/x"
))  # fmt: skip
case("schema: over a file", 2, "exists already", _command("schema", "@people.csv", "-o", "@flow.yaml"))


def _half_a_key(folder: Path) -> list[str]:
    owner = folder / "owner" / "test"
    owner.mkdir(parents=True)
    (owner / "key").write_text("00" * 16)
    return ["run", str(write_flow(folder))]


case("run: half a key", 2, "is not a complete key", _half_a_key)
case("run: half a name of a run", 2, "picks 2 runs of the matrix", flow(
    more="matrix: {anonymize.k: [2, 3], anonymize.algorithm: [greedy, mondrian]}\n",
    publish="{table: out/x.csv, run: {anonymize.k: 2}}",
))  # fmt: skip
case("run: a bad seed file", 2, "32 hexadecimal", _command("run", "@flow.yaml", "--seed-file", "@seed"))
case("run: no seed file", 2, "cannot be read", _command("run", "@flow.yaml", "--seed-file", "@none"))
case("run: an unknown scheduler", 2, "threads", _command("run", "@flow.yaml", "--scheduler", "yarn"))
case("run: no workers", 2, "workers", _command("run", "@flow.yaml", "--workers", "0"))
case(
    "run: replay without a record",
    2,
    "no readable run record",
    _command("run", "@flow.yaml", "--replay", "@."),
)


def _written(name: str, text: str, *arguments: str) -> Case:
    """A case: a command about a file of this text."""

    def make(folder: Path) -> list[str]:
        (folder / name).write_text(text, encoding="utf-8")
        return _command(*arguments)(folder)

    return make


for _bad, _says in (
    ("columns: [1]\n", "bad.yaml: a schema is a mapping"),
    ("columns: {city: {role: sensitive}}\n", "bad.yaml: no column has the role quasi-identifier"),
):
    case(f"schema file: {_says}", 2, _says, _written(
        "bad.yaml", _bad, "compare", "@people.csv", "--schema", "@bad.yaml"
    ))  # fmt: skip
case("schema: an empty CSV file", 2, "empty.csv: is empty", _written("empty.csv", "", "schema", "@empty.csv"))
for _guess in ("schema", "init"):
    case(f"{_guess}: a CSV file with a header alone", 2, "the table has no rows", _written(
        "header.csv", "age,city\n", _guess, "@header.csv"
    ))  # fmt: skip
case("schema: an encoding that nobody knows", 2, "unknown encoding 'klingon'", _command(
    "schema", "@people.csv", "--encoding", "klingon"
))  # fmt: skip
case("schema: no such file", 2, "does not exist", _command("schema", "@none.csv"))
case("schema: an unknown ending", 2, ".csv or .parquet", _command("schema", "@seed"))
case("verify: no k", 2, "k", _command(
    "verify", "--original", "@people.csv", "--release", "@people.csv", "--schema", "@flow.yaml"
))  # fmt: skip
case("verify: no such release", 2, "does not exist", _command(
    "verify", "--original", "@people.csv", "--release", "@none.csv", "--schema", "@flow.yaml", "--k", "3"
))  # fmt: skip
case("verify: an unknown criterion", 2, "criterion", _command(
    "verify", "--original", "@people.csv", "--release", "@people.csv", "--schema", "@flow.yaml",
    "--k", "3", "--criterion", "k-anonimity",
))  # fmt: skip
case("verify: k is 1", 2, "at least 2", _command(
    "verify", "--original", "@people.csv", "--release", "@people.csv", "--schema", "@flow.yaml", "--k", "1"
))  # fmt: skip


def _search(*arguments: str, target: str = "{loss: 0.5, time: 10s}") -> Callable[[Path], list[str]]:
    """A search for the target of a flow beside the table."""

    def make(folder: Path) -> list[str]:
        path = write_flow(folder)
        if target:
            path.write_text(path.read_text() + f"target: {target}\n")
        (folder / "taken.yaml").write_text("")
        (folder / "sub").mkdir()
        return ["search", str(path), "--quiet", *(each.replace("@", f"{folder}/") for each in arguments)]

    return make


case("search: no target", 2, "has no target that is still open", _search(target=""))
case("search: nothing to reach", 2, "says nothing to reach", _search(target="{time: 10s}"))
case("search: over a file", 2, "exists already", _search("--output", "@taken.yaml"))
case("search: in another folder", 2, "write it beside", _search("--output", "@sub/picked.yaml"))
case("search: a time that is none", 2, "a duration is a number", _search("--time", "soon"))
case("search: a setting that leads nowhere", 2, "target", _search("--set", "targets.loss=0.1"))
case(
    "search: too few records for k",
    2,
    "too few for every k",
    _search("--set", "steps.anonymize.k=999", "--set", "partition.size=2000"),
)
case(
    "search: a risk that no table of this size has",
    2,
    "less than 1 in",
    _search("--set", "steps.anonymize.k=5", target="{risk: 1.0e-9, time: 10s}"),
)
case("search: no workers", 2, "workers is a number of at least 1", _search("--workers", "-1"))
case("search: trials to a device", 2, "is not a file", _search("--csv", "/dev/null"))
case("search: run before anything is picked", 2, "nothing is picked yet", lambda folder: [
    "run", *_search()(folder)[1:2]
])  # fmt: skip
case("plan: nothing is picked yet", 2, "nothing is picked yet", lambda folder: [
    "plan", *_search()(folder)[1:2]
])  # fmt: skip
case("plan: no seconds", 2, "--seconds is a number above 0", lambda folder: [
    "plan", str(write_flow(folder)), "--seconds", "0"
])  # fmt: skip
case("compare: a bad k", 2, "whole numbers", _command(
    "compare", "@people.csv", "--schema", "@flow.yaml", "--k", "five"
))  # fmt: skip
case("compare: an unknown algorithm", 2, "did you mean 'greedy'", _command(
    "compare", "@people.csv", "--schema", "@flow.yaml", "--algorithms", "gredy"
))  # fmt: skip
case("compare: infeasible", 1, "cannot hide", _command(
    "compare", "@people.csv", "--schema", "@flow.yaml", "--algorithms", "greedy", "--k", "99"
))  # fmt: skip


def _strange_release(folder: Path) -> list[str]:
    write_flow(folder)
    frame = pd.DataFrame({"age": ["?"] * 60, "city": [SECRET] * 60, "income": ["x"] * 60})
    frame.to_csv(folder / "strange.csv", index=False)
    arguments = ["--original", str(folder / "people.csv"), "--schema", str(folder / "flow.yaml")]
    return ["verify", *arguments, "--release", str(folder / "strange.csv"), "--k", "3"]


case("verify: cells that are no generalization", 2, "'city'", _strange_release)


# ------------------------------------------------------- units, weights, registers, fractions, codes

OWNED = (
    "    age: {role: quasi-identifier, kind: numeric}\n    who: {role: unit}\n    income: {role: sensitive}\n"
)
WEIGHED = (
    "    age: {role: quasi-identifier, kind: numeric}\n    w: {role: weight}\n    income: {role: sensitive}\n"
)
PLAIN = "    age: {role: quasi-identifier, kind: numeric}\n    income: {role: sensitive}\n"
CODED = "    age: {role: quasi-identifier, kind: numeric, codes: [CODES]}\n    income: {role: sensitive}\n"


def _risky(name: str, cell: str) -> bytes:
    """60 people with one more column, in which one cell is another than the rest."""
    rows = [f"{18 + i % 40},{cell if i == 7 else 20},{'uv'[i % 2]}" for i in range(60)]
    return "\n".join([f"age,{name},income", *rows]).encode() + b"\n"


def _with(
    command: str, name: str, cell: str, columns: str, more: str = "", more_of_flow: str = "", **changes: str
) -> Case:
    """A case: a command over such people; `@` in what follows it is the folder."""

    def make(folder: Path) -> list[str]:
        write_flow(folder, data=_risky(name, cell), columns=columns, more=more_of_flow, **changes)  # type: ignore[arg-type]
        rows = [f"18-57,{20 + i % 2},u" if name == "w" else "18-57,u" for i in range(60)]
        header = "age,w,income" if name == "w" else "age,income"
        (folder / "release.csv").write_text("\n".join([header, *rows]) + "\n", encoding="utf-8")
        (folder / "register.csv").write_text("city,zip\nVolos,10431\n", encoding="utf-8")
        return [each.replace("@", f"{folder}{os.sep}") for each in f"{command} {more}".split()]

    return make


_TWO = "--original @people.csv --release @release.csv --schema @flow.yaml --k 3 --another-tool"
_DOORS = {
    "run": "run @flow.yaml",
    "verify": f"verify {_TWO}",
    "attack": f"attack {_TWO}",
    "describe": "describe --original @people.csv --release @release.csv --schema @flow.yaml",
    "risk": "risk @people.csv --schema @flow.yaml",
    "compare": "compare @people.csv --schema @flow.yaml --k 3 --algorithms mondrian",
    "search": "search @flow.yaml --quiet",
}
"""Every command that reads the original."""

for _door, _line in _DOORS.items():
    case(f"{_door}: a unit with a blank", 2, "1 row has no unit", _with(
        _line, "who", "", OWNED, more_of_flow="target: {loss: 0.9, time: 10s}\n" if _door == "search" else ""
    ))  # fmt: skip
for _fault, _cell, _says in (
    ("zero", "0", "1 weight is zero or negative"),
    ("negative", "-3", "1 weight is zero or negative"),
    ("below 1", "0.5", "1 weight is below 1"),
    ("no number", "many", "1 weight is missing or no number"),
    ("missing", "", "1 weight is missing or no number"),
):
    for _door in ("run", "risk"):
        case(f"{_door}: a weight that is {_fault}", 2, _says, _with(_DOORS[_door], "w", _cell, WEIGHED))
for _door, _option in (("verify", "--certificate"), ("attack", "--earlier"), ("risk", "--earlier")):
    case(f"{_door}: a name of {_option} that no file can have", 2, "x... File name too long", _with(
        _DOORS[_door], "x", "", PLAIN,
        f"{_option} {'x' * 5000}",
    ))  # fmt: skip
_UNEQUAL = "the weights are unequal, and the models assume a simple random sample"
_ASKED = {
    "steps": "  - draw: {}\n  - verify: [covers, {uniqueness: {most: 0.5}}]\n",
    "anonymize": "{algorithm: mondrian, k: 3}",
}
case(
    "run: unequal weights where a model forbids them",
    2,
    _UNEQUAL,
    _with("run @flow.yaml", "w", "30", WEIGHED, **_ASKED),
)
case("verify: unequal weights where a model forbids them", 2, "unequal", _with(
    f"verify {_TWO} --criterion uniqueness(most=0.5)", "w", "30", WEIGHED
))  # fmt: skip
for _fraction in ("0", "-0.1", "1.5", "nan"):
    case(f"risk: a fraction of {_fraction}", 2, "a sampling fraction is a number above 0 and at most 1", _with(
        _DOORS["risk"], "x", "", PLAIN,
        f"--fraction={_fraction}",
    ))  # fmt: skip
    case(f"run: a fraction of {_fraction}", 2, "fraction", flow(
        steps=f"  - draw: {{}}\n  - attack: [{{population: {{fraction: {_fraction}}}}}]\n",
        anonymize="{algorithm: mondrian, k: 3}",
    ))  # fmt: skip
_LACKS = "the population lacks the columns 'age'"
_BY_REGISTER = {"steps": "  - draw: {}\n  - attack: [{presence: {population: register.csv}}]\n"}
case("run: a register that lacks a quasi-identifier", 2, _LACKS, _with(
    "run @flow.yaml", "x", "", PLAIN, **_BY_REGISTER
))  # fmt: skip
for _door in ("attack", "describe"):
    case(f"{_door}: a register that lacks a quasi-identifier", 2, _LACKS, _with(
        _DOORS[_door], "x", "", PLAIN,
        "--register @register.csv",
    ))  # fmt: skip
for _code in ("9", "'-9'"):
    for _door in ("run", "verify", "attack", "describe", "risk", "compare"):
        case(f"{_door}: the code {_code} is a number", 2, "a code is a number, which a range would cover", _with(
            _DOORS[_door], "x", "", CODED.replace("CODES", _code)
        ))  # fmt: skip


def kind(name: str) -> str:
    """A command, or what is wrong: what stands before the colon."""
    return name.partition(": ")[0] if ": " in name else "parameters"


@pytest.mark.parametrize(
    "cases",
    [
        pytest.param(list(names), id=title, marks=[pytest.mark.slow] * (title == "wide parquet"))
        for title, names in groupby(sorted(CASES, key=kind), key=kind)
    ],
)
def test_wrong_input_has_its_status_and_writes_nothing(
    cases: list[str], tmp_path: Path, capsys: pytest.CaptureFixture[str], subtests: pytest.Subtests
) -> None:
    for number, name in enumerate(cases):
        with subtests.test(name):
            status, says, make = CASES[name]
            folder = tmp_path / str(number)
            folder.mkdir()
            arguments = make(folder)
            before = everything_in(tmp_path)
            code, out, err = shell(
                capsys, *arguments, *(["--quiet"] if arguments[0] in ("run", "compare") else [])
            )
            assert code == status, err
            assert says in err
            assert err.startswith(("anonflow: ", "warning: "))
            assert len(err.splitlines()) <= 12
            for value in (SECRET, "Athens", "Crète", "10431-77", "Traceback", "Error("):
                assert value not in err + out
            # which labels a hierarchy lacks stands in the owner's folder, because no message may say it
            lacking = ("owner", "owner/test", "owner/test/labels.csv") if name == LACKING else ()
            assert everything_in(tmp_path) == before | {f"{number}/{file}" for file in lacking}


@pytest.mark.slow
def test_a_process_ends_with_the_status_of_what_happened(tmp_path: Path) -> None:
    """All other cases call the command in the process of the tests."""
    flow = write_flow(tmp_path)
    bad = tmp_path / "bad"
    bad.mkdir()
    for status, words in enumerate(
        (
            f"validate {flow}",
            f"run {write_flow(bad, partition='{}', anonymize='{algorithm: greedy, k: 61}')}",
            f"run {tmp_path / 'none.yaml'}",
            "datasets >/dev/full",
        )
    ):
        done = subprocess.run(
            ["sh", "-c", f"exec '{sys.executable}' -m anonflow {words}"],
            cwd=ROOT,
            capture_output=True,
            text=True,
            check=False,
        )
        assert done.returncode == status, f"{words}: {done.stderr}"
        assert (done.stderr == "") is (status == 0), words
        assert "Traceback" not in done.stderr


@pytest.mark.parametrize(
    ("changes", "says"),
    [
        ({"columns": PLAIN} | _BY_REGISTER, _LACKS),
        ({"columns": CODED.replace("CODES", "9")}, "a code is a number"),
    ],
)
def test_validate_finds_it_with_its_line(
    changes: dict[str, str], says: str, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    status, _, err = shell(capsys, *_with("validate @flow.yaml", "x", "", **changes)(tmp_path))
    assert status == 2
    assert says in err
    assert err.startswith(f"{tmp_path / 'flow.yaml'}:")
    assert len(err.splitlines()) == 1


def test_the_cases_are_many() -> None:
    assert len(CASES) >= 200
