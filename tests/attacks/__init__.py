"""Attacks that once worked, a file each: what the attacker does, its figure, and what that must stay under."""
