"""What one user's session holds and does, without a screen."""
