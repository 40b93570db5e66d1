"""The strict YAML reader: what is text, what is refused, and where."""

from __future__ import annotations

import json
import subprocess
import sys
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from anonflow import strict_yaml
from anonflow.errors import FlowError, SchemaError
from anonflow.strict_yaml import dumps, loads, read, suggest, unknown
from tests.strategies import examples


def test_a_plain_scalar_stays_text() -> None:
    texts = (
        "NO no yes on True TRUE False Null NULL ~ 01234 -0 +1 1_000 0x1F 0o17 0b1 1. .5 1e 00 -01 1:30 12e03x "
        ".inf -.inf .nan NaN 2020-01-31 2020-01-31T10:00:00Z 1,5 = << 5% Ü"
    )
    for text in texts.split():
        assert loads(text).data == text
        assert loads(f"a: {text}").data == {"a": text}


def test_plain_scalars_have_their_types() -> None:
    values: dict[str, object] = {
        "5": 5, "-2": -2, "0": 0, "1.50": 1.5, "-0.0": 0.0, "1e3": 1000.0, "2E-2": 0.02,
        "true": True, "false": False, "null": None, "": None, "9" * 30: int("9" * 30),
    }  # fmt: skip
    for text, value in values.items():
        result = loads(f"a: {text}").data["a"]
        assert result == value, text
        assert type(result) is type(value), text


def test_quotes_make_text() -> None:
    for text in ("5", "true", "null", "1.5", ""):
        assert loads(f"['{text}', \"{text}\"]").data == [text, text]


def test_keys_are_text_as_written() -> None:
    document = loads("{1: a, true: b, null: c, 1.0: d, 01: e, NO: f}")
    assert list(document.data) == ["1", "true", "null", "1.0", "01", "NO"]


def test_an_empty_document_is_nothing() -> None:
    assert loads("").data is None
    assert loads("# only a comment\n").data is None


TRAPS = {
    "duplicate key": ("a: 1\nb: 2\na: 3\n", "3:1", "duplicate key 'a', first in line 1"),
    "duplicate key in flow style": ("x: {a: 1, a: 2}", "1:11", "duplicate key 'a'"),
    "quoted duplicate": ("1: x\n'1': y", "2:1", "duplicate key '1'"),
    "anchor": ("a: &x [1]", "1:4", "anchor"),
    "anchor on a mapping": ("a: &x\n  b: 1", "1:4", "anchor"),
    "alias": ("a: *x", "1:4", "alias"),
    "python tag": ("a: !!python/object/apply:os.system [echo]", "1:4", "tag"),
    "standard tag": ("a: !!str 5", "1:4", "tag"),
    "local tag": ("a: !env HOME", "1:4", "tag"),
    "tag on a key": ("!!str a: b", "1:1", "tag"),
    "two documents": ("a: 1\n---\nb: 2", "2:1", "second document"),
    "YAML 1.1": ("%YAML 1.1\n---\na: 1", "2:1", "directive"),
    "tag directive": ("%TAG ! tag:x,2000:\n---\na: 1", "2:1", "directive"),
    "tab": ("a:\n\tb: 1", "2:1", "tab"),
    "tab after spaces": ("a:\n  \tb: 1", "2:3", "tab"),
    "tab after a colon": ("a:\tb", "1:3", "tab"),
    "deep": ("[" * 5000 + "]" * 5000, "1:101", "more than 100 deep"),
    "deep in blocks": ("\n".join(" " * i + "a:" for i in range(120)), "101:101", "more than 100 deep"),
    "key that is a list": ("? [a]\n: b", "1:3", "key that is no text"),
    "key that is a mapping": ("{{a: b}: c}", "1:2", "key that is no text"),
    "two colons": ("a: b: c", "1:5", "quotes"),
    "wrong indentation": ("a: 1\n b: 2", "2:3", "indentation"),
    "open bracket": ("a: [1", "1:6", ""),
    "open quote": ("a: 'x", "1:6", ""),
    "at sign": ("a: @x", "1:4", "put the text in quotes"),
    "control character": ("a: 1\nb: \x01", "2:4", "U+0001"),
    "line separator": ("a: \u2028", "1:4", "U+2028"),
    "byte order mark inside": ("a: \ufeff", "1:4", "U+FEFF"),
    "half a surrogate pair": (r'a: "\ud800"', "1:4", "surrogate"),
    "number too large": ("a: 1e999", "1:4", "too large"),
    "number too long": ("a: " + "9" * 5000, "1:4", "more than 400 digits"),
    "escape that is none": (r'a: "\q"', "1:6", "escape"),
}


def test_a_trap_is_refused_at_its_place() -> None:
    for trap, (text, place, says) in TRAPS.items():
        with pytest.raises(SchemaError) as caught:
            loads(text, "flow.yaml", SchemaError)
        message = str(caught.value)
        assert message.startswith(f"flow.yaml:{place}: "), trap
        assert says in message, trap
        assert "\n" not in message, trap
        assert len(message) < 200, trap


