"""Parts that several screens are built from."""
