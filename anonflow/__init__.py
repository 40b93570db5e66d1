"""anonflow."""