def test_all_problems_in_one_go() -> None:
    with pytest.raises(FlowError) as caught:
        loads("a: 1\na: 2\nb: &x [1]\nc: *x\nd: !t e\nf: [", "f.yaml")
    assert [problem.split(" ")[0] for problem in caught.value.problems] == [
        *("f.yaml:2:1:", "f.yaml:3:4:", "f.yaml:4:4:", "f.yaml:5:4:", "f.yaml:6:5:"),
    ]


def test_an_alias_bomb_ends_early() -> None:
    lines = ["a0: &a0 [x, x]"] + [f"a{i}: &a{i} [{', '.join([f'*a{i - 1}'] * 9)}]" for i in range(1, 40)]
    with pytest.raises(FlowError) as caught:
        loads("\n".join(lines))
    assert len(caught.value.problems) < 30


def test_long_keys_are_not_echoed() -> None:
    key = "x" * 500
    with pytest.raises(FlowError) as caught:
        loads(f"{key}: 1\n{key}: 2")
    assert len(str(caught.value)) < 120


@pytest.fixture
def document() -> strict_yaml.Document:
    return loads(
        "flow: adult\nsteps:\n  - draw: {}\n  -   verify: [covers,\n        k]\n'1': {x: y}\n", "f.yaml"
    )


PLACES: dict[tuple[str | int, ...], tuple[tuple[int, int], tuple[int, int]]] = {
    (): ((1, 1), (1, 1)),
    ("flow",): ((1, 1), (1, 7)),
    ("steps",): ((2, 1), (3, 3)),
    ("steps", 0): ((3, 5), (3, 5)),
    ("steps", 0, "draw"): ((3, 5), (3, 11)),
    ("steps", 1, "verify"): ((4, 7), (4, 15)),
    ("steps", 1, "verify", 0): ((4, 16), (4, 16)),
    ("steps", 1, "verify", 1): ((5, 9), (5, 9)),
    ("1", "x"): ((6, 7), (6, 10)),
    ("steps", 7, "draw"): ((2, 1), (3, 3)),
    ("nothing",): ((1, 1), (1, 1)),
}
"""Path -> lines and columns of its key and of its value."""


def test_each_path_has_its_place(document: strict_yaml.Document) -> None:
    for path, (key, value) in PLACES.items():
        assert document.place(path) == key, path
        assert document.place(path, value=True) == value, path
        assert document.message(path, "hm") == f"f.yaml:{key[0]}:{key[1]}: hm"


def test_problems_are_raised_in_the_files_order(document: strict_yaml.Document) -> None:
    problems = document.problems()
    problems.raise_if_any()
    problems.add(("1", "x"), "last")
    problems.add_unknown_keys((), ["flow", "setps"], ["flow", "steps"])
    problems.add(("flow",), "first", value=True)
    assert len(problems) == 3
    with pytest.raises(FlowError) as caught:
        problems.raise_if_any()
    assert caught.value.problems == (
        "f.yaml:1:1: unknown key 'setps' (did you mean 'steps'?)",
        "f.yaml:1:7: first",
        "f.yaml:6:7: last",
    )


def test_a_similar_name_is_suggested_and_no_other() -> None:
    known = ["partition_size", "loss", "seed", "max-width"]
    assert suggest("partition-size", known) == "partition_size"
    assert suggest("LOSS", known) == "loss"
    assert suggest("max_widht", known) == "max-width"
    assert suggest("zebra", known) is None
    assert suggest("x" * 100_000, known) is None
    assert unknown("zebra", known) == "unknown key 'zebra'; known are partition_size, loss, seed, max-width"
    assert unknown("sed", known, "option") == "unknown option 'sed' (did you mean 'seed'?)"
    assert unknown("zebra", []) == "unknown key 'zebra'"


# --- files ------------------------------------------------------------------------------------------


def test_reads_a_file(tmp_path: Path) -> None:
    path = tmp_path / "flow.yaml"
    path.write_bytes("\ufeffname: Zoë\r\nk: 5\r\n".encode())
    document = read(path)
    assert document.data == {"name": "Zoë", "k": 5}
    assert document.place(("k",)) == (2, 1)


@pytest.mark.parametrize(
    ("content", "says"),
    [
        (b"a: 1\nb: \xe9t\xe9\n", "2:4: not UTF-8"),
        ("a: 1".encode("utf-16"), "1:1: not UTF-8"),
        (b"x" * (strict_yaml.MAX_BYTES + 1), "larger than 1 MiB"),
    ],
)
def test_files_that_are_refused(tmp_path: Path, content: bytes, says: str) -> None:
    path = tmp_path / "flow.yaml"
    path.write_bytes(content)
    with pytest.raises(SchemaError, match=says) as caught:
        read(path, SchemaError)
    assert str(caught.value).startswith(str(path))


