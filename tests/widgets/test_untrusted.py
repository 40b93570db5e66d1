"""Views in a notebook that is not trusted: its page takes styles away, and words must not run into one another."""

from __future__ import annotations

import re
from types import SimpleNamespace

import pytest

import anonflow as af


def without_styles(markup: str) -> str:
    """What an untrusted notebook shows: no style sheet, and the text of the rest."""
    left = re.sub(r"<style>.*?</style>", "", markup, flags=re.DOTALL)
    return re.sub(r"<[^>]+>", "", left)


def test_an_original_and_what_it_became_are_told_apart() -> None:
    frame = af.datasets.census_like(60, seed=3)
    anon = af.anonymize(af.Table(frame, af.datasets.schema("census_like")), "mondrian", k=5)
    text = without_styles(anon._repr_html_())
    pairs = re.findall(r"(\d+) → (\d+-\d+)", text)
    assert pairs, text
    published = set(anon.frame()["Age"])
    assert pairs[0][1] in published
    assert not re.search(r"\d{2}(?:" + "|".join(map(re.escape, sorted(published))) + r")", text)
    assert "records 60 " in text, "names and numbers in a line"


def test_the_explorer_never_joins_runs_over_other_columns_in_a_line() -> None:
    pytest.importorskip("ipywidgets")
    from anonflow.widgets.explorer import _against_k

    def run(number: int, k: int, *columns: str) -> SimpleNamespace:
        result = SimpleNamespace(
            problem=None, algorithm="greedy", k=k, measures={"gcp": k / 100},
            columns=[SimpleNamespace(column=name) for name in columns],
        )  # fmt: skip
        return SimpleNamespace(number=number, result=result)

    same = str(_against_k((run(1, 5, "age"), run(2, 10, "age")), None))  # type: ignore[arg-type]
    assert "columns 1" not in same
    text = str(_against_k((run(1, 5, "age"), run(2, 10, "age"), run(3, 5, "age", "town")), None))  # type: ignore[arg-type]
    assert "greedy, columns 1" in text
    assert "greedy, columns 2" in text
    assert "Columns 2: age, town." in text
