"""Caches of imported models and lowered graphs, in front of the cache of code, for later processes."""
