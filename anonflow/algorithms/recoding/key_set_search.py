"""The levels of cells under which each set of columns alone names nobody: a greedy search and its undoing."""

from __future__ import annotations

import math
from collections import Counter
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field
from itertools import combinations, groupby, product

import numpy as np
from scipy.sparse import csr_array
from scipy.sparse.csgraph import connected_components

from anonflow.table.records import places_in, rank_within

NEAR_BEST = 0.5
"""Cells whose gain for their price is at least this share of the best one's are raised together."""

IMPORTANT = 1e3
"""A cell costs so many times as much as one of a less important column."""

MOST_COMBINATIONS = 5_000
"""The most combinations of moves that each row is tested with."""

MOST_TESTS = 10**10
"""These combinations, times sets and rows."""

FEW_RECORDS = 5_000
"""A test of fewer records than these takes as long."""

MOST_BYTES = 1 << 30
"""Bytes of labels that are stored."""

MOST_TRIES = 100_000
"""Cells that are raised in exchange for others, times records and sets."""

NEAR = 1e-9
"""A saving below it is none."""

Projection = tuple[tuple[int, int], ...]
"""Columns of a set with their levels, without those that are hidden."""


@dataclass(frozen=True, eq=False)
class CellLevels:
    """The levels at which the cells of a column can be published.

    Attributes
    ----------
    labels : numpy.ndarray, shape (L, n), int32
        Records with equal labels at a level cover each other there; at the last level all are equal.
    prices : numpy.ndarray, shape (L, n), float64
        What a cell costs at each level.
    first : numpy.ndarray, shape (n,), int
        The level of each record's own value; L - 1 of a record without one.
    highest : int
        The highest level that a cell may be raised to.
    importance : float
    """

    labels: np.ndarray
    prices: np.ndarray
    first: np.ndarray
    highest: int
    importance: float

    @property
    def whole(self) -> int:
        """The last level."""
        return len(self.labels) - 1

    @property
    def constant(self) -> bool:
        """Whether the cells of all records are equal already."""
        return not self.labels[0].any()


