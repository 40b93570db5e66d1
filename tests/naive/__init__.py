"""Brute-force references that import nothing from anonflow."""
