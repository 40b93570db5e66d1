"""Diversity: the sensitive values on the rows that may be a person's, and how often each occurs."""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Annotated, Any, Literal

import numpy as np
from scipy.sparse import csr_array

from anonflow.candidate_lists import Candidates
from anonflow.criteria.classes import class_sizes
from anonflow.criteria.criterion import Criterion
from anonflow.criteria.diversity.diversity_target import Target
from anonflow.criteria.evidence import Evidence, joint_codes
from anonflow.criteria.guarantee import promises_classes
from anonflow.criteria.matching.concealment import match_edges
from anonflow.criteria.verification import Finding
from anonflow.errors import DataError, ParameterError
from anonflow.hierarchy import Hierarchy
from anonflow.option import Option
from anonflow.table.forms.text_forms import other_form
from anonflow.table.published.published_cells import WHOLE
from anonflow.table.schema import Schema

_CELLS = 1 << 23
"""Cells of a dense block of distributions."""


@dataclass(frozen=True, eq=False)
class Spread:
    """How often each sensitive value occurs on rows that belong together.

    Attributes
    ----------
    counts : scipy.sparse.csr_array, shape (g, V), int64
        A row for each group: an equivalence class, or the matches of an original.
    members : numpy.ndarray, shape (n,), int64
        The group of each record; -1 for rows in none.
    side : {"published", "original"}
        What the members are.
    texts : tuple of str, length V
        The values. They must never be printed.
    overall : numpy.ndarray, shape (V,), int64
        Occurrences in the whole table.
    read_off : {"lists", "classes", "equal rows", "covers"}
        How the rows that belong together are known: from the lists or classes of a certificate, as rows of equal text,
        or as rows that cover an original on a perfect matching. With the last two, the finding does not hold against
        attackers who rerun the method.
    """

    counts: csr_array
    members: np.ndarray
    side: str
    texts: tuple[str, ...]
    overall: np.ndarray
    read_off: str = "classes"

    @property
    def sizes(self) -> np.ndarray:
        """Rows of each group, shape (g,), int64."""
        return np.asarray(self.counts.sum(axis=1)).ravel()


@dataclass(frozen=True, kw_only=True)
class DiversityCriterion(Criterion):
    """A condition on the sensitive values of rows that belong together, and how methods come to keep it.

    Attributes
    ----------
    judge : callable
        Of the verifier: ``judge(spread, parameters)`` returns which groups, none of them empty, keep the condition, and
        what is to be said of them.
    target : type of Target
        Of methods: how they measure what a group lacks. It shares no computation with `judge`.
    """

    judge: Callable[[Spread, Mapping[str, Any]], tuple[np.ndarray, str]]
    target: type[Target]
    adds_up: bool = False
    needs: Literal["rows", "originals", "everybody"] = "rows"


def diversity(evidence: Evidence, criterion: DiversityCriterion, **parameters: Any) -> list[Finding]:
    """Check one of the diversity criteria on one sensitive column, or on all of them.

    Parameters
    ----------
    evidence : Evidence
    criterion : DiversityCriterion
    **parameters
        Its own; ``column``; ``per``: ``class`` or ``matches``, chosen by the release without it; ``distance``:
        ``numeric``, ``equal`` or ``hierarchy``; ``hierarchy``. None is as if it were not there.

    Returns
    -------
    list of Finding
        One for each column. An original, or a published row, fails if its group does.

    Raises
    ------
    ParameterError
        If the column is not published, or a k-regular anonymization has not been drawn yet.
    DataError
        If values are no numbers, or no leaves of the hierarchy, that the distance needs.

    Notes
    -----
    Machanavajjhala 2006 (l-diversity), Truta 2006 (p-sensitivity), Li 2007 (t-closeness): docs/reference/departures.md, Diversity.
    """
    name = criterion.name
    parameters = {key: value for key, value in parameters.items() if value is not None}
    column = parameters.get("column")
    if column is not None and column not in evidence.table.other_columns:
        raise ParameterError(
            f"criterion {name!r}: column {str(column)!r} is not a published column besides the quasi-identifiers"
        )
    columns = [column] if column is not None else list(evidence.table.sensitive)
    if not columns:
        raise ParameterError(f"criterion {name!r}: the schema has no sensitive column; name one: column=...")
    findings = []
    for column_name in columns:
        groups = spread(evidence, str(column_name), parameters.get("per"))
        good, detail = judged(
            groups,
            criterion,
            _with_declared(evidence.table.schema, str(column_name), groups, criterion, parameters),
        )
        failing = np.zeros(len(groups.members), bool)
        member = groups.members >= 0
        failing[member] = ~good[groups.members[member]]
        settings = {**parameters, "column": str(column_name)}
        where = "classes" if groups.side == "published" else "matches"
        detail = f"column {column_name!r}, values on the rows of {where}: {detail}"
        if not failing.any():
            detail += _worth(groups, evidence)
        if failing.any() and where == "classes" and not parameters.get("per") and evidence.guarantee is None:
            detail += "; of a freeform release ask for per=matches"
        findings.append(Finding.of(name, failing, groups.side, detail, settings))
    return findings


