"""Attacks that once succeeded, one a file: each states its figure, and what it must stay under."""
