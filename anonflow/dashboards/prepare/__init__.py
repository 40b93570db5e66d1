"""The screen Prepare."""
