"""Passes that change which iterations a loop has, or who runs them; what an iteration does stays as it is."""
