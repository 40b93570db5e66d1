"""The criteria from their definitions: published text read cell by cell, all perfect matchings enumerated."""

from __future__ import annotations

import itertools
import math
from collections import Counter
from collections.abc import Iterator, Sequence

Graph = list[list[bool]]  # graph[i][j]: published row j covers original i


# ------------------------------------------------------------------------------------ reading text


def cell_covers(text: str, value: str, kind: str, tree: dict[str, list[str]] | None = None) -> bool:
    """Whether a published cell covers a value; small plain values only."""
    if text == "*":
        return True
    if kind == "numeric":
        low, _, high = text.partition("-")
        return float(low) <= float(value) <= float(high or low)
    if kind == "categorical":
        return value in (text[1:-1].split("|") if text.startswith("{") else [text])
    if kind == "hierarchy":
        assert tree is not None
        return value in tree.get(text, [text])
    if kind == "positions":
        return len(text) == len(value) and all(shown in ("*", own) for shown, own in zip(text, value))
    return text == value


def leaves_below(tree: object, label: str = "*") -> dict[str, list[str]]:
    """The leaves below every node of a nested mapping."""
    below: dict[str, list[str]] = {}

    def walk(name: str, node: object) -> list[str]:
        if isinstance(node, dict):
            results = [leaf for child, part in node.items() for leaf in walk(child, part)]
        elif isinstance(node, list):
            results = [leaf for child in node for leaf in walk(child, None)]
        else:
            results = [name]
        below[name] = results
        return results

    walk(label, tree)
    return below


def graph_of(
    originals: Sequence[Sequence[str]],
    rows: Sequence[Sequence[str]],
    kinds: Sequence[str],
    trees: Sequence[dict[str, list[str]] | None],
) -> Graph:
    """Who could be whom, by the quasi-identifiers."""
    return [
        [
            all(
                cell_covers(cell, value, kind, tree)
                for cell, value, kind, tree in zip(row, own, kinds, trees)
            )
            for row in rows
        ]
        for own in originals
    ]


# ---------------------------------------------------------------------------------- perfect matchings


def perfect_matchings(graph: Graph) -> Iterator[tuple[int, ...]]:
    """Every assignment of the originals 0, 1, ... to distinct rows along edges."""
    n = len(graph)
    taken = [False] * n
    chosen: list[int] = []

    def extend(i: int) -> Iterator[tuple[int, ...]]:
        if i == n:
            yield tuple(chosen)
            return
        for j in range(n):
            if graph[i][j] and not taken[j]:
                taken[j] = True
                chosen.append(j)
                yield from extend(i + 1)
                chosen.pop()
                taken[j] = False

    yield from extend(0)


def edge_counts(graph: Graph) -> tuple[int, list[list[int]]]:
    """How many perfect matchings there are (the permanent), and how many use each edge."""
    n = len(graph)
    counts, total = [[0] * n for _ in range(n)], 0
    for matching in perfect_matchings(graph):
        total += 1
        for i, j in enumerate(matching):
            counts[i][j] += 1
    return total, counts


def on_perfect_matchings(graph: Graph) -> list[list[bool]]:
    """Which edges lie on a perfect matching: each is tried, unless one that was found before has it."""
    n = len(graph)
    lies = [[False] * n for _ in range(n)]
    for i, j in itertools.product(range(n), repeat=2):
        if graph[i][j] and not lies[i][j]:
            through = [[graph[t][c] and (t == i) == (c == j) for c in range(n)] for t in range(n)]
            for t, c in enumerate(next(perfect_matchings(through), ())):
                lies[t][c] = True
    return lies


def has_perfect_matching(graph: Graph) -> bool:
    """One is enough."""
    return next(perfect_matchings(graph), None) is not None


def largest_matching(graph: Graph) -> int:
    """By augmenting paths."""
    owner: dict[int, int] = {}

    def place(i: int, seen: set[int]) -> bool:
        for j, edge in enumerate(graph[i]):
            if edge and j not in seen:
                seen.add(j)
                if j not in owner or place(owner[j], seen):
                    owner[j] = i
                    return True
        return False

    return sum(place(i, set()) for i in range(len(graph)))


def disjoint_assignments(graph: Graph, k: int, blank: Sequence[bool]) -> bool:
    """Whether k assignments exist that share no edge, but for edges to blank rows; by exhaustion."""
    if k == 0:
        return True
    for matching in perfect_matchings(graph):
        left = [list(row) for row in graph]
        for i, j in enumerate(matching):
            left[i][j] = blank[j]
        if disjoint_assignments(left, k - 1, blank):
            return True
    return False


def regular_flow(graph: Graph, k: int, blank: Sequence[bool]) -> int:
    """A maximum flow, k from every original and to every row, one through an edge (k to a blank row)."""
    n = len(graph)
    room = [[(k if blank[j] else 1) if graph[i][j] else 0 for j in range(n)] for i in range(n)]
    used = [[0] * n for _ in range(n)]
    to_row = [0] * n
    value = 0

    def send(i: int, seen: set[tuple[str, int]]) -> bool:
        for j in range(n):
            if used[i][j] < room[i][j] and ("row", j) not in seen:
                seen.add(("row", j))
                if to_row[j] < k:
                    to_row[j] += 1
                    used[i][j] += 1
                    return True
                for other in range(n):
                    if used[other][j] and ("original", other) not in seen:
                        seen.add(("original", other))
                        if send(other, seen):
                            used[other][j] -= 1
                            used[i][j] += 1
                            return True
        return False

    for i in range(n):
        for _ in range(k):
            value += send(i, {("original", i)})
    return value


# ------------------------------------------------------------------------------------------ criteria


