"""What is declared once is found everywhere: types, choices, bounds and sentences of options; a method of one's own."""

from __future__ import annotations

import ast
import importlib.util
import json
import re
import subprocess
import sys
from collections.abc import Mapping
from typing import Annotated, Any, Literal

import numpy as np
import pandas as pd
import pytest

from anonflow import datasets
from anonflow.algorithms import anonymize
from anonflow.algorithms.registry import REGISTRY
from anonflow.criteria.registry import CRITERIA
from anonflow.drawing.method_mark import SHAPES
from anonflow.errors import ParameterError
from anonflow.option import NEEDED, Option, options_of, paragraphs
from anonflow.risk import ATTACKERS
from anonflow.utility import MEASURES
from tests import ROOT
from tests.cases.sources import forget_trees, nodes_of

__all__ = ["forget_trees"]


def example(
    subject: object,
    *,
    word: Annotated[Literal["a", "b"], Option("Word")] = "a",
    count: Annotated[int, Option(least=2)] = 3,
    share: Annotated[float | None, Option(least=0, below=1)] = None,
    whole: Annotated[float, Option(least=1, whole=True)],
    rate: Annotated[float, Option(above=0, most=1)] = 1.0,
    plain: bool = False,
    free: Any = None,
    bare=1.5,  # type: ignore[no-untyped-def]
) -> None:
    """An example.

    Parameters
    ----------
    subject : object
        Nothing.
    word : {"a", "b"}
        One of two, as :func:`~anonflow.option.options_of` says,
        or ``a``.

        And more.
    count, share : number
        Numbers.

    Returns
    -------
    None
        Nothing.
    """


def test_options_are_read_off_the_function() -> None:
    options = options_of(example)
    assert list(options) == ["word", "count", "share", "whole", "rate", "plain", "free", "bare"]
    word = options["word"]
    assert (word.label, word.kind, word.choices, word.default) == ("Word", str, ("a", "b"), "a")
    assert word.sentence == "One of two, as options_of says, or a."
    assert options["count"].label == "Count"
    assert options["share"].sentence == options["count"].sentence == "Numbers."
    assert options["share"].optional
    assert options["whole"].default is NEEDED
    assert options["free"].kind is None
    assert options["bare"].kind is float


CUT_BY_THE_TABLE = {"first", "candidates", "block", "q", "threads"}
"""A larger number than the partition has records, or the machine processors, means the same."""


def test_every_whole_number_of_a_method_has_an_end() -> None:
    """``kicks=10**30`` ran until it was stopped, and other such numbers overflowed."""
    endless = {
        f"{method.name} {option.name}"
        for method in REGISTRY.values()
        for option in method.options.values()
        if option.kind is int and option.name not in CUT_BY_THE_TABLE and not option.problem(10**30)
    }
    assert endless == set()
    with pytest.raises(ParameterError, match="kicks must be a whole number of at least 0 and at most 10000"):
        anonymize(
            datasets.zip_example(), "two-phase", k=2, kicks=10**30, schema=datasets.schema("zip_example")
        )


JUDGED: list[tuple[str, list[Any], list[Any], str]] = [
    ("word", ["a", "b"], ["c", 1, None, ["a"]], "must be one of a, b"),
    (
        "count",
        [2, 99, np.int64(4)],
        [1, 2.0, True, "2", None, 10**400],
        "must be a whole number of at least 2",
    ),
    (
        "share",
        [None, 0, 0.5, np.float32(0.25)],
        [1, -0.1, float("nan"), "0.5"],
        "must be a number of at least 0 and below 1",
    ),
    ("whole", [1, 2.0], [1.5, 0, float("inf"), None], "must be a whole number of at least 1"),
    ("rate", [1, 1e-9], [0, -1, 1.5, None], "must be a number above 0 and at most 1"),
    ("plain", [True, False], [0, "no", None], "must be true or false"),
    ("free", [None, object(), "x"], [], ""),
    ("bare", [1, 2.5], ["x", None], "must be a number"),
]
"""An option of the example, values that it takes, values that it refuses, and the words."""


