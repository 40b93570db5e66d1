"""The release card: every line, what fails it, and what its remedies cost."""

from __future__ import annotations

import warnings
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
import pytest

import anonflow as af
from anonflow.criteria.evidence import collect
from anonflow.engine.execution.events import Cancelled
from anonflow.engine.report.card import (
    LINES,
    Prices,
    ReleaseCard,
    Remedy,
    cards_of,
    plausible,
    sample_of,
    smallest_k,
)
from anonflow.errors import AnonflowError, DataError, InfeasibleError, ParameterError
from anonflow.risk import attack_context
from anonflow.risk.attack import OF_THE_ROW
from anonflow.risk.attack_context import AttackContext

SEED = 2**120
COLUMNS = {
    "age": {"role": "quasi-identifier", "kind": "numeric"},
    "city": {"role": "quasi-identifier", "kind": "categorical"},
    "ill": {"role": "sensitive"},
}


def table(n: int = 60, ill: str = "mixed") -> af.Table:
    rng = np.random.default_rng(7)
    age = rng.integers(20, 60, n)
    shown = {
        "mixed": rng.choice(["flu", "cold"], n),
        "rare": np.where(rng.random(n) < 0.15, "flu", "cold"),
        "follows": age + 100,
    }[ill]
    return af.Table(pd.DataFrame({"age": age, "city": rng.choice(["A", "B"], n), "ill": shown}), COLUMNS)


def card(
    people: af.Table, method: str = "greedy", k: int = 3, threshold: float | None = None, **options: object
) -> ReleaseCard:
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        return af.release_card(
            af.anonymize(people, method, k=k, seed=SEED, **options), threshold=threshold, seed=SEED
        )


def test_every_line_is_there_and_in_order() -> None:
    result = card(table())
    assert tuple(line.name for line in result.lines) == LINES
    assert list(result.frame()["line"]) == list(LINES)
    verdicts = {line.name: line.verdict for line in result.lines}
    assert verdicts["promise"] == verdicts["measured"] == "passed"
    assert verdicts["utility"] == "–"
    assert result.worst >= 1 / 3


def test_homogeneity_fails_and_its_remedies_have_the_price_that_they_have() -> None:
    people = table(ill="rare")
    anonymization = af.anonymize(people, "greedy", k=3, seed=SEED)
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        release = anonymization.release(seed=SEED)
    result = af.release_card(anonymization, release, seed=SEED)
    line = next(each for each in result.lines if each.name == "homogeneity")
    assert line.verdict == "failed"
    assert [each.action for each in line.remedies] == ["p = 2", "l = 2"]
    price = line.remedies[0].price
    assert price is not None
    # the same by hand: the method with the prices' own seed, and then diverse, of people whom the release could be about
    from anonflow.release.randomness import derived_seed

    context = af.risk.AttackContext.of(people, release, 3, seed=derived_seed(SEED, "attackers"))
    dealt = plausible(anonymization, context, SEED)
    assert dealt is not None
    assert af.verify(
        dealt.table, release.frame, ["covers", "k-regular"], k=3, certificate=release.certificate
    )
    assert not dealt.table.frame["ill"].equals(people.frame["ill"])
    own = derived_seed(SEED, "prices")
    anon = af.anonymize(dealt.table, "greedy", k=3, seed=own)
    diverse = af.diversify(anon, "p-sensitivity", p=2, seed=own)
    assert price == pytest.approx(diverse.loss() - anon.loss())
    assert f"p = 2 costs {price:+.3f} GCP" in line.sentence()
    assert "not possible" in line.remedies[1].sentence()  # less than half of the table is ill
    assert not result.ok
    assert "Homogeneity" in result.headline()


@pytest.mark.parametrize("method", ["mondrian", "greedy"])
def test_people_whom_the_release_could_be_about_are_another_draw_of_it(method: str) -> None:
    """Each class keeps the values that it publishes; who has which is drawn anew, by the seed."""
    people = table(ill="follows")
    anonymization = af.anonymize(people, method, k=5, seed=SEED)
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        release = anonymization.release(seed=SEED)
    context = AttackContext.of(people, release)
    draws = []
    for seed in (SEED, SEED, SEED + 1):
        dealt = plausible(anonymization, context, seed)
        assert dealt is not None
        draws.append(dealt.table.frame["ill"])
        if method == "mondrian":
            values = pd.DataFrame(
                {"class": anonymization.classes, "true": people.frame["ill"], "dealt": draws[-1]}
            )
            for _, members in values.groupby("class"):
                assert sorted(members["true"]) == sorted(members["dealt"])
    assert draws[0].equals(draws[1])
    assert not draws[0].equals(draws[2])
    assert not draws[0].equals(people.frame["ill"])


