"""Which functions a module consists of, how they are split and outlined, and how they call each other."""
