"""The runs of a flow: one, or one for each combination of its matrix."""

from __future__ import annotations

import itertools
from collections.abc import Mapping
from functools import cached_property
from typing import Any

from pydantic import ValidationError

from anonflow import strict_yaml
from anonflow.algorithms.budget import AUTO, check_automatic
from anonflow.algorithms.registry import REGISTRY
from anonflow.engine.flows.flow import Run
from anonflow.engine.flows.references import column_problems, loss_problems, method_problems, stand_ins
from anonflow.engine.flows.sections import KeyPath, Model, Sections, reworded
from anonflow.engine.flows.spec import AnonymizeSpec, PartitionSpec
from anonflow.engine.flows.steps import Steps
from anonflow.errors import setting
from anonflow.table import Domain, Schema

DIVERSIFY = "diversify"
"""A key beside a target alone: the steps diversify that a search tries."""

MAX_RUNS = 1000
"""A matrix has at most this many combinations."""


class Matrix:
    """The matrix of a flow, applied to its step anonymize and its partitions; every run is checked.

    Parameters
    ----------
    sections : Sections
        Of the flow; problems are noted there.
    schema : Schema, optional
        With it, options that do not go with its columns are problems, too.

    Attributes
    ----------
    values : dict
        Parameter -> its values; empty without a matrix, and where it has problems.
    """

    def __init__(self, sections: Sections, schema: Schema | None = None) -> None:
        self.sections = sections
        self.problems = sections.problems
        self.values = self._read()
        self._schema = schema
        self._by_options: dict[tuple[str, str], list[tuple[str, str]]] = {}

    def _read(self) -> dict[str, list[Any]]:
        swept = self.sections.data.get("matrix")
        if "matrix" not in self.sections.data:
            return {}
        if not isinstance(swept, dict) or not swept:
            self.problems.add(("matrix",), "'matrix' is a mapping such as {anonymize.k: [5, 10]}", value=True)
            return {}
        matrix = {}
        target = self.sections.data.get("target")
        searched = isinstance(target, dict) and not target.get("tried")
        for key, values in swept.items():
            part, _, name = key.partition(".")
            if key == DIVERSIFY and searched and isinstance(values, list) and values:
                matrix[key] = values
            elif part not in ("anonymize", "partition") or not name:
                self.problems.add(
                    ("matrix", key), "a matrix key is 'anonymize.' or 'partition.' and a parameter's name"
                )
            elif part == "partition" and name not in PartitionSpec.model_fields:
                self.problems.add(
                    ("matrix", key), strict_yaml.unknown(name, PartitionSpec.model_fields, "parameter")
                )
            elif not isinstance(values, list) or not values:
                self.problems.add(("matrix", key), "a matrix key has a list of values", value=True)
            elif any(value in values[:i] for i, value in enumerate(values)):
                self.problems.add(("matrix", key), "a value is listed twice", value=True)
            else:
                matrix[key] = values
        size = 1
        for values in matrix.values():
            size *= len(values)
        if size > MAX_RUNS:
            self.problems.add(("matrix",), f"{size} combinations; a flow has at most {MAX_RUNS}")
            return {}
        return matrix

    def runs(self, steps: Steps, partition: PartitionSpec) -> tuple[Run, ...]:
        """Return one run for each combination; none if one of them has a problem."""
        if "anonymize" not in steps.settings:
            return ()
        matrix = {key: values for key, values in self.values.items() if key != DIVERSIFY}
        home = steps.place("anonymize")
        base = steps.settings["anonymize"]
        if not isinstance(base, dict):
            self.problems.add(home, "'anonymize' needs settings such as {algorithm: greedy, k: 10}")
            return ()
        runs: list[Run] = []
        before = len(self.problems)
        for number, values in enumerate(itertools.product(*matrix.values())):
            chosen = dict(zip(matrix, values, strict=True))
            plain = _PlainFlow(self.problems, home, base, partition)
            for key, value in chosen.items():
                plain.put(key, value, ("matrix", key, matrix[key].index(value)))
            plain.take_own_options({key.partition(".")[2] for key in chosen})
            for key in ("algorithm", "k"):
                if plain.settings.get(key) is None:
                    others = [str(other) for other in base if other not in AnonymizeSpec.model_fields]
                    plain.note("", f"'{key}' is missing{strict_yaml.names.is_it(key, others)}")
                    plain.settings.pop(key, None)
            spec, slices = plain.anonymize(), plain.partition()
            self._check(plain, spec, slices)
            if spec is not None and slices is not None:
                runs.append(Run(number, _run_name(spec, chosen), spec, slices, chosen))
        return () if len(self.problems) > before else tuple(runs)

    @cached_property
    def _stand_ins(self) -> list[Domain] | None:
        assert self._schema is not None
        return stand_ins(self._schema)

    def _column_problems(self, spec: AnonymizeSpec | None) -> list[tuple[str, str]]:
        """Return what of a method's options does not go with the columns; equal options are looked at once."""
        if spec is None or self._schema is None or spec.method.option_problems is None:
            return []
        key = spec.algorithm, repr(spec.options)
        if key not in self._by_options:
            self._by_options[key] = column_problems(spec.method, spec.options, self._stand_ins)
        return self._by_options[key]

    def _check(self, plain: _PlainFlow, spec: AnonymizeSpec | None, slices: PartitionSpec | None) -> None:
        """Check what the settings of one run say together."""
        for key, text in _method_problems(plain.settings, spec) or self._column_problems(spec):
            plain.note(key if key in plain.places else key.replace("_", "-"), text)
        if slices is None:
            return
        if spec is not None and slices.cut is not None and slices.cut < spec.k:
            plain.note(
                "partition.size",
                setting(
                    "partition-below-k",
                    f"partitions of {slices.size} are smaller than k = {spec.k}; use at least {spec.k}",
                    slices.size,
                    spec.k,
                ),
            )
        if spec is not None:
            _check_budget(plain, spec, slices)
        without = slices.budget is None and plain.settings.get("budget") is None
        if slices.size == AUTO and without and plain.settings.get("algorithm") != AUTO:
            plain.note("partition.size", "'auto' needs a budget in seconds, such as {size: auto, budget: 5}")
        if slices.size != AUTO and slices.budget is not None and "partition.size" not in plain.places:
            plain.note("partition.budget", "'budget' goes with 'size: auto'; leave one of the two out")