def test_columns_that_are_not_published_are_no_hindrance() -> None:
    """Prices are of a table dealt anew: identifiers, units and households stay where they are."""
    frame = table(ill="rare").frame
    frame = frame.assign(
        name=[f"n{i}" for i in range(60)], person=np.arange(60) // 2, home=np.arange(60) // 4
    )
    roles = {"name": {"role": "identifier"}, "person": {"role": "unit"}, "home": {"role": "household"}}
    result = card(af.Table(frame, COLUMNS | roles))
    line = next(each for each in result.lines if each.name == "homogeneity")
    assert line.verdict == "failed"
    assert line.remedies[0].price is not None


@pytest.mark.parametrize(("k", "meets"), [(11, False), (12, True)])
def test_the_threshold_is_strict(k: int, meets: bool) -> None:
    keys = {name: COLUMNS[name] for name in ("age", "city")}
    people = af.Table(table(66).frame[["age", "city"]], keys)
    result = card(people, k=k, threshold=0.09)
    line = next(each for each in result.lines if each.name == "measured")
    assert (line.verdict == "passed") is meets
    assert line.says == (
        "For the most exposed person the probability is "
        f"{'8.33%' if meets else '9.09%'} that an attacker points at the right row (prosecutor, of 3 attackers); below 9% is allowed."
    )
    assert result.worst == pytest.approx(1 / k)
    assert [each.action for each in line.remedies] == ([] if meets else ["k = 12"])
    if not meets:
        assert line.remedies[0].price is not None


def test_the_k_that_is_proposed_is_enough_for_people_with_several_rows() -> None:
    """Three rows of a person are three chances: at k = 12 the risk would be 23%, not below 9%."""
    frame = table(180).frame.assign(who=[f"p{at // 3}" for at in range(180)])
    people = af.Table(frame, COLUMNS | {"who": {"role": "unit"}})
    line = next(each for each in card(people, k=10, threshold=0.09).lines if each.name == "measured")
    (proposed,) = [each.action for each in line.remedies if each.action.startswith("k = ")]
    again = card(people, k=int(proposed.removeprefix("k = ")), threshold=0.09)
    assert again.worst < 0.09
    assert next(each for each in again.lines if each.name == "measured").verdict == "passed"


@pytest.mark.parametrize(("threshold", "k"), [(0.09, 12), (1 / 11, 12), (0.1, 11), (0.5, 3), (1.0, 2)])
def test_the_smallest_k_is_strictly_below(threshold: float, k: int) -> None:
    assert smallest_k(threshold) == k


def test_a_column_that_follows_fails_the_card_whatever_k_is() -> None:
    result = card(table(ill="follows"), threshold=0.5)
    verdicts = {line.name: line.verdict for line in result.lines}
    assert verdicts["linkable columns"] == verdicts["measured"] == "failed"
    assert "leave out the column ill" in repr(result)
    assert "see the line linkable columns" in repr(result)


def test_the_column_to_leave_out_is_the_one_that_reveals() -> None:
    """A column with many values that says nothing is not named before one with few that follows from the age."""
    people = table()
    frame = people.frame.assign(
        ill=people.frame["age"] // 10, word=[f"w{at % 29}" for at in np.random.default_rng(1).permutation(60)]
    )
    columns = COLUMNS | {"word": {"role": "insensitive"}}
    line = next(
        line
        for line in card(af.Table(frame, columns), "k-member", threshold=0.35).lines
        if line.name == "linkable columns"
    )
    assert line.verdict == "failed"
    assert line.remedies[0].action == "leave out the column ill"
    assert "; ill alone gives" in line.says


def test_what_is_not_measured_is_no_pass() -> None:
    keys = {name: COLUMNS[name] for name in ("age", "city")}
    result = card(af.Table(table().frame[["age", "city"]], keys), "k-concealment")
    verdicts = {line.name: line.verdict for line in result.lines}
    assert verdicts["homogeneity"] == verdicts["insider"] == "not measured"
    assert "not measured: Homogeneity, Insider" in result.headline()


def test_an_insider_who_finds_more_is_told_what_classes_cost() -> None:
    """Freeform graphs lose more than one row to a known match where they are not reciprocal."""
    frame = af.datasets.nursery().iloc[:60]
    columns = {name: {"role": "quasi-identifier", "kind": "categorical"} for name in frame.columns[:4]}
    result = card(af.Table(frame[list(columns)], columns), k=3)
    line = next(each for each in result.lines if each.name == "insider")
    if line.verdict == "failed":
        assert line.remedies[0].action == "classes by k-member"
    assert card(af.Table(frame[list(columns)], columns), "k-member", k=3).lines[3].verdict == "passed"


