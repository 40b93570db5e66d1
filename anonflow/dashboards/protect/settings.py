"""The settings of protection: k, methods and their options, partitions, the loss to keep low."""

from __future__ import annotations

from typing import Any

import param

from anonflow.algorithms.budget import AUTO, GUARANTEES, first_method
from anonflow.algorithms.registry import REGISTRY
from anonflow.dashboards.components.draft_form import DraftForm
from anonflow.dashboards.protect import texts
from anonflow.dashboards.work.screen_work import Background
from anonflow.loss import LOSSES
from anonflow.option import Option
from anonflow.table.identification.uniqueness import Uniqueness

__all__ = ["Protection", "share"]

ORDERS = ("lexicographic", "input", "random")

LARGEST_K = 100
"""The right end of the slider, where the table has so many records; more are typed."""


class Protection(DraftForm):
    """k, methods, options, partitions and loss of the draft.

    Parameters
    ----------
    workspace : Workspace

    Notes
    -----
    How many records are at risk is counted on the values as they are: records that fewer than k - 1 others equal on
    the quasi-identifiers. The sizes of the classes are sorted once for a table and its quasi-identifiers
    (:class:`anonflow.table.identification.uniqueness.Uniqueness`); for every k after that the count is a binary search.
    """

    k = param.Integer(default=10, bounds=(2, None), doc="Among how many records each one hides.")
    more = param.List(default=[], doc="Further ks to compare.")
    algorithms = param.List(default=["greedy"], doc="Methods to run.")
    loss = param.Selector(default="ncp", objects=list(LOSSES))
    boundaries = param.Boolean(default=True, doc="Whether methods keep boundaries and limits.")
    cut = param.Selector(default="whole", objects=list(texts.CUTS.values()))
    size = param.Integer(default=250, bounds=(2, None), doc="Records in a partition.")
    seconds = param.Number(default=10.0, bounds=(0.1, None), doc="That a method may take.")
    guarantee = param.Selector(default=GUARANTEES[0], objects=list(GUARANTEES))
    order = param.Selector(default="lexicographic", objects=list(ORDERS))
    uniqueness = param.Parameter(
        default=None,
        doc="Sizes of the classes of equal records; None without a table, or while they are counted.",
    )
    options = param.Dict(default={}, doc="Method -> option -> value, of all that differ from the default.")

    WRITES = ("k", "more", "algorithms", "loss", "boundaries", "cut", "size", "seconds", "guarantee", "order")

    def __init__(self, workspace: Any, **params: Any) -> None:
        self._counted: tuple[Any, tuple[str, ...]] | None = None
        self.background = Background(workspace, at_once=True)
        super().__init__(workspace, **params)

    # ------------------------------------------------------------------------------ records at risk

    def _count(self) -> None:
        """Count the classes of equal records, once for a table and its quasi-identifiers."""
        frame, names = self.workspace.named, self.quasi_identifiers
        if frame is None or not names:
            self.background.forget()
            self._counted, self.uniqueness = None, None
        elif self._counted is None or self._counted[0] is not frame or self._counted[1] != names:
            self._counted, self.uniqueness = (frame, names), None
            self.background.of_records(
                len(frame),
                lambda: Uniqueness(frame, names),
                lambda counts: self.param.update(uniqueness=counts),
                lambda problem: None,
            )

    def at_risk(self, k: int) -> tuple[int, int]:
        """Return records that fewer than k - 1 others equal, and all records; (0, 0) without a table, or while they are counted."""
        uniqueness = self.uniqueness
        return (0, 0) if uniqueness is None else (uniqueness.at_risk(k), uniqueness.n)

    def sentence(self, k: int) -> str:
        """Return how many records are at risk before anonymization, in plain words."""
        risky, n = self.at_risk(k)
        if not n and self._counted is not None:
            return texts.COUNTING
        if not n:
            return texts.OPEN_TABLE
        return texts.at_risk(risky, n, share(risky, n), k)

    @property
    def largest(self) -> int:
        """The right end of the slider."""
        frame = self.workspace.named
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
        settings = self.workspace.draft.get(("steps", "anonymize"), {})
        own = settings.get("options") if isinstance(settings.get("options"), dict) else {}
        for place in (own.get(method), settings):
            for key in (option.name, option.name.replace("_", "-")):
                if isinstance(place, dict) and key in place:
                    return place[key]
        return option.default

    def set_option(self, method: str, name: str, value: Any) -> None:
        """Set an option of a method; one edit of the draft. The default is not written.

        Raises
        ------
        KeyError
            If the method does not have the option.
        """
        default = REGISTRY[method].options[name].default
        step = self.workspace.draft.get(("steps", "anonymize"), {})
        own = {key: dict(options) for key, options in (step.get("options") or {}).items()}
        mine = own.setdefault(method, {})
        for key in (name, name.replace("_", "-")):
            mine.pop(key, None)
        is_for_all = any(key in step for key in (name, name.replace("_", "-")))
        if value != default or type(value) is not type(default) or is_for_all:
            mine[name] = value
        kept = {key: options for key, options in own.items() if options}
        self.workspace.draft.set(("steps", "anonymize", "options"), kept or None)

    # ------------------------------------------------------------------------------------ the draft

    def _read(self) -> None:
        draft = self.workspace.draft
        self._count()
        if self.workspace.named is None:
            return
        changes: dict[str, Any] = {}
        ks = [k for k in self.workspace.ks if isinstance(k, int) and not isinstance(k, bool) and k >= 2]
        if ks:
            if self.k not in ks:
                changes["k"] = next((k for k in ks if k not in self.more), ks[0])
            changes["more"] = [k for k in ks if k != changes.get("k", self.k)]
        changes["algorithms"] = [name for name in self.workspace.algorithms if name in REGISTRY]
        step = draft.get(("steps", "anonymize"), {})
        if step.get("loss", "ncp") in LOSSES:
            changes["loss"] = step.get("loss", "ncp")
        changes["boundaries"] = step.get("boundaries", True) is not False
        changes["options"] = step.get("options") or {}
        cut = draft.get(("partition",), {})
        size, budget = cut.get("size"), cut.get("budget")
        changes["cut"] = "whole" if size is None else "time" if size == "auto" else "size"
        if step.get("algorithm") == AUTO:
            changes["cut"] = "auto"
            budget = step.get("budget")
            if step.get("guarantee") in GUARANTEES:
                changes["guarantee"] = step["guarantee"]
        if isinstance(size, int) and size >= 2:
            changes["size"] = size
        if isinstance(budget, int | float) and budget >= 0.1:
            changes["seconds"] = float(budget)
        if cut.get("order", "lexicographic") in ORDERS:
            changes["order"] = cut.get("order", "lexicographic")
        self.param.update(**changes)

    def _write(self, names: set[str]) -> None:
        workspace, draft = self.workspace, self.workspace.draft
        if {"k", "more"} & names:
            workspace.set_ks(sorted({self.k, *self.more}))
        if "algorithms" in names:
            if self.algorithms:
                workspace.set_algorithms(self.algorithms)
            else:
                self.renew()  # a run needs a method: the last one stays
        if "loss" in names:
            draft.set(("steps", "anonymize", "loss"), None if self.loss == "ncp" else self.loss)
        if "boundaries" in names:
            draft.set(("steps", "anonymize", "boundaries"), None if self.boundaries else False)
        if self.cut == "auto" and {"cut", "seconds", "guarantee"} & names:
            self._write_auto()
        elif {"cut", "size", "seconds", "order"} & names:
            partition: dict[str, Any] = {"order": self.order}
            if self.cut == "size":
                partition["size"] = self.size
            elif self.cut == "time":
                partition |= {"size": "auto", "budget": self.seconds}
            if draft.get(("steps", "anonymize", "algorithm")) == AUTO:
                # the draft is read again after it: what is said here was taken down before
                workspace.set_algorithms(self.algorithms or [first_method(self.guarantee).name])
            plain = partition == {"order": "lexicographic"}
            draft.set(("partition",), None if plain else partition)

    def _write_auto(self) -> None:
        """Leave the method to the budget: method, options and partition leave the draft; one edit."""
        draft, step = self.workspace.draft, ("steps", "anonymize")
        matrix = {key: values for key, values in draft.get(("matrix",), {}).items() if key == "anonymize.k"}
        k = draft.get((*step, "k"))
        kept = {key: draft.get(step, {})[key] for key in ("loss", "boundaries") if key in draft.get(step, {})}
        settings = {"algorithm": AUTO, "k": k, **kept, "guarantee": self.guarantee, "budget": self.seconds}
        draft.set_all([(step, settings), (("partition",), None), (("matrix",), matrix or None)])


def share(part: int, whole: int) -> str:
    """Return a percentage that is 0% and 100% only where that is so."""
    if not whole or part in (0, whole):
        return "100%" if whole and part else "0%"
    percent = 100 * part / whole
    return (
        texts.LOWEST_SHARE if percent < 0.1 else texts.HIGHEST_SHARE if percent > 99.9 else f"{percent:.1f}%"
    )