def _with_declared(
    schema: Schema, column: str, groups: Spread, criterion: DiversityCriterion, parameters: Mapping[str, Any]
) -> Mapping[str, Any]:
    """Return the parameters with the hierarchy that the schema has for the column, where its distance is wanted."""
    if not criterion.of_distances or parameters.get("hierarchy") is not None:
        return parameters
    if parameters.get("distance") not in (None, "hierarchy"):
        return parameters
    tree = declared_tree(schema, column, groups.texts)
    return parameters if tree is None else {**parameters, "hierarchy": tree}


def declared_tree(schema: Schema, column: str, texts: Sequence[str]) -> Hierarchy | None:
    """Return the hierarchy that a schema has for a sensitive column, None where it has none.

    Parameters
    ----------
    schema : Schema
    column : str
    texts : sequence of str
        The column's different values. A blank one, where the tree has none, is put right under its root.

    Raises
    ------
    HierarchyError
        If it cannot be read or is no tree.
    """
    declared = schema[column].hierarchy if column in schema else None
    if declared is None:
        return None
    values = [text for text in texts if text not in ("", WHOLE)]
    tree = Hierarchy.from_mapping(declared, folder=schema.folder, values=values)
    return tree.extended("") if "" in texts and "" not in tree.leaves else tree


def spread(evidence: Evidence, column: str, per: str | None = None) -> Spread:
    """Return the sensitive values shown by each class, or by the matches of each original.

    Parameters
    ----------
    evidence : Evidence
    column : str
    per : {"class", "matches"}, optional
        By default the unit of the method's guarantee: classes for k-anonymity, else matches. If no guarantee is known:
        classes if every class has at least k rows (two, if k is not known).

    Returns
    -------
    Spread
        Matches are the rows that list an original in the certificate (a release carries its own), else all rows on an
        edge of a perfect matching. Exempt rows do not count.

    Raises
    ------
    ParameterError
        If an anonymization's matches are meant, and a draw would change what they show.
    DataError
        If the release lacks the column, or the consistency graph is too large.

    Notes
    -----
    The criteria and the attacker `homogeneity` both count here. An attacker who runs the method again can distinguish
    matches from rows that merely cover, so values are counted on the lists wherever these are known.
    """
    per = per or _usual(evidence)
    if per == "matches" and (evidence.alone or evidence.deleted or evidence.hides_ranges):
        raise ParameterError(
            "per=matches needs the original table, with a row for every record, and of means and medians the certificate; of "
            "these rows only classes can be judged"
        )
    drawn = evidence.frame is not None
    fixed = None
    if not drawn and evidence.listing is not None:
        fixed = evidence.listing.complete_components(evidence.n)
        if fixed is None:
            raise ParameterError(
                "the diversity of a k-regular result is a property of its release: draw it first"
            )
    if evidence.frame is not None and column not in evidence.frame.columns:
        raise DataError(f"column {column!r}: missing from the release")
    originals = evidence.table.frame[column]
    rows = originals if evidence.frame is None else evidence.frame[column]
    texts, original, published = joint_codes(originals, rows)
    seen = ~evidence.exempt
    values = len(texts)
    overall = np.bincount(original, minlength=values).astype(np.int64)
    # a part of a table is compared with the values of the whole, also those that the part does not have
    everywhere = None if evidence.overall is None else evidence.overall.get(column)
    if everywhere is not None:
        for text in everywhere:
            texts.setdefault(text, len(texts))
        values = len(texts)
        overall = np.array([everywhere.get(text, 0) for text in texts], np.int64)
    whole_table = tuple(texts), overall
    if per == "class" or fixed is not None:
        certified = fixed if fixed is not None else evidence.drawn_classes
        labels = evidence.classes if certified is None else certified
        members = np.where(seen, labels, -1)
        counts = _value_counts(labels[seen], published[seen], (int(labels.max()) + 1, values))
        return Spread(
            counts, members, "published", *whole_table, "equal rows" if certified is None else "classes"
        )
    if evidence.lists is not None:
        return Spread(
            _on_lists(evidence.lists, published, seen, values),
            np.arange(evidence.n),
            "original",
            *whole_table,
            "lists",
        )
    graph = evidence.graph
    matches = match_edges(evidence)
    if matches is None:
        matches = np.ones(graph.edges, bool)
    u, v = graph.originals.size, graph.published.size
    edges = (np.ones(int(matches.sum()), np.int64), (graph.end[matches], graph.box[matches]))
    per_box = _value_counts(graph.published.label[seen], published[seen], (v, values))
    counts = csr_array(csr_array(edges, shape=(u, v)) @ per_box)
    return Spread(counts, graph.originals.label, "original", *whole_table, "covers")


