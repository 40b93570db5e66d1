"""The owner's folder: certificate, seed, checkpoints and run record."""
