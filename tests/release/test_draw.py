"""The draw: every match with probability 1/k, components independent, the same bits for the same seed."""

from __future__ import annotations

import itertools
import math
from collections.abc import Callable

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from scipy import stats

from anonflow.errors import ParameterError, VerificationError
from anonflow.kernels import draw as kernels
from anonflow.release import (
    RandomWords,
    decompose,
    draw_assignment,
    draw_permutation,
    draws_of_graph,
    permute_classes,
)
from anonflow.release import draw as drawing
from tests.naive import draw as naive
from tests.strategies import loop

PINNED = [2965040804, 4056821323]
DRAWN = [1, 2, 4, 3, 6, 5, 7, 0]
CHANCE = 1e-6  # seeds are fixed: a failure is a bug, never bad luck


def many(matches: np.ndarray, times: int, step: int = 1) -> np.ndarray:
    """Draws (times, n) of one graph, in two blocks; those of a block are made at once."""
    return np.concatenate(list(draws_of_graph(matches, times, b"%032d" % step, times // 2 + 1)))


def p_of_edges(matches: np.ndarray, draws: np.ndarray) -> float:
    """The least p-value over rows, of every match being equally likely; Bonferroni over the rows."""
    counts = naive.edge_counts(matches, draws)
    assert (counts.sum(axis=1) == len(draws)).all()
    return float(stats.chisquare(counts, axis=1).pvalue.min() * len(matches))


def p_of_pair(first: np.ndarray, second: np.ndarray) -> float:
    """The p-value of two records' draws being independent."""
    return float(stats.chi2_contingency(stats.contingency.crosstab(first, second)[1]).pvalue)


def slow_but(k: int, quick: int) -> tuple[pytest.MarkDecorator, ...]:
    """One degree of each kind of graph is quick."""
    return () if k == quick else (pytest.mark.slow,)


GRAPHS = [
    *[pytest.param(naive.ring(k + 4, k), id=f"ring-{k}", marks=slow_but(k, 2)) for k in range(2, 8)],
    *[pytest.param(naive.shifts(17, k, k), id=f"shifts-{k}", marks=slow_but(k, 3)) for k in range(2, 8)],
    *[
        pytest.param(naive.random_regular(12, k, k), id=f"random-{k}", marks=slow_but(k, 5))
        for k in range(2, 8)
    ],
    pytest.param(naive.joined_k33(), id="joined-k33"),
    pytest.param(naive.ring(13, 13), id="complete", marks=pytest.mark.slow),
    pytest.param(naive.ring(30, 23), id="ring-23", marks=pytest.mark.slow),
]


@pytest.mark.parametrize("matches", GRAPHS)
def test_every_match_has_the_same_probability(matches: np.ndarray) -> None:
    draws = many(matches, 60_000 if len(matches) == 6 else 20_000)
    assert naive.is_assignment(matches, draws[0])
    assert (np.sort(draws, axis=1) == np.arange(len(matches))).all()
    assert p_of_edges(matches, draws) > CHANCE


@pytest.mark.slow
@loop("width", [3, 4, 5, 6, 7])
def test_an_asymmetric_graph_of_every_degree(width: int) -> None:
    """Complete blocks without an edge, joined: the two joining edges are unlike all others."""
    block = np.ones((width, width), bool)
    block[0, 0] = False
    joined = np.kron(np.eye(2, dtype=bool), block)
    joined[0, width] = joined[width, 0] = True
    rows = np.array([np.flatnonzero(row) for row in joined], np.int32)
    assert p_of_edges(rows, many(rows, 60_000)) > CHANCE


@pytest.mark.slow
def test_one_random_walk_alone_would_be_seen() -> None:
    """The test above is sharp enough: a walk's matching alone is not uniform over the joined graph's edges."""
    matches = naive.joined_k33()
    times = 60_000
    copies = naive.beside(*[matches] * times)
    taken = np.empty(len(copies), np.int32)
    lanes = RandomWords(5).lanes("walk", 0, 20 * copies.size)
    assert kernels.walk_jit(copies.ravel(), len(copies), 3, lanes, np.zeros(1, np.int64), taken)
    assert p_of_edges(matches, matches[np.arange(6), taken.reshape(times, 6)]) < CHANCE


@pytest.mark.slow
def test_far_apart_records_are_independent_and_a_column_draw_is_not() -> None:
    matches = naive.beside(*[naive.ring(9, 3)] * 4)
    draws = np.array([draw_assignment(matches, RandomWords(seed)) for seed in range(4000)])
    pairs = [(0, 9), (3, 20), (8, 35), (17, 18)]
    assert min(p_of_pair(draws[:, a], draws[:, b]) for a, b in pairs) > CHANCE
    rng = np.random.default_rng(3)
    columns = np.array([naive.column_draw(matches, rng) for _ in range(4000)])
    assert p_of_edges(matches, columns) > CHANCE  # the marginals are right, and yet:
    assert max(p_of_pair(columns[:, a], columns[:, b]) for a, b in pairs) < CHANCE


def test_far_apart_records_of_one_component_are_nearly_independent() -> None:
    """One known match must not give everybody away, even where the graph hangs together."""
    matches = naive.shifts(60, 4, 1)
    draws = many(matches, 4000)
    columns = np.array([naive.column_draw(matches, np.random.default_rng(t)) for t in range(4000)])

    def agreement(of: np.ndarray) -> float:
        slots = (matches[None] == of[:, :, None]).argmax(axis=2)
        return float((slots[:, :1] == slots[:, 1:]).mean())

    assert agreement(columns) == 1.0
    assert abs(agreement(draws) - 0.25) < 0.05


# --------------------------------------------------------------------------------------------- bits


def test_the_same_seed_gives_the_same_bits_and_another_one_others() -> None:
    matches = naive.beside(*[naive.shifts(50, 5, s) for s in range(6)])
    once = draw_assignment(matches, RandomWords(7))
    assert (once == draw_assignment(matches, RandomWords(7))).all()
    assert (once != draw_assignment(matches, RandomWords(8))).any()
    assert (once != draw_assignment(matches, RandomWords(7, step=2))).any()
    free = [draw_assignment(matches, RandomWords()) for _ in range(2)]
    assert (free[0] != free[1]).any()
    assert all(naive.is_assignment(matches, drawn) for drawn in (once, *free))


def test_bits_do_not_depend_on_how_the_table_is_cut() -> None:
    rng = np.random.default_rng(0)
    sizes = [12, 30, 45, 12]
    where = np.split(rng.permutation(sum(sizes)), np.cumsum(sizes)[:-1])
    parts = [naive.shifts(size, 5, s) for s, size in enumerate(sizes)]
    whole = np.empty((sum(sizes), 5), np.int32)
    for at, part in zip(where, parts, strict=True):
        whole[at] = at[part]
    expected = draw_assignment(whole, RandomWords(1))
    for at, part in zip(where, parts, strict=True):
        alone = draw_assignment(part, RandomWords(1), at)
        assert (at[alone] == expected[at]).all()
    shuffled = rng.permuted(whole, axis=1)  # the graph counts, not how its rows are written
    assert (draw_assignment(shuffled, RandomWords(1)) == expected).all()


@pytest.mark.parametrize("case", ["closed", "open", "missing", "irregular", "no record"])
def test_a_large_table_is_drawn_from_by_parts(monkeypatch: pytest.MonkeyPatch, case: str) -> None:
    """With the same bits or the same refusal: where a match leaves its part, or a record has none, all are drawn together."""
    monkeypatch.setattr(drawing, "BUCKET", 40)
    rng = np.random.default_rng(1)
    sizes = [12, 30, 45, 12, 7, 25]
    where = np.split(rng.permutation(sum(sizes)), np.cumsum(sizes)[:-1])
    whole = np.empty((sum(sizes), 5), np.int32)
    for s, at in enumerate(where):
        whole[at] = at[naive.shifts(len(at), 5, s)]
    parts = list(where)
    if case == "open":
        parts[1:3] = [np.append(where[1], where[2][:20]), where[2][20:]]
    elif case == "missing":
        whole[where[4]] = np.stack([where[4], *[np.full(7, -1)] * 4], axis=1)
        del parts[4]
    elif case == "irregular":
        whole[where[2][0], 4] = -1
    elif case == "no record":
        whole[where[0][0], 0] = sum(sizes)
    if case in ("irregular", "no record"):
        with pytest.raises(VerificationError) as refusal:
            draw_assignment(whole, RandomWords(1))
        with pytest.raises(VerificationError, match=f"^{refusal.value}$"):
            drawing.draw_by_parts(whole, RandomWords(1), parts)
        return
    assert (
        drawing.draw_by_parts(whole, RandomWords(1), parts) == draw_assignment(whole, RandomWords(1))
    ).all()


def test_bits_do_not_depend_on_batches_or_on_running_short(monkeypatch: pytest.MonkeyPatch) -> None:
    matches = naive.beside(*[naive.shifts(40, 7, s) for s in range(8)])
    labels = np.arange(300) % 7
    expected = draw_assignment(matches, RandomWords(1)), permute_classes(labels, RandomWords(1))
    monkeypatch.setattr(drawing, "_BATCH", 100)
    assert (draw_assignment(matches, RandomWords(1)) == expected[0]).all()
    assert (permute_classes(labels, RandomWords(1)) == expected[1]).all()
    monkeypatch.setattr(drawing, "_lanes_of_draw", lambda sizes, degrees: np.full(len(sizes), 2))
    assert (draw_assignment(matches, RandomWords(1)) == expected[0]).all()


def test_running_short_goes_on_with_the_same_words(monkeypatch: pytest.MonkeyPatch) -> None:
    """Fresh words instead would favour the draws that need few of them."""
    monkeypatch.setattr(drawing, "_lanes_of_draw", lambda sizes, degrees: np.full(len(sizes), 2))
    seen: list[tuple[int, np.ndarray]] = []
    ask = RandomWords.lanes

    def spy(
        self: RandomWords, purpose: str, key: int, count: int, had: np.ndarray | None = None
    ) -> np.ndarray:
        lanes = ask(self, purpose, key, count, had)
        seen.append((key, lanes))
        return lanes

    monkeypatch.setattr(RandomWords, "lanes", spy)
    for words in (RandomWords(), RandomWords(3)):
        seen.clear()
        draw_assignment(naive.ring(50, 5), words)
        assert len(seen) > 1
        for (_, short), (_, long) in itertools.pairwise(seen):
            assert len(long) > len(short)
            assert (long[: len(short)] == short).all()


@loop("matches", [naive.ring(9, 4), naive.shifts(14, 5, 2), naive.joined_k33()])
def test_plain_and_compiled_kernels_agree(matches: np.ndarray) -> None:
    graph = naive.beside(matches, naive.ring(1, 1), matches)
    plain, compiled = kernels.components(graph), kernels.components_jit(graph)
    assert all((a == b).all() for a, b in zip(plain, compiled, strict=True))
    batch = np.arange(len(plain[4]))
    ends = np.arange(len(batch) + 1) * 2000
    lanes = RandomWords(1).lanes("test", 0, int(ends[-1]))
    drawn = [np.full(len(graph), -1, np.int64) for _ in range(2)]
    for kernel, out in zip((kernels.draw_batch, kernels.draw_batch_jit), drawn, strict=True):
        assert not kernel(graph, *plain[1:], batch, lanes, ends, out).any()
    assert (drawn[0] == drawn[1]).all()
    offsets, members = np.array([0, 3, 10]), np.arange(10)
    mixed = [np.full(10, -1, np.int64) for _ in range(2)]
    for kernel, out in zip((kernels.permute_batch, kernels.permute_batch_jit), mixed, strict=True):
        assert not kernel(offsets, members, np.arange(2), lanes, np.array([0, 20, 60]), out).any()
    assert (mixed[0] == mixed[1]).all()


# ------------------------------------------------------------------------------- shapes of the graph


@given(st.integers(2, 40), st.data())
def test_regular_graphs_are_taken_apart_into_k_assignments(n: int, data: st.DataObject) -> None:
    k = data.draw(st.integers(1, n))
    matches = naive.shifts(n, k, data.draw(st.integers(0, 1000)))
    assert naive.is_assignment(matches, draw_assignment(matches, RandomWords(n)))
    parts = decompose(matches)
    assert parts.shape == (k, n)
    assert parts.dtype == np.int32
    assert (np.sort(parts, axis=0) == np.sort(matches, axis=1).T).all()
    assert all(naive.is_assignment(matches, part) for part in parts)
    listed_otherwise = np.array([data.draw(st.permutations(row)) for row in matches.tolist()])
    assert (parts == decompose(listed_otherwise)).all()


def test_suppressed_records_and_a_partition_of_another_degree() -> None:
    matches = naive.beside(naive.ring(7, 3), naive.ring(1, 1), naive.ring(9, 4), naive.ring(1, 1))
    drawn = draw_assignment(matches, RandomWords(1))
    assert naive.is_assignment(matches, drawn)
    assert drawn[7] == 7
    assert drawn[17] == 17
    with pytest.raises(ParameterError, match="2 different numbers"):
        decompose(matches)
    mixed = naive.beside(naive.ring(7, 3), naive.ring(1, 1), naive.ring(5, 3))
    parts = decompose(mixed)
    assert (parts[:, 7] == 7).all()
    assert all(naive.is_assignment(mixed, part) for part in parts)


def _altered(change: Callable[[np.ndarray], None]) -> np.ndarray:
    matches = naive.ring(8, 3)
    change(matches)
    return matches


@loop(
    "matches",
    [
        _altered(lambda m: m.__setitem__((2, 1), 7)),  # an original in too many rows
        _altered(lambda m: m.__setitem__((2, 1), 2)),  # an edge twice
        _altered(lambda m: m.__setitem__((2, 2), -1)),  # a row with too few
        _altered(lambda m: m.__setitem__((2, 2), 8)),  # no such original
        _altered(lambda m: m.__setitem__((2, 0), -1)),  # a hole
        _altered(lambda m: m.__setitem__((2, slice(None)), -1)),  # nothing
        _altered(lambda m: m.__setitem__((2, 2), -2)),
    ],
)
def test_what_is_not_regular_is_refused(matches: np.ndarray) -> None:
    for call in (lambda: draw_assignment(matches, RandomWords(1)), lambda: decompose(matches)):
        with pytest.raises(VerificationError, match="regular"):
            call()
    with pytest.raises(VerificationError, match="regular"):
        draw_assignment(matches, RandomWords(1), np.arange(8)[::-1])


def test_wrong_shapes_are_refused() -> None:
    with pytest.raises(ParameterError, match="matrix"):
        draw_assignment(np.arange(3), RandomWords(1))
    with pytest.raises(ParameterError, match="one for each record"):
        draw_assignment(naive.ring(5, 2), RandomWords(1), np.arange(4))
    with pytest.raises(ParameterError, match="different"):
        draw_assignment(naive.ring(5, 2), RandomWords(1), np.zeros(5, int))
    assert len(draw_assignment(np.empty((0, 3), np.int32), RandomWords(1))) == 0
    assert len(permute_classes(np.empty(0, int), RandomWords(1))) == 0


# ------------------------------------------------------------------------------ classes and shuffles


@pytest.mark.slow
def test_classes_are_permuted_uniformly_and_apart() -> None:
    labels = np.tile([5, 2, 5, 2, 5], 1)
    draws = np.array([permute_classes(labels, RandomWords(seed)) for seed in range(6000)])
    assert (labels[draws] == labels).all()
    orders = np.unique(draws[:, [0, 2, 4]], axis=0, return_counts=True)[1]
    assert len(orders) == 6
    assert stats.chisquare(orders).pvalue > CHANCE
    assert p_of_pair(draws[:, 0], draws[:, 1]) > CHANCE
    at = np.array([30, 4, 17, 2, 9])  # the same people elsewhere in a larger table
    large = np.full(40, -1)
    large[at] = labels
    expected = permute_classes(large, RandomWords(1))
    assert (at[permute_classes(labels, RandomWords(1), at)] == expected[at]).all()


@pytest.mark.slow
def test_the_shuffle_is_uniform() -> None:
    draws = np.array([draw_permutation(4, RandomWords(seed)) for seed in range(12_000)])
    orders = np.unique(draws, axis=0, return_counts=True)[1]
    assert len(orders) == 24
    assert stats.chisquare(orders).pvalue > CHANCE
    large = draw_permutation(100_000, RandomWords(1))
    assert (np.sort(large) == np.arange(100_000)).all()
    assert stats.spearmanr(large, np.arange(100_000)).pvalue > CHANCE


@loop("bound", [1, 2, 3, 7, 10, (1 << 31) - 1, 1 << 31])
def test_bounded_numbers_are_exact_at_the_edges(bound: int) -> None:
    """Of the lanes that are not refused, equally many give each number: counted where that can be done."""
    for lane in (0, 1, (1 << 32) - 1, 123_456_789):
        cursor = np.zeros(1, np.int64)
        number = kernels.below(bound, np.array([lane], np.uint32), cursor)
        low = lane * bound % (1 << 32)
        refused = low < (1 << 32) % bound
        assert number == (-1 if refused else lane * bound >> 32)


@loop("d", [4, 6, 8, 12])
def test_pairings_are_exact_at_the_edges(d: int) -> None:
    """As above, with a lane for several choices; the product of their bounds is odd, so each lower half has a lane."""
    product = math.prod(range(3, d, 2))
    refused = (1 << 32) % product
    for low in (0, refused - 1, refused, product - 1, product, (1 << 32) - 1):
        lane = low * pow(product, -1, 1 << 32) % (1 << 32)
        items, cursor = np.arange(d, dtype=np.int32), np.zeros(1, np.int64)
        assert kernels.pair_up(items, 0, d, np.array([lane], np.uint32), cursor) == (low >= refused)


# -------------------------------------------------------------------------------------------- words


def test_streams_are_apart_and_keyed() -> None:
    words = RandomWords(1)
    streams = [
        words.lanes("class", 0, 8),
        words.lanes("class", 1, 8),
        words.lanes("shuffle", 0, 8),
        RandomWords(2).lanes("class", 0, 8),
        RandomWords(1, step=5).lanes("class", 0, 8),
        RandomWords(bytes(16)).lanes("class", 0, 8),
        RandomWords(0).lanes("class", 0, 8),
        RandomWords().lanes("class", 0, 8),
    ]
    assert len({stream.tobytes() for stream in streams}) == len(streams)
    assert (words.lanes("class", 0, 100)[:8] == streams[0]).all()
    assert len(words.lanes("class", 0, 7)) == 8  # whole 64-bit words
    assert (RandomWords(1 << 200).lanes("x", 0, 4) != RandomWords((1 << 200) + 1).lanes("x", 0, 4)).any()


def test_the_stream_is_what_it_was() -> None:
    """Replaying an old run needs the same bits from newer versions."""
    assert RandomWords(1).lanes("assignment", 0, 2).tolist() == PINNED
    assert draw_assignment(naive.ring(8, 3), RandomWords(1)).tolist() == DRAWN


@loop("seed", [-1, 1.5, True, "secret", b"short"])
def test_seeds_that_are_none(seed: object) -> None:
    with pytest.raises(ParameterError, match="seed"):
        RandomWords(seed)  # type: ignore[arg-type]


def test_steps_that_are_none() -> None:
    with pytest.raises(ParameterError, match="step"):
        RandomWords(1, step=-1)


def test_blocks_of_rows_go_to_buckets_of_their_own(monkeypatch: pytest.MonkeyPatch) -> None:
    """A second block with the words of the first would tell which rows were dealt together."""
    monkeypatch.setattr(drawing, "_DEALT", 64)
    monkeypatch.setattr(drawing, "BUCKET", 4)
    first, second, *_ = drawing.deal(256, RandomWords(bytes(16)))
    assert first.tolist() != second.tolist()
    assert len(set(first.tolist())) > 8
