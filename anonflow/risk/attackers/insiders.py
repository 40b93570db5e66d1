"""Attackers with more than quasi-identifiers: known true matches, guessed seeds, the order and the file itself."""

from __future__ import annotations

import re
from collections.abc import Iterable
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Annotated, Any

import numpy as np
import pandas as pd
import pyarrow as pa
from scipy.sparse import csr_array
from scipy.sparse.csgraph import connected_components

from anonflow.errors import DataError, ParameterError
from anonflow.hierarchy.wording import plural
from anonflow.option import Option
from anonflow.release import publish
from anonflow.risk.attack_context import AttackContext
from anonflow.risk.attacker import AttackerKind, Success, percent
from anonflow.risk.attackers.people import PeopleAtRisk
from anonflow.table.files.opening import open_file
from anonflow.table.files.parquet_metadata import is_parquet
from anonflow.table.files.parquet_reading import parquet_files

_BEST_OF_SEVERAL = 3.3
"""Standard deviations of an interval that also allows for chance where the best of several ways of guessing counts."""


@dataclass(frozen=True)
class Insider(
    AttackerKind,
    name="insider",
    usual_where=lambda context: context.truth is not None or context.listing is not None,
    does="knows others' rows",
    needs_truth=True,
    of_fresh_draw=True,
):
    """A linker who also knows the rows of `c` other people, all of them candidates for its target's row.

    Parameters
    ----------
    c : int
        How many true matches are known.
    targets : int
        How many people are attacked, drawn at random; everybody if there are fewer.

    Notes
    -----
    Doka 2015, section 2.2: with c true matches known, a reciprocal graph still hides a person among k - c rows, as
    equal records do; another graph may hide it among fewer, since the remaining graph need not contain a (k -
    c)-regular graph. The paper's k - c holds for rows that carry their own record. In a release an assignment is drawn,
    a reciprocal graph is not symmetric about the known matches, and fewer rows may be left there, too (measured on 60
    records of Nursery, greedy, k = 5, c = 3: one row instead of two for some people). The known rows are candidates of
    the target, because these reveal most; c of them are drawn at random.
    """

    c: Annotated[int, Option("Known matches", least=0)] = 1
    targets: Annotated[int, Option("Targets", least=1)] = 200

    @property
    def knows(self) -> str:
        return f"everybody's quasi-identifiers, the method, and the rows of {plural(self.c, 'person')}"

    def attack(self, context: AttackContext) -> Success:
        """Attack the release. O(targets x pairs of a person and a row in the target's component).

        Raises
        ------
        ParameterError
            If the truth is not known, or there are too many pairs.
        """
        records, people_left = self._left(context)
        risk = PeopleAtRisk.of(context.table, 1.0 / people_left, records, context.row_candidates)
        promise = 1 / max(1, context.k - self.c)
        fewest, most = int(people_left.min()), int(people_left.max())
        rows = plural(most, "row") if fewest == most else f"between {fewest} and {most} rows"
        return risk.success(
            promise,
            f"An attacker who knows the rows of {plural(self.c, 'other person')} for certain has {rows} left for its target and is "
            f"right for {percent(risk.mean)}.",
            counted=len(people_left) < context.n,
        )  # fmt: skip

    def _left(self, context: AttackContext) -> tuple[np.ndarray, np.ndarray]:
        """Return the rows of the attacked people, and the number of rows that remain possible for each."""
        truth = context.judged()
        original, row = context.pairs
        # an edge i -> t: person i may have the row that is person t's; matches are the edges inside a
        # strongly connected component, also after known people have left with their rows
        graph = csr_array((np.ones(len(row), np.int8), (original, truth[row])), shape=(context.n, context.n))
        component = connected_components(graph, directed=False)[1]
        order = np.argsort(component, kind="stable")
        first = np.searchsorted(component[order], np.arange(component.max() + 2))
        unit = np.arange(context.n) if context.table.unit is None else context.table.unit
        order_of_unit = np.argsort(unit, kind="stable")
        ends = np.searchsorted(unit[order_of_unit], np.arange(unit.max(initial=-1) + 2))

        def rows_of(unit: int) -> np.ndarray:
            return order_of_unit[ends[unit] : ends[unit + 1]]

        attacked = np.zeros(context.n, bool)
        attacked[context.people] = True
        persons = dict.fromkeys(unit[context.rng.permutation(context.people)].tolist())
        chosen: list[int] = []
        knows: list[np.ndarray] = []
        for person in list(persons)[: self.targets]:
            rows = rows_of(person)
            around = [graph.indices[graph.indptr[i] : graph.indptr[i + 1]] for i in rows.tolist()]
            others = np.array(list(dict.fromkeys(unit[np.concatenate(around)].tolist())), np.int64)
            others = context.rng.permutation(others[others != person])[: self.c]
            known_rows = np.concatenate(
                [rows_of(other) for other in others.tolist()] or [np.empty(0, np.int64)]
            )
            targets_of_person = rows[attacked[rows]].tolist()
            chosen += targets_of_person
            knows += [known_rows] * len(targets_of_person)
        people_left = np.empty(len(chosen), np.int64)
        for at, (target, known_rows) in enumerate(zip(chosen, knows, strict=True)):
            inside = order[first[component[target]] : first[component[target] + 1]]
            inside = inside[~np.isin(inside, known_rows)]
            part = graph[inside][:, inside]
            strong = connected_components(part, connection="strong")[1]
            me = int(np.searchsorted(inside, target))
            targets = part.indices[part.indptr[me] : part.indptr[me + 1]]
            people_left[at] = np.count_nonzero((strong[targets] == strong[me]) & (targets != me)) + 1
        return np.array(chosen, np.int64), people_left


