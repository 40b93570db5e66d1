"""The R that the documentation shows: run where R is installed, and held to the package's own notation everywhere."""

from __future__ import annotations

import re
import shutil
import subprocess
from pathlib import Path

import numpy as np
import pandas as pd
import pytest

import anonflow as af
from anonflow.table.published.published_cells import NUMBER
from tests import ROOT

PAGE = ROOT / "docs" / "how-to" / "read-a-release.md"
(SNIPPET,) = re.findall(r"```r\n(.*?)```", PAGE.read_text(encoding="utf-8"), re.DOTALL)


def test_its_brackets_and_quotes_are_closed() -> None:
    code = re.sub(r"#[^\n\"]*$", "", SNIPPET, flags=re.MULTILINE)
    code = re.sub(r'"(?:[^"\\]|\\.)*"', "s", code)
    assert '"' not in code
    waiting = []
    for character in code:
        if character in "([{":
            waiting.append(character)
        elif character in ")]}":
            assert waiting.pop() + character in ("()", "[]", "{}")
    assert not waiting


def test_its_numbers_are_those_that_are_published() -> None:
    (pattern,) = re.findall(r'number <- "\((.*)\)"', SNIPPET)
    assert pattern.replace("\\\\", "\\") == NUMBER


@pytest.mark.skipif(shutil.which("Rscript") is None, reason="needs R with jsonlite")
def test_it_reads_what_python_reads(tmp_path: Path) -> None:
    frame = pd.DataFrame(
        {"age": [20, 30, -7, -7, 40, 50], "job": ["a|b", "c", "{", "{", None, '"'], "pay": [1, 1, 1, 1, 1, 1]}
    )
    schema = {
        "age": {"role": "quasi-identifier", "kind": "numeric"},
        "job": {"role": "quasi-identifier", "kind": "categorical"},
        "pay": {"role": "sensitive"},
    }
    release = af.anonymize(af.Table(frame, schema), "mondrian", k=2).release()
    release.write(tmp_path / "staff.csv")
    (tmp_path / "s.R").write_text(SNIPPET + '\ncat(unlist(members("job")), sep = "\\n")\n')
    done = subprocess.run(
        ["Rscript", "s.R"], cwd=tmp_path, capture_output=True, text=True, timeout=300, check=True
    )
    received = af.read_release(tmp_path / "staff.csv")
    expected = [value for some in received.column("job").members for value in some or ()]
    shown = done.stdout.splitlines()[-len(expected) :]
    assert shown == ["NA" if value is None else value for value in expected]
    assert np.allclose(
        [float(number) for number in re.findall(r"low .*\n +(\S+)", done.stdout)],
        received.column("age").low.mean(),
        atol=0.05,
    )
