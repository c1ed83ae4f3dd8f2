"""Whole slots: what shares one, and how they are handed out."""
