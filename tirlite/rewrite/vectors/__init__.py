"""Vectorization of loops: which loops, by which lanes, and what reductions keep in each lane."""
