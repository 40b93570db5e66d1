"""Attackers: what each one knows, and how often it finds the right row or the sensitive value."""

from anonflow.risk.attack import ATTACKERS, attack, attackers_of, usual
from anonflow.risk.attack_context import AttackContext
from anonflow.risk.attacker import Attacker, Success
from anonflow.risk.counting import Counter, match_probabilities
from anonflow.risk.insiders import Clerk, Insider, Replayer
from anonflow.risk.intersection import Intersection
from anonflow.risk.linkable import LinkableColumns
from anonflow.risk.linkers import Homogeneity, Journalist, Linker, Marketer, Prosecutor
from anonflow.risk.simulator import Simulator

Scene = AttackContext
"""Its name before version 1: scripts go on."""

__all__ = [
    "ATTACKERS",
    "AttackContext",
    "Attacker",
    "Clerk",
    "Counter",
    "Homogeneity",
    "Insider",
    "Intersection",
    "Journalist",
    "LinkableColumns",
    "Linker",
    "Marketer",
    "Prosecutor",
    "Replayer",
    "Scene",
    "Simulator",
    "Success",
    "attack",
    "attackers_of",
    "match_probabilities",
    "usual",
]
