"""The draft: the flow behind all screens, with its history."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Any, Literal

import param

from anonflow import strict_yaml
from anonflow.algorithms.budget import AUTO
from anonflow.dashboards.session.draft_spec import NO_FLOW, DraftSpec
from anonflow.engine import Flow
from anonflow.engine.flows.spec import SourceSpec
from anonflow.errors import ParameterError

FIRST_METHOD, FIRST_K = "greedy", 10
"""The method and the k that a first draft has; of few records a smaller k."""

PARTITION = 250
"""Records in a partition of a first draft, where the table has more."""

HISTORY = 200
"""Steps that can be undone."""


class Draft(param.Parameterized):
    """A flow while it is being written. It may be invalid between edits.

    ``spec`` is frozen: every edit puts another one there, so that the watchers of the param are called; ``changed`` is called before them.
    """

    spec = param.ClassSelector(class_=DraftSpec, default=NO_FLOW, instantiate=False, doc="The flow.")
    folder = param.ClassSelector(class_=Path, default=Path(), doc="What its paths are relative to.")

    def __init__(self, **params: Any) -> None:
        super().__init__(**params)
        self._past: list[DraftSpec] = []
        self._future: list[DraftSpec] = []
        self.changed: Callable[[], None] = lambda: None

    def _replace(self, spec: DraftSpec) -> None:
        # whoever watches the flow finds its runs judged already
        with param.parameterized.batch_call_watchers(self):
            self.spec = spec
            self.changed()

    def __repr__(self) -> str:
        # hierarchies in the flow hold values
        return f"Draft({self.spec.flow!r})"

    @classmethod
    def start(
        cls,
        source: SourceSpec | dict[str, Any],
        columns: dict[str, Any],
        name: str = "draft",
        k: int = FIRST_K,
    ) -> Draft:
        """Return a first flow over a table, its columns as under ``table`` in a flow, for k matches, or records in a class, at least."""
        document = {
            "flow": name,
            "version": 1,
            "table": {"source": source, "columns": columns},
            "steps": [
                {"anonymize": {"algorithm": FIRST_METHOD, "k": k}},
                {"draw": {}},
                {"verify": ["covers", "guarantee"]},
                {"measure": ["gcp", "usefulness"]},
            ],
        }
        return cls(spec=DraftSpec.of(document))

    @property
    def document(self) -> dict[str, Any]:
        """The flow as its file has it."""
        return self.spec.document

    def put(self, spec: DraftSpec) -> None:
        """Replace the flow, as one step of the history; an equal flow is not a step."""
        if spec == self.spec:
            return
        self._past = [*self._past, self.spec][-HISTORY:]
        self._future = []
        self._replace(spec)

    def set_algorithms(self, names: Sequence[str]) -> None:
        """Set the methods, as one edit."""
        spec = self.spec
        if AUTO not in names and spec.method.algorithm == AUTO:
            spec = spec.with_method(guarantee=None, budget=None)
        self._sweep(spec, "algorithm", list(names))

    def set_ks(self, ks: Sequence[int]) -> None:
        """Set the ks, as one edit."""
        self._sweep(self.spec, "k", sorted(set(ks)))

    def _sweep(self, spec: DraftSpec, key: Literal["algorithm", "k"], values: list[Any]) -> None:
        if not values:
            raise ParameterError(f"at least one {key} is needed; choose one")
        self.put(spec.sweeping(key, values))

    def restart(self, spec: DraftSpec, folder: Path | None = None) -> None:
        """Replace the flow for another table, and clear the history."""
        self._past, self._future = [], []
        if folder is not None:
            self.folder = folder
        self._replace(spec)

    @property
    def past(self) -> tuple[DraftSpec, ...]:
        """The flows before this one that can be gone back to, oldest first."""
        return tuple(self._past)

    @property
    def can_undo(self) -> bool:
        """Whether there is an edit to undo."""
        return bool(self._past)

    @property
    def can_redo(self) -> bool:
        """Whether there is an undone edit to repeat."""
        return bool(self._future)

    def undo(self) -> None:
        """Undo the last edit, if there is one."""
        if self._past:
            self._future.append(self.spec)
            self._replace(self._past.pop())

    def redo(self) -> None:
        """Repeat the edit that was undone last, if there is one."""
        if self._future:
            self._past.append(self.spec)
            self._replace(self._future.pop())

    def text(self) -> str:
        """Return the flow file; it reads back to an equal draft."""
        return strict_yaml.dumps(self.document)

    def flow(self) -> Flow:
        """Return the flow, checked by the engine's loader."""
        return self.spec.loaded(self.folder)
