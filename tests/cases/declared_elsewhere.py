"""A method, two criteria, a loss and an attacker of somebody else, each declared once; run as a program, it finds them everywhere."""

from __future__ import annotations

# isort: off
import tests.cases.attacker_elsewhere  # first, as lines of the registries would be
import tests.cases.diversity_elsewhere
import tests.cases.loss_elsewhere  # noqa: F401

# isort: on
import importlib.util
import json
import sys
import tempfile
from pathlib import Path
from typing import Annotated, Any, Literal

import numpy as np
import pytest

import anonflow as af
from anonflow.algorithms.method import Algorithm, Outcome, Partition
from anonflow.algorithms.registry import REGISTRY
from anonflow.criteria.criterion import Criterion
from anonflow.criteria.evidence import Evidence
from anonflow.criteria.registry import CRITERIA
from anonflow.criteria.verification import Finding
from anonflow.option import Option
from tests import ROOT
from tests.cases.drafts import put_at, value_at


def zebra(
    part: Partition,
    k: int,
    *,
    stripe: Annotated[Literal["black", "white"], Option("Which stripe")] = "black",
    width: Annotated[int, Option("Width of a stripe", least=1)] = 2,
) -> Outcome:
    """Classes of k neighbours in lexicographic order.

    Parameters
    ----------
    part : Partition
    k : int
    stripe : {"black", "white"}, optional
        White begins at the end.
    width : int, optional
        How many classes are as wide as one.
    """
    order = np.lexsort(part.records.codes.T[::-1])[:: 1 if stripe == "black" else -1]
    size = k * width if k * width <= part.n else k
    classes = np.empty(part.n, np.int64)
    classes[order] = np.minimum(np.arange(part.n) // size, part.n // size - 1)
    return Outcome.of_classes(part.records, classes)


ZEBRA = Algorithm(
    name="zebra",
    run=zebra,
    family="recoding",
    paper="Nobody, 2026",
    guarantee="k-anonymity",
    complexity="O(n q log n)",
    summary="an example",
    colour="#123456",
    shape="star",
    small=True,
)


def herd(evidence: Evidence, *, most: Annotated[int, Option("Largest herd", least=2)]) -> Finding:
    """Whether no class has more than `most` rows."""
    sizes = np.bincount(evidence.classes)[evidence.classes]
    return Finding.of("herd", sizes > most, "published", f"the largest has {int(sizes.max())} rows")


HERD = Criterion(name="herd", check=herd, sentence="No herd is larger than most.", adds_up=False)


def places() -> list[str]:
    """Where all of them are found; an AssertionError says where one is not."""
    from typer.testing import CliRunner

    from anonflow.cli.command_line import app
    from anonflow.dashboards.components.markup import methods_list
    from anonflow.dashboards.protect.diversity import DiversityChoice, DiversityForm
    from anonflow.dashboards.protect.settings import Protection
    from anonflow.dashboards.session.share_link import configuration, link
    from anonflow.dashboards.session.workspace import Workspace
    from anonflow.engine import load_flow
    from anonflow.engine.flows.json_schema import flow_schema
    from anonflow.errors import FlowError, ParameterError
    from anonflow.widgets import explorer

    results = []
    table = af.Table(af.datasets.census_like(120, seed=1), af.datasets.schema("census_like"))
    anon = af.anonymize(table, "zebra", k=3, stripe="white", width=1, loss="half-lm")
    assert af.verify(table, anon, ["covers", "guarantee", {"herd": 5}])
    assert not af.verify(table, anon, "herd(most=2)")
    assert np.isclose(anon.loss("half-lm"), anon.loss("lm") / 2)
    assert np.isclose(af.measure(table, anon, "hlm")["hlm"], anon.loss("hlm"))
    greedy = [af.anonymize(table, "greedy", k=3, loss=name).matches for name in ("half-lm", "lm")]
    assert np.array_equal(*greedy)
    attacks = af.attack(table, anon, {"owl": {"guesses": 3}})
    assert attacks["success"].tolist() == [3 / 120]
    with pytest.raises(ParameterError, match="owl: guesses"):
        af.attack(table, anon, {"owl": {"guesses": 0}})
    for wrong in ({"stripe": "red"}, {"width": 0}, {"stripes": 1}):
        with pytest.raises(ParameterError, match="zebra"):
            af.anonymize(table, "zebra", k=3, **wrong)
    illness = table.sensitive[0]
    plain = af.anonymize(table, "mondrian", k=6)
    want = {"small-lead": {"lead": 1, "column": illness}}
    assert not af.verify(table, plain, want)
    diverse = af.diversify(plain, "small-lead", column=illness, lead=1, seed=1)
    tops = (
        table.frame[illness]
        .groupby(diverse.classes)
        .agg(lambda shown: 2 * shown.value_counts().max() - len(shown))
    )
    assert tops.max() <= 1
    assert af.verify(table, diverse, ["guarantee", want])
    with pytest.raises(ParameterError, match="small-lead takes lead, not l"):
        af.diversify(plain, "small-lead", column=illness, l=2)
    results.append("library")

    row = af.algorithms().set_index("name").loc["zebra"]
    assert row["options"] == "stripe, width"
    assert REGISTRY["zebra"].look.colour == "#123456"
    results.append("registry")

    document: dict[str, Any] = {
        "flow": "stripes",
        "version": 1,
        "table": {
            "source": {"dataset": "census_like", "n": 200},
            "columns": af.datasets.schema("census_like"),
        },
        "steps": [
            {"anonymize": {"algorithm": "zebra", "k": 3, "stripe": "white", "loss": "half-lm"}},
            {"diversify": {"criterion": "small-lead", "column": illness, "lead": 2}},
            {"draw": {}},
            {"verify": ["guarantee", {"herd": {"most": 200}}]},
            {"measure": ["gcp", "half-lm"]},
            {"attack": [{"owl": {"guesses": 2}}]},
        ],
    }
    with tempfile.TemporaryDirectory() as folder:
        path = Path(folder) / "stripes.yaml"
        path.write_text(json.dumps(document), encoding="utf-8")
        report = af.run(path)
        assert report.ok
        assert report.results[0].measures["half-lm"] > 0
        assert report.attacks["attacker"].tolist() == ["owl"]
        document["steps"][0]["anonymize"]["stripe"] = "red"
        path.write_text(json.dumps(document), encoding="utf-8")
        with pytest.raises(FlowError, match="'stripe' of zebra must be one of black, white"):
            load_flow(path)
        document["steps"][0]["anonymize"]["stripe"] = "white"
        document["table"]["source"]["pieces"] = 60
        path.write_text(json.dumps(document), encoding="utf-8")
        assert af.run(path).ok
    results.append("loader")

    text = json.dumps(flow_schema())
    for word in (
        "small-lead",
        "Of small-lead: records.",
        "zebra",
        "White begins at the end.",
        '"white"',
        "herd",
        "most",
        "half-lm",
        "hlm",
        '"owl"',
        '"guesses"',
    ):
        assert word in text, word
    results.append("JSON Schema")

    workspace = Workspace()
    workspace.opener.open_dataset("census_like", n=100)
    workspace.draft.set_algorithms(["zebra"])
    choice = Protection(workspace)
    request = choice.asked_options()["zebra"]
    assert [(item.label, item.sentence) for item in request] == [
        ("Which stripe", "White begins at the end."),
        ("Width of a stripe", "How many classes are as wide as one."),
    ]
    assert "half-lm" in choice.param.loss.objects
    assert "small tables" in methods_list(["zebra"])
    results.append("form")

    diversity = DiversityChoice(workspace)
    diversity.param.update(criterion="small-lead", column=illness)
    assert (diversity.lead, diversity.needed, diversity.problem) == (3, ("lead",), "")
    diversity.lead = 2
    diversify = {"criterion": "small-lead", "column": illness, "lead": 2}
    assert value_at(workspace.draft, ("steps", "diversify")) == diversify
    form = DiversityForm(diversity)
    assert form.numbers["lead"] in form.first
    assert form.numbers["lead"].name == "Largest lead"
    assert form.numbers["l"] not in form.first

    choice.set_option("zebra", "stripe", "white")
    choice.loss = "half-lm"
    put_at(workspace.draft, ("steps", "verify"), ["covers", {"herd": {"most": 9}}])
    steps = configuration(link(workspace.draft.spec)).steps
    assert steps.anonymize.of_methods == {"zebra": {"stripe": "white"}}
    assert steps.anonymize.loss == "half-lm"
    assert steps.verify == ("covers", {"herd": {"most": 9}})
    assert steps.diversify == workspace.draft.spec.steps.diversify
    workspace.close()
    results.append("link")

    shell = CliRunner().invoke(app, ["algorithms", "zebra", "--json"])
    assert "White begins at the end." in shell.output
    assert "zebra" in CliRunner().invoke(app, ["algorithms", "--json"]).output
    results.append("shell")

    panel = explorer(table, methods=["zebra"])
    assert panel.methods == ("zebra",)
    results.append("explorer")

    if importlib.util.find_spec("sphinx") is None:  # the documentation is built with an extra of its own
        return results
    sys.path.insert(0, str(ROOT / "docs" / "extensions"))
    import from_the_code

    assert any("Which stripe" in line for line in from_the_code.algorithm_options())
    assert any("No herd is larger than most. | " in line for line in from_the_code.criterion_table())
    assert any("half of LM" in line for line in from_the_code.measure_list())
    results.append("documentation")
    return results


if __name__ == "__main__":
    REGISTRY["zebra"] = ZEBRA
    CRITERIA["herd"] = HERD
    sys.stdout.write(json.dumps(places()))