def test_the_same_seed_gives_the_same_card() -> None:
    people = table(ill="rare")
    assert repr(card(people)) == repr(card(people))


@pytest.mark.parametrize("threshold", [0, -0.1, 1.5, True, "0.09"])
def test_thresholds_that_are_none(threshold: object) -> None:
    with pytest.raises(ParameterError, match="threshold is a probability"):
        af.release_card(af.anonymize(table(), k=3), threshold=threshold)


def test_a_table_has_no_card() -> None:
    with pytest.raises(ParameterError, match="release_card takes what"):
        af.release_card(table())


def test_a_notebook_shows_whole_sentences() -> None:
    result = card(table(ill="rare"))
    page = result._repr_html_()
    assert "Release card" in page
    assert all(
        line.says.split(".")[0] in page
        for line in result.lines
        if "&" not in line.says and "'" not in line.says
    )


def test_lists_that_are_too_long_to_write_out_are_not_measured(monkeypatch: pytest.MonkeyPatch) -> None:
    """A class of n rows has n * n pairs: nobody writes them out for a line of a card."""
    assert card(table(), "mondrian").lines[3].verdict == "passed"
    monkeypatch.setattr("anonflow.engine.report.card.PAIRS", 10)
    assert card(table(), "mondrian").lines[3].verdict == "not measured"


def test_nothing_on_the_card_is_counted_against_the_truth() -> None:
    """It stands in a published report: of who finds a seed again the owner's table of attacks tells, the card does not."""
    people = table()
    anonymization = af.anonymize(people, "greedy", k=3, seed=SEED)
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        release = anonymization.release(seed=SEED)
    attacks = af.attack(people, release, ["prosecutor", af.risk.Replayer([SEED], anonymization)], k=3)
    assert attacks["worst"].max() == 1.0
    assert {name for name in OF_THE_ROW if af.risk.ATTACKERS[name].needs_truth} == set()
    cards = [
        cards_of(anonymization, release, (), some, [None], SEED, prices=False)[0] for some in (attacks, None)
    ]
    assert repr(cards[0]) == repr(cards[1])
    assert cards[0].worst < 1.0


def test_cards_of_several_thresholds_try_everybody_once(monkeypatch: pytest.MonkeyPatch) -> None:
    people = table()
    anonymization = af.anonymize(people, "mondrian", k=3, seed=SEED)
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        release = anonymization.release(seed=SEED)
    tried: list[str] = []
    price, attack = Prices.diverse, AttackContext.of

    def counted(prices: Prices, sentence: str, settings: Any) -> Any:
        tried.append(sentence)
        return price(prices, sentence, settings)

    def looked(*args: Any, **settings: Any) -> AttackContext:
        tried.append("attackers")
        return attack(*args, **settings)

    monkeypatch.setattr(Prices, "diverse", counted)
    monkeypatch.setattr(AttackContext, "of", looked)
    both = cards_of(anonymization, release, (), None, [None, 0.09], SEED)
    once = list(tried)
    assert once.count("attackers") == 1
    assert len(once) == len(set(once))
    items = [cards_of(anonymization, release, (), None, [limit], SEED)[0] for limit in (None, 0.09)]
    assert [repr(card) for card in both] == [repr(card) for card in items]


def test_a_card_reads_the_rows_once(monkeypatch: pytest.MonkeyPatch) -> None:
    read = []

    def counted(*args: Any, **settings: Any) -> Any:
        read.append(args)
        return collect(*args, **settings)

    monkeypatch.setattr(attack_context, "collect", counted)
    verdicts = {line.name: line.verdict for line in card(table()).lines}
    assert verdicts["insider"] != "not measured"
    assert len(read) == 1


@pytest.mark.parametrize(
    ("error", "note"),
    [
        (InfeasibleError("k is too large; lower k"), "not possible: k is too large; lower k"),
        (ParameterError("unknown option"), "no price: the method has no such option"),
        (DataError("too many edges"), "no price: these records cannot be released in this way"),
    ],
)
def test_a_remedy_that_cannot_be_had_says_why(error: Exception, note: str) -> None:
    def run(few: af.Table) -> af.Anonymization:
        raise error

    remedy = Prices(af.anonymize(table(20), "mondrian", k=3, seed=SEED), SEED).of("k = 4", run)
    assert remedy.price is None
    assert remedy.note == note


