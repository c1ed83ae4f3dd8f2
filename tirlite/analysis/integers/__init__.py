"""What the integers of a function can be: as sizes over unknowns, and where two of them can be equal."""