def _on_lists(lists: Candidates, published: np.ndarray, seen: np.ndarray, values: int) -> csr_array:
    """Return how often each value occurs on the rows that list an original, shape (n, V)."""
    n = len(published)
    row, original = lists.pairs()
    keep = seen[row] & (original >= 0) & (original < n)
    return _value_counts(original[keep], published[row[keep]], (n, values))


def _worth(groups: Spread, evidence: Evidence) -> str:
    """Return against which attackers a criterion holds that was checked on the published rows alone."""
    if groups.read_off == "covers":
        return f"; {_NO_RERUN}"
    if groups.read_off == "equal rows" and evidence.guarantee is None and evidence.frame is not None:
        return f"; of a method that draws along matches it {_NO_RERUN}"
    return ""


_NO_RERUN = "holds only against attackers who cannot rerun the method"


def _usual(evidence: Evidence) -> str:
    """Return whether classes or matches belong together if the caller does not say it."""
    if evidence.alone or evidence.deleted or evidence.hides_ranges:
        return "class"
    if evidence.guarantee is not None:
        # in a heterogeneous release many rows may be equal by chance: a draw does not stay inside them as in classes
        return "class" if promises_classes(evidence.guarantee) else "matches"
    sizes = class_sizes(evidence)[~evidence.exempt]
    homogeneous = not len(sizes) or int(sizes.min()) >= (evidence.k or 2)
    return "class" if homogeneous else "matches"


