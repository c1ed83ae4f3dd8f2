"""Packing of symbolic sizes: orders of blocks, and offsets that hold for all values of the dims."""
