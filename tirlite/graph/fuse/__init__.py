"""Fusion: joins an operator and the elementwise ones that use its result into one function."""
