"""The state and actions of one user's session, without screens."""