def test_values_are_judged(subtests: pytest.Subtests) -> None:
    for name, good, bad, words in JUDGED:
        with subtests.test(name):
            option = options_of(example)[name]
            assert [option.problem(value) for value in good] == [None] * len(good)
            assert [option.problem(value) for value in bad] == [words] * len(bad)


def test_every_method_takes_codes() -> None:
    frame = pd.DataFrame({"age": [None, 30, 31, 40, 41, None, 33, 34]})
    schema = {"age": {"role": "quasi-identifier", "kind": "numeric", "missing": "value"}}
    for method in REGISTRY.values():
        anonymize(frame, method.name, k=2, schema=schema)


def test_no_docstring_says_nothing() -> None:
    assert paragraphs(None) == {}
    assert paragraphs("A sentence.") == {}


def test_every_declaration_is_whole() -> None:
    assert len({(item.colour, item.shape) for item in REGISTRY.values()}) == len(REGISTRY)
    for method in REGISTRY.values():
        assert method.shape in SHAPES, method.name
        assert method.guarantee in CRITERIA, method.name
        assert CRITERIA[method.guarantee].promise, method.name
        assert method.without_boundaries is None or method.without_boundaries in REGISTRY
        for option in method.options.values():
            assert option.problem(option.default) is None, (method.name, option.name)
            assert option.sentence, (method.name, option.name)
    for criterion in CRITERIA.values():
        assert criterion.sentence.endswith("."), criterion.name
    for name, measure in MEASURES.items():
        assert measure.sentence.endswith("."), name


def _without_a_test(names: Mapping[str, str], rooms: tuple[str, ...]) -> list[str]:
    """Names that stand in no test of some rooms, neither as a text nor as the class that is called."""
    used: set[str] = set()
    for room in rooms:
        for path in (ROOT / "tests" / room).rglob("test_*.py"):
            for node in nodes_of(path):
                match node:
                    case ast.Constant(value=str(text)):
                        used.add(text.split("(")[0] or text)
                    case ast.Call(func=ast.Name(id=called) | ast.Attribute(attr=called)):
                        used.add(called)
    return [name for name, called in names.items() if not {name, called} & used]


def test_every_criterion_and_every_attacker_has_a_test() -> None:
    """In the rooms that compare them with definitions: who adds one, adds its test."""
    criteria = {name: name for name in CRITERIA} | {"herd": "herd"}
    rooms = ("algorithms", "attacks", "criteria", "risk", "table")
    assert _without_a_test(criteria, rooms) == ["herd"]
    attackers = {name: kind.__name__ for name, kind in ATTACKERS.items()} | {"owl": "Owl"}
    assert _without_a_test(attackers, ("attacks", "risk", "table")) == ["owl"]


def test_short_examples_of_contributing_are_short() -> None:
    """Who adds something reads one of these files whole."""
    examples = re.findall(
        r"`([\w/]+\.py)` is (?:a|the) short", (ROOT / "CONTRIBUTING.md").read_text(encoding="utf-8")
    )
    lines = {
        name: len((folder / name).read_text(encoding="utf-8").splitlines())
        for name in examples
        for folder in (ROOT, ROOT / "anonflow")
        if (folder / name).is_file()
    }
    assert len(lines) == len(examples) >= 4
    assert {name: many for name, many in lines.items() if many > 130} == {}


@pytest.mark.slow
def test_a_method_a_criterion_a_loss_and_an_attacker_of_ones_own_are_found_everywhere() -> None:
    ended = subprocess.run(
        [sys.executable, "-m", "tests.cases.declared_elsewhere"],
        cwd=ROOT,
        capture_output=True,
        text=True,
        check=False,
    )
    assert ended.returncode == 0, ended.stderr[-2000:]
    places = ["library", "registry", "loader", "JSON Schema", "form", "link", "shell", "explorer"]
    if importlib.util.find_spec("sphinx") is not None:  # the site's tools are an extra of their own
        places.append("documentation")
    assert json.loads(ended.stdout) == places
