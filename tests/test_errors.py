"""Errors: what a caller may read of them besides the text that is shown."""

from __future__ import annotations

import pickle

import pytest

import anonflow as af
from anonflow.errors import AnonflowError, InfeasibleError, ParameterError, Sentence, setting


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


def test_a_sentence_names_settings_and_is_the_text_of_flow_files() -> None:
    sentence = (
        "no hierarchy; give " + setting("levels", "`hierarchy: {}`", 2) + " or " + setting("k", "k") + "."
    )
    assert sentence == f"{sentence}" == "no hierarchy; give `hierarchy: {}` or k."
    words = {"levels": "the {} levels"}  # a setting without words keeps those of a flow file
    assert sentence.in_words(words) == "no hierarchy; give the 2 levels or k."
    assert setting("k", "k").in_words({}) == "k"


def test_each_problem_keeps_its_settings_wherever_the_error_goes() -> None:
    raised = [ParameterError("name\n: " + setting("k", "k", 3)), ParameterError("fewer")]
    error = AnonflowError.collected("two", [problem for each in raised for problem in each.problems])
    moved = pickle.loads(pickle.dumps(error.in_file("copy.csv"))).renamed("copy.csv", "people.csv")
    assert (
        str(moved) == "people.csv: cannot be used: 2 problems\n  people.csv: name\\n: k\n  people.csv: fewer"
    )
    first, second = moved.problems
    assert isinstance(first, Sentence)
    assert first.in_words({"k": "the size {}"}) == "people.csv: name\\n: the size 3"
    assert second == "people.csv: fewer"


def test_a_subject_is_a_setting() -> None:
    error = pickle.loads(pickle.dumps(ParameterError("too few", subject="diversify")))
    assert isinstance(error.message, Sentence)
    assert error.message.in_words({"diversify": "diversity"}) == "diversity: too few"


def test_a_word_of_thousands_of_characters_is_cut() -> None:
    name = "p" * 5_000
    for error in (
        ParameterError(f"unknown algorithm {name!r} (known: greedy)"),
        ParameterError("x", subject=name),
        AnonflowError.collected("two", [name, "k is missing"]),
    ):
        assert len(str(error)) < 200
        assert "pppp..." in str(error)
    assert str(ParameterError(f"{'folder/' * 100}people.csv: is gone")).count("folder") == 100
