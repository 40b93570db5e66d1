"""The screen Risk."""
