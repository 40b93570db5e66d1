"""Criteria of matching: which rows may be of which originals, by the consistency graph or by a certificate."""
