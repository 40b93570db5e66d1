"""What is declared once is found everywhere: types, choices, bounds and sentences of options; a method of one's own."""

from __future__ import annotations

import importlib.util
import json
import subprocess
import sys
from typing import Annotated, Any, Literal

import numpy as np
import pytest

from anonflow import datasets
from anonflow.algorithms import anonymize
from anonflow.algorithms.registry import REGISTRY
from anonflow.criteria.registry import CRITERIA
from anonflow.drawing.method_mark import SHAPES
from anonflow.errors import ParameterError
from anonflow.option import NEEDED, Option, options_of, paragraphs
from anonflow.utility import MEASURES
from tests import ROOT


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


@pytest.mark.slow
def test_a_method_a_criterion_and_a_loss_of_ones_own_are_found_everywhere() -> None:
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
