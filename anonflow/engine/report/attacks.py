"""The attackers of a flow: those it names, and otherwise those whose success may be published."""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, Any

import numpy as np

from anonflow import risk
from anonflow.algorithms.seeds import derived_seed
from anonflow.criteria.graph import covering
from anonflow.engine.flows.fingerprint import Fingerprint
from anonflow.engine.flows.flow import Flow
from anonflow.errors import DataError, ParameterError
from anonflow.release import Certificate, Release
from anonflow.risk.attack import frame_of, row_of
from anonflow.risk.attacker import percent
from anonflow.risk.linkable import published
from anonflow.table import Table
from anonflow.table.read import read_frame

if TYPE_CHECKING:
    import pandas as pd

    from anonflow.algorithms.anonymize import Anonymization

__all__ = [
    "MOST",
    "SAMPLE",
    "AttackedPart",
    "attacked",
    "attacked_part",
    "is_attacked",
    "part_of_release",
    "publishable",
    "sampled",
]

MOST = 50_000
"""Of a larger table a sample is attacked: whole partitions, so that nobody's matches are left out."""

SAMPLE = 5_000
"""Records of the sample, about."""


@dataclass(frozen=True, eq=False)
class AttackedPart:
    """Some people of a release, with all rows that are listed for them.

    Attributes
    ----------
    table : Table
        m originals, none of them suppressed.
    release : Release
        Their m rows, with the truth.
    elsewhere : numpy.ndarray, shape (m,), int64
        How many other rows of the whole release cover each of them.
    """

    table: Table
    release: Release
    elsewhere: np.ndarray


def attacked(
    flow: Flow, fingerprint: Fingerprint, table: Table, release: Release, k: int, seed: int
) -> pd.DataFrame | None:
    """Try the release of a flow against its attackers.

    Parameters
    ----------
    flow : Flow
    fingerprint : Fingerprint
        Of the files that it names.
    table : Table
    release : Release
    k : int
    seed : int
        The flow's: whom an attacker attacks is derived from it.

    Returns
    -------
    pandas.DataFrame or None
        As :func:`anonflow.attack` gives it; where nobody was asked to attack, of all who can, None if nobody can.

    Raises
    ------
    ParameterError, DataError
        If the flow names attackers, and the release cannot be attacked by them, or their file has changed.
    """

    own = derived_seed(seed, "attackers")
    if flow.spec.steps.attack:
        return risk.attack(table, release, _chosen(flow, fingerprint), k=k, seed=own)
    try:
        context = risk.AttackContext.of(table, release, k, seed=own)
        usual = risk.usual(context, publishable=True)
    except (DataError, ParameterError):
        return None
    rows = []
    for attacker in usual:
        # nobody asked for this one: the others are tried all the same
        with suppress(DataError, ParameterError):
            rows.append(row_of(attacker, attacker.attack(context)))
    return frame_of(rows) if rows else None


def is_attacked(flow: Flow, n: int) -> bool:
    """Return whether a release of n records is attacked: a large one for a report, or where the flow says so."""
    return n <= MOST or bool(flow.spec.steps.attack) or flow.report_path is not None


def attacked_part(
    flow: Flow,
    fingerprint: Fingerprint,
    part: AttackedPart | None,
    guarantee: str,
    sizes: Sequence[tuple[int, int]],
    k: int,
    seed: int,
    people: risk.Success | None = None,
) -> pd.DataFrame | None:
    """Try a release of many people against its attackers, by a sample of them.

    Parameters
    ----------
    flow : Flow
    fingerprint : Fingerprint
    part : AttackedPart or None
        None where no small part is closed: every row is linked with every other one by matches.
    guarantee : str
    sizes : sequence of (int, int)
        Of rows that list people, and how many people are listed by so many: the linker is exact.
    k : int
    seed : int
    people : Success, optional
        Of the attacker who looks for people by all their rows, which are not all in a sample: exact, too.

    Returns
    -------
    pandas.DataFrame or None
        As :func:`attacked` gives it. Intervals are of the sample; of the linker, whose matches are all known, there is
        nothing to estimate. Several of a partition are alike, so that intervals are somewhat too narrow.

    Raises
    ------
    ParameterError, DataError
        If the flow names attackers, and the release cannot be attacked by them, or their file has changed.
    """

    own = derived_seed(seed, "attackers")
    rows: list[dict[str, Any]] = []
    is_asked = bool(flow.spec.steps.attack)
    known = {risk.Linker.name: _linker(sizes, k), risk.Unit.name: _of_people(people)}
    exact = {name: row for name, row in known.items() if row is not None}
    if part is not None:
        context = replace(
            risk.AttackContext.of(part.table, part.release, k, seed=own),
            elsewhere=part.elsewhere,
            guarantee=guarantee,
        )
        chosen = (
            risk.attackers_of(_chosen(flow, fingerprint))
            if is_asked
            else risk.usual(context, publishable=True)
        )
        for attacker in chosen:
            # a set of keys is attacked by one of the same name: it is not what is known of all quasi-identifiers
            if isinstance(attacker, risk.Linker | risk.Unit) and attacker.name in exact:
                rows.append(exact.pop(attacker.name))
                continue
            if isinstance(attacker, risk.Unit):
                # the other rows of a person are outside the sample: it would say too little
                if is_asked:
                    raise ParameterError(
                        f"unit: of more than {MOST:,} rows, or of a table in pieces, it needs the role unit and a method whose "
                        "rows list people; take another method, or leave the attacker out"
                    )
                continue
            try:
                row = row_of(attacker, replace(attacker.attack(context), counted=True))
            except (DataError, ParameterError):
                if is_asked:
                    raise
                continue
            row["sentence"] = f"Of a sample of {context.n:,} people: {row['sentence']}"
            rows.append(row)
    if part is None or not is_asked:
        rows += exact.values()
    return frame_of(rows) if rows else None


