"""Attackers: the knowledge of each, and how often each finds the right row or the sensitive value."""

from anonflow.risk.attack import ATTACKERS, WITH_REGISTER, attack, attackers_of, usual
from anonflow.risk.attack_context import AttackContext
from anonflow.risk.attacker import Attacker, Success
from anonflow.risk.attackers.by_keys import ByKeys, ByKeySets
from anonflow.risk.attackers.counting import Counter, match_probabilities
from anonflow.risk.attackers.disclosive import Disclosive
from anonflow.risk.attackers.downcoding import Downcoding
from anonflow.risk.attackers.insiders import Clerk, Insider, Replayer
from anonflow.risk.attackers.intersection import Intersection
from anonflow.risk.attackers.linkable import LinkableColumns
from anonflow.risk.attackers.linkers import Homogeneity, Journalist, Linker, Marketer, Presence, Prosecutor
from anonflow.risk.attackers.minimality import Minimality
from anonflow.risk.attackers.own_rows import OwnRows, OwnRowsTest, own_rows_test
from anonflow.risk.attackers.people import Unit
from anonflow.risk.attackers.population import Population, PopulationRisk, population_risk
from anonflow.risk.attackers.refinement import Refinement
from anonflow.risk.attackers.simulator import Simulator
from anonflow.risk.describe import Description, describe
from anonflow.risk.register import check_register, register_table
from anonflow.risk.three_questions import Answer, three_questions
from anonflow.table.identification.key_sets import KeySets, key_sets

Scene = AttackContext
"""The old name, kept so that existing scripts work."""

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
    "Downcoding",
    "Homogeneity",
    "Insider",
    "Intersection",
    "Journalist",
    "KeySets",
    "LinkableColumns",
    "Linker",
    "Marketer",
    "Minimality",
    "OwnRows",
    "OwnRowsTest",
    "Population",
    "PopulationRisk",
    "Presence",
    "Prosecutor",
    "Refinement",
    "Replayer",
    "Scene",
    "Simulator",
    "Success",
    "Unit",
    "attack",
    "attackers_of",
    "check_register",
    "describe",
    "key_sets",
    "match_probabilities",
    "own_rows_test",
    "population_risk",
    "register_table",
    "three_questions",
    "usual",
]
