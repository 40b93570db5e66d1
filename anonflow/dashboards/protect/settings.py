"""The settings of protection: k, methods and their options, partitions, the loss to keep low."""

from __future__ import annotations

from typing import Any, get_args

import param

from anonflow.algorithms.budget import AUTO, GUARANTEES, first_method
from anonflow.algorithms.registry import REGISTRY
from anonflow.dashboards.components.draft_form import DraftForm
from anonflow.dashboards.session.draft import FIRST_K, FIRST_METHOD, PARTITION
from anonflow.dashboards.session.draft_spec import NO_FLOW, MethodSpec
from anonflow.dashboards.work.screen_work import Background
from anonflow.engine.flows.spec import PartitionSpec
from anonflow.hierarchy.wording import plural
from anonflow.loss import LOSSES
from anonflow.option import Option
from anonflow.table.identification.uniqueness import Uniqueness

CUTS = {
    "whole table": "whole",
    "partitions of a size": "size",
    "largest that fit a time": "time",
    "best method for a time": "auto",
}
"""How the table is cut into partitions; with the last, what is done with it, too."""

LARGEST_K = 100
"""The right end of the slider, where the table has so many records; more are typed."""


class Protection(DraftForm):
    """k, methods, options, partitions and loss of the draft.

    How many records are at risk is counted on the values as they are: records that fewer than k - 1 others equal on
    the quasi-identifiers. The sizes of the classes are sorted once for a table and its quasi-identifiers
    (:class:`anonflow.table.identification.uniqueness.Uniqueness`); for every k after that the count is a binary search.
    """

    k = param.Integer(default=FIRST_K, bounds=(2, None), doc="Among how many records each one hides.")
    more = param.List(default=[], doc="Further ks to compare.")
    algorithms = param.List(default=[FIRST_METHOD], doc="Methods to run.")
    loss = param.Selector(default=NO_FLOW.method.loss, objects=list(LOSSES))
    boundaries = param.Boolean(
        default=NO_FLOW.method.boundaries, doc="Whether methods keep boundaries and limits."
    )
    cut = param.Selector(default="whole", objects=list(CUTS.values()))
    size = param.Integer(default=PARTITION, bounds=(2, None), doc="Records in a partition.")
    seconds = param.Number(default=10.0, bounds=(0.1, None), doc="That a method may take.")
    guarantee = param.Selector(default=GUARANTEES[0], objects=list(GUARANTEES))
    order = param.Selector(objects=list(get_args(PartitionSpec.model_fields["order"].annotation)))
    uniqueness = param.Parameter(
        default=None,
        doc="Sizes of the classes of equal records; None without a table, or while they are counted.",
    )
    options = param.Dict(default={}, doc="Method -> option -> value, of all that differ from the default.")

    WRITES = ("k", "more", "algorithms", "loss", "boundaries", "cut", "size", "seconds", "guarantee", "order")

    def __init__(self, workspace: Any, **params: Any) -> None:
        self._counted: tuple[Any, tuple[str, ...]] | None = None
        self.background = Background(workspace.turns, at_once=True)
        super().__init__(workspace, **params)

    # ------------------------------------------------------------------------------ records at risk

    def _count(self) -> None:
        """Count the classes of equal records, once for a table and its quasi-identifiers."""
        frame, names = self.workspace.data.named, self.quasi_identifiers
        if frame is None or not names:
            self.background.forget()
            self._counted, self.uniqueness = None, None
        elif self._counted is None or self._counted[0] is not frame or self._counted[1] != names:
            noted, self._counted = self.workspace.runs.noted, (frame, names)
            last_count = noted.uniqueness
            if last_count is not None and last_count[0] is frame and last_count[1] == names:
                self.background.forget()
                self.uniqueness = last_count[2]
                return

            def counted(counts: Uniqueness) -> None:
                noted.uniqueness = frame, names, counts
                self.uniqueness = counts

            self.uniqueness = None
            self.background.of_records(
                len(frame), lambda: Uniqueness(frame, names), counted, lambda problem: None
            )

    def at_risk(self, k: int) -> tuple[int, int]:
        """Return records that fewer than k - 1 others equal, and all records; (0, 0) without a table, or while they are counted."""
        uniqueness = self.uniqueness
        return (0, 0) if uniqueness is None else (uniqueness.at_risk(k), uniqueness.n)

    def sentence(self, k: int) -> str:
        """Return how many records are at risk before anonymization, in plain words."""
        risky, n = self.at_risk(k)
        if not n and self._counted is not None:
            return "Counting the records at risk…"
        if not n:
            return "Open a table, and say which columns are quasi-identifiers."
        return (
            f"{risky:,} of {plural(n, 'record')} ({share(risky, n)}) {'shares its' if risky == 1 else 'share their'} "
            f"quasi-identifiers with fewer than {plural(k - 1, 'other')}: without protection "
            f"{'it is' if risky == 1 else 'they are'} at risk."
        )

    @property
    def largest(self) -> int:
        """The right end of the slider."""
        frame = self.workspace.data.named
        return LARGEST_K if frame is None else max(3, min(LARGEST_K, len(frame)), self.k)

    # -------------------------------------------------------------------------------------- methods

    def asked_options(self) -> dict[str, tuple[Option, ...]]:
        """Return the options that the form asks for, of the chosen methods that have any."""
        fields = {
            name: tuple(option for option in REGISTRY[name].options.values() if option.in_form)
            for name in self.algorithms
            if name in REGISTRY
        }
        return {name: options for name, options in fields.items() if options}

    def value_of(self, method: str, option: Option) -> Any:
        """Return what an option is in the draft; its default where nothing is said."""
        return self.flow.method.option(method, option)

    def set_option(self, method: str, name: str, value: Any) -> None:
        """Set an option of a method; one edit of the draft. The default is not written."""
        step = self.flow.method.with_option(method, REGISTRY[method].options[name], value)
        self.workspace.draft.put(self.flow.with_steps(anonymize=step))

    # ------------------------------------------------------------------------------------ the draft

    def _read(self) -> None:
        self._count()
        if self.workspace.data.named is None:
            return
        spec, method, cut = self.flow, self.flow.method, self.flow.partition
        k = self.k if self.k in spec.ks else next((k for k in spec.ks if k not in self.more), spec.ks[0])
        changes = {
            "k": k,
            "more": [further_k for further_k in spec.ks if further_k != k],
            "algorithms": [name for name in spec.algorithms if name in REGISTRY],
            "loss": method.loss if method.loss in LOSSES else None,
            "boundaries": method.boundaries,
            "options": method.of_methods,
            "cut": "whole" if cut.size is None else "time" if cut.cut is None else "size",
            "size": cut.cut,
            "seconds": cut.budget,
            "order": cut.order,
        }
        if method.algorithm == AUTO:
            changes |= {"cut": AUTO, "seconds": method.budget, "guarantee": method.guarantee}
        if changes["seconds"] is not None and changes["seconds"] < self.param.seconds.bounds[0]:
            changes["seconds"] = None  # fewer than the form takes
        self.param.update(**{name: value for name, value in changes.items() if value is not None})

    def _write(self, names: set[str]) -> None:
        workspace, draft = self.workspace, self.workspace.draft
        if {"k", "more"} & names:
            workspace.draft.set_ks([self.k, *self.more])
        if "algorithms" in names:
            if self.algorithms:
                workspace.draft.set_algorithms(self.algorithms)
            else:
                self.renew()  # a run needs a method: the last one stays
        if {"loss", "boundaries"} & names:
            draft.put(self.flow.with_method(loss=self.loss, boundaries=self.boundaries))
        if self.cut == AUTO and {"cut", "seconds", "guarantee"} & names:
            self._write_auto()
        elif {"cut", "size", "seconds", "order"} & names:
            cut = {"size": {"size": self.size}, "time": {"size": AUTO, "budget": self.seconds}}
            spec = self.flow.with_partition(order=self.order, **cut.get(self.cut, {}))
            if spec.method.algorithm == AUTO:
                method = self.algorithms or [first_method(self.guarantee).name]
                spec = spec.with_method(guarantee=None, budget=None).sweeping("algorithm", method)
            draft.put(spec)

    def _write_auto(self) -> None:
        """Leave the method to the budget: method, options and partition leave the draft; one edit."""
        settings = self.flow.method.model_dump(include={"k", "loss", "boundaries"})
        step = MethodSpec(algorithm=AUTO, guarantee=self.guarantee, budget=self.seconds, **settings)
        spec = self.flow.with_steps(anonymize=step).with_partition().sweeping("algorithm", [AUTO])
        self.workspace.draft.put(spec)


def share(part: int, whole: int) -> str:
    """Return a percentage that is 0% and 100% only where that is so."""
    if not whole or part in (0, whole):
        return "100%" if whole and part else "0%"
    percent = 100 * part / whole
    return "below 0.1%" if percent < 0.1 else "above 99.9%" if percent > 99.9 else f"{percent:.1f}%"
