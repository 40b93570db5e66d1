"""The tests, a folder for each room of the package; what several of them share is in ``cases``."""

from pathlib import Path

ROOT = Path(__file__).resolve().parents[1]
"""The checkout."""
