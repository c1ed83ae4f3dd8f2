"""Strategies, one a file: each takes a Problem and returns a Plan."""
