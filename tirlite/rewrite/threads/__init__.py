"""Passes that make ordinary loops of blocks of threads, virtual threads and barriers."""
