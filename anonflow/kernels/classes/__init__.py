"""Kernels of methods whose result is classes."""
