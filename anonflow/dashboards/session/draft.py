"""The draft: the flow behind all screens, with edits, undo, and the checks of the engine's loader."""

from __future__ import annotations

import copy
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import param

from anonflow import strict_yaml
from anonflow.dashboards.session.paths import check_confined
from anonflow.engine import Flow, flow_from
from anonflow.engine.flows.steps import STEPS
from anonflow.errors import AnonflowError, FlowError

__all__ = ["Draft"]

HISTORY = 200
"""Steps that can be undone."""


class Draft(param.Parameterized):
    """A flow while it is being written.

    Parameters
    ----------
    document : dict
        The flow as its file has it. Screens read it and never change it in place: every edit goes through
        :meth:`set`, which puts a new mapping here, so that the watchers of the param are called.
    folder : pathlib.Path
        What paths in the flow are relative to.

    Notes
    -----
    The mapping is the only state and equals the file's content. A draft may be invalid between edits; ``problems`` has
    the loader's messages.
    """

    document = param.Dict(default={}, doc="The flow as its file has it.")
    folder = param.ClassSelector(class_=Path, default=Path(), doc="What its paths are relative to.")

    def __init__(self, **params: Any) -> None:
        super().__init__(**params)
        self._past: list[dict[str, Any]] = []
        self._future: list[dict[str, Any]] = []

    def __repr__(self) -> str:
        # hierarchies in the document hold values
        return f"Draft({self.document.get('flow')!r})"

    @classmethod
    def start(
        cls, source: dict[str, Any], columns: dict[str, Any], name: str = "draft", k: int = 10
    ) -> Draft:
        """Return a first flow over a table.

        Parameters
        ----------
        source, columns : dict
            As under ``table`` in a flow.
        name : str
            The flow's name.
        k : int
            Matches, or records in a class, at least.
        """
        document = {
            "flow": name,
            "version": 1,
            "table": {"source": copy.deepcopy(source), "columns": copy.deepcopy(columns)},
            "steps": [
                {"anonymize": {"algorithm": "greedy", "k": k}},
                {"draw": {}},
                {"verify": ["covers", "guarantee"]},
                {"measure": ["gcp", "usefulness"]},
            ],
        }
        return cls(document=document)

    @classmethod
    def read(cls, text: str, folder: Path | None = None, confined: bool = False) -> Draft:
        """Return a draft from the text of a flow file.

        Parameters
        ----------
        text : str
        folder : pathlib.Path, optional
            What paths in the flow are relative to.
        confined : bool
            Whether the flow is a stranger's: it may name files inside `folder` only, and is refused before any
            is opened.

        Raises
        ------
        FlowError
            If it is no strict YAML, no flow the loader takes, or names files that it may not.
        """
        document = strict_yaml.loads(text)
        if confined:
            check_confined(document.data, folder or Path())
        flow_from(document.with_data(_with_a_release(document.data)), folder=folder)
        return cls(document=document.data, folder=folder or Path())

    def get(self, path: Sequence[str], default: Any = None) -> Any:
        """Return a copy of what is at `path`; a step of ``steps`` is named by its word, ``("steps", "anonymize", "k")``."""
        at: Any = self.document
        for key in path:
            if isinstance(at, list):
                at = next((step[key] for step in at if isinstance(step, dict) and key in step), None)
            elif isinstance(at, dict):
                at = at.get(key)
            else:
                return default
            if at is None:
                return default
        return copy.deepcopy(at)

    def set(self, path: Sequence[str], value: Any) -> None:
        """Put `value` at `path`; None removes the present value. An edit without a change is not in the history.

        Parameters
        ----------
        path : sequence of str
            As for :meth:`get`; mappings on the way are made.
        value
            Anything a flow can hold.

        Raises
        ------
        FlowError
            If the path is empty, or leads through something that is neither a mapping nor the steps.
        """
        if not path:
            raise FlowError("an edit of a flow names what it changes; the path is empty")
        changed = copy.deepcopy(self.document)
        at: Any = changed
        for key in path[:-1]:
            at = _inside(at, key)
        _put(at, path[-1], copy.deepcopy(value))
        self.put(changed)

    def set_all(self, edits: Sequence[tuple[Sequence[str], Any]]) -> None:
        """Several edits as one step of the history.

        Parameters
        ----------
        edits : sequence of (path, value)
            As for :meth:`set`, one after the other.

        Raises
        ------
        FlowError
            As :meth:`set`; nothing is changed then.
        """
        trial = Draft(document=self.document, folder=self.folder)
        for path, value in edits:
            trial.set(path, value)
        self.put(trial.document)

    def put(self, document: dict[str, Any]) -> None:
        """Replace the flow, as one step of the history; an equal flow is not a step."""
        if document == self.document:
            return
        self._past = [*self._past, self.document][-HISTORY:]
        self._future = []
        self.document = copy.deepcopy(document)

    def restart(self, document: dict[str, Any], folder: Path | None = None) -> None:
        """Replace the flow for another table, and clear the history."""
        self._past, self._future = [], []
        if folder is not None:
            self.folder = folder
        self.document = copy.deepcopy(document)

    @property
    def past(self) -> tuple[dict[str, Any], ...]:
        """The flows before this one that can be gone back to, oldest first; not to be changed."""
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
            self._future.append(self.document)
            self.document = self._past.pop()

    def redo(self) -> None:
        """Repeat the edit that was undone last, if there is one."""
        if self._future:
            self._past.append(self.document)
            self.document = self._future.pop()

    def text(self) -> str:
        """Return the flow file; it reads back to an equal draft.

        Raises
        ------
        FlowError
            If the flow holds something YAML cannot.
        """
        return strict_yaml.dumps(self.document)

    def flow(self) -> Flow:
        """Return the flow, checked by the engine's loader.

        Raises
        ------
        FlowError
            With every problem.
        """
        text = self.text()
        if len(text) < strict_yaml.MAX_BYTES // 4:
            try:  # what the text says is what the mapping says: reading it again would only tell places
                document = strict_yaml.Document(_with_a_release(self.document), "this flow")
                return flow_from(document, folder=self.folder)
            except FlowError:
                pass
        document = strict_yaml.loads(text, name="this flow")
        return flow_from(document.with_data(_with_a_release(document.data)), folder=self.folder)

    @property
    def problems(self) -> tuple[str, ...]:
        """The problems of the flow that are known without the data; empty if there are none."""
        try:
            self.flow()
        except AnonflowError as error:
            return error.problems
        return ()


