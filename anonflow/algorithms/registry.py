"""Every method by name. A new method needs a file of its own and a line here."""

from __future__ import annotations

import pandas as pd

from anonflow.algorithms.classes.agglomerative import AGGLOMERATIVE
from anonflow.algorithms.classes.forest import FOREST
from anonflow.algorithms.classes.greedy_cka import GREEDY_CKA
from anonflow.algorithms.classes.k_member import K_MEMBER
from anonflow.algorithms.classes.mdav import MDAV
from anonflow.algorithms.classes.mondrian import MONDRIAN
from anonflow.algorithms.concealment.k_concealment import K_CONCEALMENT
from anonflow.algorithms.freeform.greedy import GREEDY
from anonflow.algorithms.freeform.hungarian import HUNGARIAN
from anonflow.algorithms.freeform.min_cost_flow import MIN_COST_FLOW
from anonflow.algorithms.freeform.nh import NH
from anonflow.algorithms.freeform.optimal import OPTIMAL
from anonflow.algorithms.freeform.sort_greedy import SORT_GREEDY
from anonflow.algorithms.freeform.two_phase import TWO_PHASE
from anonflow.algorithms.method import Algorithm
from anonflow.algorithms.patterns.pattern_guided import PATTERN_GUIDED
from anonflow.algorithms.patterns.pattern_guided_optimal import PATTERN_GUIDED_OPTIMAL
from anonflow.algorithms.recoding.full_domain import FULL_DOMAIN
from anonflow.algorithms.recoding.local_recoding import LOCAL_RECODING
from anonflow.algorithms.recoding.local_suppression import LOCAL_SUPPRESSION
from anonflow.drawing.method_mark import Mark
from anonflow.errors import ParameterError
from anonflow.table.schema import did_you_mean

REGISTRY: dict[str, Algorithm] = {
    algorithm.name: algorithm
    for algorithm in (
        GREEDY,
        HUNGARIAN,
        SORT_GREEDY,
        TWO_PHASE,
        MIN_COST_FLOW,
        OPTIMAL,
        NH,
        K_CONCEALMENT,
        MONDRIAN,
        FULL_DOMAIN,
        LOCAL_RECODING,
        LOCAL_SUPPRESSION,
        AGGLOMERATIVE,
        FOREST,
        K_MEMBER,
        GREEDY_CKA,
        MDAV,
        PATTERN_GUIDED,
        PATTERN_GUIDED_OPTIMAL,
    )
}  # fmt: skip


def algorithm_named(name: str) -> Algorithm:
    """Return the method of a name.

    Raises
    ------
    ParameterError
        If no algorithm has this name; the error has the nearest known name.
    """
    if not isinstance(name, str):
        raise ParameterError("an algorithm is a name, such as 'greedy'; af.algorithms() lists them")
    if name not in REGISTRY:
        raise ParameterError(f"unknown algorithm {name!r}{did_you_mean(name, tuple(REGISTRY))}")
    return REGISTRY[name]


def look_of(name: str) -> Mark:
    """Return how a method is drawn, also if it is not in the registry."""
    return REGISTRY[name].look if name in REGISTRY else Mark.by_name(name)


def algorithms() -> pd.DataFrame:
    """Return every method: name, family, paper, guarantee, complexity, summary, and the names of its options."""
    fields = ("name", "family", "paper", "guarantee", "complexity", "summary")
    rows = [
        {name: getattr(algorithm, name) for name in fields} | {"options": ", ".join(algorithm.options)}
        for algorithm in REGISTRY.values()
    ]
    return pd.DataFrame(rows)
