"""The operators of graphs: each file defines one, or one family, completely."""
