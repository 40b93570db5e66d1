"""Methods whose result is equivalence classes."""
