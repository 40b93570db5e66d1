"""The requested criteria: their names and parameters, and the criteria of an algorithm's guarantee."""

from __future__ import annotations

import re
from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field
from typing import Any

from anonflow.criteria.criterion import Criterion
from anonflow.criteria.evidence import given_patterns
from anonflow.criteria.guarantee import promised_criteria
from anonflow.criteria.registry import CRITERIA
from anonflow.errors import ParameterError
from anonflow.option import NEEDED
from anonflow.strict_yaml import suggest

_CALL = re.compile(r"(?P<name>.+?)\((?P<values>[^()]*=[^()]*)\)")


@dataclass(frozen=True)
class CriterionRequest:
    """One criterion with its parameters."""

    name: str
    parameters: Mapping[str, Any] = field(default_factory=dict)

    @property
    def declared(self) -> Criterion:
        """The criterion."""
        return CRITERIA[self.name]


def read_criteria(criteria: Any, guarantee: str | None) -> list[CriterionRequest]:
    """Return the criteria that a user names, each with its parameters.

    Parameters
    ----------
    criteria : str, mapping, or iterable of them
        A name; a text such as ``l-diversity(l=3, column=disease)``; a mapping ``{l-diversity: {l: 3}}`` or
        ``{l-diversity: 3}``. ``guarantee`` stands for the promise of the subject's algorithm.
    guarantee : str, optional
        The promise; several are joined by ``" and "`` or commas outside of brackets.

    Returns
    -------
    list of CriterionRequest
        Without repetitions.

    Raises
    ------
    ParameterError
        If a name or parameter is unknown, or missing, or the subject has no guarantee to check.
    """
    items = [criteria] if isinstance(criteria, str | Mapping | CriterionRequest) else criteria
    if not isinstance(items, Iterable):
        raise ParameterError("criteria are a name or a list of names, such as ['covers', 'k-regular']")
    requests: list[CriterionRequest] = []
    for item in items:
        for request in _read_item(item, guarantee):
            if request not in requests:
                requests.append(request)
    if not requests:
        raise ParameterError("no criterion is named; leave criteria out for the strongest that holds")
    return requests


def with_patterns(
    requests: Iterable[CriterionRequest], parameters: Mapping[str, Any]
) -> list[CriterionRequest]:
    """Return the same requests; a criterion without patterns gets those of the method, which a release does not contain.

    Parameters
    ----------
    requests : iterable of CriterionRequest
    parameters : mapping
        As :func:`anonflow.criteria.evidence.given_patterns` takes them.
    """
    return [
        CriterionRequest(request.name, given_patterns(parameters))
        if request.declared.of_method and not request.parameters
        else request
        for request in requests
    ]


def _read_item(item: Any, guarantee: str | None) -> list[CriterionRequest]:
    if isinstance(item, CriterionRequest):
        return [_checked_request(item.name, dict(item.parameters))]
    if isinstance(item, Mapping):
        return [_checked_request(str(name), _values(str(name), content)) for name, content in item.items()]
    if not isinstance(item, str):
        raise ParameterError(f"a criterion is a name or a mapping, not {type(item).__name__}")
    name = item.strip()
    if name == "guarantee":
        if not guarantee:
            raise ParameterError(
                "the release does not say what its algorithm guarantees; name a criterion, such as k-regular"
            )
        return [request for part in promised_criteria(guarantee) for request in _read_item(part, None)]
    call = _CALL.fullmatch(name)
    if call is None:
        return [_checked_request(name, {})]
    pairs = [part.partition("=") for part in call["values"].split(",")]
    return [
        _checked_request(
            call["name"].strip(), {key.strip(): _typed_value(text.strip()) for key, _, text in pairs}
        )
    ]


def _values(name: str, content: Any) -> dict[str, Any]:
    options = tuple(CRITERIA[_canonical(name)].options.values()) if _canonical(name) in CRITERIA else ()
    if isinstance(content, Mapping):
        if options and CRITERIA[_canonical(name)].of_method and options[0].name not in content:
            return {options[0].name: content}  # predicates, as the method takes them
        return {str(key).replace("-", "_"): value for key, value in content.items()}
    if content is None:
        return {}
    if not options:
        raise ParameterError(f"criterion {name!r} takes no parameter")
    return {options[0].name: content}


def _typed_value(text: str) -> Any:
    for kind in (int, float):
        try:
            return kind(text)
        except ValueError:
            continue
    return text


def _canonical(name: str) -> str:
    plain = re.sub(r"\s+", "", name) if name.startswith("(") else name
    return next((criterion.name for criterion in CRITERIA.values() if plain in criterion.also), plain)


def _checked_request(name: str, parameters: dict[str, Any]) -> CriterionRequest:
    known_as = _canonical(name)
    if known_as not in CRITERIA:
        near = suggest(name, CRITERIA)
        hint = f"did you mean {near!r}?" if near else f"known: {', '.join(CRITERIA)}, guarantee"
        raise ParameterError(f"unknown criterion {name[:40]!r} ({hint})")
    options = CRITERIA[known_as].options
    renamed = CRITERIA[known_as].also.get(name, {})
    parameters = {renamed.get(key, key): value for key, value in parameters.items()}
    for key, value in parameters.items():
        if key not in options:
            takes = f"takes {', '.join(options)}" if options else "takes no parameter"
            raise ParameterError(f"criterion {known_as!r}: unknown parameter {key[:40]!r}; it {takes}")
        if options[key].default is not NEEDED and (problem := options[key].problem(value)):
            raise ParameterError(f"criterion {known_as!r}: {key} {problem}")
    for key in CRITERIA[known_as].needed:
        option = options[key]
        if key not in parameters or option.problem(parameters[key]) is not None:
            words = (
                option.value_words() if option.kind else f"the {option.label[:1].lower()}{option.label[1:]}"
            )
            raise ParameterError(f"criterion {known_as!r}: needs {key}, {words}: {known_as}({key}=...)")
    return CriterionRequest(known_as, parameters)