@pytest.mark.parametrize("tried", [True, False])
def test_a_remedy_that_a_flow_cannot_say_is_told_as_one(tried: bool) -> None:
    """The screens showed p = 2 alone, without a button and without a word why."""
    people = table(60)
    both = af.Table(
        people.frame.assign(pay=people.frame["age"] % 3), COLUMNS | {"pay": {"role": "sensitive"}}
    )
    settings = {"criterion": "p-sensitivity", "p": 2}
    remedy, alone = (
        Prices(af.anonymize(some, "mondrian", k=3, seed=SEED), SEED, tried).diverse("p = 2", settings)
        for some in (both, people)
    )
    assert remedy.change == ()
    assert "each of the 2 sensitive columns; a flow makes one of them diverse" in remedy.sentence()
    assert (remedy.price is not None) is tried
    assert alone.change
    assert not alone.note


@pytest.mark.parametrize("kind", [Cancelled, AnonflowError])
def test_a_remedy_swallows_no_other_error(kind: type[Exception]) -> None:
    def run(few: af.Table) -> af.Anonymization:
        raise kind("stopped")

    with pytest.raises(kind, match="stopped"):
        Prices(af.anonymize(table(20), "mondrian", k=3, seed=SEED), SEED).of("k = 4", run)


def test_remedies_are_tried_on_no_more_partitions_than_are_enough() -> None:
    anonymization = af.anonymize(table(90), "mondrian", k=3, seed=SEED, partition_size=10)
    sizes = {len(part) for part in anonymization.partitions or ()}
    assert sizes == {10}
    records = {}
    for most, enough in ((50, None), (50, 25), (50, 5), (55, 54)):
        few = sample_of(anonymization, SEED, most, enough)
        assert few is not None
        records[most, enough] = few.n
    assert records == {(50, None): 50, (50, 25): 30, (50, 5): 10, (55, 54): 50}
    whole = sample_of(anonymization, SEED, 90, 5)
    assert whole is not None
    assert whole.n == 90


@pytest.mark.parametrize(
    ("cells", "role"),
    [
        (["Mark Mason"], "insensitive"),
        (["mark@example.org"], "sensitive"),
        (["positive"] * 2, "insensitive"),
        ([1.0] * 58, "insensitive"),
        (["no"] * 58 + ["yes"] * 2, "insensitive"),
        ([f"m{at}@example.org" for at in range(60)], "insensitive"),
    ],
)
def test_what_single_people_have_in_the_open_fails_the_card(cells: list[object], role: str) -> None:
    frame = table().frame.assign(x=cells + [None] * (60 - len(cells)))
    result = card(af.Table(frame, COLUMNS | {"x": {"role": role}}), "mondrian")
    line = next(each for each in result.lines if each.name == "linkable columns")
    assert line.verdict == "failed"
    assert "Column x is published in the open" in line.says
    assert line.remedies[0].action == "leave out the column x"
    assert not any(str(cell) in repr(result) for cell in cells[:1] if isinstance(cell, str) and len(cell) > 3)
    assert result.published is not None
    assert "linkable columns" not in [line.name for line in result.published.failing]


@pytest.mark.parametrize("pieces", ["true", "false"])
def test_the_card_of_a_flow_fails_there_in_memory_and_in_pieces(tmp_path: Path, pieces: str) -> None:
    table().frame.assign(x=["Mark Mason"] + [None] * 59).to_csv(tmp_path / "people.csv", index=False)
    flow = tmp_path / "people.flow.yaml"
    flow.write_text(f"""\
flow: people
version: 1
table:
  source: {{csv: people.csv, pieces: {pieces}}}
  columns:
    age: {{role: quasi-identifier, kind: numeric}}
    city: {{role: quasi-identifier, kind: categorical}}
    x: {{role: insensitive}}
steps:
  - anonymize: {{algorithm: mondrian, k: 3}}
publish: {{table: out/people.csv, report: out/people.html}}
""")
    report = af.run(flow)
    assert report.card is not None
    assert "Column x is published in the open" in report.card.lines[4].says
    assert "Linkable columns" in report.card.headline()


def test_people_are_counted_and_not_rows() -> None:
    frame = table().frame.assign(person=np.arange(60) // 3, x=["yes"] * 6 + [None] * 54)
    roles = {"person": {"role": "unit"}, "x": {"role": "insensitive"}}
    anonymization = af.anonymize(af.Table(frame, COLUMNS | roles), "mondrian", k=3, seed=SEED)
    (result,) = cards_of(anonymization, None, (), None, [None], SEED, prices=False)
    assert "Column x is published in the open" in result.lines[4].says
    (result,) = cards_of(None, None, (), None, [None], SEED, k=2, table=anonymization.table)
    assert result.lines[4].verdict == "not measured"


def test_a_remedy_that_costs_nothing_has_no_minus() -> None:
    """The quickstart said that p = 2 costs -0.000 GCP."""
    assert Remedy("p = 2", -0.0001).sentence() == "p = 2 costs +0.000 GCP"
    assert Remedy("p = 2", -0.02).sentence() == "p = 2 costs -0.020 GCP"