class _PlainFlow:
    """One run's settings, as a flow without a matrix has them, with the place of each in the file.

    Parameters
    ----------
    problems : Problems
        Problems are noted there.
    home : sequence of str or int
        The place of the step anonymize.
    step : mapping
        Its settings.
    partition : PartitionSpec
    """

    def __init__(
        self, problems: strict_yaml.Problems, home: KeyPath, step: Mapping[Any, Any], partition: PartitionSpec
    ) -> None:
        self.problems, self.home = problems, home
        self.settings = dict(step)
        self.slices = {name: getattr(partition, name) for name in partition.model_fields_set}
        self.places: dict[str, KeyPath] = {str(key): (*home, key) for key in step}

    def put(self, key: str, value: Any, place: KeyPath) -> None:
        """Take a value of the matrix, such as ``anonymize.k``."""
        part, _, name = key.partition(".")
        (self.slices if part == "partition" else self.settings)[name] = value
        self.places[key if part == "partition" else name] = place

    def note(self, key: str, text: str) -> None:
        """Note a problem of a setting, at its place; at the step's, or the partitions', where the flow does not have it."""
        otherwise = tuple(key.split(".")) if key.startswith("partition.") else self.home
        self.problems.add(self.places.get(key, otherwise), text, value=True)

    def anonymize(self) -> AnonymizeSpec | None:
        """Return the step, None if it has problems."""
        fields = AnonymizeSpec.model_fields
        named = {
            key if key in fields else key.replace("-", "_"): value for key, value in self.settings.items()
        }
        return self._model(AnonymizeSpec, named, "")

    def partition(self) -> PartitionSpec | None:
        """Return the partitions, None if they have problems."""
        return self._model(PartitionSpec, self.slices, "partition.")

    def _model(self, model: type[Model], data: Mapping[str, Any], section: str) -> Model | None:
        try:
            return model.model_validate(data)
        except ValidationError as error:
            for entry in error.errors(include_url=False, include_input=False):
                if entry["type"] != "missing":
                    key = str(entry["loc"][0])
                    self.note(section + key, f"'{key}' {reworded(entry['type'], entry.get('ctx') or {})}")
            return None

    def take_own_options(self, swept: set[str]) -> None:
        """Move what ``options`` says of the run's own method into the settings, over the step's; the matrix wins."""
        if "options" not in self.settings:
            return
        by_method, settings = self.settings.pop("options"), self.settings
        at = self.places.pop("options", (*self.home, "options"))

        def add(place: KeyPath, text: str) -> None:
            self.problems.add(place, text, value=True)

        if not isinstance(by_method, Mapping) or not all(
            isinstance(options, Mapping) for options in by_method.values()
        ):
            add(at, "'options' is a mapping such as {hungarian: {reciprocal: true}}")
            return
        for name, options in by_method.items():
            if name not in REGISTRY:
                add((*at, name), strict_yaml.unknown(str(name), REGISTRY, "algorithm"))
                continue
            named = {str(key).replace("-", "_"): (key, value) for key, value in options.items()}
            if name != settings.get("algorithm"):
                for key, text in method_problems(
                    name, "ncp", {key: value for key, (_, value) in named.items()}
                ):
                    add((*at, name, named[key][0] if key in named else key), text)
                continue
            for key, (written, value) in named.items():
                if key not in REGISTRY[name].options:
                    names = REGISTRY[name].options or ("none",)
                    add((*at, name, written), strict_yaml.unknown(str(written), names, f"option of {name}"))
                elif not swept & {key, str(written)}:
                    for twin in {key, key.replace("_", "-")} & set(settings):
                        del settings[twin]
                    settings[key] = value
                    self.places[key] = (*at, name, written)


