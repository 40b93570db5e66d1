"""k-concealment and its parts."""
