"""Fields of forms: what they show of an option, and what they read."""

from __future__ import annotations

from typing import Any

import pytest

from anonflow.algorithms.registry import REGISTRY
from anonflow.dashboards.components.option_field import field_value, option_field, option_value
from anonflow.option import options_of
from anonflow.table.prepare import STEPS

SETS = REGISTRY["local-suppression"].options["sets"]


@pytest.mark.parametrize(
    "value",
    [None, [["age", "sex"], ["zip code"]], [["no", "1a"], ["a, b", 'c]"d', "é f", "{}", ""]]],
)
def test_lists_of_columns_are_text_in_a_form(value: Any) -> None:
    field = option_field(SETS, value, 200)
    assert isinstance(field.value, str)
    assert option_value(SETS, field.value) == value


def test_text_that_is_no_list_is_left_for_the_method_to_refuse() -> None:
    assert option_value(SETS, "[age") == "[age"
    assert option_value(SETS, "age, sex") == ["age", "sex"]
    assert field_value(SETS, "[age") == "[age"


def test_a_mapping_is_text_without_braces() -> None:
    importance = REGISTRY["local-suppression"].options["importance"]
    assert field_value(importance, {"age": 2, "sex": 1}) == "age: 2, sex: 1"
    assert option_value(importance, "age: 2, sex: 1") == {"age": 2, "sex": 1}


def test_no_choice_is_without_words() -> None:
    options = options_of(STEPS["numbers"])
    point, thousands = (option_field(options[name], None, 200) for name in ("decimal", "thousands"))
    assert point.options == {"by itself": None, ".": ".", ",": ","}
    assert list(thousands.options) == ["by itself", ",", ".", "a space", "'"]
    assert point.value is None
    assert (point.get_root().value, "by itself") in point.get_root().options
    assert option_field(options["decimal"], ",", 200).get_root().value == ","