def _check_budget(plain: _PlainFlow, spec: AnonymizeSpec, slices: PartitionSpec) -> None:
    """Check that a budget leaves a choice."""
    if spec.algorithm == AUTO:
        seconds = slices.budget if spec.budget is None else spec.budget
        for key, text in check_automatic(spec.guarantee, slices.size, seconds, spec.options):
            plain.note(key, text)
        return
    if spec.guarantee is not None:
        plain.note("guarantee", "'guarantee' goes with the method auto; leave it out")
    if spec.budget is None or spec.algorithm not in REGISTRY:
        return
    effort = spec.method.effort_under(spec.options)
    if slices.budget is not None:
        plain.note("budget", "a second budget; 'partition' has one already")
    elif slices.size != AUTO and effort is None:
        plain.note(
            "budget",
            f"'budget' goes with 'size: auto' for {spec.algorithm} with these options; leave it out",
        )
    elif slices.size != AUTO and effort in spec.options:
        plain.note("budget", f"'budget' and '{effort}' exclude each other; leave one of the two out")


def _method_problems(settings: Mapping[str, Any], spec: AnonymizeSpec | None) -> list[tuple[str, str]]:
    """Also where another setting is wrong, the method and the loss are looked up."""
    if settings.get("algorithm") == AUTO:
        return loss_problems(str(settings.get("loss", "ncp")))
    if spec is not None:
        return method_problems(spec.algorithm, spec.loss, spec.options)
    algorithm, loss = settings.get("algorithm"), settings.get("loss", "ncp")
    if not isinstance(algorithm, str) or not isinstance(loss, str):
        return []
    return method_problems(algorithm, loss, {})


def _run_name(spec: AnonymizeSpec, chosen: Mapping[str, Any]) -> str:
    words = [
        f"{key.partition('.')[2]}={value}"
        for key, value in chosen.items()
        if key not in ("anonymize.algorithm", "anonymize.k") and isinstance(value, str | int | float)
    ]
    return " ".join([spec.algorithm, f"k={spec.k}", *words])
