"""Attackers: what each one knows, and how often it finds the right row or the sensitive value."""

from anonflow.risk.attack import ATTACKERS, WITH_REGISTER, attack, attackers_of, usual
from anonflow.risk.attack_context import AttackContext
from anonflow.risk.attacker import Attacker, Success
from anonflow.risk.by_keys import ByKeys, ByKeySets
from anonflow.risk.counting import Counter, match_probabilities
from anonflow.risk.describe import Description, describe
from anonflow.risk.disclosive import Disclosive
from anonflow.risk.insiders import Clerk, Insider, Replayer
from anonflow.risk.intersection import Intersection
from anonflow.risk.linkable import LinkableColumns
from anonflow.risk.linkers import Homogeneity, Journalist, Linker, Marketer, Presence, Prosecutor
from anonflow.risk.own_rows import OwnRows, OwnRowsTest, own_rows_test
from anonflow.risk.people import Unit
from anonflow.risk.population import Population, PopulationRisk, population_risk
from anonflow.risk.simulator import Simulator
from anonflow.risk.three_questions import Answer, three_questions
from anonflow.table.key_sets import KeySets, key_sets

Scene = AttackContext
"""Its name before version 1: scripts go on."""

__all__ = [
    "ATTACKERS",
    "WITH_REGISTER",
    "Answer",
    "AttackContext",
    "Attacker",
    "ByKeySets",
    "ByKeys",
    "Clerk",
    "Counter",
    "Description",
    "Disclosive",
    "Homogeneity",
    "Insider",
    "Intersection",
    "Journalist",
    "KeySets",
    "LinkableColumns",
    "Linker",
    "Marketer",
    "OwnRows",
    "OwnRowsTest",
    "Population",
    "PopulationRisk",
    "Presence",
    "Prosecutor",
    "Replayer",
    "Scene",
    "Simulator",
    "Success",
    "Unit",
    "attack",
    "attackers_of",
    "describe",
    "key_sets",
    "match_probabilities",
    "own_rows_test",
    "population_risk",
    "three_questions",
    "usual",
]