@dataclass(eq=False)
class KeySetSearch:
    """Cells that are raised level by level until, on each set of columns, people and rows have k of each other.

    A row is compatible with a person on a set if each of its cells there has the person's label at the row's level. Raising a
    cell makes rows compatible with more people, never with fewer.

    Attributes
    ----------
    columns : sequence of CellLevels
    sets : sequence of list of int
        Columns.
    k : int
    matches : bool
        Whether only rows and people on complete matchings count.
    level, first : numpy.ndarray, shape (q, n), int
        Of each cell, and the level of its own value.
    matching_cells : int
        Cells that were raised for complete matchings alone.

    Notes
    -----
    A person whose values on a set are those of k people is compatible with k rows whatever is raised. So rows are counted for
    rare combinations of values alone.
    """

    columns: Sequence[CellLevels]
    sets: Sequence[list[int]]
    k: int
    matches: bool = True
    level: np.ndarray = field(init=False)
    first: np.ndarray = field(init=False)

    def __post_init__(self) -> None:
        self.n = self.columns[0].labels.shape[1]
        self.level = np.array([column.first for column in self.columns])
        self.first = self.level.copy()
        self._whole = [column.whole for column in self.columns]
        self._projected: dict[Projection, tuple[np.ndarray, np.ndarray]] = {}
        self._fit: dict[Projection, np.ndarray | None] = {}
        self._covered: dict[tuple[int, ...], _Coverage] = {}
        self._sets_of = [
            [s for s, columns in enumerate(self.sets) if c in columns] for c in range(len(self.columns))
        ]
        self._rare: list[np.ndarray] = []
        """A person of each rare combination of a set."""
        self._people: list[np.ndarray] = []
        """How many people have it."""
        for columns in self.sets:
            label, people = self._labels(tuple((c, 0) for c in columns))
            few = people < self.k
            person = np.full(len(people), -1)
            # backwards, so that the first person of each combination is written last
            person[label[::-1]] = np.arange(self.n)[::-1]
            self._rare.append(person[few])
            self._people.append(people[few])
        self._moved = np.zeros(self.level.shape, np.int64)
        self._time = 0
        self.matching_cells = 0
        self._counts: list[np.ndarray] = []
        self._importance = np.array([column.importance for column in self.columns])
        self._factor = IMPORTANT ** np.unique(self._importance, return_inverse=True)[1].astype(np.float64)
        self._dear = np.array([column.prices[column.whole, 0] for column in self.columns])

    # ---------------------------------------------------------------------------------- combinations

    def _labels(self, projection: Projection) -> tuple[np.ndarray, np.ndarray]:
        """Return the label of each record at some levels of some columns, and how many records have each label."""
        labelling = self._projected.get(projection)
        if labelling is not None:
            return labelling
        if not projection:
            label = np.zeros(self.n, np.int32)
        else:
            (c, level), before = projection[-1], projection[:-1]
            label = self.columns[c].labels[level]
            if before:
                left, counts = self._labels(before)
                label = _numbered(left, len(counts), label)
        # labels are int32
        if len(self._projected) * 4 * self.n > MOST_BYTES:
            for stored in (self._projected, self._fit, self._covered):
                stored.clear()
        labelling = label, np.bincount(label)
        self._projected[projection] = labelling
        return labelling

    def _at(self, columns: Sequence[int], levels: Sequence[int]) -> Projection:
        whole = self._whole
        return tuple([at for at in zip(columns, levels, strict=True) if at[1] < whole[at[0]]])

    def _patterns(self, s: int, rows: np.ndarray | None = None) -> Iterator[tuple[list[int], np.ndarray]]:
        """Yield the levels that occur on a set, with the rows that have them."""
        levels = self.level[self.sets[s]]
        if rows is not None:
            levels = levels[:, rows]
        code = np.zeros(levels.shape[1], np.int64)
        for c, part in zip(self.sets[s], levels, strict=True):
            code = code * len(self.columns[c].labels) + part
        order = np.argsort(code, kind="stable")
        cuts = np.flatnonzero(np.diff(code[order], prepend=-1))
        for at in np.split(order, cuts[1:]) if len(cuts) else []:
            yield levels[:, at[0]].tolist(), at if rows is None else rows[at]

    def _compatible_rows(self, s: int) -> np.ndarray:
        """Return how many rows are compatible with the people of each rare combination of a set."""
        rare = self._rare[s]
        counts = np.zeros(len(rare), np.int64)
        if len(rare):
            for levels, rows in self._patterns(s):
                label, people = self._labels(self._at(self.sets[s], levels))
                counts += np.bincount(label[rows], minlength=len(people))[label[rare]]
        return counts

    def failing_rows(self) -> np.ndarray:
        """Return which rows are compatible with fewer than k people on a set, shape (n,), bool."""
        failing = np.zeros(self.n, bool)
        for s in range(len(self.sets)):
            for levels, rows in self._patterns(s):
                label, people = self._labels(self._at(self.sets[s], levels))
                failing[rows] |= people[label[rows]] < self.k
        return failing

    def fits(self, moves: Sequence[tuple[int, int]]) -> np.ndarray:
        """Return which rows are compatible with k people on each set after some moves from the first levels, shape (n,), bool."""
        level = dict(moves)
        good = np.ones(self.n, bool)
        for projection in {self._at(columns, [level.get(c, 0) for c in columns]) for columns in self.sets}:
            if projection not in self._fit:
                label, people = self._labels(projection)
                few = people < self.k
                self._fit[projection] = ~few[label] if few.any() else None
            if (fit := self._fit[projection]) is not None:
                good &= fit
        return good

    def lacking(self) -> np.ndarray:
        """Return how many compatible rows each person lacks on the worst set, shape (n,), int64."""
        lacking = np.zeros(self.n, np.int64)
        for s in range(len(self.sets)):
            short = self.k - self._compatible_rows(s)
            label, people = self._labels(tuple((c, 0) for c in self.sets[s]))
            of_label = np.zeros(len(people), np.int64)
            of_label[label[self._rare[s]]] = np.maximum(short, 0)
            np.maximum(lacking, of_label[label], out=lacking)
        return lacking

    # ---------------------------------------------------------------------------------------- search

    def run(self) -> None:
        """Raise cells until nothing is lacking or nothing more may be raised; then lower those that are not needed."""
        self._moves = [
            (c, level)
            for c, column in enumerate(self.columns)
            if self._sets_of[c]
            for level in range(1, column.highest + 1)
        ]
        if not self._moves:
            return
        self._raise_cheapest()
        self._raise_failing_rows()
        self._raise_for_people()
        self._counts = [self._compatible_rows(s) for s in range(len(self.sets))]
        self._lower()
        self._exchange()
        self._improve()
        if self.matches:
            self._complete_matchings()

    def _complete_matchings(self) -> None:
        """Raise cells of rows until, on each set, k rows of each person and k people of each row lie on complete matchings.

        A row that hides a whole set is compatible with everybody, so all rows of its person then lie on one.
        """
        dear = self._dear * self._factor
        for s, columns in enumerate(self.sets):
            while True:
                rows = np.flatnonzero(self.short_of_matches(s))
                open_ = [c for c in sorted(columns, key=dear.__getitem__) if self.columns[c].highest]
                raised = 0
                for c in open_:
                    open_rows = rows[self.level[c, rows] < self.columns[c].highest]
                    self._raise(c, self.columns[c].highest, open_rows)
                    raised += len(open_rows)
                    rows = np.setdiff1d(rows, open_rows)  # one cell of each row at a time
                self.matching_cells += raised
                if not raised:
                    break
        if self.matching_cells:
            self._lower_matched()

    def _lower_matched(self) -> None:
        """Lower cells where nothing breaks, complete matchings included; as many as the size of the table allows."""
        self._counts = [self._compatible_rows(s) for s in range(len(self.sets))]
        c, row = np.nonzero(self._may_lower())
        order = np.lexsort((row, -self._moved[c, row], -self._dear[c], -self._importance[c]))
        for at in order[: MOST_TRIES // (self.n * len(self.sets))].tolist():
            cell = int(c[at]), int(row[at])
            before = int(self.level[cell])
            if self._lower_cell(*cell) and any(
                self.short_of_matches(s).any() for s in self._sets_of[cell[0]]
            ):
                self._set(*cell, before)

    def short_of_matches(self, s: int) -> np.ndarray:
        """Return whose rows, or people of whose row, on complete matchings of a set are fewer than k, shape (n,), bool.

        Everybody's own row makes a complete matching. Another row is a person's in one of them where a way leads back: from the row's
        person on over a row that is compatible with that person, until the first person's row.
        """
        label, people = self._labels(tuple((c, 0) for c in self.sets[s]))
        person = places_in(label, len(people))
        box = np.zeros(self.n, np.int64)
        edges, boxes = [], 0
        for levels, rows in self._patterns(s):
            group, groups = self._labels(self._at(self.sets[s], levels))
            occupied = np.zeros(len(groups), np.int64)
            occupied[group[rows]] = 1
            number = np.where(occupied > 0, boxes + np.cumsum(occupied) - 1, -1)
            box[rows] = number[group[rows]]
            boxes += int(occupied.sum())
            covering = number[group[person]]
            kinds = np.flatnonzero(covering >= 0)
            edges.append((kinds, covering[kinds]))
        kind, covering = (np.concatenate(ends) for ends in zip(*edges, strict=True))
        size = len(people)
        start, end = np.concatenate([kind, size + box]), np.concatenate([size + covering, label])
        ones = np.ones(len(start), np.int8)
        graph = csr_array((ones, (start, end)), shape=(size + boxes, size + boxes))
        component = connected_components(graph, directed=True, connection="strong")[1]
        back = component[kind] == component[size + covering]
        kind, covering = kind[back], covering[back]
        rows_of = np.bincount(kind, np.bincount(box, minlength=boxes)[covering], size)
        people_of = np.bincount(covering, people[kind], boxes)
        return np.asarray((rows_of[label] < self.k) | (people_of[box] < self.k))

    def _raise(self, c: int, level: int, rows: np.ndarray) -> None:
        self._time += 1
        self._moved[c, rows] = self._time
        self.level[c, rows] = level

    def _gains(
        self, rows: np.ndarray, needs: list[np.ndarray], own_people: bool
    ) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
        """Return what each move of some rows gains, and what it serves most.

        Parameters
        ----------
        rows : numpy.ndarray, shape (r,), int64
        needs : list of numpy.ndarray
            For each set the rows that its rare combinations lack.
        own_people : bool
            Whether the people that a row itself lacks count.

        Returns
        -------
        gains : numpy.ndarray, shape (moves, r), float64
        served : numpy.ndarray, shape (moves, r), int64
            A number of the people to whom the move is of most use.
        most : numpy.ndarray, int64
            How many rows these lack at most, by that number.
        """
        gains = np.zeros((len(self._moves), len(rows)))
        best = np.zeros(gains.shape)
        served = np.zeros(gains.shape, np.int64)
        most: list[np.ndarray] = [np.zeros(1, np.int64)]
        start = 1
        place = places_in(rows, self.n)
        number = {move: m for m, move in enumerate(self._moves)}
        for s, columns in enumerate(self.sets):
            rare, need = self._rare[s], needs[s]
            open_ = np.flatnonzero(need > 0)
            if not own_people and not len(open_):
                continue
            weights = self._people[s][open_].astype(np.float64)
            for levels, at in self._patterns(s, rows):
                label, people = self._labels(self._at(columns, levels))
                use = np.bincount(label[rare[open_]], weights, len(people))[label[at]]
                people_now = people[label[at]]
                for i, c in enumerate(columns):
                    for level in range(levels[i] + 1, self.columns[c].highest + 1):
                        above = self._at(columns, [*levels[:i], level, *levels[i + 1 :]])
                        label_above, people_above = self._labels(above)
                        group = label_above[at]
                        gain = np.bincount(label_above[rare[open_]], weights, len(people_above))[group] - use
                        m, p = number[c, level], place[at]
                        if own_people:
                            gain += np.minimum(people_above[group], self.k) - np.minimum(people_now, self.k)
                        gains[m, p] += gain
                        if not own_people:
                            lack = np.zeros(len(people_above), np.int64)
                            np.maximum.at(lack, label_above[rare[open_]], need[open_])
                            better = gain > best[m, p]
                            best[m, p[better]] = gain[better]
                            served[m, p[better]] = start + group[better]
                            most.append(lack)
                            start += len(lack)
        return gains, served, np.concatenate(most)

    def _prices(self, rows: np.ndarray) -> np.ndarray:
        """Return what each move of some rows costs, shape (moves, r); infinite where it is none."""
        prices = np.empty((len(self._moves), len(rows)))
        for m, (c, level) in enumerate(self._moves):
            column, now = self.columns[c], self.level[c, rows]
            # a gain is divided by the price: a move that costs nothing would have no finite worth
            rises = np.maximum(column.prices[level, rows] - column.prices[now, rows], 1e-6)
            prices[m] = np.where(now < level, rises * self._factor[c], np.inf)
        return prices

    def _needs(self) -> list[np.ndarray]:
        return [self.k - self._compatible_rows(s) for s in range(len(self.sets))]

    def _raise_cheapest(self) -> None:
        """Give each row the cheapest combination of moves under which it is compatible with k people on each set.

        Combinations of many columns are left out where there are too many. Of several at the same price, rows take the ones whose
        columns most other rows raise, too: they are compatible with each other's people.
        """
        price = [
            float((self.columns[c].prices[level] - self.columns[c].prices[0]).mean() * self._factor[c])
            for c, level in self._moves
        ]
        most = min(MOST_COMBINATIONS, MOST_TESTS // (max(self.n, FEW_RECORDS) * len(self.sets)))
        combined: list[tuple[float, tuple[int, ...]]] = []
        for size in range(1, len(self.columns) + 1):
            move_sets = _of_columns(self._moves, size, most - len(combined))
            if move_sets is None:
                break
            combined += [(sum(price[m] for m in moves), moves) for moves in move_sets]
        # sums of floats: equal prices may differ in their last digits
        combined.sort(key=lambda combination: (round(combination[0], 9), combination[1]))
        failing = np.flatnonzero(self.failing_rows() & (self.first == 0).all(axis=0))
        for _, same in groupby(combined, key=lambda combination: round(combination[0], 9)):
            if not len(failing):
                return
            failing = self._raise_by_one_of([[self._moves[m] for m in moves] for _, moves in same], failing)

    def _raise_by_one_of(self, combinations: list[list[tuple[int, int]]], rows: np.ndarray) -> np.ndarray:
        """Raise the cells of rows by one of several combinations of moves, where one is enough; return the other rows."""
        fits = [np.packbits(self.fits(moves)[rows]) for moves in combinations]
        use = np.zeros(len(self.columns))
        chosen = np.full(len(rows), -1)
        for _ in range(3 if len(combinations) > 1 else 1):
            best = np.full(len(rows), -1.0)
            for number, moves in enumerate(combinations):
                score = float(sum(use[c] for c, _ in moves))
                fit = np.unpackbits(fits[number], count=len(rows)).astype(bool)
                better = fit & (score > best)
                best[better], chosen[better] = score, number
            counts = np.bincount(chosen[chosen >= 0], minlength=len(combinations))
            use[:] = 0
            for moves, count in zip(combinations, counts.tolist(), strict=True):
                for c, _ in moves:
                    use[c] += count
        for number in np.unique(chosen[chosen >= 0]).tolist():
            for c, level in combinations[number]:
                self._raise(c, level, rows[chosen == number])
        return rows[chosen < 0]

    def _raise_failing_rows(self) -> None:
        """Raise cells of each row until it is compatible with k people on each set, or no cell may be raised."""
        while True:
            rows = np.flatnonzero(self.failing_rows())
            if not len(rows):
                return
            gains = self._gains(rows, self._needs(), own_people=True)[0]
            prices = self._prices(rows)
            # where no move alone helps, the cheapest is made
            worth = np.where(gains > 0, gains, 1e-9) / prices
            move = worth.argmax(axis=0)
            good = worth[move, np.arange(len(rows))] > 0
            if not good.any():
                return
            for m, (c, level) in enumerate(self._moves):
                self._raise(c, level, rows[good & (move == m)])

    def _raise_for_people(self) -> None:
        """Raise cells of any rows until each person is compatible with k of them on each set, or no cell may be raised."""
        every = np.arange(self.n)
        while True:
            needs = self._needs()
            if not any((need > 0).any() for need in needs):
                return
            gains, served, most = self._gains(every, needs, own_people=False)
            worth = gains / self._prices(every)
            top = worth.max(initial=0.0)
            if top <= 0:
                if not self._raise_together(needs):
                    return
                continue
            m, row = np.nonzero(worth >= NEAR_BEST * top)
            order = np.lexsort((m, row, -worth[m, row]))
            m, row = m[order], row[order]
            # each row makes one move in a round, its best: after it the others have other gains
            _, once = np.unique(row, return_index=True)
            once.sort()
            m, row = m[once], row[once]
            group = served[m, row]
            # no more rows than a combination lacks are raised for it
            needed = rank_within(group) < most[group]
            m, row = m[needed], row[needed]
            for move in np.unique(m).tolist():
                c, level = self._moves[move]
                self._raise(c, level, row[m == move])

    def _raise_together(self, needs: list[np.ndarray]) -> bool:
        """Raise several cells of rows at once, for the first people whom no cell alone helps; return whether any was raised."""
        for s, need in enumerate(needs):
            columns = self.sets[s]
            for at in np.flatnonzero(need > 0).tolist():
                person = self._rare[s][at]
                cost = np.zeros(self.n)
                target = np.zeros((len(columns), self.n), np.int64)
                for i, c in enumerate(columns):
                    column = self.columns[c]
                    equal = column.labels == column.labels[:, person : person + 1]
                    equal &= np.arange(len(equal))[:, None] >= self.level[c]
                    # the lowest such level; the last one hides, where all labels are equal
                    target[i] = equal.argmax(axis=0)
                    cost += (
                        column.prices[target[i], np.arange(self.n)]
                        - column.prices[self.level[c], np.arange(self.n)]
                    )
                    barred = (target[i] > column.highest) & (target[i] > self.level[c])
                    cost[barred] = np.inf
                cost[(target == self.level[columns]).all(axis=0)] = np.inf
                rows = np.argsort(cost, kind="stable")[: need[at]]
                rows = rows[np.isfinite(cost[rows])]
                if len(rows):
                    self._time += 1
                    for i, c in enumerate(columns):
                        changed = rows[target[i, rows] > self.level[c, rows]]
                        self._moved[c, changed] = self._time
                        self.level[c, changed] = target[i, changed]
                    return True
        return False

    def suppress_rest(self) -> None:
        """Hide all cells of rows that no level makes compatible with k people, and of as many rows as people lack."""
        whole = np.array(self._whole)[:, None]
        failing = self.failing_rows()
        self.level[:, failing] = whole
        while True:
            lacking = self.lacking()
            most = int(lacking.max(initial=0))
            visible_rows = np.flatnonzero((self.level < whole).any(axis=0))
            if most <= 0 or not len(visible_rows):
                break
            rows = visible_rows[np.argsort(-lacking[visible_rows], kind="stable")[:most]]
            self.level[:, rows] = whole
        for s in range(len(self.sets)) if self.matches else ():
            self.level[:, self.short_of_matches(s)] = whole

    # ---------------------------------------------------------------------------------------- undoing

    def _lower(self, fixed: tuple[int, int] | None = None) -> list[tuple[int, int, int]]:
        """Lower raised cells wherever nothing breaks: important and expensive columns first, and the last ones raised.

        Returns
        -------
        list of (int, int, int)
            Column, row and earlier level of each cell that was lowered; `fixed` is none of them.
        """
        c, row = np.nonzero(self._may_lower())
        order = np.lexsort((row, -self._moved[c, row], -self._dear[c], -self._importance[c]))
        lowered = []
        for at in order.tolist():
            cell = int(c[at]), int(row[at])
            if cell != fixed:
                before = int(self.level[cell])
                if self._lower_cell(*cell):
                    lowered.append((*cell, before))
        return lowered

    def _may_lower(self) -> np.ndarray:
        """Return which raised cells may be lower by a level if no other is lowered, shape (q, n), bool."""
        may = self.level > self.first
        for s, columns in enumerate(self.sets):
            # one cell lower takes one row from a combination: only those with k rows or fewer could break
            tight = self._rare[s][self._counts[s] <= self.k]
            for levels, rows in self._patterns(s):
                label, people = self._labels(self._at(columns, levels))
                tight_here = np.bincount(label[tight], minlength=len(people))[label[rows]]
                for i, c in enumerate(columns):
                    open_cells = may[c, rows]
                    if levels[i] == 0 or not open_cells.any():
                        continue
                    below = self._at(columns, [*levels[:i], levels[i] - 1, *levels[i + 1 :]])
                    label_below, people_below = self._labels(below)
                    group = label_below[rows]
                    still = np.bincount(label_below[tight], minlength=len(people_below))[group]
                    may[c, rows] = open_cells & (tight_here == still) & (people_below[group] >= self.k)
        return may

    def _lower_cell(self, c: int, row: int) -> bool:
        """Lower a cell to its lowest level under which nothing breaks; return whether it was lowered."""
        for level in range(int(self.first[c, row]), int(self.level[c, row])):
            lost: list[tuple[int, np.ndarray]] = []
            for s in self._sets_of[c]:
                below, at = self._between(s, c, row, level)
                if below.people[below.label[row]] < self.k or (self._counts[s][at] <= self.k).any():
                    break
                lost.append((s, at))
            else:
                for s, at in lost:
                    self._counts[s][at] -= 1
                self.level[c, row] = level
                return True
        return False

    def _set(self, c: int, row: int, level: int) -> None:
        """Give a cell a level, higher or lower, whatever follows."""
        now = int(self.level[c, row])
        low, high = min(now, level), max(now, level)
        # :meth:`_between` compares downwards from the present level
        self.level[c, row] = high
        for s in self._sets_of[c]:
            self._counts[s][self._between(s, c, row, low)[1]] += 1 if level > now else -1
        self.level[c, row] = level

    def _between(self, s: int, c: int, row: int, level: int) -> tuple[_Coverage, np.ndarray]:
        """Return whom a set covers where a cell has a lower level, and which rare combinations its row covers now but not there."""
        columns = self.sets[s]
        levels = self.level[columns, row].tolist()
        now = self._covered_by(s, levels)
        levels[columns.index(c)] = level
        below = self._covered_by(s, levels)
        at = now.rare_with(int(now.label[row]))
        return below, at[below.label[self._rare[s][at]] != below.label[row]]

    def _covered_by(self, s: int, levels: list[int]) -> _Coverage:
        key = s, *levels
        if key not in self._covered:
            label, people = self._labels(self._at(self.sets[s], levels))
            of_rare = label[self._rare[s]]
            order = np.argsort(of_rare, kind="stable")
            self._covered[key] = _Coverage(label, people, order, of_rare[order])
        return self._covered[key]

    def _exchange(self) -> None:
        """Lower cells of important columns whose row does without them if its cells of less important columns are raised."""
        changed = len(np.unique(self._importance)) > 1
        while changed:
            changed = False
            # not the least important: nothing is less important than they are
            for importance in np.unique(self._importance)[:0:-1].tolist():
                less = [c for c in np.flatnonzero(self._importance < importance).tolist() if self._sets_of[c]]
                for c in np.flatnonzero(self._importance == importance).tolist():
                    for row in np.flatnonzero(self.level[c] > self.first[c]).tolist():
                        changed |= self._exchange_cell(c, row, less)
            self._lower()

    def _exchange_cell(self, c: int, row: int, less: list[int]) -> bool:
        before = self.level[less, row].tolist()
        for other, level in zip(less, before, strict=True):
            self._set(other, row, max(level, self.columns[other].highest))
        if self._lower_cell(c, row):
            return True
        for other, level in zip(less, before, strict=True):
            self._set(other, row, level)
        return False

    def _improve(self) -> None:
        """Raise single cells where others can be lowered instead and this costs no more; as often as the size of the table allows.

        It ends after two passes that save nothing: exchanges at the same cost lead to other ones. Of the states on the way the one is
        taken that costs least with the cells that complete matchings still need.
        """
        tries = MOST_TRIES // (self.n * len(self.sets))
        if not tries:
            return
        saved, least, best = 0.0, self._price_of_matchings(), self.level.copy()
        idle = 0
        while idle < 2:
            idle += 1
            for c, level in self._moves:
                for row in np.flatnonzero(self.level[c] < level).tolist():
                    tries -= 1
                    gain = self._exchanged(c, row, level) if tries >= 0 else None
                    if gain is None:
                        continue
                    saved += gain
                    idle = 0 if gain > NEAR else idle
                    price = self._price_of_matchings() - saved
                    if price < least - NEAR:
                        least, best, idle = price, self.level.copy(), 0
            if tries < 0:
                break
        self.level = best

    def _price_of_matchings(self) -> float:
        """Return about what the cells cost that are still to be raised for complete matchings."""
        if not self.matches:
            return 0.0
        short = sum(int(self.short_of_matches(s).sum()) for s in range(len(self.sets)))
        return short * float(min(self._dear[c] * self._factor[c] for c, _ in self._moves))

    def _exchanged(self, c: int, row: int, level: int) -> float | None:
        """Raise a cell and lower others, if this costs no more; return what it saves, None if nothing changed."""
        before = int(self.level[c, row])
        rise = self._cost(c, row, level) - self._cost(c, row, before)
        self._set(c, row, level)
        lowered = self._lower((c, row))
        saved = sum(self._cost(*cell) - self._cost(*cell[:2]) for cell in lowered) - rise
        if saved > -NEAR:
            self._lower()
            return saved
        for cell in reversed(lowered):
            self._set(*cell)
        self._set(c, row, before)
        return None

    def _cost(self, c: int, row: int, level: int | None = None) -> float:
        """Return what a cell costs at a level, or at its own."""
        level = int(self.level[c, row]) if level is None else level
        return float(self.columns[c].prices[level, row] * self._factor[c])


@dataclass(frozen=True, eq=False)
class _Coverage:
    """Whom rows with the same levels on a set cover there.

    Attributes
    ----------
    label : numpy.ndarray, shape (n,), int32
        Rows cover the people with their label.
    people : numpy.ndarray, int64
        How many people have each label.
    order, rare : numpy.ndarray, shape (r,), int64
        The rare combinations by their label, and these labels.
    """

    label: np.ndarray
    people: np.ndarray
    order: np.ndarray
    rare: np.ndarray

    def rare_with(self, label: int) -> np.ndarray:
        """Return the rare combinations with a label."""
        left, right = np.searchsorted(self.rare, [label, label + 1])
        return self.order[left:right]


def _of_columns(moves: Sequence[tuple[int, int]], size: int, most: int) -> list[tuple[int, ...]] | None:
    """Return the combinations of moves of so many columns, as numbers of moves; None where there are more than `most`."""
    number = Counter(c for c, _ in moves)
    if size > len(number):
        return []
    count = 0
    for columns in combinations(number, size):
        count += math.prod(number[c] for c in columns)
        if count > most:
            return None
    of_column = {c: [m for m, (column, _) in enumerate(moves) if column == c] for c in number}
    return [
        chosen
        for columns in combinations(number, size)
        for chosen in product(*(of_column[c] for c in columns))
    ]


def _numbered(left: np.ndarray, size: int, right: np.ndarray) -> np.ndarray:
    """Return numbers 0.. of the pairs of two labels, shape (n,), int32."""
    width = int(right.max(initial=0)) + 1
    pair = left.astype(np.int64) * width + right
    # a mark for each possible pair, where these are few, is faster than a sort of the pairs
    if size * width <= 4 * len(pair):
        occupied = np.zeros(size * width, bool)
        occupied[pair] = True
        return (np.cumsum(occupied) - 1)[pair].astype(np.int32)
    return np.unique(pair, return_inverse=True)[1].astype(np.int32)
