"""The picture of a run's lattice, for notebooks, reports and the dashboard."""

from __future__ import annotations

from markupsafe import Markup

from anonflow.algorithms.recoding.lattice_part import LatticeNode, LatticePart
from anonflow.drawing.fragments import grid
from anonflow.drawing.levels import LatticeBox, lattice


def lattice_view(part: LatticePart, keys: bool = False) -> Markup:
    """Return a part of a lattice as a picture for the owner, with what its colours mean.

    Parameters
    ----------
    part : LatticePart
    keys : bool, optional
        Whether nodes can be clicked; the key of node i is ``node:i``.
    """
    whole = len(part.nodes) == part.of
    losses = [node.loss for node in part.nodes if node.anonymous] or [0.0]
    least, span = min(losses), max(max(losses) - min(losses), 1e-12)
    drawn = [
        LatticeBox(
            _node_text(part, node, whole),
            _description(part, node),
            sum(node.levels),
            (node.loss - least) / span,
            node.anonymous,
            _node_mark(part, at),
            f"node:{at}" if keys else "",
        )
        for at, node in enumerate(part.nodes)
    ]
    numbered = [
        [column, *(labels[at] if at < len(labels) else "" for at in range(max(map(len, part.labels))))]
        for column, labels in zip(part.columns, part.labels, strict=True)
    ]
    caption = (
        f"All {part.of:,} nodes: a level for each column, in the order of the table below."
        if whole
        else f"{len(part.nodes):,} of {part.of:,} nodes: the marked ones, and those that raise (↑) or lower (↓) one column."
    )
    clicked = " A click on a node runs it." if keys else ""
    explanation = (
        f"{caption} Up is coarser. The stronger its blue, the more a node loses: {least:.3f} to {max(losses):.3f}. Dashed, without colour: not "
        f"anonymous, since more than {100 * part.limit:.3g}% of the records would be suppressed, or what is published would not be "
        f"diverse.{clicked}"
    )
    key = grid(["level", *map(str, range(max(map(len, part.labels))))], numbered) if whole else Markup("")
    return Markup("<p>{}</p>{}{}").format(
        explanation, lattice(drawn, part.edges, "The lattice of levels"), key
    )


def _node_mark(part: LatticePart, at: int) -> str:
    if at == part.of_run:
        return "★ optimum, this run" if at == part.best else "● this run"
    return "★ optimum" if at == part.best else ""


def _node_text(part: LatticePart, node: LatticeNode, whole: bool) -> str:
    if whole:
        return " ".join(map(str, node.levels))
    centres = [part.nodes[at].levels for at in (part.best, part.of_run) if at is not None]
    if node.levels in centres:
        return f"loss {node.loss:.3f}"
    for centre in centres:
        changed = [
            c
            for c, (level, centre_level) in enumerate(zip(node.levels, centre, strict=True))
            if level != centre_level
        ]
        if len(changed) == 1:
            c = changed[0]
            way = "↑" if node.levels[c] > centre[c] else "↓"
            return f"{part.columns[c][:18]} {way} {part.labels[c][node.levels[c]]}"
    return " ".join(map(str, node.levels))


def _description(part: LatticePart, node: LatticeNode) -> str:
    levels = ", ".join(f"{column}: {label}" for column, label in part.named(node).items())
    verdict = "anonymous" if node.anonymous else "not anonymous"
    return f"{levels}; loss {node.loss:.3f}, suppresses {node.suppressed:,} records; {verdict}"
