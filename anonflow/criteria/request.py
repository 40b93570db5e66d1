"""Which criteria were asked for: names, parameters, and what an algorithm's guarantee stands for."""

from __future__ import annotations

import difflib
import math
import re
from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field
from typing import Any

from anonflow.errors import ParameterError

__all__ = ["CRITERIA", "DIVERSITY", "Asked", "read_criteria"]

CRITERIA: dict[str, tuple[str, ...]] = {
    "covers": (),
    "k-anonymity": (),
    "(1,k)": (),
    "(k,1)": (),
    "(k,k)": (),
    "k-concealment": (),
    "k-regular": (),
    "boundary": (),
    "pattern": ("patterns", "fallback"),
    "p-sensitivity": ("p", "column", "per"),
    "l-diversity": ("l", "column", "per"),
    "entropy-l-diversity": ("l", "column", "per"),
    "recursive-l-diversity": ("l", "c", "column", "per"),
    "t-closeness": ("t", "column", "per", "distance", "hierarchy"),
}
"""The criteria and the parameters each takes besides k; a bare number stands for the first."""

DIVERSITY = tuple(name for name, parameters in CRITERIA.items() if "column" in parameters)

_OTHER_NAMES = {
    "k-anonymous": "k-anonymity",
    "(1,k)-anonymity": "(1,k)",
    "(k,1)-anonymity": "(k,1)",
    "(k,k)-anonymity": "(k,k)",
    "k-regularity": "k-regular",
    "distinct-l-diversity": "p-sensitivity",
    "frequency-l-diversity": "l-diversity",
    "constrained-k-anonymity": "boundary",
}
_CALL = re.compile(r"(?P<name>.+?)\((?P<values>[^()]*=[^()]*)\)")


@dataclass(frozen=True)
class Asked:
    """One criterion with its parameters."""

    name: str
    parameters: Mapping[str, Any] = field(default_factory=dict)


def read_criteria(criteria: Any, guarantee: str | None) -> list[Asked]:
    """The criteria that a user names, each with its parameters.

    Parameters
    ----------
    criteria : str, mapping, or iterable of them
        A name; a text such as ``l-diversity(l=3, column=disease)``; a mapping ``{l-diversity: {l: 3}}`` or
        ``{l-diversity: 3}``. ``guarantee`` is what the subject's algorithm promises.
    guarantee : str, optional
        The promise; several are joined by ``" and "`` or commas outside of brackets.

    Returns
    -------
    list of Asked
        Without repetitions.

    Raises
    ------
    ParameterError
        If a name or parameter is unknown, or missing, or a guarantee is asked of something that makes none.
    """
    items = [criteria] if isinstance(criteria, str | Mapping | Asked) else criteria
    if not isinstance(items, Iterable):
        raise ParameterError("criteria are a name or a list of names, such as ['covers', 'k-regular']")
    asked: list[Asked] = []
    for item in items:
        for one in _read_item(item, guarantee):
            if one not in asked:
                asked.append(one)
    if not asked:
        raise ParameterError("no criterion is named; leave criteria out for the strongest that holds")
    return asked


def _read_item(item: Any, guarantee: str | None) -> list[Asked]:
    if isinstance(item, Asked):
        return [_checked(item.name, dict(item.parameters))]
    if isinstance(item, Mapping):
        return [_checked(str(name), _values(str(name), given)) for name, given in item.items()]
    if not isinstance(item, str):
        raise ParameterError(f"a criterion is a name or a mapping, not {type(item).__name__}")
    name = item.strip()
    if name == "guarantee":
        if not guarantee:
            raise ParameterError(
                "the release does not say what its algorithm guarantees; name a criterion, such as k-regular"
            )
        return [_checked(part, {}) for part in re.split(r"\s+and\s+|;\s*", guarantee.strip())]
    call = _CALL.fullmatch(name)
    if call is None:
        return [_checked(name, {})]
    pairs = [part.partition("=") for part in call["values"].split(",")]
    return [_checked(call["name"].strip(), {key.strip(): _value(text.strip()) for key, _, text in pairs})]


def _values(name: str, given: Any) -> dict[str, Any]:
    if _canonical(name) == "pattern" and isinstance(given, Mapping) and "patterns" not in given:
        return {"patterns": given}  # predicates, as they are given to the method
    if isinstance(given, Mapping):
        return {str(key).replace("-", "_"): value for key, value in given.items()}
    known = CRITERIA.get(_canonical(name), ())
    if given is None:
        return {}
    if not known:
        raise ParameterError(f"criterion {name!r} takes no parameter")
    return {known[0]: given}


def _value(text: str) -> Any:
    for kind in (int, float):
        try:
            return kind(text)
        except ValueError:
            continue
    return text


def _canonical(name: str) -> str:
    plain = re.sub(r"\s+", "", name) if name.startswith("(") else name
    return _OTHER_NAMES.get(plain, plain)


def _checked(name: str, parameters: dict[str, Any]) -> Asked:
    known_as = _canonical(name)
    if known_as not in CRITERIA:
        near = difflib.get_close_matches(name, CRITERIA, n=1)
        hint = f"did you mean {near[0]!r}?" if near else f"known: {', '.join(CRITERIA)}, guarantee"
        raise ParameterError(f"unknown criterion {name[:40]!r} ({hint})")
    if name == "distinct-l-diversity" and "l" in parameters:
        parameters["p"] = parameters.pop("l")
    allowed = CRITERIA[known_as]
    for key in parameters:
        if key not in allowed:
            takes = f"takes {', '.join(allowed)}" if allowed else "takes no parameter"
            raise ParameterError(f"criterion {known_as!r}: unknown parameter {key[:40]!r}; it {takes}")
    for key, least in (("p", 1), ("l", 1), ("c", 0), ("t", 0)):
        if key not in allowed:
            continue
        value = parameters.get(key)
        number = isinstance(value, int | float) and not isinstance(value, bool) and math.isfinite(value)
        if not number or value < least:  # type: ignore[operator]
            raise ParameterError(
                f"criterion {known_as!r}: needs {key}, a number of at least {least}: {known_as}({key}=...)"
            )
    if known_as == "recursive-l-diversity" and int(parameters["l"]) != parameters["l"]:
        raise ParameterError("criterion 'recursive-l-diversity': l is a whole number")
    if parameters.get("per") not in (None, "class", "matches"):
        raise ParameterError(f"criterion {known_as!r}: per is class or matches")
    return Asked(known_as, parameters)
