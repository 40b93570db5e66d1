"""Murakami 2018's workbook: claims rest on the paper's own two phases, and what was tried is computed from stored numbers."""

from __future__ import annotations

from typing import Any

import pytest

import anonflow as af
from tests.papers import low_information_loss as paper
from tests.papers.figures import Claim, Figure, Key, Numbers, Run, timed_run
from tests.papers.workbook import Workbook

CASE = "Random_100k, sd = 1.0"


def losses(**curves: list[float]) -> Numbers:
    """Losses of Table 13 for the k of the paper, by names of this module, and the gap of the paper's two phases."""
    figures = []
    for name, values in curves.items():
        for k, value in zip(paper.KS, values, strict=False):
            key = Key("Table 13", CASE, k, getattr(paper, name), "GCP")
            figures.append(Figure(key, value, paper.CUT))
            if name == "TWO_PHASE":
                gap = 100 * (curves["NH"][k - paper.KS[0]] / value - 1)
                figures.append(Figure(key._replace(method=paper.BOTH, quantity="gap, %"), gap, paper.CUT))
    return Numbers(figures)


def claimed(numbers: Numbers, start: str) -> list[Claim]:
    return [claim for claim in paper.claims(numbers, {}) if claim.says.startswith(start)]


def test_the_headline_claim_is_judged_by_the_papers_own_phases() -> None:
    ring, near = [0.5] * 8, [0.4] * 7
    worse = losses(NH=ring, TWO_PHASE=[*near, 0.51], QUICK=[0.3] * 8)
    (claim,) = claimed(worse, "Two-phase loses less")
    assert claim.holds is False
    assert not claim.ours
    assert claim.measured.endswith("(below it for k = 10)")
    (claim,) = claimed(worse, "our best at each k")
    assert claim.holds is True
    assert claim.ours
    assert claim.measured == "k = 3 to 10: NH 66.7 % above it"
    (claim,) = claimed(losses(NH=ring, TWO_PHASE=[*near, 0.49], QUICK=[0.6] * 8), "Two-phase loses less")
    assert claim.holds is True
    (claim,) = claimed(losses(NH=ring, TWO_PHASE=[0.4], QUICK=[0.3] * 8), "Two-phase loses less")
    assert claim.holds is True
    assert claim.says.endswith("run for k = 3 alone")
    (claim,) = claimed(losses(NH=ring, QUICK=[0.3] * 8), "Two-phase loses less")
    assert claim.holds is None
    assert "not run" in claim.why


def test_no_claim_of_the_paper_rests_on_our_ways() -> None:
    """Without the paper's two phases nothing that it says is judged."""
    full = Workbook(2).full
    without = Numbers(
        figure for figure in full if "chains alone" in figure.key.method or figure.key.method == paper.NH
    )
    claims = paper.claims(without, {})
    assert {claim.holds for claim in claims if not claim.ours} == {None}
    assert {claim.holds for claim in claims if claim.ours} >= {True}


def test_our_best_is_the_least_of_our_ways_at_each_k() -> None:
    numbers = losses(NH=[0.5] * 3, QUICK=[0.4, 0.3, 0.3], SPARSE=[0.2, 0.25], DENSE=[0.3, 0.2, 0.25])
    assert paper.best(numbers, "Table 13", CASE) == {3: 0.2, 4: 0.2, 5: 0.25}


def test_no_way_of_ours_is_compared_with_a_printed_number() -> None:
    book = Workbook(2)
    for number in (*paper.TABLES, 19, 20):
        for row in book.rows(f"Table {number}"):
            if row[2] in paper.PRINTED_AS and row[4]:
                assert row[7] == "not comparable: our way, not the paper's"
    for figure in book.full:
        if figure.key.method == paper.BOTH:
            ring, loss = (
                book.full.by_key[figure.key._replace(method=method, quantity="GCP")].value
                for method in (paper.NH, paper.TWO_PHASE)
            )
            assert figure.value == pytest.approx(100 * (ring / loss - 1), abs=1e-3)


def test_tables_have_the_papers_phases_and_chains() -> None:
    """For the smallest k at least, at the size that NH takes; those of 100,000 records for every k."""
    full = Workbook(2).full
    for number, case in paper.TABLES.items():
        for method, ks in (
            (paper.TWO_PHASE, paper.PHASES_AT),
            (
                paper.DENSE,
                paper.OURS_AT | {number: paper.OURS_AT[same] for number, same in paper.SAME.items()},
            ),
            (paper.SPARSE, paper.SPARSE_AT),
            (paper.PATTERNS, paper.PATTERNS_AT),
        ):
            assert tuple(full.curve(f"Table {number}", case, method)) == ks.get(number, ())
        assert all(
            figure.records == paper.taken(case, Run(full=True)) for figure in full.at_place(f"Table {number}")
        )


