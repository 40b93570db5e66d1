"""Diversity of sensitive values: the target, and how classes and matches reach it."""
