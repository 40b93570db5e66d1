"""k-concealment and what it is built from."""
