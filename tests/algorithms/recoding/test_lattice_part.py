"""The lattice as a picture: which nodes it has, what is said of each, and levels that are fixed."""

from __future__ import annotations

from typing import Any

import numpy as np
import pandas as pd
import pytest

import anonflow as af
from anonflow.algorithms.recoding.lattice_part import lattice_part
from anonflow.algorithms.recoding.lattice_view import lattice_view
from anonflow.errors import InfeasibleError, ParameterError
from tests.strategies import CITIES, city_tree, loop

QI = {"role": "quasi-identifier"}


def table_of(n: int = 60, columns: int = 2) -> af.Table:
    rng = np.random.default_rng(2)
    frame: dict[str, Any] = {"city": rng.choice(CITIES, n), "age": rng.integers(20, 60, n)}
    schema: dict[str, Any] = {
        "city": {**QI, "kind": "hierarchy", "hierarchy": city_tree()},
        "age": {**QI, "kind": "numeric"},
        "ill": {"role": "sensitive"},
    }
    for at in range(columns - 2):
        frame[f"q{at}"] = rng.choice(list("xy"), n)
        schema[f"q{at}"] = {**QI, "kind": "suppression"}
    return af.Table(pd.DataFrame({**frame, "ill": rng.choice(list("ab"), n)}), schema)


WIDTHS = {"age": [10, 20]}


def test_every_node_says_what_running_it_gives() -> None:
    table = table_of()
    anon = af.anonymize(table, "full-domain", k=4, limit=0.1, widths=WIDTHS)
    part = lattice_part(anon)
    assert part is not None
    assert len(part.nodes) == part.of == anon.facts["nodes"] == 16
    assert part.best == part.of_run
    for node in part.nodes:
        run = af.anonymize(table, "full-domain", k=4, limit=1.0, widths=WIDTHS, levels=part.named(node))
        assert run.facts["levels"] == part.named(node)
        assert run.loss("ncp") == pytest.approx(node.loss)
        assert node.anonymous == (node.suppressed <= 6)
        if node.anonymous:
            assert node.loss >= anon.loss("ncp") - 1e-12
            assert af.anonymize(table, "full-domain", k=4, limit=0.1, widths=WIDTHS, levels=part.named(node))
        else:
            with pytest.raises(InfeasibleError, match="within `levels` suppress at most 6 records"):
                af.anonymize(table, "full-domain", k=4, limit=0.1, widths=WIDTHS, levels=part.named(node))
    heights = [sum(node.levels) for node in part.nodes]
    assert all(heights[high] == heights[low] + 1 for low, high in part.edges)


def test_a_large_lattice_shows_the_optimum_and_where_the_run_stands() -> None:
    table = table_of(columns=5)
    free = af.anonymize(table, "full-domain", k=4, limit=0.1, widths=WIDTHS)
    anon = af.anonymize(table, "full-domain", k=4, limit=0.1, widths=WIDTHS, levels={"city": "*", "age": "*"})
    part = lattice_part(anon)
    assert part is not None
    assert part.best is not None
    assert part.of_run is not None
    assert len(part.nodes) < part.of == 128
    assert part.named(part.nodes[part.best]) == free.facts["levels"]
    assert part.named(part.nodes[part.of_run]) == anon.facts["levels"]
    centres = [np.array(part.nodes[at].levels) for at in (part.best, part.of_run)]
    assert all(min(np.abs(np.array(n.levels) - c).sum() for c in centres) <= 1 for n in part.nodes)


def test_diversity_decides_what_is_anonymous() -> None:
    table = table_of()
    plain = af.anonymize(table, "full-domain", k=4, limit=0.2, widths=WIDTHS)
    diverse = lattice_part(af.diversify(plain, "l-diversity", l=1.9))
    assert diverse is not None
    before = lattice_part(plain)
    assert before is not None
    assert all(
        item.anonymous or not other.anonymous for item, other in zip(before.nodes, diverse.nodes, strict=True)
    )
    assert sum(node.anonymous for node in diverse.nodes) < sum(node.anonymous for node in before.nodes)


def test_the_picture_has_keys_where_nodes_are_clicked() -> None:
    anon = af.anonymize(table_of(), "full-domain", k=4, limit=0.1, widths=WIDTHS)
    part = lattice_part(anon)
    assert part is not None
    clicked, plain = str(lattice_view(part, keys=True)), str(lattice_view(part))
    assert clicked.count('data-key="node:') == 16
    assert "data-key" not in plain
    assert "suppresses" in plain
    assert "★ optimum, this run" in plain
    assert "Levels of the columns" in anon._repr_html_()
    assert "Levels of the columns" not in af.anonymize(table_of(), "mondrian", k=4)._repr_html_()


def test_names_of_columns_are_no_markup() -> None:
    schema = {"<b>x": {**QI, "kind": "suppression"}, "age": {**QI, "kind": "numeric"}}
    frame = pd.DataFrame({"<b>x": list("aabb") * 3, "age": range(12)})
    part = lattice_part(af.anonymize(af.Table(frame, schema), "full-domain", k=2, limit=1))
    assert part is not None
    assert "<b>" not in str(lattice_view(part))


def test_without_one_lattice_there_is_no_picture() -> None:
    assert lattice_part(af.anonymize(table_of(), "mondrian", k=4)) is None
    frame = table_of().frame
    schema = {
        "age": {**QI, "kind": "numeric", "boundary": {"width": 20}},
        "city": {**QI, "kind": "suppression"},
    }
    assert lattice_part(af.anonymize(af.Table(frame, schema), "full-domain", k=4, limit=1)) is None


BAD: list[tuple[Any, str]] = [
    (["age"], "levels is a mapping of columns to levels"),
    ({"agee": "*"}, "no quasi-identifier.*did you mean 'age'"),
    (
        {"age": "width 11"},
        r"column 'age' has no level 'width 11'; its levels are values, width 10, width 20, \*",
    ),
    ({"age": 3}, "has no level '3'"),
]


@loop(("levels", "words"), BAD)
def test_bad_levels_are_a_sentence(levels: Any, words: str) -> None:
    with pytest.raises(ParameterError, match=words) as refused:
        af.anonymize(table_of(), "full-domain", k=4, widths=WIDTHS, levels=levels)
    assert "\n" not in str(refused.value)
