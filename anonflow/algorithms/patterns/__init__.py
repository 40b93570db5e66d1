"""Patterns: which quasi-identifiers may be suppressed together, and the methods that keep them."""
