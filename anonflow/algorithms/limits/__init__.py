"""Limits on how far a column may be generalized: ``max-width`` and ``max-set``."""
