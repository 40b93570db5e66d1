"""Attackers with more than quasi-identifiers: known true matches, guessed seeds, the order and the file itself."""

from __future__ import annotations

import re
from collections.abc import Iterable
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any, ClassVar

import numpy as np
from scipy.sparse import csr_array
from scipy.sparse.csgraph import connected_components

from anonflow.errors import ParameterError
from anonflow.release import publish
from anonflow.risk.attacker import Success, percent, wilson

if TYPE_CHECKING:
    from anonflow.risk.attack_context import AttackContext

__all__ = ["Clerk", "Insider", "Replayer"]


@dataclass(frozen=True)
class Insider:
    """A linker who also knows the rows of `c` other people, all of them candidates for its target's row.

    Parameters
    ----------
    c : int
        How many true matches are known.
    targets : int
        How many people are attacked, drawn at random; everybody where there are fewer.

    Notes
    -----
    Doka 2015, section 2.2: with c true matches known, a reciprocal graph still hides a person among k - c rows, as
    equal records do; another graph may hide it among fewer, since what is left need not hold a (k - c)-regular
    graph. The paper's k - c is about rows that carry their own record. Along a drawn assignment, as a release has it,
    a reciprocal graph is not symmetric about the known matches, and fewer rows may be left there, too (measured: 60
    records of Nursery, greedy, k = 5, c = 3: one row instead of two for some). The known rows are the target's own candidates, which hurts most; which c of them is drawn at random.
    """

    c: int = 1
    targets: int = 200
    name: ClassVar[str] = "insider"
    needs_truth: ClassVar[bool] = True

    def __post_init__(self) -> None:
        for value, least in ((self.c, 0), (self.targets, 1)):
            if isinstance(value, bool) or not isinstance(value, int) or value < least:
                raise ParameterError("insider: c is a number of at least 0, targets one of at least 1")

    @property
    def knows(self) -> str:
        """What it has besides the release."""
        return f"everybody's quasi-identifiers, the method, and the rows of {self.c} people"

    def attack(self, context: AttackContext) -> Success:
        """O(targets x pairs of a person and a row in the target's component).

        Raises
        ------
        ParameterError
            If the truth is not known, or there are too many pairs.
        """
        left = self.rows_left(context)
        chance = 1.0 / left
        promise = 1 / max(1, context.k - self.c)
        return Success(
            len(left), float(chance.mean()), float(chance.max()), int((chance > promise + 1e-12).sum()), promise,
            f"Who knows the rows of {self.c} other {'person' if self.c == 1 else 'people'} for certain has between {left.min()} and {left.max()} rows "
            f"left for its target and is right for {percent(float(chance.mean()))}.",
            counted=len(left) < context.n,
        )  # fmt: skip

    def rows_left(self, context: AttackContext) -> np.ndarray:
        """How many rows may still be each target's, shape (targets,), int64.

        Raises
        ------
        ParameterError
            If the truth is not known, or there are too many pairs.
        """
        truth = context.judged()
        original, row = context.pairs
        # an edge i -> t: person i may have the row that is person t's; matches are the edges inside a
        # strongly connected component, also after known people have left with their rows
        graph = csr_array((np.ones(len(row), np.int8), (original, truth[row])), shape=(context.n, context.n))
        component = connected_components(graph, directed=False)[1]
        order = np.argsort(component, kind="stable")
        first = np.searchsorted(component[order], np.arange(component.max() + 2))
        chosen = context.rng.permutation(context.people)[: self.targets]
        left = np.empty(len(chosen), np.int64)
        for at, target in enumerate(chosen.tolist()):
            others = graph.indices[graph.indptr[target] : graph.indptr[target + 1]]
            others = others[others != target]
            known = context.rng.permutation(others)[: self.c]
            inside = order[first[component[target]] : first[component[target] + 1]]
            inside = inside[~np.isin(inside, known)]
            part = graph[inside][:, inside]
            strong = connected_components(part, connection="strong")[1]
            me = int(np.searchsorted(inside, target))
            ends = part.indices[part.indptr[me] : part.indptr[me + 1]]
            left[at] = np.count_nonzero((strong[ends] == strong[me]) & (ends != me)) + 1
        return left


