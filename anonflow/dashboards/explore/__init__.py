"""The screen Explore."""
