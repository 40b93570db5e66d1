"""Attackers who know only some of the quasi-identifiers: each kind of attacker knows one set of columns."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, replace
from typing import Any

from anonflow.errors import ParameterError
from anonflow.risk.attack_context import AttackContext
from anonflow.risk.attacker import Attacker, AttackerKind, Success

_FORM = "key-sets: sets is a list of lists of quasi-identifiers, such as [[age, sex], [zip]]"


def checked_sets(sets: Any) -> tuple[tuple[str, ...], ...]:
    """Return sets of columns, each without repetitions.

    Raises
    ------
    ParameterError
        If they are not a list of lists of names.
    """
    if (
        not isinstance(sets, list | tuple)
        or not sets
        or not all(isinstance(keys, list | tuple) and keys for keys in sets)
        or not all(isinstance(name, str) for keys in sets for name in keys)
    ):
        raise ParameterError(_FORM)
    return tuple(dict.fromkeys(tuple(dict.fromkeys(keys)) for keys in sets))


@dataclass(frozen=True, eq=False)
class ByKeys:
    """An attacker who knows these quasi-identifiers only, and not the certificate.

    Parameters
    ----------
    attacker : Attacker
        The attacker who uses them.
    keys : tuple of str
    """

    attacker: Attacker
    keys: tuple[str, ...]

    @property
    def name(self) -> str:
        """The name of the attacker."""
        return self.attacker.name

    @property
    def knows(self) -> str:
        """The columns, and what the attacker has besides them."""
        return f"of the quasi-identifiers {', '.join(self.keys)} only; {self.attacker.knows}"

    @property
    def needs_truth(self) -> bool:
        """Whether the attacker needs the truth."""
        return bool(getattr(self.attacker, "needs_truth", True))

    def attack(self, context: AttackContext) -> Success:
        """Attack the release, with only these columns of the table and the rows.

        Raises
        ------
        ParameterError
            If one of them is not a quasi-identifier, and as the attacker.
        """
        success = self.attacker.attack(context.with_keys(self.keys))
        return replace(success, sentence=f"By {', '.join(self.keys)} alone: {success.sentence}")


@dataclass(frozen=True, eq=False)
class ByKeySets(
    AttackerKind,
    name="key-sets",
    of_sets=True,
    takes="has the parameters sets, such as [[age, sex], [zip]], and attackers",
    does="knows some columns only",
    knows="some of the quasi-identifiers: each of several sets of columns by itself",
):
    """Several attackers for each of several sets of quasi-identifiers that different people may know.

    Parameters
    ----------
    sets : list of lists of str
        Sets of columns that others may know, each by itself.
    attackers : list of str
        The attackers that are run with each set.

    Notes
    -----
    A release that lists k matches on all quasi-identifiers has at least as many on some of them; the attack reports the
    risk of a set of columns and enforces nothing. The criterion ``key-sets`` enforces classes on each set.
    """

    sets: Any
    attackers: Any = ("prosecutor", "marketer", "linker")

    def __post_init__(self) -> None:
        checked_sets(self.sets)

    def members(self, read: Callable[[Any], list[Attacker]]) -> list[Any]:
        """Return each of its attackers with each of the sets."""
        return [
            ByKeys(attacker, keys) for keys in checked_sets(self.sets) for attacker in read(self.attackers)
        ]
