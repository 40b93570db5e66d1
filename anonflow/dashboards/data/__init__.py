"""The screen Data."""
