"""Rows against the originals that their owner lists for them."""

from __future__ import annotations

import numpy as np
import pandas as pd
import pytest

import anonflow as af
from anonflow.candidate_lists import Candidates
from anonflow.criteria.matching import claim
from anonflow.criteria.matching import covers as covers_module
from anonflow.criteria.matching.claim import uncovered
from anonflow.generalization import Generalization
from anonflow.table import Table

COLUMNS = {
    "age": {"role": "quasi-identifier", "kind": "numeric", "missing": "value"},
    "job": {"role": "quasi-identifier", "kind": "categorical"},
    "town": {"role": "quasi-identifier", "kind": "categorical"},
}


def test_rows_that_do_not_cover_an_original_of_their_list(monkeypatch: pytest.MonkeyPatch) -> None:
    """Lists of their own and shared ones, empty ones, and lists of nobody's; values of more than 64, too."""
    monkeypatch.setattr(claim, "_ORIGINALS", 7)
    rng = np.random.default_rng(8)
    for n in (1, 5, 40, 90):
        frame = pd.DataFrame(
            {
                "age": np.where(rng.random(n) < 0.2, np.nan, rng.integers(0, 9, n)),
                "job": rng.choice(list("abc"), n),
                "town": [f"town {number}" for number in rng.integers(0, 2 * n, n)],
            }
        )
        table = Table(frame, COLUMNS)
        records, own = table.records, Generalization.of(table.records)
        labels = rng.integers(0, 1 + n // 4, n)
        boxes = Generalization.join_by_class(records, labels)
        for _ in range(20):
            lists = [
                rng.choice(n, rng.integers(0, min(n, 4) + 1), replace=False).tolist() for _ in range(6)
            ] + [np.flatnonzero(labels == label).tolist() for label in range(int(labels.max()) + 1)]
            row_list = np.where(rng.random(n) < 0.2, rng.integers(0, len(lists), n), 6 + labels)
            offsets = np.concatenate([[0], np.cumsum([len(members) for members in lists])]).astype(np.int64)
            listed = Candidates(
                row_list, offsets, np.array([place for members in lists for place in members], np.int32)
            )
            expected = [
                any(
                    not boxes.take(np.array([row])).covers(own.take(np.array([place])))[0]
                    for place in lists[t]
                )
                for row, t in enumerate(row_list.tolist())
            ]
            assert uncovered(listed, records, boxes).tolist() == expected
            apart = Candidates.of_lists(listed.sizes, listed.pairs()[1])
            assert uncovered(apart, records, boxes).tolist() == expected


@pytest.mark.parametrize("others", [False, True])
def test_classes_match_without_a_list_of_all_their_pairs(
    monkeypatch: pytest.MonkeyPatch, others: bool
) -> None:
    """Five million rows of classes once took 1.2 GiB for their pairs."""
    rng = np.random.default_rng(3)
    frame = pd.DataFrame({"age": rng.integers(0, 40, 90), "ill": rng.choice(["flu", "cold"], 90)})
    columns = {"age": COLUMNS["age"], **({"ill": {"role": "sensitive"}} if others else {})}
    table = Table(frame, columns)
    release = af.anonymize(table, "mondrian", k=3).release(seed=2**127)
    assert len(np.unique(np.diff(release.certificate.list_offsets))) > 1
    with monkeypatch.context() as patch:
        patch.setattr(covers_module, "matched_all", lambda *_: pytest.fail("no matching must be searched"))
        assert af.verify(table, release.frame, ["covers"], k=3, certificate=release.certificate)
    if not others:
        return
    changed = release.frame.copy()
    apart = changed.groupby("age")["ill"].nunique()
    place = int(np.flatnonzero(changed["age"] == apart[apart == 1].index[0])[0])
    changed.loc[place, "ill"] = "cold" if changed.loc[place, "ill"] == "flu" else "flu"
    finding = af.verify(table, changed, ["covers"], k=3, certificate=release.certificate)["covers"]
    assert not finding.holds
    assert finding.failed == 1
