"""The screen Compare."""
