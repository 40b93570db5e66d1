"""An attacker of somebody else: it guesses without looking. Importing it is its line in the registry."""

from __future__ import annotations

from dataclasses import dataclass
from typing import ClassVar

from anonflow.errors import ParameterError
from anonflow.risk.attack import ATTACKERS
from anonflow.risk.attack_context import AttackContext
from anonflow.risk.attacker import AttackerKind, Success, percent


@dataclass(frozen=True)
class Owl(AttackerKind):
    """Knows who is in the table, and names some people for each row without reading it.

    Parameters
    ----------
    guesses : int, optional
        How many people it names for a row.
    """

    guesses: int = 1
    name: ClassVar[str] = "owl"
    does: ClassVar[str] = "guesses without looking"
    needs_originals: ClassVar[bool] = True
    knows: ClassVar[str] = "who is in the table"

    def __post_init__(self) -> None:
        if self.guesses < 1:
            raise ParameterError("owl: guesses is a whole number of at least 1")

    def attack(self, context: AttackContext) -> Success:
        """Attack the release. O(1).

        Raises
        ------
        ParameterError
            If it names more people than there are.
        """
        if self.guesses > context.n:
            raise ParameterError("owl: guesses is at most the number of records")
        rate = self.guesses / context.n
        sentence = f"An attacker who does not read the release is right for {percent(rate)} of the rows."
        return Success(context.n, rate, rate, 0, rate, sentence)


ATTACKERS[Owl.name] = Owl