@dataclass(frozen=True, eq=False)
class Replayer(
    AttackerKind,
    name="replay",
    call="tries seeds on a release in Python: af.attack(table, release, risk.Replayer(...))",
    does="guesses the seed",
    needs_truth=True,
    knows="everybody's quasi-identifiers, the method, and some seeds worth trying",
):
    """Runs the method and the draw again with guessed seeds, and recognizes the right one by the rows' order.

    Parameters
    ----------
    guesses : iterable of int
        Seeds to try.
    anonymization : Anonymization, optional
        The result of running the method; by default the context's.
    """

    guesses: Iterable[int] = range(100)
    anonymization: Any = None

    def attack(self, context: AttackContext) -> Success:
        """Attack the release. O(n k) for each guess.

        Raises
        ------
        ParameterError
            If there is no anonymization to draw from, or the truth is not known.
        """
        again_of = self.anonymization if self.anonymization is not None else context.anonymization
        if again_of is None or context.truth is None:
            raise ParameterError("replay: give the anonymization, and the release as it was made from it")
        names = list(context.table.qi_columns)
        seen = context.frame[names].astype("str").reset_index(drop=True)
        guesses = 0
        for guess in self.guesses:
            guesses += 1
            again = publish(again_of, guess, rehearsal=True)
            if again.frame[names].astype("str").equals(seen):
                right = np.zeros(context.n)
                right[context.truth] = np.equal(again.truth if again.truth is not None else -1, context.truth)
                risk = PeopleAtRisk.of(context.table, right)
                return risk.success(
                    1 / context.k,
                    f"One of {guesses} guessed seeds repeats the release: everybody's row is known. "
                    "Draw again with a secret seed.",
                    at_risk=risk.above(0.0),
                )  # fmt: skip
        chance = 1.0 / context.candidates()
        risk = PeopleAtRisk.of(context.table, chance, candidates=context.row_candidates)
        return risk.success(
            1 / context.k,
            f"None of {guesses} guessed seeds repeats the release; a guess without the seed is right for {percent(risk.mean)}.",
            worst=risk.mean, at_risk=0,
        )  # fmt: skip


