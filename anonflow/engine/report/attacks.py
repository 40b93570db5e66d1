"""The attackers of a flow: those that it names, otherwise those whose success may be published."""

from __future__ import annotations

from contextlib import suppress
from dataclasses import dataclass, replace
from typing import Any

import numpy as np
import pandas as pd

from anonflow import risk
from anonflow.algorithms.anonymize import Anonymization
from anonflow.candidate_lists import Candidates
from anonflow.criteria.matching.graph import covering
from anonflow.engine.flows.fingerprint import Fingerprint
from anonflow.engine.flows.flow import Flow
from anonflow.engine.flows.registers import with_registers
from anonflow.errors import DataError, ParameterError
from anonflow.hierarchy.wording import plural
from anonflow.release import Certificate, Release
from anonflow.release.randomness import derived_seed
from anonflow.risk.attack import frame_of, is_publishable, row_of
from anonflow.risk.attacker import AttackerKind, WholeRelease
from anonflow.table import Table
from anonflow.table.forms.text_columns import plain_frame
from anonflow.table.frame import WholeOwners
from anonflow.table.records import places_in

MOST = 50_000
"""Of a larger table a sample is attacked: complete partitions, so that no one's matches are left out."""

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
        How many other rows of the whole release that are not hidden cover each of them.
    """

    table: Table
    release: Release
    elsewhere: np.ndarray


def attacked(
    flow: Flow,
    fingerprint: Fingerprint,
    table: Table,
    release: Release,
    k: int,
    seed: int,
    anonymization: Anonymization | None = None,
) -> pd.DataFrame | None:
    """Run the attackers of a flow against its release, and against all earlier ones that it goes on from.

    Parameters
    ----------
    flow : Flow
    fingerprint : Fingerprint
        Of the files that it names.
    table : Table
    release : Release
    k : int
    seed : int
        The flow's seed: the targets of the attackers are derived from it.
    anonymization : Anonymization, optional
        For attackers who run its steps again; a table in pieces has none.

    Returns
    -------
    pandas.DataFrame or None
        As :func:`anonflow.attack` gives it; if the flow names no attackers, all that can attack; None if there are none.

    Raises
    ------
    ParameterError, DataError
        If the flow names attackers, and the release cannot be attacked by them, or their file has changed.
    """

    attack_seed = derived_seed(seed, "attackers")
    if flow.spec.steps.attack:
        chosen = [
            attacker.with_result(anonymization) if isinstance(attacker, AttackerKind) else attacker
            for attacker in risk.attackers_of(_named_attackers(flow, fingerprint))
        ]
        return risk.attack(table, release, chosen, k=k, seed=attack_seed, earlier=flow.earlier or None)
    try:
        context = replace(
            risk.AttackContext.of(table, release, k, seed=attack_seed), earlier=flow.earlier or None
        )
        usual = risk.usual(context, publishable=True)
    except (DataError, ParameterError):
        return None
    rows = []
    for attacker in usual:
        # the flow does not name this attacker: the others still run
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
    whole: WholeRelease,
    seed: int,
) -> pd.DataFrame | None:
    """Run the attackers against a sample of a large release.

    Parameters
    ----------
    flow : Flow
    fingerprint : Fingerprint
    part : AttackedPart or None
        None if no small part is closed, because matches link all rows with each other.
    guarantee : str
    whole : WholeRelease
        What some attackers need, whose figures are exact: they take no sample.
    seed : int

    Returns
    -------
    pandas.DataFrame or None
        As :func:`attacked` gives it. Intervals describe the sample. Records of the same partition are similar, so intervals are slightly too narrow.

    Raises
    ------
    ParameterError, DataError
        If the flow names attackers, and the release cannot be attacked by them, or their file has changed.
    """

    attack_seed = derived_seed(seed, "attackers")
    rows: list[dict[str, Any]] = []
    is_asked = bool(flow.spec.steps.attack)
    figures = ((kind, kind.of_whole(whole)) for kind in risk.ATTACKERS.values())
    exact = {kind.name: row_of(kind(), success) for kind, success in figures if success is not None}
    if part is not None:
        context = replace(
            risk.AttackContext.of(part.table, part.release, whole.k, seed=attack_seed),
            elsewhere=part.elsewhere,
            guarantee=guarantee,
        )
        chosen = (
            risk.attackers_of(_named_attackers(flow, fingerprint))
            if is_asked
            else risk.usual(context, publishable=True)
        )
        for attacker in chosen:
            # an attacker of a set of columns has the same name: its result is not that for all quasi-identifiers
            if isinstance(attacker, AttackerKind) and attacker.name in exact:
                rows.append(exact.pop(attacker.name))
                continue
            try:
                if isinstance(attacker, AttackerKind) and attacker.not_of_sample:
                    raise ParameterError(
                        f"{attacker.name}: on more than {MOST:,} rows, {attacker.not_of_sample}"
                    )
                row = row_of(attacker, replace(attacker.attack(context), counted=True))
            except (DataError, ParameterError):
                if is_asked:
                    raise
                continue
            row["sentence"] = f"{_of_sample(context)}: {row['sentence']}"
            rows.append(row)
    if part is None or not is_asked:
        rows += exact.values()
    elif whole.earlier:  # as :func:`anonflow.attack`
        rows += [row for name, row in exact.items() if risk.ATTACKERS[name].of_earlier]
    return frame_of(rows) if rows else None


def untried(flow: Flow, fingerprint: Fingerprint, attacks: pd.DataFrame | None) -> list[str]:
    """Return the names of attackers that the flow names, and that are not among those that were tried.

    Raises
    ------
    ParameterError, DataError
        If an attacker cannot be used, or its file has changed.
    """
    if not flow.spec.steps.attack:
        return []
    tried = () if attacks is None else set(attacks["attacker"])
    return [
        item.name for item in risk.attackers_of(_named_attackers(flow, fingerprint)) if item.name not in tried
    ]


def _of_sample(context: risk.AttackContext) -> str:
    """Return the person of each row of a sample."""
    unit = context.table.unit
    if unit is None:
        return f"Of a sample of {plural(context.n, 'person')}"
    people = plural(len(np.unique(unit)), "person")
    return f"Of a sample of {people} with {context.n:,} of their rows, the others assumed to be like these"


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
    count = min(partitions, max(1, round(SAMPLE * partitions / max(n, 1))))
    return np.sort(rng.choice(partitions, count, replace=False))


def part_of_release(
    anonymization: Anonymization, release: Release, seed: int, workers: int | None = None
) -> AttackedPart | None:
    """Return a sample of a release in memory; None where no small part of it is closed.

    Parameters
    ----------
    anonymization : Anonymization
    release : Release
        With the truth.
    seed : int
        The flow's.
    workers : int, optional
        Threads.
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
    rank = places_in(at, table.n)
    rows = np.flatnonzero(rank[truth] >= 0)
    # in the order of partitions, so that rows which are counted together cover what lies near them
    order = np.concatenate(partitions)
    apart = order[(rank[order] < 0) & ~suppressed[order]]
    proof = release.certificate
    if proof is not None and proof.complete:
        kinds, row_list = np.unique(proof.row_list[rows], return_inverse=True)
        lists = Candidates(kinds, proof.list_offsets, proof.list_originals)
        ranked = Candidates.of_lists(lists.sizes, rank[lists.pairs()[1]])
        proof = Certificate.of_candidates(proof.k, proof.criterion, proof.algorithm, ranked.take(row_list))
    else:
        proof = None
    few = table.take(at)
    if table.unit is not None:
        few.whole_owners = WholeOwners.of(table.unit, table.household, at)
    return AttackedPart(
        few,
        Release(plain_frame(release.frame.iloc[rows].reset_index(drop=True)), proof, rank[truth[rows]]),
        covering(few.records, anonymization.generalization, apart, workers),
    )


def publishable(attacks: pd.DataFrame | None, listed: bool) -> list[dict[str, Any]]:
    """Return the rows that may be in a published report: rates that use neither the truth nor a value that no cell shows.

    Parameters
    ----------
    attacks : pandas.DataFrame or None
        As :func:`anonflow.attack` gives it.
    listed : bool
        Whether the method lists originals for its rows. Without lists, whoever may own a row is found by the originals.
    """
    if attacks is None or not listed:
        return []
    rows = [{str(key): value for key, value in row.items()} for row in attacks.to_dict("records")]
    return [row for row in rows if is_publishable(row)]


def _named_attackers(flow: Flow, fingerprint: Fingerprint) -> list[Any]:
    """Return the attackers that the flow names."""
    with fingerprint.others_read():
        return with_registers(flow, flow.spec.steps.attack)