def _value_counts(group: np.ndarray, value: np.ndarray, shape: tuple[int, int]) -> csr_array:
    """Return how often each value occurs in each group."""
    key, count = np.unique(group.astype(np.int64) * shape[1] + value, return_counts=True)
    return csr_array((count.astype(np.int64), (key // shape[1], key % shape[1])), shape=shape)


def judged(
    groups: Spread, criterion: DiversityCriterion, parameters: Mapping[str, Any]
) -> tuple[np.ndarray, str]:
    """Return which groups are diverse enough, shape (g,), bool, and what is to be said of them.

    Parameters
    ----------
    groups : Spread
        Groups without rows show nothing, and are diverse.
    criterion : DiversityCriterion
    parameters : mapping
        What it needs.

    Raises
    ------
    ParameterError, DataError
        As :func:`earth_mover`.
    """
    sizes = groups.sizes
    full = sizes > 0
    counts = groups.counts.tocsr()[np.flatnonzero(full)]
    counts.sort_indices()
    if not full.any():
        return np.ones(len(sizes), bool), "no rows"
    good, detail = criterion.judge(replace(groups, counts=counts), parameters)
    all_good = np.ones(len(sizes), bool)
    all_good[full] = good
    return all_good, detail


def earth_mover(groups: Spread, distance: str | None = None, hierarchy: Any = None) -> np.ndarray:
    """Return the earth mover's distance of each group's values from those of the whole table, shape (g,), float64.

    Parameters
    ----------
    groups : Spread
    distance : {"numeric", "equal", "hierarchy"}, optional
        Without it: hierarchy if one is given, numeric if every value is a number, else equal. Numeric values
        are equally far from their neighbours in order.
    hierarchy : Hierarchy, mapping or path, optional

    Returns
    -------
    numpy.ndarray
        Between 0 and 1; 0 for groups without rows. O(g V) time, bounded memory.

    Raises
    ------
    ParameterError
        If the distance is unknown or lacks its hierarchy.
    DataError
        If values are no numbers, or no leaves.

    Notes
    -----
    Li, Li and Venkatasubramanian, ICDE 2007, sections 4.1 and 4.2.
    """
    numbers = [_as_number(text) for text, count in zip(groups.texts, groups.overall, strict=True) if count]
    if distance is None:
        numeric = all(number is not None for number in numbers)
        distance = "hierarchy" if hierarchy is not None else "numeric" if numeric else "equal"
    if distance not in ("numeric", "equal", "hierarchy"):
        raise ParameterError("distance is numeric, equal or hierarchy")
    tree = leaves_of(hierarchy, groups.texts) if distance == "hierarchy" else None
    order = np.arange(len(groups.texts))
    if distance == "numeric":
        values = [_as_number(text) for text in groups.texts]
        if any(value is None and text != WHOLE for text, value in zip(groups.texts, values, strict=True)):
            form = other_form([text for text in groups.texts if text not in ("", WHOLE)])
            raise DataError("some sensitive values are not numbers; " + (form or "use distance=equal"))
        order = np.argsort([math.inf if value is None else value for value in values], kind="stable")
        order = order[np.asarray(groups.overall)[order] > 0]
    overall = groups.overall / max(int(groups.overall.sum()), 1)
    counts, sizes = groups.counts.tocsr(), groups.sizes
    result = np.zeros(len(sizes))
    step = max(1, _CELLS // max(1, len(groups.texts)))
    for begin in range(0, len(sizes), step):
        size = sizes[begin : begin + step]
        share = counts[begin : begin + step].toarray() / np.maximum(size, 1)[:, None]
        moved = share - overall
        if distance == "equal":
            part = np.abs(moved).sum(axis=1) / 2
        elif tree is not None:
            # a "*" that is not a person's own value has the largest distance
            part = np.minimum(1.0, along_tree(moved, *tree) + np.abs(moved[:, tree[1] < 0]).sum(axis=1))
        else:
            steps = np.abs(np.cumsum(moved[:, order], axis=1)[:, :-1]).sum(axis=1)
            part = steps / max(len(order) - 1, 1)
            # a value that the table does not have has the largest distance
            strange = np.abs(moved).sum(axis=1) - np.abs(moved[:, order]).sum(axis=1)
            part = np.minimum(1.0, part + strange)
        result[begin : begin + step] = np.where(size > 0, part, 0.0)
    return result


def _as_number(text: str) -> float | None:
    try:
        number = float(text)
    except ValueError:
        return None
    return number if math.isfinite(number) else None


def leaves_of(hierarchy: Any, texts: Sequence[str]) -> tuple[Hierarchy, np.ndarray]:
    """Return the tree of a distance, and the leaf of each text: shape (V,), int64; -1 for ``*``.

    Parameters
    ----------
    hierarchy : Hierarchy, mapping or path
    texts : sequence of str

    Raises
    ------
    ParameterError
        If there is none.
    DataError
        If texts are no leaves.
    """
    if hierarchy is None:
        raise ParameterError("distance=hierarchy needs a hierarchy of the sensitive values")
    tree = (
        hierarchy
        if isinstance(hierarchy, Hierarchy)
        else Hierarchy.from_mapping(hierarchy, values=list(texts))
    )
    leaf = {label: at for at, label in enumerate(tree.leaves)}
    missing = sum(text not in leaf and text != WHOLE for text in texts)
    if missing:
        raise DataError(f"{missing} sensitive values are no leaves of the hierarchy")
    return tree, np.array([leaf.get(text, -1) for text in texts], np.int64)


def along_tree(moved: np.ndarray, tree: Hierarchy, leaf: np.ndarray) -> np.ndarray:
    """Return the earth mover's distance along a hierarchy: over inner nodes, height / H * min(surplus, want) of their children.

    Parameters
    ----------
    moved : numpy.ndarray, shape (g, V), float64
        Share of each value in each group less that in the whole table.
    tree : Hierarchy
    leaf : numpy.ndarray, shape (V,), int64
        The leaf of each value; those below 0 are left out.

    Returns
    -------
    numpy.ndarray, shape (g,), float64
        Between 0 and 1. O(g (V + nodes)).

    Notes
    -----
    Li, Li and Venkatasubramanian, ICDE 2007, section 4.2, hierarchical distance.
    """
    extra = np.zeros((len(moved), len(tree.labels)))
    extra[:, tree.leaf_node[leaf[leaf >= 0]]] = moved[:, leaf >= 0]
    surplus, want = np.zeros_like(extra), np.zeros_like(extra)
    for node in range(len(tree.labels) - 1, 0, -1):  # preorder: children after their parents
        above = int(tree.parent[node])
        extra[:, above] += extra[:, node]
        surplus[:, above] += np.maximum(extra[:, node], 0)
        want[:, above] += np.maximum(-extra[:, node], 0)
    height = np.asarray(tree.height, float) / max(int(tree.height[0]), 1)
    return (height * np.minimum(surplus, want)).sum(axis=1)


Column = Annotated[str | None, Option("Sensitive column")]
Per = Annotated[Literal["class", "matches"] | None, Option("Rows that belong together")]
