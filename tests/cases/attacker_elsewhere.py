"""An attacker of somebody else: it guesses without looking. Importing it is its line in the registry."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Annotated

from anonflow.errors import ParameterError
from anonflow.option import Option
from anonflow.risk.attack import ATTACKERS
from anonflow.risk.attack_context import AttackContext
from anonflow.risk.attacker import AttackerKind, Success, percent


@dataclass(frozen=True)
class Owl(
    AttackerKind,
    name="owl",
    does="guesses without looking",
    knows="who is in the table",
    needs_originals=True,
):
    """Knows who is in the table, and names some people for each row without reading it.

    Parameters
    ----------
    guesses : int, optional
        How many people it names for a row.
    """

    guesses: Annotated[int, Option("Guesses", least=1)] = 1

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
