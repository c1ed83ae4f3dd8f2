"""Passes that change which iterations a loop has, or which worker runs them, but not what an iteration does."""