def _of_people(success: risk.Success | None) -> dict[str, Any] | None:
    """Return the attacker who looks for people, of everybody: there is nothing to estimate."""
    if success is None:
        return None
    return {**row_of(risk.Unit(), success), "low": success.rate, "high": success.rate}


def _linker(sizes: Sequence[tuple[int, int]], k: int) -> dict[str, Any] | None:
    """Return the linker who knows all matches: right once in as many times as rows list a person."""
    if not sizes:
        return None
    rows, people = np.array(sizes, np.int64).T
    mean, worst = float((people / rows).sum() / people.sum()), float(1 / rows.min())
    success = risk.Success(
        int(people.sum()), mean, worst, int(people[rows < k].sum()), 1 / k,
        f"Who rules out every row that no complete matching allows has at least {rows.min()} rows left "
        f"for each person and is right for {percent(mean)} of the people.",
    )  # fmt: skip
    return {**row_of(risk.Linker(), success), "low": mean, "high": mean}


def sampled(partitions: int, n: int, seed: int) -> np.ndarray:
    """Return the numbers of the partitions that are attacked, ascending, int64: about `SAMPLE` records.

    Parameters
    ----------
    partitions, n : int
        Of the run, and records of the table.
    seed : int
        The flow's.
    """
    rng = np.random.default_rng(derived_seed(seed, "attacked partitions"))
    many = min(partitions, max(1, round(SAMPLE * partitions / max(n, 1))))
    return np.sort(rng.choice(partitions, many, replace=False))


def part_of_release(anonymization: Anonymization, release: Release, seed: int) -> AttackedPart | None:
    """Return a sample of a release in memory; None where no small part of it is closed.

    Parameters
    ----------
    anonymization : Anonymization
    release : Release
        With the truth.
    seed : int
        The flow's.
    """
    table, suppressed, truth = anonymization.table, anonymization.suppressed, release.truth
    partitions = anonymization.partitions or (np.arange(table.n),)
    assert truth is not None
    picked = [partitions[p] for p in sampled(len(partitions), table.n, seed).tolist()]
    at = np.sort(np.concatenate(picked))
    at = at[~suppressed[at]]
    if len(at) > MOST and anonymization.classes is not None:
        kinds, label = np.unique(anonymization.classes[at], return_inverse=True)
        at = at[np.isin(label, sampled(len(kinds), len(at), seed))]
    if not 0 < len(at) <= MOST:
        return None
    rank = np.full(table.n, -1, np.int64)
    rank[at] = np.arange(len(at))
    rows = np.flatnonzero(rank[truth] >= 0)
    proof = release.certificate
    if proof is not None and proof.complete:
        kinds, row_list = np.unique(proof.row_list[rows], return_inverse=True)
        lists = [
            np.sort(rank[proof.list_originals[proof.list_offsets[t] : proof.list_offsets[t + 1]]])
            for t in kinds.tolist()
        ]
        offsets = np.concatenate([[0], np.cumsum([len(listed) for listed in lists])]).astype(np.int64)
        originals = np.concatenate(lists).astype(np.int32)
        proof = Certificate(
            proof.k, proof.criterion, proof.algorithm, row_list.astype(np.int32), offsets, originals
        )
    else:
        proof = None
    few = table.take(at)
    others = anonymization.generalization.take(np.flatnonzero(rank < 0))
    return AttackedPart(
        few,
        Release(release.frame.iloc[rows].reset_index(drop=True), proof, rank[truth[rows]]),
        covering(few.records, others),
    )


def publishable(attacks: pd.DataFrame | None) -> list[dict[str, Any]]:
    """Return the rows that may stand in a report: rates that were not counted against the truth."""
    if attacks is None:
        return []
    known = risk.ATTACKERS
    return [
        _rounded({str(key): value for key, value in row.items()})
        for row in attacks.to_dict("records")
        if row["attacker"] in known and not known[row["attacker"]].needs_truth
    ]


def _rounded(row: dict[str, Any]) -> dict[str, Any]:
    """Return a row as a report has it: figures of a model that is fitted to the originals are rounded up."""
    if row["attacker"] != risk.LinkableColumns.name:
        return row
    own = {
        name: published(float(row[name]), float(row["baseline"]))
        for name in ("success", "low", "high", "worst")
    }
    share = published(int(row["at_risk"]) / max(int(row["targets"]), 1), 0.0)
    return {**row, **own, "at_risk": math.ceil(share * int(row["targets"]) - 1e-9)}


def _chosen(flow: Flow, fingerprint: Fingerprint) -> list[Any]:
    """Return the attackers that the flow names."""
    with fingerprint.others_read():
        return [_with_register(flow, attacker) for attacker in flow.spec.steps.attack]


def _with_register(flow: Flow, attacker: Any) -> Any:
    """Return the register with its file beside the flow."""
    for name in risk.WITH_REGISTER:
        if isinstance(attacker, Mapping) and set(attacker) == {name}:
            source = flow.spec.table.source
            file = flow.folder / attacker[name]["population"]
            return risk.ATTACKERS[name](
                read_frame(file, delimiter=source.delimiter, encoding=source.encoding)
            )
    return attacker
