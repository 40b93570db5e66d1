"""The steps of a flow file: their order, and the names in each of them."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from anonflow import strict_yaml
from anonflow.algorithms.method import Algorithm
from anonflow.engine.flows.references import (
    attacker_problem,
    criterion_problem,
    diversify_problem,
    measure_problem,
)
from anonflow.engine.flows.registers import register_problem
from anonflow.engine.flows.sections import KeyPath, Sections
from anonflow.engine.flows.spec import DiversifySpec, DrawSpec, SourceSpec, StepsSpec
from anonflow.table.schema import Schema

STEPS = tuple(StepsSpec.model_fields)

_EXAMPLE = {"verify": "covers, guarantee", "attack": "prosecutor, linker", "measure": "gcp, usefulness"}


class Steps:
    """The steps of a flow by name; problems are noted with their place.

    Parameters
    ----------
    sections : Sections
        Of the flow.

    Attributes
    ----------
    settings : dict
        Step -> what is said of it.
    """

    def __init__(self, sections: Sections) -> None:
        self.sections = sections
        self.problems = sections.problems
        self.settings: dict[str, Any] = {}
        self._at: dict[str, int] = {}
        self._read()

    def place(self, name: str) -> KeyPath:
        """Return the place of a step."""
        return ("steps", self._at[name], name)

    def _read(self) -> None:
        read, at = self.settings, self._at
        steps = self.sections.data.get("steps")
        if "steps" not in self.sections.data:
            return
        if not isinstance(steps, list) or not steps:
            self.problems.add(("steps",), "'steps' is a list that begins with anonymize", value=True)
            return
        for i, step in enumerate(steps):
            path = ("steps", i)
            if not isinstance(step, dict) or len(step) != 1:
                self.problems.add(
                    path, "a step is one name and its settings, such as '- verify: [covers]'", value=True
                )
                continue
            ((name, settings),) = step.items()
            if name not in STEPS:
                self.problems.add((*path, name), strict_yaml.unknown(name, STEPS, "step"))
            elif name in read:
                self.problems.add((*path, name), f"a second step {name!r}; a flow has one of each")
            else:
                read[name], at[name] = settings, i
        order = [name for name in read if name in ("anonymize", "diversify", "draw")]
        if "anonymize" not in read:
            self.problems.add(("steps",), "no step 'anonymize'; it comes first")
        elif next(iter(read)) != "anonymize":
            self.problems.add(("steps", at["anonymize"]), "'anonymize' is the first step")
        elif "diversify" in order and at["diversify"] != 1:
            self.problems.add(("steps", at["diversify"]), "'diversify' comes right after 'anonymize'")
        elif "draw" in order and at["draw"] != order.index("draw"):
            self.problems.add(
                ("steps", at["draw"]), f"'draw' comes right after '{order[order.index('draw') - 1]}'"
            )
        if read.get("draw"):
            self.sections.model(DrawSpec, ("steps", at["draw"], "draw"), data=read["draw"])
        for name in ("verify", "attack", "measure"):
            if name in read and (not isinstance(read[name], list) or not read[name]):
                self.problems.add(
                    ("steps", at[name], name), f"{name!r} is a list of names, such as [{_EXAMPLE[name]}]"
                )
                read[name] = []

    def check_verify(self, methods: Sequence[Algorithm], draws: bool) -> None:
        """Check the criteria, for every method that is run, and that there is a release for those that need it."""
        for i, criterion in enumerate(self.settings.get("verify") or ()):
            for method in (*methods,) or (None,):
                text = criterion_problem(criterion, method, draws, "diversify" in self.settings)
                if text is not None:
                    self.problems.add((*self.place("verify"), i), text, value=True)
                    break

    def diversify(self, schema: Schema | None) -> DiversifySpec | None:
        """Return the step diversify as its model, None without one and where it has problems."""
        if "diversify" not in self.settings:
            return None
        home = self.place("diversify")
        settings = self.settings["diversify"]
        if not isinstance(settings, dict) or not settings:
            self.problems.add(
                home, "'diversify' needs settings such as {criterion: l-diversity, l: 2}", value=True
            )
            return None
        return checked_diversify(self.sections, home, settings, schema)

    def check_diversify(self, methods: Sequence[Algorithm]) -> None:
        """Refuse a step diversify after a method whose results cannot be made diverse."""
        for method in methods if "diversify" in self.settings else ():
            self.problems.add(self.place("diversify"), method.diversity_problem, value=True)

    def check_attack(
        self,
        draws: bool,
        schema: Schema | None = None,
        source: SourceSpec | None = None,
        method: Algorithm | None = None,
    ) -> None:
        """Check the attackers and their registers, and that there is a release for them."""
        if "attack" in self.settings and not draws:
            self.problems.add(
                self.place("attack"),
                "there is no release to attack: add '- draw: {}', and with a matrix pick a run to publish",
            )
        for i, attacker in enumerate(self.settings.get("attack") or ()):
            text = register_problem([attacker], schema, source, self.sections.folder)
            text = text or attacker_problem(attacker, schema, method)
            self.problems.add((*self.place("attack"), i), text, value=True)

    def check_measure(self) -> None:
        """Check the names of the measures."""
        for i, measure in enumerate(self.settings.get("measure") or ()):
            self.problems.add((*self.place("measure"), i), measure_problem(measure), value=True)


def checked_diversify(
    sections: Sections, place: KeyPath, settings: dict[str, Any], schema: Schema | None
) -> DiversifySpec | None:
    """Return the settings of a step diversify as its model, None where it is none; problems are noted with their place."""
    spec = sections.model(DiversifySpec, place, data=settings)
    if spec is None:
        return None
    key, text = diversify_problem(spec.criterion, spec.settings, schema)
    sections.problems.add((*place, key) if key in settings else place, text, value=key in settings)
    return spec
