"""The screen Protect."""
