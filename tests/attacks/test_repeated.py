"""Several releases of the same people: an attacker who tries every world that fits all of them.

Figure: of two plain releases of four people, in other pairs each year, each names everybody's row for certain. Cohorts, which stay or are
divided by who is published again, must leave each row's owner among k people, whatever the columns show.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Hashable, Iterable, Iterator
from fractions import Fraction
from itertools import combinations, islice, pairwise, permutations, product
from math import prod

import pytest
from hypothesis import assume, given
from hypothesis import strategies as st

from tests.naive.repeated import Published, connected, left, linked, most_worlds, parts_by_fate, worlds
from tests.strategies import examples

K = 2
SHARES: dict[Hashable, Fraction] = {"flu": Fraction(9, 10), "hiv": Fraction(1, 100), "cold": Fraction(9, 100)}


def classes(*groups: str, shown: str = "", tied: dict[int, tuple[int, int]] | None = None) -> Published:
    """A release of classes; people are letters, and `shown` has a letter for each row, without it the person's own."""
    members = [frozenset(map(ord, group)) for group in groups for _ in group]
    return Published(members, shown or "".join(groups), tied or {})


def of_graph(lists: list[str], shown: str, tied: dict[int, tuple[int, int]] | None = None) -> Published:
    return Published([frozenset(map(ord, each)) for each in lists], shown, tied or {})


def test_two_plain_releases_name_everybody() -> None:
    beliefs = left([classes("ab", "cd"), classes("ac", "bd")])
    assert {len(each.rows) for each in beliefs.values()} == {1}
    assert {each.likeliest_row for each in beliefs.values()} == {1}


def test_whoever_leaves_alone_is_named_by_what_is_missing() -> None:
    """Of unique values, and of common ones: the difference of two classes is the value of the person who left."""
    assert left([classes("abc"), classes("ab")])[ord("c")].likeliest_row == 1
    beliefs = left([classes("abc", shown="xxy"), classes("ab", shown="xx")])
    assert beliefs[ord("c")].values == {"y"}


def test_whoever_joins_a_class_is_named_by_what_is_new() -> None:
    assert left([classes("ab"), classes("abc")])[ord("c")].likeliest_row == 1


def test_a_graph_that_is_drawn_again_leaves_fewer_than_k() -> None:
    lists = ["ab", "bc", "cd", "da"]
    again = left([of_graph(lists, "abcd"), of_graph(lists, "bcda")])
    assert {len(each.rows) for each in again.values()} == {1}
    frozen = left([of_graph(lists, "abcd"), of_graph(lists, "abcd", {row: (0, row) for row in range(4)})])
    assert {len(each.rows) for each in frozen.values()} == {2}
    assert {each.likeliest_row for each in frozen.values()} == {Fraction(1, 2)}


def test_m_invariance_leaves_m_values_which_are_not_equally_likely_to_who_knows_how_common_they_are() -> None:
    """c takes the place of b, with the value of b: the signature {flu, hiv} stays, as m-invariance wants it."""
    years = [
        Published([frozenset("ab")] * 2, ["flu", "hiv"]),
        Published([frozenset("ac")] * 2, ["flu", "hiv"]),
    ]
    evenly, known = left(years), left(years, SHARES)
    assert evenly["a"].likeliest_value == Fraction(1, 2)
    assert evenly["a"].values == known["a"].values == {"flu", "hiv"}
    assert known["a"].likeliest_value == Fraction(90, 91)


def test_m_invariance_among_survivors_of_one_signature_keeps_values_equally_likely() -> None:
    """b and d leave; a and c, of one signature and different values, become a class."""
    two = [frozenset("ab")] * 2 + [frozenset("cd")] * 2
    years = [
        Published(two, ["flu", "hiv", "flu", "hiv"]),
        Published([frozenset("ac")] * 2, ["flu", "hiv"]),
    ]
    assert {each.likeliest_value for each in left(years, SHARES).values()} == {Fraction(1, 2)}


