"""Errors: what a caller may read of them besides the text that is shown."""

from __future__ import annotations

import pickle

import pytest

import anonflow as af
from anonflow.errors import InfeasibleError, ParameterError


def test_the_message_begins_with_its_subject() -> None:
    error = ParameterError("k is missing\n", subject="diversify")
    assert (str(error), error.message) == ("diversify: k is missing\\n",) * 2
    assert (error.subject, error.text, error.problems) == (
        "diversify",
        "k is missing\\n",
        ("diversify: k is missing\\n",),
    )


def test_without_a_subject_message_and_text_are_the_same() -> None:
    error = ParameterError("k is missing")
    assert (error.subject, error.text, error.message) == ("", "k is missing", "k is missing")


def test_of_several_problems_the_text_is_the_first() -> None:
    error = ParameterError.collected("schema", ["first", "second"])
    assert (error.text, error.message) == ("first", "schema: 2 problems")


def test_a_subject_survives_a_worker_process() -> None:
    error = pickle.loads(pickle.dumps(InfeasibleError("too few", subject="diversify")))
    assert (str(error), error.subject, error.text) == ("diversify: too few", "diversify", "too few")


def test_callers_find_the_subject_of_a_step() -> None:
    anon = af.anonymize(af.datasets.zip_example(), "mondrian", k=2, schema=af.datasets.schema("zip_example"))
    with pytest.raises(ParameterError, match=r"^diversify: way is") as caught:
        af.diversify(anon, "l-diversity", l=2, way="sideways")
    assert caught.value.subject == "diversify"
    assert caught.value.text.startswith("way is")
