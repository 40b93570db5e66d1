"""The publication of a table in pieces: drawn, verified, shuffled and written without ever being in one place."""

from __future__ import annotations

import time
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass, replace
from itertools import accumulate
from pathlib import Path
from typing import TYPE_CHECKING

import numpy as np
import pyarrow as pa

from anonflow.criteria.request import read_criteria
from anonflow.engine import publish
from anonflow.engine.execution.combine import merged, with_findings
from anonflow.engine.execution.result import RunReport, RunResult
from anonflow.engine.large.releasing import (
    Shelved,
    Showing,
    UnitReleased,
    deal_rows,
    draw_hidden,
    hidden_positions,
    release_unit,
    shuffle_shelf,
)
from anonflow.engine.large.result import facts_of, guarantee_of
from anonflow.engine.large.scan import published_kind, sketched
from anonflow.engine.large.spill import read_batch
from anonflow.engine.large.units import Unit, UnitDone
from anonflow.release import Certificate, RandomWords
from anonflow.release.certificate import versions
from anonflow.release.draw import shelf_count
from anonflow.release.tables import write_parts
from anonflow.table.marks import KEY_LENGTH

if TYPE_CHECKING:
    from anonflow.engine.large.driver import Large

__all__ = ["publish_large"]


@dataclass(frozen=True, eq=False)
class Shelves:
    """A release on its shelves: shuffled, verified, and not yet written.

    Attributes
    ----------
    showing : Showing
    kind : {"matches", "classes", "none"}
    shelved : sequence of Shelved
    rows, claims : sequence of str
        Files: published rows, and what the certificate says of them.
    lists : sequence of str
        Files with the classes of each unit.
    hidden : sequence of str
        Files with the positions of suppressed records.
    """

    showing: Showing
    kind: str
    shelved: Sequence[Shelved]
    rows: Sequence[str]
    claims: Sequence[str]
    lists: Sequence[str]
    hidden: Sequence[str]

    def write_release(self, path: Path) -> None:
        """Write the published table; one shelf is held at a time.

        Raises
        ------
        DataError, AnonflowError
            If it cannot be written.
        """
        write_parts(path, (pa.Table.from_batches([read_batch(file)]) for file in self.rows))

    def write_certificate(self, path: Path) -> None:
        """Write the owner's proof: as that of a release in memory.

        Raises
        ------
        DataError, AnonflowError
            If it cannot be written.
        """
        showing, n = self.showing, self.showing.n
        nothing = np.zeros(0, np.int32)
        head = Certificate(
            showing.k, showing.guarantee, showing.algorithm, nothing, np.zeros(1, np.int64), nothing,
            versions(), key=showing.key,
        )  # fmt: skip
        suppressed = hidden_positions(self.hidden)
        if self.kind == "matches":
            lists, entries = sum(s.lists for s in self.shelved), sum(s.originals for s in self.shelved)
        elif self.kind == "classes":
            lists, entries = sum(len(sizes) for sizes in self._of(self.lists, "sizes")), n - len(suppressed)
        else:
            lists, entries = 1, 0
        if len(suppressed):
            lists, entries = lists + 1, entries + len(suppressed)
        head.save_in_parts(
            path,
            {
                "row_list": (n, self._row_lists(lists, bool(len(suppressed)))),
                "list_offsets": (lists + 1, _ends(self._sizes(suppressed))),
                "list_originals": (entries, self._originals(suppressed)),
                "row_marks": (n, self._of(self.claims, "marks")),
            },
        )

    def _of(self, files: Iterable[str], name: str) -> Iterator[np.ndarray]:
        for file in files:
            with np.load(file) as content:
                yield content[name]

    def _row_lists(self, lists: int, suppressed: bool) -> Iterator[np.ndarray]:
        """The list of each row. Classes come after the suppressed records' list, rows' own lists before it."""
        if self.kind == "matches":
            used = 0
            for sizes in self._of(self.claims, "sizes"):
                own = sizes > 0
                yield np.where(own, used + np.cumsum(own) - 1, lists - 1)
                used += int(own.sum())
            return
        first, last = (int(suppressed), 0) if self.kind == "classes" else (0, 1)
        for label in self._of(self.claims, "label"):
            yield np.where(label < 0, last, label + first)

    def _sizes(self, suppressed: np.ndarray) -> Iterator[np.ndarray]:
        one = [np.array([len(suppressed)])] if len(suppressed) else []
        if self.kind == "classes":
            yield from one
            yield from self._of(self.lists, "sizes")
            return
        if self.kind == "matches":
            for sizes in self._of(self.claims, "sizes"):
                yield sizes[sizes > 0]
        else:
            yield np.zeros(1, np.int64)
        yield from one

    def _originals(self, suppressed: np.ndarray) -> Iterator[np.ndarray]:
        one = [suppressed] if len(suppressed) else []
        if self.kind == "classes":
            yield from one
            yield from self._of(self.lists, "originals")
            return
        if self.kind == "matches":
            yield from self._of(self.claims, "originals")
        yield from one


