"""Diversity of sensitive values: the target, and the algorithms by which classes and matches reach it."""
