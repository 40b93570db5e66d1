"""The two questions that screens ask first, how strong and how long, and what follows from the answers."""

from __future__ import annotations

HOW_STRONG = "How strong is the protection to be?"
HOW_LONG = "How long may each candidate take?"
FIND = "Find the best for me"

STRENGTHS = {
    "Low: each person hides among 3": 3,
    "Usual: among 5": 5,
    "Strong: among 10": 10,
    "Very strong: among 25": 25,
}
"""How strong the protection is, in words -> k."""

TIMES = {"10 seconds": 10.0, "1 minute": 60.0, "10 minutes": 600.0}
"""How long a candidate may take, in words -> seconds."""

BESIDE = ("k-member", "mondrian")
"""Methods that run beside the one that is chosen for the time: both make classes of equal rows, with little loss, and at once."""
