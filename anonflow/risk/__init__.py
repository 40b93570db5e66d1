"""Attackers: what each one knows, and how often it finds the right row or the sensitive value."""

from anonflow.risk.attacking import ATTACKERS, attack, attackers_of, usual
from anonflow.risk.contract import Attacker, Success
from anonflow.risk.counting import Counter, match_probabilities
from anonflow.risk.insiders import Clerk, Insider, Replayer
from anonflow.risk.linkers import Homogeneity, Journalist, Linker, Marketer, Prosecutor
from anonflow.risk.scene import Scene

__all__ = [
    "ATTACKERS",
    "Attacker",
    "Clerk",
    "Counter",
    "Homogeneity",
    "Insider",
    "Journalist",
    "Linker",
    "Marketer",
    "Prosecutor",
    "Replayer",
    "Scene",
    "Success",
    "attack",
    "attackers_of",
    "match_probabilities",
    "usual",
]
