"""The definition of a criterion: a check, and everything that flows, reports and readers need to know about it."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any, Literal

from anonflow.criteria.evidence import Evidence
from anonflow.criteria.verification import Finding
from anonflow.option import NEEDED, Option, options_of

Needs = Literal["rows", "originals", "everybody"]


@dataclass(frozen=True)
class Criterion:
    """A privacy condition, with its check.

    Attributes
    ----------
    name : str
    check : callable
        ``check(evidence, **options) -> Finding``, or several; its options are keyword-only and declared there
        (:mod:`anonflow.option`). A bare number or word stands for the first.
    sentence : str
        What holds, in plain words.
    promise : str, optional
        The guarantee, for a reader of the release, if a method guarantees it.
    warning : str, optional
        The attacks that a release with this guarantee does not prevent.
    covers_k : bool, optional
        Whether under it every generalized record covers at least k originals.
    adds_up : bool, optional
        Whether a release keeps it if each of its partitions does.
    needs : {"rows", "originals", "everybody"}, optional
        The data that it needs: published rows alone; the originals, too; or a row of every original, so that no row may
        be missing from the release.
    needs_with : callable, optional
        Of its parameters: what it needs, where this depends on them.
    of_method : bool, optional
        Whether its options, where a request has none, are those of the method's call.
    of_covers : bool, optional
        Whether a method that guarantees it gives neither classes nor lists: whatever covers a person may be theirs.
    of_sets : bool, optional
        Whether a method that guarantees it promises something for sets of columns, and nothing for all of them together.
    of_release : bool, optional
        Whether it needs drawn rows, of every method; of matches, diversity does, too.
    also : mapping, optional
        Its other names, each with the other names of its options there.
    """

    name: str
    check: Callable[..., Finding | Sequence[Finding]]
    sentence: str
    promise: str = ""
    warning: str = ""
    covers_k: bool = False
    adds_up: bool = True
    needs: Needs = "everybody"
    needs_with: Callable[[Mapping[str, Any]], Needs] | None = None
    of_method: bool = False
    of_covers: bool = False
    of_sets: bool = False
    of_release: bool = False
    also: Mapping[str, Mapping[str, str]] = field(default_factory=dict)

    @property
    def options(self) -> Mapping[str, Option]:
        """Its options besides k, by name."""
        return options_of(self.check)

    @property
    def needed(self) -> tuple[str, ...]:
        """The options that must be given."""
        return tuple(name for name, option in self.options.items() if option.default is NEEDED)

    @property
    def of_a_column(self) -> bool:
        """Whether it checks the sensitive values of rows that belong together: a diversity criterion."""
        return "per" in self.options

    @property
    def of_distances(self) -> bool:
        """Whether it measures how far values are from each other: in their order, or along the column's hierarchy."""
        return "hierarchy" in self.options

    def need(self, parameters: Mapping[str, Any]) -> Needs:
        """Return what it needs with these parameters."""
        return self.needs if self.needs_with is None else self.needs_with(parameters)

    def needs_draw(self, matches: bool) -> bool:
        """Return whether it can be checked on drawn rows alone, of a result with or without matches."""
        return self.of_release or (matches and self.of_a_column)

    def findings(self, evidence: Evidence, parameters: Mapping[str, Any]) -> list[Finding]:
        """Run the check and return its findings.

        Raises
        ------
        ParameterError, DataError
            As the check does.
        """
        findings = self.check(evidence, **parameters)
        return [findings] if isinstance(findings, Finding) else list(findings)