def test_a_path_that_is_not_a_file_is_refused(tmp_path: Path) -> None:
    with pytest.raises(FlowError, match="no such file"):
        read(tmp_path / "flow.yaml")
    with pytest.raises(FlowError, match="a folder"):
        read(tmp_path)
    with pytest.raises(FlowError, match="no ordinary file"):
        read("/dev/zero")
    with pytest.raises(FlowError, match="cannot be read"):
        read(tmp_path / ("x" * 5000))
    with pytest.raises(FlowError):
        read("a\0b")


def test_the_parser_is_imported_late() -> None:
    code = "import sys, anonflow.strict_yaml; assert not any(m.startswith('ruamel') for m in sys.modules)"
    subprocess.run([sys.executable, "-c", code], check=True)


# --- writing ----------------------------------------------------------------------------------------

TEXTS = st.one_of(
    st.text(max_size=12),
    st.text(alphabet="0123456789.eE+-_ x:#,[]{}'\"*&!|>%@`~?\n\t", max_size=8),
    st.sampled_from(
        ["NO", "true", "null", "~", "01234", "- a", "a: b", "#", "a #b", " a", "a ", "", "<<", "---"]
    ),
)
SCALARS = st.one_of(
    st.none(), st.booleans(), st.integers(), st.floats(allow_nan=False, allow_infinity=False), TEXTS
)


def containers(inner: st.SearchStrategy[object]) -> st.SearchStrategy[object]:
    return st.lists(inner, max_size=4) | st.dictionaries(TEXTS, inner, max_size=4)


# three levels by hand: st.recursive warns now and then of a strategy that happened not to recurse
DATA = SCALARS | containers(SCALARS | containers(SCALARS | containers(SCALARS)))


def same(a: object, b: object) -> bool:
    if type(a) is not type(b):
        return False
    if isinstance(a, dict) and isinstance(b, dict):
        return list(a) == list(b) and all(same(a[key], b[key]) for key in a)
    if isinstance(a, list) and isinstance(b, list):
        return len(a) == len(b) and all(map(same, a, b))
    return a == b


@given(DATA)
@examples(300)
def test_written_data_read_back(data: object) -> None:
    text = dumps(data)
    assert same(loads(text).data, data), text
    assert text.endswith("\n")


def test_written_data_look_like_ours() -> None:
    data = {
        "flow": "adult-comparison",
        "table": {
            "source": {"csv": "data/adult.csv"},
            "columns": {
                "zip": {"role": "quasi-identifier", "boundary": ["Europe", "NO", "01234"]},
                "sex": {"role": "quasi-identifier", "hierarchy": {"nested": {"*": ["Male", "Female"]}}},
            },
        },
        "steps": [{"anonymize": {"algorithm": "greedy", "k": 10}}, {"draw": {}}, {"verify": ("covers",)}],
        "long": ["x" * 60, "y" * 60],
    }
    assert dumps(data) == (
        "flow: adult-comparison\n"
        "table:\n"
        "  source: {csv: data/adult.csv}\n"
        "  columns:\n"
        '    zip: {role: quasi-identifier, boundary: [Europe, "NO", "01234"]}\n'
        "    sex:\n"
        "      role: quasi-identifier\n"
        "      hierarchy:\n"
        '        nested: {"*": [Male, Female]}\n'
        "steps:\n"
        "  - anonymize: {algorithm: greedy, k: 10}\n"
        "  - draw: {}\n"
        "  - verify: [covers]\n"
        "long:\n"
        f"  - {'x' * 60}\n"
        f"  - {'y' * 60}\n"
    )


def nested(depth: int, data: object = 1) -> object:
    for _ in range(depth):
        data = [data]
    return data


def test_what_cannot_be_written() -> None:
    loop: list = []
    loop.append(loop)
    bad = [
        {1: 2},
        {"a": {None: 1}},
        {"a": object()},
        float("nan"),
        float("inf"),
        "\ud800",
        10**500,
        {"a": {1, 2}},
        {"x" * 2000: 1},
    ]
    for data in [*bad, nested(20_000), loop]:
        with pytest.raises(SchemaError) as caught:
            dumps(data, SchemaError)
        assert "\n" not in str(caught.value)


@pytest.mark.parametrize("inside", [[1], [[]], [{}], [{"a": "x: y"}], [{"a": [1]}], [{"a": {"b": 2}}]])
def test_depth_that_can_be_read_can_be_written(inside: list) -> None:
    readable = []
    for depth in (1, 97, 98, 99, 100, 101, 102):
        data = nested(depth - 1, inside)
        try:
            loads(json.dumps(data))
        except FlowError:
            with pytest.raises(FlowError, match="more than 100 deep"):
                dumps(data)
        else:
            assert loads(dumps(data)).data == data, depth
            readable.append(depth)
    assert 97 in readable
    assert 102 not in readable
