"""The attackers, one to a file."""
