"""Which functions a module is made of, how they are cut and outlined, and how they call each other."""
