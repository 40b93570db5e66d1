"""Learners from scikit-learn: can one distinguish a release from the originals, and does it learn as much from the release?"""

from __future__ import annotations

import itertools
from typing import Any

import numpy as np

from anonflow.analysis.models import texts
from anonflow.errors import AnonflowError, ParameterError
from anonflow.hierarchy.wording import plural
from anonflow.table.schema import did_you_mean
from anonflow.utility.analyses.comparison import Comparison

LEAF = 20
"""The least number of rows in a leaf of the classification tree."""

HELD_OUT = 0.3
"""The share of originals that a classifier is tested on."""

TREES = 30

RATERS = 3
"""Plausible tables that classifiers are trained on."""


def scikit_learn() -> Any:
    """Return the packages `ensemble` and `tree`, which the base install does not have.

    Raises
    ------
    AnonflowError
        If scikit-learn is not installed.
    """
    try:
        from sklearn import ensemble, tree
    except ImportError:
        raise AnonflowError(
            "this needs scikit-learn, which the base install leaves out: pip install 'anonflow[utility]'"
        ) from None
    return ensemble, tree


def propensity(comparison: Comparison) -> dict[str, float]:
    """Return the pMSE (Woo and others, 2009; Snoke and others, 2018) and its null.

    The mean of (p - 1/2)^2, p the probability of a classification tree that a row is of the release: 0 if the tree
    cannot distinguish them, 1/4 if it always can. Suppressed rows are always distinguished. ``null`` is the mean over
    pairs of plausible tables, which are drawn in the same way.
    """
    _, tree = scikit_learn()
    coded = comparison.coded
    pmse = [_told_apart(tree, coded.original, table, comparison.lost) for table in coded.tables if len(table)]
    pairs = list(itertools.combinations([table for table in coded.tables if len(table)], 2))[:10]
    null = [_told_apart(tree, first, second, 0.0) for first, second in pairs]
    return {"": float(np.mean(pmse)) if pmse else 0.25, "null": float(np.mean(null)) if null else 0.0}


def _told_apart(tree: Any, first: np.ndarray, second: np.ndarray, lost: float) -> float:
    rows = np.concatenate([first, second])
    label = np.repeat([0, 1], [len(first), len(second)])
    # both sides weigh as much
    weight = np.where(label == 1, len(first) / len(second), 1.0)
    model = tree.DecisionTreeClassifier(min_samples_leaf=LEAF, max_depth=8, random_state=0)
    p = model.fit(rows, label, sample_weight=weight).predict_proba(rows)
    p = p[:, 1] if p.shape[1] == 2 else np.full(len(rows), 0.5)
    score = float(((p - 0.5) ** 2 * weight).sum() / weight.sum())
    # half of all rows are of the release, and suppressed rows are always distinguished
    return score * (1 - lost / 2) + 0.25 * lost / 2


def classification(comparison: Comparison, target: str, seed: int) -> dict[str, float]:
    """Return the accuracy, on unseen originals, of a classifier that learned from the release.

    A random forest, trained on plausible tables without the rows that carry the held-out originals' columns (where it
    is known who they are), is tested on 30% of the originals. ``originals``: trained on the other originals;
    ``majority``: always the most frequent value. For suppressed rows it predicts the most frequent value.

    Raises
    ------
    ParameterError
        If there is no such column, or it has one value or more than 50.
    AnonflowError
        If scikit-learn is not installed.
    """
    ensemble, _ = scikit_learn()
    names = [str(name) for name in comparison.original.columns]
    if target not in names:
        raise ParameterError(
            f"classification: there is no column {target!r}{did_you_mean(str(target), tuple(names))}"
        )
    answers = texts(comparison.original[target]).to_numpy()
    classes = np.unique(answers)
    if not 2 <= len(classes) <= 50:
        raise ParameterError(
            f"classification: {target!r} has {plural(len(classes), 'value')}; name a column of 2 to 50 with the option target"
        )
    coded = comparison.coded
    features = [at for at, name in enumerate(names) if name != target]
    n = len(answers)
    order = np.random.default_rng(seed).permutation(n)
    test_rows = np.zeros(n, bool)
    test_rows[order[: max(1, round(HELD_OUT * n))]] = True
    values, counts = np.unique(answers[~test_rows], return_counts=True)
    majority = values[counts.argmax()]
    base = float((answers[test_rows] == majority).mean())

    def score(rows: np.ndarray, labels: np.ndarray) -> float:
        if not len(rows):
            return base
        forest = ensemble.RandomForestClassifier(TREES, min_samples_leaf=5, random_state=seed, n_jobs=1)
        return float(
            (
                forest.fit(rows, labels).predict(coded.original[test_rows][:, features]) == answers[test_rows]
            ).mean()
        )

    scores = []
    for number, codes in enumerate(coded.tables[:RATERS]):
        labels = texts(comparison.tables[number][target]).to_numpy()
        seen = np.ones(len(codes), bool)
        if comparison.sources is not None:
            source = comparison.sources[number]
            seen = (source < 0) | ~test_rows[source]
        scores.append(score(codes[seen][:, features], labels[seen]))
    release = comparison.kept * float(np.mean(scores)) + comparison.lost * base
    return {
        "": release,
        "originals": score(coded.original[~test_rows][:, features], answers[~test_rows]),
        "majority": base,
    }
