"""The compiled loops: arrays in, arrays out."""
