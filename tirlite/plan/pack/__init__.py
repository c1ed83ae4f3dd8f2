"""Packing: finds byte offsets for blocks of one memory, by heuristics."""
