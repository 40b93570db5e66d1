"""The section target of a flow: the requirements, the search space, and the pick of a search."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

from anonflow.algorithms.budget import AUTO
from anonflow.algorithms.registry import REGISTRY
from anonflow.engine.flows.flow import Run
from anonflow.engine.flows.matrix import DIVERSIFY
from anonflow.engine.flows.sections import Sections
from anonflow.engine.flows.spec import AnonymizeSpec, DiversifySpec, PartitionSpec, TargetSpec
from anonflow.engine.flows.steps import Steps, checked_diversify
from anonflow.engine.search.space import Space
from anonflow.engine.search.trials import SearchTarget
from anonflow.errors import ParameterError
from anonflow.table.schema import Schema

SEARCHED = ("anonymize.algorithm", "anonymize.k", "partition.size", DIVERSIFY)
"""What a matrix may list beside a target: the space of the search."""

CHECKED = ("mondrian", 2)
"""Method and k of the step while the flow is checked, if the search chooses them."""


class Goal:
    """The section target of a flow; problems are noted with their place.

    Parameters
    ----------
    sections : Sections
        Of the flow.

    Attributes
    ----------
    spec : TargetSpec or None
        None without the section, and where it has problems.
    target : SearchTarget or None
    """

    def __init__(self, sections: Sections) -> None:
        self.sections = sections
        self.problems = sections.problems
        self.spec = sections.model(TargetSpec, ("target",))
        self.target: SearchTarget | None = None
        if self.spec is not None:
            try:
                self.target = SearchTarget.of(
                    {
                        "loss": self.spec.loss,
                        "risk": self.spec.risk,
                        "disclosure": self.spec.disclosure,
                        "signs": self.spec.signs,
                        "time": self.spec.time,
                    }
                )
            except ParameterError as error:
                self.problems.add(("target",), error.text, value=True)

    @property
    def is_open(self) -> bool:
        """Whether the search is still open."""
        return self.spec is not None and not self.spec.tried

    def space(
        self,
        steps: Steps,
        matrix: Mapping[str, Sequence[Any]],
        partition: PartitionSpec,
        schema: Schema | None = None,
    ) -> Space | None:
        """Return the search space: the values of the step, the partitions and the matrix; without them, all values.

        The step anonymize gets a method and a k to be checked with, where it has none.
        """
        anonymize = steps.settings.get("anonymize")
        if "anonymize" not in steps.settings:
            return None
        home = steps.place("anonymize")
        if anonymize is None:
            anonymize = {}
        if not isinstance(anonymize, dict):
            return None  # said with the runs
        for key in matrix:
            if key not in SEARCHED:
                self.problems.add(
                    ("matrix", key), f"beside a target a matrix lists {', '.join(SEARCHED)} alone"
                )
                return None
        for key in ("budget", "guarantee"):
            if key in anonymize:
                self.problems.add(
                    (*home, key), f"'{key}' and a target exclude each other; leave one of the two out"
                )
                return None
        if (
            partition.size == AUTO
            or anonymize.get("algorithm") == AUTO
            or AUTO in matrix.get("anonymize.algorithm", ())
        ):
            self.problems.add(home, "a target chooses method and partition size itself; leave auto out")
            return None
        named = AnonymizeSpec.model_fields
        step_options = {
            str(key).replace("-", "_"): value
            for key, value in anonymize.items()
            if key not in (*named, "options")
        }
        algorithms = tuple(
            matrix.get("anonymize.algorithm")
            or ([anonymize["algorithm"]] if "algorithm" in anonymize else ())
        )
        of_methods = anonymize.get("options")
        options = {str(name): dict(step_options) for name in algorithms} if step_options else {}
        for name, method_options in (of_methods if isinstance(of_methods, Mapping) else {}).items():
            if isinstance(method_options, Mapping):
                plain = {str(key).replace("-", "_"): value for key, value in method_options.items()}
                options[str(name)] = {**options.get(str(name), {}), **plain}
        ks = tuple(matrix.get("anonymize.k") or ([anonymize["k"]] if "k" in anonymize else ()))
        sizes = tuple(
            matrix.get("partition.size") or ([partition.size] if "size" in partition.model_fields_set else ())
        )
        steps.settings["anonymize"] = {"algorithm": CHECKED[0], "k": CHECKED[1], **anonymize}
        if step_options and not algorithms:
            self.problems.add(
                home, "an option needs its method; name the algorithm, or write it under options"
            )
            return None
        if not all(isinstance(name, str) and name in REGISTRY for name in (*algorithms, *options)):
            return None  # said with the runs
        diversities = self._diversities(matrix.get(DIVERSIFY, ()), schema)
        try:
            return Space(algorithms, ks, sizes, options, diversities)
        except ParameterError:
            return None  # said with the runs

    def _diversities(self, steps: Sequence[Any], schema: Schema | None) -> tuple[dict[str, Any], ...]:
        """Return the steps diversify that a matrix lists, each checked; an empty one is the flow's own, or none."""
        for at, step in enumerate(steps):
            place = ("matrix", DIVERSIFY, at)
            if not isinstance(step, dict):
                self.problems.add(
                    place, "a step diversify is a mapping such as {criterion: l-diversity, l: 3}", value=True
                )
            elif step in steps[:at]:
                self.problems.add(place, "a value is listed twice", value=True)
            elif step:
                checked_diversify(self.sections, place, step, schema)
        return tuple(dict(step) for step in steps if isinstance(step, dict))

    def check_pick(self, runs: Sequence[Run], diversify: DiversifySpec | None) -> None:
        """Refuse a flow that does not run the pick of its search."""
        if self.spec is None or not self.spec.tried or not runs:
            return
        chosen = [tried for tried in self.spec.tried if tried.picked]
        if len(chosen) != 1:
            self.problems.add(
                ("target", "tried"), f"marks {len(chosen)} entries as picked, not one; search again"
            )
            return
        (run,), pick = runs[:1], chosen[0]
        spec = run.anonymize
        same = (
            len(runs) == 1
            and (spec.algorithm, spec.k, run.partition.size) == (pick.algorithm, pick.k, pick.size)
            and {key.replace("-", "_"): value for key, value in pick.options.items()} == spec.options
            and all(getattr(diversify, key, None) == value for key, value in pick.diversify.items())
        )
        if not same:
            self.problems.add(
                ("target",),
                "the steps are not what the search has picked; take tried out to search again, or target",
            )
