"""Criteria of diversity: how the sensitive values are spread that the rows of a class, or of an original, show."""