@dataclass(frozen=True)
class Clerk(
    AttackerKind,
    name="order",
    usual_where=lambda context: context.truth is not None,
    does="reads the rows' order",
    needs_truth=True,
    knows="the original's row order, the file, and names of files and tasks",
):
    """Uses the order of rows, an index and a file's metadata.

    It guesses a person's row by position, from the end, by the index, by the numbers in names, and by position among
    the rows that cover the person; the best of these counts. The baseline is 1/k for each row; a person with several
    rows is named by any of them.

    Parameters
    ----------
    names : iterable of str, optional
        Names that came with the release, a row each or a part of the rows each: of files, of tasks in a log.
    """

    names: Iterable[str] = ()

    def attack(self, context: AttackContext) -> Success:
        """Attack the release. O(n) besides the pairs of a person and a row.

        Raises
        ------
        ParameterError
            If the truth is not known.
        """
        if context.truth is None:
            raise ParameterError("order: this attacker needs the true rows; give the release as it was made")
        n = context.n
        of_row = context.truth
        hits = [np.arange(n) == of_row, np.arange(n)[::-1] == of_row]
        index = context.frame.index.to_numpy()
        if index.dtype.kind in "iu" and len(np.unique(index)) == n:
            # ranks, too: numbers with gaps still tell the order
            hits += [index == of_row, np.argsort(np.argsort(index)) == of_row]
        hits.append(self._nearest(context) == of_row)
        numbers = [int(digits[-1]) for name in self.names if (digits := re.findall(r"\d+", name))]
        if len(numbers) == n:
            hits += [np.array(numbers) == of_row, np.argsort(np.argsort(numbers)) == of_row]
        baseline = 1 / context.k
        if context.table.unit is not None:
            likely = np.full(n, baseline)
            baseline = PeopleAtRisk.of(context.table, likely, candidates=context.row_candidates).mean
        of_original = np.argsort(of_row)
        risks = [PeopleAtRisk.of(context.table, hit[of_original]) for hit in hits]
        best = max(risks, key=lambda risk: risk.mean)
        clues = file_clues(context.path) + frame_clues(context.frame)
        carried = f"; it carries {', '.join(clues)}" if clues else ""
        success = best.success(
            baseline,
            f"The order of the rows, by itself, reveals the rows of {percent(best.mean)} of the people{carried}.",
            worst=best.mean, at_risk=best.above(0.0), counted=True, z=_BEST_OF_SEVERAL,
        )  # fmt: skip
        # more than chance among k
        return success if success.interval[0] > baseline else replace(success, at_risk=0)

    @staticmethod
    def _nearest(context: AttackContext) -> np.ndarray:
        """Return for each row the candidate of the nearest position; -1 if there is none."""
        try:
            original, row = context.pairs
        except ParameterError:
            return np.full(context.n, -1)
        order = np.lexsort([np.abs(original - row), row])
        first = np.unique(row[order], return_index=True)
        nearest = np.full(context.n, -1, np.int64)
        nearest[first[0]] = original[order][first[1]]
        return nearest


def frame_clues(frame: Any) -> list[str]:
    """Return what a frame reveals besides its cells: unused categories, an index, attributes."""
    clues = {
        "an index": not isinstance(frame.index, pd.RangeIndex),
        "notes": bool(frame.attrs),
        "lists of categories": any(isinstance(dtype, pd.CategoricalDtype) for dtype in frame.dtypes),
    }
    return [clue for clue, is_there in clues.items() if is_there]


def file_clues(path: Path | None) -> list[str]:
    """Return what a Parquet file contains besides its cells: statistics, the metadata of pandas, key-value metadata.

    Notes
    -----
    The answer is empty for a file that is not Parquet.
    """
    if path is None or not (is_parquet(path) or path.is_dir()):
        return []
    import pyarrow.parquet as pq

    try:
        footers = [pq.ParquetFile(open_file(file)).metadata for file in parquet_files(path)]
    except (OSError, pa.ArrowException, DataError):
        return []
    clues = []
    if any(footer.metadata for footer in footers):
        clues.append("metadata of the table it was made from")
    groups = [footer.row_group(g) for footer in footers for g in range(footer.num_row_groups)]
    if any(g.column(c).is_stats_set for g in groups for c in range(g.num_columns)):
        clues.append("statistics of its columns")
    return clues
