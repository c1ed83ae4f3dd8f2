"""Fusion: makes one function of an operator and the element-wise ones that use its result."""