class Case:
    """Originals, rows, their other columns, and which criteria hold by definition.

    blank: rows that are * throughout; exempt if they are fewer than k. own: row i is original i's.
    """

    def __init__(
        self,
        graph: Graph,
        rows: Sequence[Sequence[str]],
        k: int,
        rest: tuple[Sequence[str], Sequence[str]] | None = None,
        blank: Sequence[bool] | None = None,
        own: bool = False,
    ) -> None:
        self.graph, self.rows, self.k, self.rest, self.own = graph, rows, k, rest, own
        self.n = len(rows)
        marked = list(blank) if blank is not None else [False] * self.n
        self.exempt = marked if 0 < sum(marked) < k else [False] * self.n

    def covers(self) -> bool:
        if self.own:
            return all(self.graph[i][i] for i in range(self.n))
        return has_perfect_matching(self._with_rest(self.graph))

    def _with_rest(self, graph: Graph) -> Graph:
        if self.rest is None:
            return graph
        original, row = self.rest
        n = range(self.n)
        return [[graph[i][j] and (self.exempt[j] or original[i] == row[j]) for j in n] for i in n]

    def k_anonymity(self) -> bool:
        sizes = Counter(map(tuple, self.rows))
        return all(sizes[tuple(self.rows[j])] >= self.k or self.exempt[j] for j in range(self.n))

    def _enough(self, candidates: list[list[bool]]) -> bool:
        if all(sum(row) >= self.k for row in candidates):
            return True
        few = [
            sum(edge and not self.exempt[j] for j, edge in enumerate(candidates[i])) < self.k
            for i in range(self.n)
        ]
        if self.own:
            return not any(f and not self.exempt[i] for i, f in enumerate(few))
        return sum(few) <= sum(self.exempt)

    def one_k(self) -> bool:
        return self._enough(self.graph)

    def k_one(self) -> bool:
        degree = [sum(self.graph[i][j] for i in range(self.n)) for j in range(self.n)]
        return all(degree[j] >= self.k or self.exempt[j] for j in range(self.n))

    def k_k(self) -> bool:
        return self.one_k() and self.k_one()

    def matches(self) -> list[list[bool]] | None:
        lies = on_perfect_matchings(self.graph)
        return lies if any(lies[0]) else None

    def concealment(self) -> bool:
        matches = self.matches()
        return matches is not None and self._enough(matches)

    def regular(self) -> bool:
        return regular_flow(self.graph, self.k, self.exempt) == self.n * self.k

    def answers(self) -> dict[str, bool]:
        return {
            "covers": self.covers(),
            "k-anonymity": self.k_anonymity(),
            "(1,k)": self.one_k(),
            "(k,1)": self.k_one(),
            "(k,k)": self.k_k(),
            "k-concealment": self.concealment(),
            "k-regular": self.regular(),
        }

    def shown(self, per: str, values: Sequence[str]) -> list[list[str]]:
        """The sensitive values of each published row's class, or of each original's matches."""
        seen = [j for j in range(self.n) if not self.exempt[j]]
        if per == "class":
            return [[values[t] for t in seen if tuple(self.rows[t]) == tuple(self.rows[j])] for j in seen]
        matches = self.matches()
        assert matches is not None
        return [[values[j] for j in seen if matches[i][j]] for i in range(self.n)]


# ----------------------------------------------------------------------------------------- diversity


def distinct(values: Sequence[str], p: float) -> bool:
    return not values or len(set(values)) >= p


def frequency(values: Sequence[str], l: float) -> bool:
    return not values or max(Counter(values).values()) / len(values) <= 1 / l + 1e-12


def entropy(values: Sequence[str], l: float) -> bool:
    if not values:
        return True
    shares = [count / len(values) for count in Counter(values).values()]
    return -sum(p * math.log(p) for p in shares) >= math.log(l) - 1e-12


def recursive(values: Sequence[str], l: int, c: float) -> bool:
    if not values:
        return True
    r = sorted(Counter(values).values(), reverse=True)
    return len(r) >= l and r[0] < c * sum(r[l - 1 :])


def emd_numeric(values: Sequence[str], whole: Sequence[str]) -> float:
    points = sorted({float(value) for value in whole})
    difference = [_share(values, point) - _share(whole, point) for point in points]
    sums = list(itertools.accumulate(difference))
    return sum(abs(s) for s in sums) / max(len(points) - 1, 1)


def emd_equal(values: Sequence[str], whole: Sequence[str]) -> float:
    points = set(values) | set(whole)
    return sum(abs(values.count(p) / len(values) - list(whole).count(p) / len(whole)) for p in points) / 2


def _share(values: Sequence[str], point: float) -> float:
    return sum(float(value) == point for value in values) / len(values)


def beta_like(values: Sequence[str], whole: Sequence[str], beta: float, enhanced: bool = False) -> bool:
    """No value's share grows by more than beta times itself; enhanced: nor by more than -ln of it."""
    for value in set(values):
        share, usual = values.count(value) / len(values), list(whole).count(value) / len(whole)
        if usual == 0:
            return False
        most = min(beta, -math.log(usual)) if enhanced else beta
        if share > usual and (share - usual) / usual > most + 1e-9:
            return False
    return True


def delta_disclosed(values: Sequence[str], whole: Sequence[str], delta: float) -> bool:
    """Every value of the table is there, and the log of its share's quotient is within delta."""
    for value in set(whole):
        share, usual = values.count(value) / len(values), list(whole).count(value) / len(whole)
        if share == 0 or abs(math.log(share / usual)) >= delta:
            return False
    return True


def alpha_k(values: Sequence[str], alpha: float, k: int) -> bool:
    """At least k rows, and no value on more than a share of alpha of them."""
    return len(values) >= k and all(values.count(v) <= alpha * len(values) + 1e-9 for v in set(values))