@dataclass(frozen=True, eq=False)
class Replayer:
    """Runs the method and the draw again with guessed seeds, and knows the right one by the rows' order.

    Parameters
    ----------
    guesses : iterable of int
        Seeds to try.
    anonymization : Anonymization, optional
        What running the method gives; the context's own without it.
    """

    guesses: Iterable[int] = range(100)
    anonymization: Any = None
    name: ClassVar[str] = "replay"
    needs_truth: ClassVar[bool] = True
    knows: ClassVar[str] = "everybody's quasi-identifiers, the method, and some seeds worth trying"

    def attack(self, context: AttackContext) -> Success:
        """O(n k) for each guess.

        Raises
        ------
        ParameterError
            If there is no anonymization to draw from, or the truth is not known.
        """
        made = self.anonymization if self.anonymization is not None else context.anonymization
        if made is None or context.truth is None:
            raise ParameterError("replay: give the anonymization, and the release as it was made from it")
        names = list(context.table.qi_columns)
        seen = context.frame[names].astype("str").reset_index(drop=True)
        tried = 0
        for guess in self.guesses:
            tried += 1
            again = publish(made, guess, rehearsal=True)
            if again.frame[names].astype("str").equals(seen):
                right = np.equal(again.truth if again.truth is not None else -1, context.truth)
                return Success(
                    context.n, float(right.mean()), float(right.max()), int(right.sum()), 1 / context.k,
                    f"One of {tried} guessed seeds repeats the release: everybody's row is known. "
                    "Draw again with a secret seed.",
                )  # fmt: skip
        mean = float((1.0 / context.candidates()).mean())
        return Success(
            context.n, mean, mean, 0, 1 / context.k,
            f"None of {tried} guessed seeds repeats the release; what is left is {percent(mean)}.",
        )  # fmt: skip


@dataclass(frozen=True)
class Clerk:
    """Uses what tables give away by themselves: the order of rows, an index, a file's own notes.

    It guesses a person's row by position, from the end, by the index, by the numbers in names, and by position among
    the rows that cover the person; the best of these counts.

    Parameters
    ----------
    names : iterable of str, optional
        Names that came with the release, a row each or a part of the rows each: of files, of tasks in a log.
    """

    names: Iterable[str] = ()
    name: ClassVar[str] = "order"
    needs_truth: ClassVar[bool] = True
    knows: ClassVar[str] = "the original's row order, the file, and names of files and tasks"

    def attack(self, context: AttackContext) -> Success:
        """O(n) besides the pairs of a person and a row.

        Raises
        ------
        ParameterError
            If the truth is not known.
        """
        if context.truth is None:
            raise ParameterError(
                "order: whether this attacker wins is known only with the release as it was made"
            )
        n = context.n
        of_row = context.truth
        hits = [np.arange(n) == of_row, np.arange(n)[::-1] == of_row]
        index = context.frame.index.to_numpy()
        if index.dtype.kind in "iu" and len(np.unique(index)) == n:
            hits.append(index == of_row)
            hits.append(np.argsort(np.argsort(index)) == of_row)
        hits.append(self._nearest(context) == of_row)
        numbers = [int(found[-1]) for one in self.names if (found := re.findall(r"\d+", one))]
        if len(numbers) == n:
            hits.append(np.array(numbers) == of_row)
            hits.append(np.argsort(np.argsort(numbers)) == of_row)
        best = max(hits, key=lambda hit: int(hit.sum()))
        rate = float(best.mean())
        sure = wilson(rate, n, 3.3)[0] > 1 / context.k  # more than chance among k
        clues = file_clues(context.path) + frame_clues(context.frame)
        told = f"; it carries {', '.join(clues)}" if clues else ""
        return Success(
            n, rate, rate, int(best.sum()) if sure else 0, 1 / context.k,
            f"The order of the rows, by itself, gives {percent(rate)} of the people away{told}.",
            counted=True,
        )  # fmt: skip

    @staticmethod
    def _nearest(context: AttackContext) -> np.ndarray:
        """For each row, the candidate of the nearest position; -1 where there is none."""
        try:
            original, row = context.pairs
        except ParameterError:
            return np.full(context.n, -1)
        order = np.lexsort([np.abs(original - row), row])
        first = np.unique(row[order], return_index=True)
        found = np.full(context.n, -1, np.int64)
        found[first[0]] = original[order][first[1]]
        return found


def frame_clues(frame: Any) -> list[str]:
    """What a frame says besides its cells: unused categories, an index, notes."""
    import pandas as pd

    clues = []
    if not isinstance(frame.index, pd.RangeIndex):
        clues.append("an index")
    if frame.attrs:
        clues.append("notes")
    if any(isinstance(dtype, pd.CategoricalDtype) for dtype in frame.dtypes):
        clues.append("lists of categories")
    return clues


def file_clues(path: Path | None) -> list[str]:
    """What a Parquet file says besides its cells: statistics, the notes of pandas, key-value metadata.

    Notes
    -----
    A file that is none says nothing.
    """
    if path is None or path.suffix.lower() not in (".parquet", ".pq"):
        return []
    import pyarrow as pa
    import pyarrow.parquet as pq

    try:
        about = pq.ParquetFile(path).metadata
    except (OSError, pa.ArrowException):
        return []
    clues = []
    if about.metadata:
        clues.append("metadata of the table it was made from")
    groups = [about.row_group(g) for g in range(about.num_row_groups)]
    if any(g.column(c).is_stats_set for g in groups for c in range(g.num_columns)):
        clues.append("statistics of its columns")
    return clues