def test_a_value_that_makes_people_leave_tells_who_left_from_who_was_held_back() -> None:
    """c left, d is held back with c; 9 of 10 with HIV leave, and 1 of 10 with flu. The first release alone says less."""
    first, second = classes("abcd", shown="hfff"), classes("ab", shown="ff")
    for years, expected in (([first], Fraction(27, 28)), ([first, second], Fraction(81, 82))):
        weight = {value: Fraction(0) for value in "hf"}
        for world in worlds(years, list(map(ord, "abcd"))):
            value = {chr(person): first.shown[rows[0] or 0] for person, rows in world.items()}
            leaves = {each: Fraction(9 if value[each] == "h" else 1, 10) for each in "abcd"}
            weight[str(value["c"])] += leaves["c"] * prod(1 - leaves[each] for each in "abd")
        assert weight["h"] / sum(weight.values()) == expected


def test_joining_people_of_one_fate_from_two_classes_leaves_nobody_else() -> None:
    """b and d leave; a and c become a class: whoever links their rows to the first year's knows both."""
    beliefs = left([classes("ab", "cd"), classes("ac")])
    assert len(beliefs[ord("a")].rows) == 1
    rings = left([of_graph(["ab", "ba", "cd", "dc"], "abcd"), of_graph(["ac", "ca"], "ac")])
    assert len(rings[ord("a")].rows) == 1


def test_a_counterfeit_is_recognized_where_values_change() -> None:
    """a left {a, b}, and a counterfeit row goes on with a's first row: which of two tracks is it, in the worst case?"""
    shares = {"x": Fraction(1, 10), "y": Fraction(9, 10)}
    changed = Fraction(1, 5)
    law = {(v, w): (1 - changed) * (v == w) + changed * share for v in shares for w, share in shares.items()}
    counterfeits = {
        "stays as it is": ({(v, w): Fraction(v == w) for v, w in law}, Fraction(1)),
        "is drawn from the table": ({(v, w): shares[w] for v, w in law}, Fraction(41, 42)),
        "changes by the true law": (law, Fraction(1, 2)),
        "changes half as often": (
            {(v, w): (law[v, w] + (v == w)) / 2 for v, w in law},
            Fraction(91, 132),
        ),
    }
    for rule, (drawn, expected) in counterfeits.items():
        worst = Fraction(0)
        for track in law:
            for second_track in law:
                first, second = drawn[track] * law[second_track], law[track] * drawn[second_track]
                if first + second:
                    worst = max(worst, first / (first + second))
        assert worst == expected, rule


@st.composite
def with_counterfeits(draw: st.DrawFn) -> list[Published]:
    """Up to four releases of a class: who left stays in it, with the same values, until K can go together."""
    group = frozenset(range(draw(st.integers(2 * K, 6))))
    years = [Published([group] * len(group), sorted(group))]
    for _ in range(3):
        gone = group - draw(st.frozensets(st.sampled_from(sorted(group))))
        if len(gone) >= K and len(group - gone) < K:
            break  # nobody is published again
        group = group - gone if len(gone) >= K else group
        years.append(Published([group] * len(group), sorted(group)))
    return years


@examples(60)
@given(with_counterfeits())
def test_of_values_that_never_change_counterfeits_leave_k_people(years: list[Published]) -> None:
    for each in left(years, {person: Fraction(1, person + 2) for person in range(8)}).values():
        assert len(each.rows) >= K
        assert each.likeliest_row <= Fraction(1, K)


def test_of_eight_people_with_counterfeits_two_can_go_together() -> None:
    """One left in the second year, another in the third: both rows go in the third."""
    years = [classes("abcdefgh"), classes("abcdefgh"), classes("abcdef")]
    assert {len(each.rows) for each in left(years).values()} == {2, 6}


