"""Our own hierarchies for Nursery and CMC, because the paper does not print its own."""

from __future__ import annotations

from typing import Any


def nursery_hierarchies() -> dict[str, dict[str, Any]]:
    """Return hierarchies that unite neighbouring values of Nursery's ordered attributes; Tassa 2012 does not print its own.

    Returns
    -------
    dict
        Column -> nested tree, as :meth:`anonflow.Hierarchy.from_nested` takes it; the root is ``*``.
    """
    return {
        "parents": {"*": {"usual": None, "any pretentious": ["pretentious", "great_pret"]}},
        "has_nurs": {
            "*": {
                "any proper": ["proper", "less_proper"],
                "not proper": {"improper": None, "any critical": ["critical", "very_crit"]},
            }
        },
        "form": {"*": {"whole": ["complete", "completed"], "not whole": ["incomplete", "foster"]}},
        "children": {"*": {"1..2": ["1", "2"], "3..": ["3", "more"]}},
        "housing": {"*": {"any convenient": ["convenient", "less_conv"], "critical": None}},
        "finance": {"*": ["convenient", "inconv"]},
        "social": {"*": {"any unproblematic": ["nonprob", "slightly_prob"], "problematic": None}},
        "health": {"*": {"any recommended": ["recommended", "priority"], "not_recom": None}},
    }


def cmc_hierarchies() -> dict[str, dict[str, Any]]:
    """Return hierarchies that halve CMC's scales of four values; Tassa 2012 does not print its own.

    Returns
    -------
    dict
        Column -> nested tree; a yes/no attribute has its root only. Ages and numbers of children have no hierarchy.
    """
    scale = {"*": {"1..2": ["1", "2"], "3..4": ["3", "4"]}}
    choice = {"*": ["0", "1"]}
    scales = ("wife_education", "husband_education", "husband_occupation", "SOL_index")
    choices = ("wife_religion", "wife_working", "media_exposure")
    return {**dict.fromkeys(scales, scale), **dict.fromkeys(choices, choice)}
