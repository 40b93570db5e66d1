"""Cells of rows that are lowered, one after the other, wherever sets of columns allow it."""

from __future__ import annotations

import numpy as np

from anonflow.kernels.jit import jit


def lower_cells(
    column: np.ndarray,
    row: np.ndarray,
    above: np.ndarray,
    of_column: np.ndarray,
    sets: np.ndarray,
    place: np.ndarray,
    start: np.ndarray,
    end: np.ndarray,
    covered: np.ndarray,
    person: np.ndarray,
    people: np.ndarray,
    rows: np.ndarray,
    labels: np.ndarray,
    k: int,
    level: np.ndarray,
) -> None:
    """Give each cell the lowest level under which, on each set, its row covers k people and everybody is covered by k rows.

    Parameters
    ----------
    column, row, above : numpy.ndarray, shape (w,), int64
        Of each cell, in the order in which they are tried; the levels below `above` are lower than it is now.
    of_column : numpy.ndarray, shape (q + 1,), int64
        The sets of column c are ``sets[of_column[c]:of_column[c + 1]]``.
    sets : numpy.ndarray, int64
    place : numpy.ndarray, shape (s, n), int64
        Where the row's people on a set begin in `start`; read where a cell of the row is lowered on the set.
    start : numpy.ndarray, shape (l + 1,), int64
    end : numpy.ndarray, shape (E,), int32
        Combinations of values; combination e is covered if ``covered[e]``.
    covered : numpy.ndarray, shape (E,), bool
        Changed.
    person : numpy.ndarray, shape (v,), int64
        Somebody with these values, for each combination of each set.
    people : numpy.ndarray, shape (v,), int64
        How many people have them.
    rows : numpy.ndarray, shape (v,), int64
        How many rows cover them; changed.
    labels : numpy.ndarray, shape (levels, q, n), int32
        Equal labels at a level are covered by each other's cell there.
    k : int
    level : numpy.ndarray, shape (w,), int64
        Written: -1 where the cell stays as it is.

    Notes
    -----
    Lowering a cell takes people from its own row only, so no cell can be lowered afterwards that was not before. O(w levels) times
    the people of a row.
    """
    for w in range(len(column)):
        c, i = column[w], row[w]
        level[w] = -1
        for t in range(above[w]):
            shared = labels[t, c, i]
            good = True
            for x in range(of_column[c], of_column[c + 1]):
                at = place[sets[x], i]
                left = np.int64(0)
                for e in range(start[at], start[at + 1]):
                    if covered[e]:
                        v = end[e]
                        if labels[t, c, person[v]] == shared:
                            left += people[v]
                        elif rows[v] <= k:
                            good = False
                            break
                if left < k or not good:
                    good = False
                    break
            if not good:
                continue
            for x in range(of_column[c], of_column[c + 1]):
                at = place[sets[x], i]
                for e in range(start[at], start[at + 1]):
                    if covered[e] and labels[t, c, person[end[e]]] != shared:
                        covered[e] = False
                        rows[end[e]] -= 1
            level[w] = t
            break


lower_cells_jit = jit(lower_cells, borrows=True)
