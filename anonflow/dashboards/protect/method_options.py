"""The options of methods in plain words, and what each may be: what a form needs to ask for them."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

from anonflow.algorithms.registry import REGISTRY

__all__ = ["NOT_ASKED", "Option", "options_of"]

NOT_ASKED = ("patterns", "weights", "fallback", "threads")
"""Options that have a page of their own, or concern the machine."""


@dataclass(frozen=True)
class Option:
    """An option of a method.

    Attributes
    ----------
    method, name : str
    label : str
        A few words.
    told : str
        What it does, in a sentence.
    default : object
        What the method takes without it.
    choices : tuple of str
        The words it may be; empty for a number or a truth value.
    least : float or None
        The smallest number it may be.
    """

    method: str
    name: str
    label: str
    told: str
    default: Any
    choices: tuple[str, ...] = ()
    least: float | None = None


_RECIPROCAL = (
    "Reciprocal matches",
    "If row A could be person B's, row B could be person A's: safer against those who know some true matches.",
)
_LIMIT = ("Time limit (seconds)", "For each partition; when it is over, the best result found is kept.")
_TOLD: dict[str, tuple[str, str]] = {
    "greedy.reciprocal": _RECIPROCAL,
    "greedy.visit": (
        "Who chooses first",
        "Spread: records far apart take turns, and less is lost. Lexicographic: as in the paper.",
    ),
    "hungarian.reciprocal": _RECIPROCAL,
    "sort-greedy.reciprocal": _RECIPROCAL,
    "sort-greedy.edges": (
        "What edges are sorted by",
        "Relative: their weight against what is usual for both ends, and less is lost. Weight: as in the paper.",
    ),
    "k-concealment.target": (
        "Stop at",
        "What every record must have; all but k-concealment are for study, and weaker.",
    ),
    "k-concealment.randomized": (
        "Randomized",
        "Chooses at random among near records: without it, matches can be guessed from the result.",
    ),
    "k-concealment.q": (
        "Neighbours to choose from",
        "2 (k - 1) where empty; more hide better and lose more.",
    ),
    "k-concealment.near": (
        "Which neighbours",
        "Expansion: those that share a small box, and less is lost. Pairs: as in the paper.",
    ),
    "k-concealment.exact": (
        "Best start of all",
        "Tries every k - 1 others for each record: tiny tables only.",
    ),
    "mondrian.mode": ("Cuts", "Strict: equal values stay together. Relaxed: they may fill both halves."),
    "agglomerative.dist": ("Distance of clusters", "Which two clusters are united next."),
    "agglomerative.modified": (
        "Give back records",
        "A ripe cluster gives back the records without which it costs least.",
    ),
    "two-phase.start": ("Start", "Sparse loses less where many columns count alike, and takes longer."),
    "two-phase.first": ("Records per stretch", "Of the dense start."),
    "two-phase.candidates": ("Near records", "That each original may be matched with in a sparse start."),
    "two-phase.improve": ("Second phase", "How matches are exchanged to lower the loss."),
    "two-phase.block": ("Records per block", "Of the second phase."),
    "two-phase.passes": ("Passes at most", "Of the second phase; it ends before when nothing is gained."),
    "two-phase.t": ("Labels before a trace", "Threshold t of the search for cycles."),
    "two-phase.p": ("Labels in all", "Threshold p of the search for cycles; as many as records where empty."),
    "two-phase.restarts": ("Restarts", "Of tables of at most 64 records."),
    "optimal.time_limit": _LIMIT,
    "optimal.gap": (
        "Gap to be content with",
        "A share: 0.01 is one percent above the least loss there can be.",
    ),
    "pattern-guided.local_search": (
        "Local search",
        "Rows move between classes while that hides fewer entries: never worse, slower.",
    ),
    "pattern-guided.orders": (
        "Orders tried",
        "Of patterns that hide equally many columns; the result that hides the fewest entries is kept.",
    ),
    "pattern-guided-optimal.time_limit": _LIMIT,
    "pattern-guided-optimal.exact": ("Proof by", "Integer program; or an enumeration, for small tables."),
}
_CHOICES: dict[str, tuple[str, ...]] = {
    "k-concealment.target": (
        "concealment", "(k,1)", "(1,k)", "(k,k)", "(k,1)-concealment", "(k,k)-concealment",
    ),
    "greedy.visit": ("spread", "lexicographic"),
    "k-concealment.near": ("expansion", "pairs"),
    "mondrian.mode": ("strict", "relaxed"),
    "sort-greedy.edges": ("relative", "weight"),
    "agglomerative.dist": ("log", "plain", "weighted", "ratio"),
    "two-phase.start": ("auto", "dense", "sparse"),
    "two-phase.improve": ("reassign", "cycles", "both"),
    "pattern-guided-optimal.exact": ("ilp", "row-assignment", "two", "auto"),
}  # fmt: skip
_LEAST: dict[str, float] = {
    "k-concealment.q": 1, "two-phase.first": 1, "two-phase.candidates": 1, "two-phase.block": 2,
    "two-phase.passes": 0, "two-phase.t": 1, "two-phase.p": 0, "two-phase.restarts": 0,
    "optimal.time_limit": 0.0, "optimal.gap": 0.0, "pattern-guided-optimal.time_limit": 0.0,
    "pattern-guided.orders": 1,
}  # fmt: skip


def options_of(method: str) -> tuple[Option, ...]:
    """The options of a method that are asked for, in the order in which it declares them.

    Parameters
    ----------
    method : str
        Of the registry.

    Raises
    ------
    KeyError
        If there is no such method.
    """
    found = []
    for name, default in REGISTRY[method].options.items():
        if name in NOT_ASKED:
            continue
        key = f"{method}.{name}"
        label, told = _TOLD.get(key, (name.replace("_", " ").capitalize(), ""))
        found.append(Option(method, name, label, told, default, _CHOICES.get(key, ()), _LEAST.get(key)))
    return tuple(found)