def _ends(sizes: Iterable[np.ndarray]) -> Iterator[np.ndarray]:
    total = 0
    yield np.zeros(1, np.int64)
    for part in sizes:
        ends = total + np.cumsum(part)
        if len(ends):
            total = int(ends[-1])
            yield ends


def publish_large(
    large: Large, results: list[RunResult], units: dict[int, list[tuple[Unit, UnitDone]]]
) -> RunReport:
    """Draw, verify, shuffle, and only then write: as a table in memory is published.

    Parameters
    ----------
    large : Large
    results : list of RunResult
    units : dict
        Run -> its units.

    Returns
    -------
    RunReport

    Raises
    ------
    AnonflowError
        If something cannot be drawn, verified or written.
    """
    session = large.session
    picked = session.flow.published
    shelves = None
    if picked is not None and session.flow.draws(picked) and all(result.ok for result in results):
        publish.warn_of_earlier(session)
        number = picked.number
        result = results[number]
        showing = _showing(large, result, units[number])
        released = session.step("draw", lambda: _draw(large, showing, number, units[number]), number)
        findings = merged([found for one in released for found in one.findings])
        results[number] = with_findings(result, findings)
        if results[number].ok:
            shelves = session.step(
                "shuffle", lambda: _shuffle(large, showing, units[number], released), number
            )
    session_owner = session.owner
    assert session_owner is not None
    report = RunReport(
        session.flow.name, tuple(results), None, owner=session_owner.path, warnings=tuple(session.warnings)
    )
    if not report.ok:
        return replace(report, owner=None, seconds=time.perf_counter() - session.clock)
    session.events.check()
    if session.keeper is not None:
        session.keeper.publishing(session.seed)
    report = session.step("publish", lambda: publish.write_all(session, large.outline, report, shelves))
    if session.keeper is not None:
        session.keeper.finished()
    return report


def _showing(large: Large, result: RunResult, units: Sequence[tuple[Unit, UnitDone]]) -> Showing:
    session = large.session
    run = large.flow.runs[result.number]
    done = [one for _, one in units]
    guarantee = guarantee_of(run, done)
    for told in sketched(large.found):
        session.warn(told)
    weak = facts_of(done).get("warning")
    if weak:
        session.warn(str(weak))
    suppressed = sum(one.suppressed for one in done)
    blanks = 0 < suppressed < result.k
    kinds = {
        name: published_kind(name, large.fields[name], large.found, blanks)
        for name in large.columns
        if large.flow.schema[name].role != "quasi-identifier"
    }
    key = RandomWords(session.seed).lanes("marks", 0, 2 * KEY_LENGTH // 8).tobytes().hex()[:KEY_LENGTH]
    return Showing(
        large.flow.schema, large.domains, large.columns, kinds, result.k, guarantee, result.algorithm,
        tuple(read_criteria(large.flow.criteria, guarantee)), large.n, suppressed, session.seed, key,
        large.spill.file("dealt"), large.spill.file("hidden.npz") if suppressed else None,
    )  # fmt: skip


def _draw(
    large: Large, showing: Showing, number: int, units: Sequence[tuple[Unit, UnitDone]]
) -> list[UnitReleased]:
    from anonflow.engine.large.driver import Call

    seed = large.session.seed
    first = [Call(deal_rows, (showing.n, seed, showing.dealt))]
    if showing.hidden is not None:
        files = [done.hidden for _, done in units if done.hidden is not None]
        first.append(Call(draw_hidden, (files, seed, showing.hidden)))
    large.all(first)
    calls = [
        Call(
            release_unit,
            (
                large.settings[number], large.ordered[number], unit, done, large.keep,
                large.spill.file(f"drawn-{unit.number}.arrow"), large.spill.file(f"lists-{unit.number}.npz"),
            ),
        )
        for unit, done in units
    ]  # fmt: skip
    released = large.all(calls, showing)
    for one in released:
        large.session.used(one.memory)
    return released


def _shuffle(
    large: Large,
    showing: Showing,
    units: Sequence[tuple[Unit, UnitDone]],
    released: Sequence[UnitReleased],
) -> Shelves:
    from anonflow.engine.large.driver import Call

    drawn = [large.spill.file(f"drawn-{unit.number}.arrow") for unit, _ in units]
    offsets = [0, *accumulate(one.lists for one in released)][:-1]
    count = shelf_count(showing.n)
    rows = [large.spill.file(f"shelf-{s}.arrow") for s in range(count)]
    claims = [large.spill.file(f"claims-{s}.npz") for s in range(count)]
    shelved = large.all(
        [Call(shuffle_shelf, (s, drawn, offsets, rows[s], claims[s])) for s in range(count)], showing
    )
    for one in shelved:
        large.session.used(one.memory)
    return Shelves(
        showing,
        units[0][1].kind,
        shelved,
        rows,
        claims,
        [large.spill.file(f"lists-{unit.number}.npz") for unit, _ in units],
        [done.hidden for _, done in units if done.hidden is not None],
    )