def _with_a_release(document: Any) -> Any:
    """Return a draft with attackers as if its first run were published: for checking alone.

    Which run is published, and so attacked, is chosen on the screens, after the runs.
    """
    if not isinstance(document, dict):
        return document
    steps, matrix, publish = document.get("steps"), document.get("matrix", {}), document.get("publish", {})
    attacks = isinstance(steps, list) and any(isinstance(step, dict) and "attack" in step for step in steps)
    if not attacks or not isinstance(matrix, dict) or not isinstance(publish, dict):
        return document
    if not all(isinstance(values, list) and values for values in matrix.values()):
        return document
    first = {"run": {key: values[0] for key, values in matrix.items()}} if matrix else {}
    return {**document, "publish": {"table": "out/release.csv", **first, **publish}}


def _inside(at: Any, key: str) -> Any:
    """Return the collection under `key` of `at`, made where there is none."""
    if isinstance(at, list):
        step = next((step for step in at if isinstance(step, dict) and key in step), None)
        if step is None:
            step = {key: {}}
            _insert(at, step, key)
        return step[key]
    if isinstance(at, dict):
        return at.setdefault(key, {})
    raise _single_value(key)


def _single_value(key: str) -> FlowError:
    return FlowError(
        f"nothing can be added under {key!r}: its parent is a single value; replace the whole value"
    )


def _put(at: Any, key: str, value: Any) -> None:
    if isinstance(at, list):
        step = next((step for step in at if isinstance(step, dict) and key in step), None)
        if step is not None and value is not None:
            step[key] = value
        elif step is not None:
            at.remove(step)
        elif value is not None:
            _insert(at, {key: value}, key)
    elif not isinstance(at, dict):
        raise _single_value(key)
    elif value is None:
        at.pop(key, None)
    else:
        at[key] = value


def _insert(steps: list[Any], step: dict[str, Any], key: str) -> None:
    """Insert a step before the first that comes after it in the order of steps."""
    place = STEPS.index(key) if key in STEPS else len(STEPS)
    later = [n for n, earlier in enumerate(steps) if any(word in STEPS[place:] for word in earlier)]
    steps.insert(later[0] if later else len(steps), step)
