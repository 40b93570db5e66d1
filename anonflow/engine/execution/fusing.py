"""Tasks that only one result needs, made one task: a scheduler's work for a task is as much as a small partition's."""

from __future__ import annotations

import time
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

__all__ = ["Batch", "Chain", "batched", "fused", "is_task"]


@dataclass(frozen=True, eq=False)
class Chain:
    """Several tasks as one.

    Attributes
    ----------
    inputs : tuple of str
        Names of what is computed elsewhere, in the order in which it is given.
    steps : tuple of (str, callable, tuple)
        Name, function and arguments of each task, after those that it needs. The last one's result is the chain's.
    """

    inputs: tuple[str, ...]
    steps: tuple[tuple[str, Callable[..., Any], tuple[Any, ...]], ...]

    def __call__(self, *given: Any) -> Any:
        """Do all of them."""
        known = dict(zip(self.inputs, given, strict=True))
        result = None
        for name, function, arguments in self.steps:
            result = function(
                *(known[one] if isinstance(one, str) and one in known else one for one in arguments)
            )
            known[name] = result
        return result


@dataclass(frozen=True, eq=False)
class Batch:
    """Several results as one: small tasks that are sent, and answered, together.

    Attributes
    ----------
    inputs : tuple of str
        As of a :class:`Chain`.
    calls : tuple of (callable, tuple)
        Function and arguments of each result.
    """

    inputs: tuple[str, ...]
    calls: tuple[tuple[Callable[..., Any], tuple[Any, ...]], ...]

    def __call__(self, *given: Any) -> tuple[float, list[Any]]:
        """Seconds, and the results."""
        known = dict(zip(self.inputs, given, strict=True))
        begin = time.perf_counter()
        results = [
            function(*(known[one] if isinstance(one, str) and one in known else one for one in arguments))
            for function, arguments in self.calls
        ]
        return time.perf_counter() - begin, results


def batched(graph: Mapping[str, Any], leaves: Sequence[str]) -> tuple[Any, ...]:
    """A task with the results of several: a :class:`Batch`.

    Parameters
    ----------
    graph : mapping
    leaves : sequence of str
        Keys of tasks that do not need each other.
    """
    calls = tuple((graph[name][0], tuple(graph[name][1:])) for name in leaves)
    needed = (one for _, arguments in calls for one in arguments if isinstance(one, str) and one in graph)
    inputs = tuple(dict.fromkeys(needed))
    return (Batch(inputs, calls), *inputs)


def is_task(node: Any) -> bool:
    """Whether a node of a graph is a task, not a value."""
    return isinstance(node, tuple) and bool(node) and callable(node[0])


def fused(graph: Mapping[str, Any], leaves: Sequence[str]) -> dict[str, Any]:
    """The same results from fewer tasks: what only one of them needs is computed with it.

    Parameters
    ----------
    graph : mapping
        Key -> task or value, as Dask takes it.
    leaves : sequence of str
        Keys of the results.

    Returns
    -------
    dict
        O(tasks) time. What several results need stays a task of its own.
    """
    needs: dict[str, list[str]] = {}
    users: dict[str, set[str]] = {}
    waiting = list(leaves)
    while waiting:
        name = waiting.pop()
        if name in needs:
            continue
        node = graph[name]
        needs[name] = (
            [one for one in node[1:] if isinstance(one, str) and one in graph] if is_task(node) else []
        )
        for one in needs[name]:
            users.setdefault(one, set()).add(name)
            waiting.append(one)
    made: dict[str, Any] = {}
    inside: set[str] = set()
    for leaf in leaves:
        own = _own(leaf, graph, needs, users, set(leaves))
        inside.update(own)
        if len(own) == 1:
            made[leaf] = graph[leaf]
            continue
        inputs = tuple(dict.fromkeys(one for name in own for one in needs[name] if one not in own))
        steps = tuple((name, graph[name][0], tuple(graph[name][1:])) for name in own)
        made[leaf] = (Chain(inputs, steps), *inputs)
    return {name: graph[name] for name in needs if name not in inside} | made


def _own(
    leaf: str,
    graph: Mapping[str, Any],
    needs: Mapping[str, list[str]],
    users: Mapping[str, set[str]],
    leaves: set[str],
) -> list[str]:
    """The tasks that nothing but a leaf needs, itself among them, each after those that it needs."""
    own = {leaf}
    grown = True
    while grown:
        grown = False
        for name in list(own):
            for one in needs[name]:
                if one not in own and one not in leaves and is_task(graph[one]) and users[one] <= own:
                    own.add(one)
                    grown = True
    ordered: list[str] = []

    def put(name: str) -> None:
        for one in needs[name]:
            if one in own and one not in ordered:
                put(one)
        ordered.append(name)

    put(leaf)
    return ordered
