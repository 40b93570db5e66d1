"""What an option is: declared once, on the keyword-only parameter of the function that takes it.

Methods, criteria, measures and everything else that is called by name declare their options in this way::

    def spread(part, k, *, visit: Annotated[Literal["near", "far"], Option("Which record comes first")] = "far"): ...

Flows, the JSON Schema, forms, links, the shell and the documentation read the declaration through :func:`options_of`.
"""

from __future__ import annotations

import inspect
import math
import re
import sys
from collections.abc import Callable, Collection, Mapping
from dataclasses import dataclass, replace
from functools import cache
from numbers import Integral, Real
from types import MappingProxyType, NoneType
from typing import Annotated, Any, Literal, Union, get_args, get_origin, get_type_hints

from anonflow.errors import ParameterError

NEEDED: Any = inspect.Parameter.empty
"""The default of an option that must be given."""


def is_finite(value: Any) -> bool:
    """Return whether a value is a number that a float can hold, and no truth value."""
    try:
        return not isinstance(value, bool) and isinstance(value, Real) and math.isfinite(value)
    except OverflowError:
        return False


def plain_number(value: Any) -> Any:
    """Return a value as a flow file has it: a whole number without a point."""
    return int(value) if isinstance(value, float) and value.is_integer() else value


def check_whole(value: Any, least: int, words: str, most: float = math.inf) -> int:
    """Return a whole number that is in a range.

    Parameters
    ----------
    value : object
    least : int
    words : str
        What to say of any other value.
    most : float, optional

    Raises
    ------
    ParameterError
        If it is no whole number, or not in the range.
    """
    if isinstance(value, bool) or not isinstance(value, Integral) or not least <= int(value) <= most:
        raise ParameterError(words)
    return int(value)


def check_text(name: str, value: Any) -> None:
    """Refuse a setting that is no text.

    Raises
    ------
    ParameterError
        With its name and type.
    """
    if not isinstance(value, str):
        raise ParameterError(f"{name} is a text, not a {type(value).__name__}")


def check_texts(name: str, value: Any) -> None:
    """Refuse a setting that is no list of texts; one text alone is none.

    Raises
    ------
    ParameterError
        With its name and type.
    """
    if isinstance(value, str) or not isinstance(value, Collection):
        raise ParameterError(f"{name} is a list of texts, not a {type(value).__name__}")
    for item in value:
        check_text(f"an item of {name}", item)


@dataclass(frozen=True)
class Option:
    """An option of a method, a criterion or a measure.

    Attributes
    ----------
    label : str
        A few words, shown in a form.
    least : float or None
        The smallest number allowed.
    most : float or None
        The largest number allowed.
    above, below : float or None
        The number must be above, or below, this bound.
    start : float or None
        The number with which a form begins, of an option without a default.
    end : float or None
        The largest number that a form takes; `most` without it. Larger ones are allowed elsewhere, and mean the same.
    step : float
        The step by which a form raises and lowers the number.
    whole : bool
        Whether the number must have no fraction; ``5`` and ``5.0`` are both allowed.
    in_form : bool
        Whether the form of the method shows it. False for options that have a page of their own, or concern the machine.
    time_limit : bool
        Whether the option is a number of seconds after which the method stops and keeps its best result.
    mapping : bool
        Whether a value maps columns to what the option says of them; forms take it as text, such as ``age: width 10, town: level 1``.
    lists : bool
        Whether a value is a list of lists of columns; forms take it as text, such as ``[age, sex], [zip]``.
    must : str
        What to say of another value, in words that follow the option's name; without it they are made of the bounds.
    example : str
        A value as a flow has it, for the message that the option is needed.
    words : tuple of str
        Words that a value of a nested type may contain, such as the names of predicates.
    pattern : str
        A regular expression (ECMAScript, too) of which a text has a match.
    check : callable or None
        Returns what a value must be whose type alone allows more, in words that follow the option's name; None if it is allowed.
    symmetric : bool
        Whether the option makes matches reciprocal: record j covers original i wherever record i covers original j.
    name : str
        The parameter's name.
    sentence : str
        The first paragraph of the docstring about the parameter; written out if several functions take the option.
    kind : type or None
        bool, int, float or str, from the annotation. None allows any value, which the function checks itself.
    choices : tuple of str
        The words of a Literal annotation, or those given here.
    optional : bool
        Whether None is allowed.
    default : object
        `NEEDED` if the option has no default.
    """

    label: str = ""
    least: float | None = None
    most: float | None = None
    above: float | None = None
    below: float | None = None
    start: float | None = None
    end: float | None = None
    step: float = 1.0
    whole: bool = False
    in_form: bool = True
    time_limit: bool = False
    mapping: bool = False
    lists: bool = False
    must: str = ""
    example: str = "..."
    words: tuple[str, ...] = ()
    pattern: str = ""
    check: Callable[[Any], str | None] | None = None
    symmetric: bool = False
    name: str = ""
    sentence: str = ""
    kind: type | None = None
    choices: tuple[str, ...] = ()
    optional: bool = False
    default: Any = NEEDED

    def problem(self, value: Any) -> str | None:
        """Return what the value must be, in words that follow the option's name, or None if the value is allowed."""
        if not self._may_be(value):
            return self.must or f"must be {self.value_words()}"
        return None if self.check is None or (value is None and self.optional) else self.check(value)

    def value_words(self) -> str:
        """Return in words which values are allowed."""
        if self.choices:
            return f"one of {', '.join(self.choices)}"
        if self.kind is None:
            return "as the method reads it"
        if self.kind in (bool, str):
            return "true or false" if self.kind is bool else "text"
        words = "a whole number" if self.kind is int or self.whole else "a number"
        bounds = [f"of at least {self.least:g}"] if self.least is not None else []
        bounds += [f"above {self.above:g}"] if self.above is not None else []
        bounds += [f"at most {self.most:g}"] if self.most is not None else []
        bounds += [f"below {self.below:g}"] if self.below is not None else []
        return " ".join([words, " and ".join(bounds)]).strip()

    def _may_be(self, value: Any) -> bool:
        if self.kind is None or (value is None and self.optional):
            return True
        if self.choices:
            return isinstance(value, str) and value in self.choices
        if self.kind is str:
            return isinstance(value, str) and (not self.pattern or re.search(self.pattern, value) is not None)
        if self.kind is bool:
            return isinstance(value, bool)
        if not is_finite(value) or (self.kind is int and not isinstance(value, Integral)):
            return False
        number = float(value)
        return (
            (self.least is None or number >= self.least)
            and (self.most is None or number <= self.most)
            and (self.above is None or number > self.above)
            and (self.below is None or number < self.below)
            and (not self.whole or number == int(number))
        )


