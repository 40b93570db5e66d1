"""The compiled loops of anonflow.

A kernel takes arrays and returns arrays; it knows nothing of the rest of the package but its errors.
"""