def test_what_is_stored_is_not_measured_again(monkeypatch: pytest.MonkeyPatch) -> None:
    """With what is stored, a table is compared without a run; without one number of it, that alone is run."""
    full = Workbook(2).full

    def refused(*settings: Any) -> tuple[float, float]:
        raise LookupError(settings[0])

    monkeypatch.setattr(paper, "run_once", refused)
    figures = list(paper.compared(13, Run(full=True, stored=full)))
    for figure in figures:
        assert figure.value == pytest.approx(full.by_key[figure.key].value, rel=1e-6)
    lost = Key("Table 13", paper.TABLES[13], 5, paper.DENSE, "GCP")
    fewer = Numbers(figure for figure in full if figure.key != lost)
    with pytest.raises(LookupError, match=paper.DENSE):
        list(paper.compared(13, Run(full=True, stored=fewer)))


def test_the_sparse_start_by_multiple_sorting_takes_a_table_in_pieces() -> None:
    """What Table 15 does with 1,000,000 records in pieces of 100,000, with 600 in pieces of 100."""
    kind, n, k = "1.0", 600, 3
    table = paper.table(kind, n)
    options = {**paper.WAYS[paper.TWO_PHASE], "p": 100, "partition_size": 100, "order": "lexicographic"}
    anon, _ = timed_run(table, "two-phase", k, **options)
    assert anon.loss("gcp") == paper.run_once(paper.TWO_PHASE, kind, n, k, 100)[0]
    assert anon.loss("gcp") < paper.run_once(paper.NH, kind, n, k)[0]
    assert af.verify(table, anon, ["k-regularity"], k=k)


def test_pieces_differ_in_number_alone() -> None:
    """Where Tables 19 and 20 compare numbers of pieces, the pieces have one size."""
    for place in ("Table 19", "Table 20"):
        figures = [
            figure
            for figure in Workbook(2).full.at_place(place)
            if figure.key.method.endswith(f"pieces of {paper.SMALL_CUT:,}")
            and figure.key.quantity == "gap, %"
        ]
        assert len(figures) == 4
        for figure in figures:
            assert figure.records == paper.SMALL_CUT * paper.SIZES[figure.key.case] // paper.CUT


def test_multiple_sorting_takes_all_records_at_once() -> None:
    """The more records, the nearer the nearest; 1,000,000 were sorted at once, in fewer minutes than 100,000 are assigned."""
    few, more = (paper.near_once(n)[0] for n in (100, 300))
    assert more < few
    full = Workbook(2).full.at_place("Section 3.2.1")
    differing = [figure.value for figure in full if figure.key.quantity == "differing values"]
    assert differing == sorted(differing, reverse=True)
    assert max(figure.records for figure in full) == paper.MOST
    minutes = max(figure.value for figure in full if figure.key.quantity == "minutes")
    assert minutes < Workbook(2).full.curve("Table 13", CASE, paper.TWO_PHASE, "minutes")[3]


def test_printed_losses_of_one_deviation_agree_but_for_table_13() -> None:
    """By Table 20 a large random table loses unsorted what its pieces of 100,000 lose: those of sd = 1.5 agree with Table 14."""
    frame = paper.pieces_of_paper(Workbook(2).printed).astype(float)
    alike = {number: frame.loc[f"Table {number}, {paper.TABLES[number]}"] for number in range(13, 19)}
    for number, other, least, most in (
        (16, 14, 0.95, 1.06),
        (18, 14, 0.9, 1.05),
        (17, 15, 0.9, 1.1),
        (15, 13, 0.2, 0.5),
    ):
        ratio = alike[number] / alike[other]
        assert least <= ratio.min() <= ratio.max() <= most
    assert alike[16]["k = 3"] == pytest.approx(0.20 * 1.388, abs=1e-3)


def test_sources_are_compared_with_what_is_printed() -> None:
    book = Workbook(2)
    frame = paper.fitted(book.full, book.printed)
    printed = float(book.printed[Key("Table 13", CASE, 3, paper.NH, "GCP")])
    own = book.full.by_key[Key("Section 4", "sd = 1, the nearest, 100,000 records", 3, paper.NH, "GCP")].value
    assert float(str(frame.loc["sd = 1, the nearest", "NH, 100,000, k = 3"])) == pytest.approx(own, abs=1e-3)
    assert float(str(frame.loc["sd = 1, the nearest", "off Table 13, %"])) >= 100 * (own / printed - 1) - 0.01


def test_the_rest_is_estimated_from_stored_minutes() -> None:
    frame = paper.sizes(Workbook(2).full).set_index("way", append=True)
    assert float(str(frame.loc[(13, paper.TWO_PHASE), "hours of the rest"])) == 0
    assert float(str(frame.loc[(17, paper.TWO_PHASE), "hours of the rest"])) > 9 * (
        float(str(frame.loc[(15, paper.TWO_PHASE), "hours of the rest"]))
    )


def test_the_papers_largest_table_of_figure_12_is_counted() -> None:
    assert paper.RECORDS["Figure 12"] == max(paper.SIZES.values())


@pytest.mark.slow
def test_small_runs_have_every_place() -> None:
    for place in ("Table 20", "Section 4"):
        figures = list(paper.PARTS[place](Run(full=False)))
        assert figures
        assert len({figure.key for figure in figures}) == len(figures)