def partitions_of(n: int, least: int) -> list[tuple[int, ...]]:
    """All ways to divide n people into groups of at least `least`, by their sizes, ascending; some people may be in none."""
    divisions: list[tuple[int, ...]] = [()]
    for size in range(least, n + 1):
        divisions += [(size, *rest) for rest in partitions_of(n - size, size)]
    return divisions


def every_sequence(n: int, years: int, splits: bool = True) -> Iterator[list[Published]]:
    """All sequences of releases of at most n people by the rule, but for who is who: in classes, or in rings of two candidates each."""

    def after(
        groups: list[frozenset[int]], past: list[Published], ever: int
    ) -> Iterator[tuple[list[frozenset[int]], list[Published], int]]:
        for stays in product(*(range(len(group) + 1) for group in groups)):
            published, parts = [], []
            for group, number in zip(groups, stays, strict=True):
                again, divided = parts_by_fate(group, frozenset(sorted(group)[:number]), K, splits)
                published += [again] if again else []
                parts += divided
            for sizes in partitions_of(n - ever, K):
                ends = [ever, *(ever + sum(sizes[: at + 1]) for at in range(len(sizes)))]
                fresh = [frozenset(range(start, stop)) for start, stop in pairwise(ends)]
                rings = [sorted(group) for group in [*published, *fresh]]
                lists = [
                    frozenset(ring if splits else {person, ring[(at + 1) % len(ring)]})
                    for ring in rings
                    for at, person in enumerate(ring)
                ]
                shown = [person for ring in rings for person in ring]
                yield parts + fresh, [*past, Published(lists, shown)], ends[-1]

    states: Iterable[tuple[list[frozenset[int]], list[Published], int]] = [([], [], 0)]
    for _ in range(years):
        states = [later for state in states for later in after(*state)]
    return (past for _, past, _ in states)


@pytest.mark.parametrize("splits", [True, False], ids=["classes", "rings"])
@pytest.mark.parametrize(
    ("n", "years"),
    [(5, 2), (5, 3), pytest.param(8, 2, marks=pytest.mark.slow), pytest.param(8, 3, marks=pytest.mark.slow)],
)
def test_of_every_sequence_every_world_that_fits_leaves_k_people(n: int, years: int, splits: bool) -> None:
    """All of them, not some: every way in which up to n people are grouped, leave and join, and all worlds that fit the releases."""
    tried = 0
    for several in every_sequence(n, years, splits):
        for chances in linked(several).values():
            assert max(chances.values()) <= Fraction(1, K), several
        tried += 1
    assert tried > 30


def test_the_quick_enumeration_is_that_of_every_world() -> None:
    for several in islice(every_sequence(5, 3), 0, None, 9):
        beliefs = left(several)
        chances = linked(several)
        assert {person: len(each.rows) for person, each in beliefs.items()} == {
            person: len(each) for person, each in chances.items()
        }
        for person, each in beliefs.items():
            assert each.likeliest_row == max(chances[person].values())


Graph = tuple[frozenset[int], ...]
"""The candidates of each row of a component, as many as each person has rows."""


def regular_graphs(m: int, k: int) -> Iterator[Graph]:
    """All connected k-regular graphs of m rows and m people."""
    lists = [frozenset(each) for each in combinations(range(m), k)]

    def rest(graph: Graph, often: Counter[int]) -> Iterator[Graph]:
        if len(graph) == m:
            if len(connected([Published(graph, range(m))])) == 1:
                yield graph
            return
        for each in lists:
            if all(often[person] < k for person in each):
                yield from rest((*graph, each), often + Counter(each))

    return rest((), Counter())


def divided(graph: Graph, stay: frozenset[int]) -> Iterator[dict[int, dict[Hashable, Fraction]]]:
    """What is left if some people of a component are published again, with the columns that each matching gave their rows."""
    for drawn in permutations(range(len(graph))):
        if all(person in each for person, each in zip(drawn, graph, strict=True)):
            again = [row for row, person in enumerate(drawn) if person in stay]
            lists = [graph[row] & stay for row in again]
            yield linked([Published(graph, drawn), Published(lists, [drawn[row] for row in again])])


