"""Packing: byte offsets for blocks of one memory, by heuristics. Blocks in, offsets out."""
