"""The screen Publish."""
