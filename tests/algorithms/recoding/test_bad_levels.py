"""What full-domain and local recoding cannot use is one sentence with what to do: in Python, in a flow, in the shell."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
import pytest

import anonflow as af
from anonflow import cli, strict_yaml
from anonflow.algorithms.registry import REGISTRY
from anonflow.errors import AnonflowError

QI = {"role": "quasi-identifier"}
NUMBERS = [f"n{at}" for at in range(9)]
"""Columns of at least seven levels each: more than 40 million nodes."""


def frame() -> pd.DataFrame:
    rng = np.random.default_rng(1)
    columns = {name: rng.integers(0, 9000, 30) for name in NUMBERS}
    return pd.DataFrame({"age": rng.integers(20, 60, 30), "job": rng.choice(list("xyz"), 30), **columns})


AGE = {"age": {**QI, "kind": "numeric"}}
MANY: dict[str, Any] = {name: {**QI, "kind": "numeric"} for name in NUMBERS}

# columns, options, what the sentence says: what is wrong, and what to do
CASES: dict[str, tuple[dict[str, Any], dict[str, Any], tuple[str, str]]] = {
    "without a hierarchy": (
        {**AGE, "job": {**QI, "kind": "categorical"}},
        {},
        ("no hierarchy for 'job'", "declare `kind: suppression`"),
    ),
    "widths do not nest": (
        AGE,
        {"widths": {"age": [5, 12]}},
        ("do not nest", "each a multiple of the one before"),
    ),
    "limit above 1": (AGE, {"limit": 1.5}, ("limit", "at most 1")),
    "limit below 0": (AGE, {"limit": -0.1}, ("limit", "at least 0")),
    "limit no number": (AGE, {"limit": "half"}, ("limit", "a number")),
    "lattice too large": (MANY, {}, ("nodes, more than 10,000,000", "give columns fewer levels")),
    "unknown level": (AGE, {"levels": {"age": "width 11"}}, ("no level 'width 11'", "its levels are values")),
}


@pytest.mark.parametrize(
    ("name", "method"),
    [
        (name, method)
        for name, (_, options, _) in CASES.items()
        for method in ("full-domain", "local-recoding")
        if set(options) <= set(REGISTRY[method].options)
    ],
)
def test_methods_refuse_wrong_levels_in_python(name: str, method: str) -> None:
    columns, options, words = CASES[name]
    table = af.Table(frame()[list(columns)], columns)
    with pytest.raises(AnonflowError) as refused:
        af.anonymize(table, method, k=3, **options)
    assert_says(str(refused.value), words)
    # what concerns the columns begins with the method that was run
    assert "limit" in options or str(refused.value).startswith(f"{method}: ")
    assert str(refused.value).count("full-domain") == (method == "full-domain")


@pytest.mark.parametrize("name", list(CASES))
def test_in_a_flow_and_in_the_shell(name: str, tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    columns, options, words = CASES[name]
    frame()[list(columns)].to_csv(tmp_path / "t.csv", index=False)
    flow = {
        "flow": "bad",
        "version": 1,
        "table": {"source": {"csv": "t.csv"}, "columns": columns},
        "steps": [{"anonymize": {"algorithm": "full-domain", "k": 3, **options}}],
        "publish": {"table": "out/t.csv"},
    }
    path = tmp_path / "bad.yaml"
    path.write_text(strict_yaml.dumps(flow), encoding="utf-8")
    with pytest.raises(AnonflowError) as refused:
        af.run(path)
    assert_says(str(refused.value), words)
    with pytest.raises(SystemExit) as ended:
        cli.main(["run", str(path), "--quiet"])
    assert ended.value.code == 2
    assert_says(capsys.readouterr().err, words)
    assert not (tmp_path / "out").exists()


def test_levels_of_a_hierarchy_that_do_not_nest(tmp_path: Path) -> None:
    (tmp_path / "tree.csv").write_text("a;X;*\nb;X;*\nc;Y;*\na;Y;*\n", encoding="utf-8")
    columns = {"job": {**QI, "kind": "hierarchy", "hierarchy": "tree.csv"}}
    with pytest.raises(AnonflowError) as refused:
        af.Table(pd.DataFrame({"job": list("abc")}), af.Schema(columns, folder=tmp_path))
    assert_says(str(refused.value), ("tree.csv", "a"))


def assert_says(message: str, words: tuple[str, str]) -> None:
    """What is wrong and what to do stand in one line."""
    (line,) = [line for line in message.splitlines() if words[0] in line]
    assert words[1] in line
    assert "Traceback" not in message
