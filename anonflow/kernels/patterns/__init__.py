"""Kernels of methods that hide cells by patterns."""
