"""Kernels of freeform methods: matches, links and chains of exchanges."""