@cache
def options_of(function: Callable[..., Any], keyword_only: bool = True) -> Mapping[str, Option]:
    """Return the keyword-only parameters of a function as options, by name.

    Parameters
    ----------
    function : callable
        A function, or a class whose constructor has such parameters. Parameters may be annotated with a type, or with
        ``Annotated[type, Option(...)]``. A parameter without an annotation has the type of its default.
    keyword_only : bool, optional
        Whether to return keyword-only parameters alone; False returns all parameters.

    Returns
    -------
    mapping of str to Option
        In the order of the parameters; read once.
    """
    parameters = [
        parameter
        for parameter in inspect.signature(function).parameters.values()
        if parameter.kind is parameter.KEYWORD_ONLY or not keyword_only
    ]
    if not parameters:
        return MappingProxyType({})
    # a class has no globals, so the names are looked up in its module
    names = getattr(function, "__globals__", None) or vars(sys.modules[function.__module__])
    sentences = paragraphs(function.__doc__)
    options = {}
    for parameter in parameters:
        hint = _hint(parameter.annotation, names)
        option = Option()
        if get_origin(hint) is Annotated:
            hint, *extras = get_args(hint)
            option = next((extra for extra in extras if isinstance(extra, Option)), option)
        kinds = set(get_args(hint)) if _is_union(hint) else {hint}
        optional = NoneType in kinds
        (kind,) = kinds - {NoneType} if len(kinds - {NoneType}) == 1 else (None,)
        choices = get_args(kind) if get_origin(kind) is Literal else option.choices
        if hint is None and parameter.default not in (NEEDED, None):
            kind = type(parameter.default)
        options[parameter.name] = replace(
            option,
            name=parameter.name,
            label=option.label or parameter.name.replace("_", " ").capitalize(),
            sentence=option.sentence or sentences.get(parameter.name, ""),
            kind=str if choices else kind if kind in (bool, int, float, str) else None,
            choices=choices,
            optional=optional,
            default=parameter.default,
        )
    return MappingProxyType(options)


def _hint(annotation: Any, names: dict[str, Any]) -> Any:
    """Return the type that an annotation names, or Any if the name is imported for type checkers only."""
    if annotation is NEEDED:
        return None
    holder = type("_", (), {"__annotations__": {"it": annotation}})
    try:
        return get_type_hints(holder, names, include_extras=True)["it"]
    except NameError:
        return Any


def _is_union(hint: Any) -> bool:
    origin = get_origin(hint)
    return origin is Union or getattr(origin, "__name__", "") == "UnionType"


def paragraphs(docstring: str | None) -> dict[str, str]:
    """Return the first paragraph of a numpy docstring about each parameter, without markup.

    Parameters
    ----------
    docstring : str or None

    Returns
    -------
    dict of str to str
        Empty if there is no docstring, as under ``python -OO``.
    """
    lines = inspect.cleandoc(docstring or "").splitlines() or [""]
    texts: dict[str, list[str]] = {}
    names: list[str] = []
    inside = over = False
    for line, under in zip(lines, [*lines[1:], ""], strict=True):
        if under and set(under) == {"-"}:
            inside = line == "Parameters"
        elif inside and line and not line.startswith((" ", "-")):
            names, over = re.split(r"\s*,\s*", line.split(" : ")[0].strip()), False
            texts |= {name: [] for name in names}
        elif inside:
            over = over or (not line.strip() and bool(names and texts[names[0]]))
            for name in [] if over else names:
                texts[name].append(line.strip())
    return {name: _without_markup(" ".join(parts)) for name, parts in texts.items()}


def _without_markup(text: str) -> str:
    text = re.sub(r":\w+:`~?(?:[\w.]*\.)?(\w+)`", r"\1", text)
    return text.replace("``", "").replace("`", "").strip()