@pytest.mark.parametrize("m", [4, pytest.param(5, marks=pytest.mark.slow)])
def test_of_components_that_are_not_complete_each_division_may_name_somebody(m: int) -> None:
    """All graphs, so that those who stay may be the first; a complete one is a class."""
    for k, size in product(range(2, m), range(K, m - K + 1)):
        for graph in regular_graphs(m, k):
            left_least = (min(map(len, each.values())) for each in divided(graph, frozenset(range(size))))
            assert 1 in left_least, graph


def test_a_division_of_a_larger_component_leaves_people_with_unequal_probabilities() -> None:
    """Six people with five candidates each: halves leave two people or three, and one of them with 2/3; of a class with 1/3."""
    everybody, half = frozenset(range(6)), frozenset(range(3))
    for graph, expected in (
        (tuple(everybody - {row} for row in range(6)), (2, Fraction(2, 3))),
        ((everybody,) * 6, (3, Fraction(1, 3))),
    ):
        chances = [chance for each in divided(graph, half) for chance in each.values()]
        assert (min(map(len, chances)), max(max(each.values()) for each in chances)) == expected


@st.composite
def sequences(draw: st.DrawFn) -> tuple[list[Published], set[int]]:
    """Three releases of at most 8 people by the rule: groups stay or are divided, newcomers are groups of themselves."""
    text = draw(st.sampled_from(["common", "unique"]))
    values: dict[int, Hashable] = {
        person: draw(st.sampled_from(sorted(map(str, SHARES)))) if text == "common" else person
        for person in range(8)
    }
    groups: list[tuple[frozenset[int], bool]] = []
    years: list[Published] = []
    place: dict[int, tuple[int, int]] = {}
    never = set(range(8))
    ever: set[int] = set()
    for t in range(3):
        present = frozenset(draw(st.sets(st.sampled_from(range(8)), min_size=4)))
        after: list[tuple[frozenset[int], bool]] = []
        published: list[tuple[frozenset[int], bool]] = []
        for group, splits in groups:
            again, parts = parts_by_fate(group, present, K, splits)
            published += [(again, splits)] if again else []
            after += [(part, splits) for part in parts]
        newcomers = draw(st.permutations(sorted(present & never)))
        cuts = sorted({0, len(newcomers), *draw(st.sets(st.integers(0, len(newcomers)), max_size=1))})
        for start, stop in pairwise(cuts):
            if stop - start >= K:
                splits = stop - start < 3 or draw(st.booleans())
                fresh = frozenset(newcomers[start:stop])
                never -= fresh
                published.append((fresh, splits))
                after.append((fresh, splits))
        lists: list[frozenset[int]] = []
        shown: list[Hashable] = []
        tied: dict[int, tuple[int, int]] = {}
        for group, splits in published:
            ring = sorted(group)
            for at, person in enumerate(ring):
                row = len(lists)
                lists.append(group if splits else frozenset({person, ring[(at + 1) % len(ring)]}))
                shown.append(values[person])
                if not splits and person in place:
                    tied[row] = place[person]
                place[person] = (t, row)
        assume(lists)
        ever |= {person for group, _ in published for person in group}
        years.append(Published(lists, shown, tied))
        groups = after
    return years, ever


@examples(100)
@given(sequences())
def test_groups_that_stay_or_are_divided_by_fate_leave_k_people(
    case: tuple[list[Published], set[int]],
) -> None:
    years, ever = case
    assume(most_worlds(years) < 2_000)
    shares: dict[Hashable, Fraction] = {person: Fraction(1, person + 2) for person in range(8)}
    beliefs = left(years, SHARES | shares)
    assert set(beliefs) == ever
    for each in beliefs.values():
        assert each.likeliest_row <= Fraction(1, K)
        assert len(each.rows) >= K
