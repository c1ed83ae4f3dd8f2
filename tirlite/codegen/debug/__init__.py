"""Makes code that checks itself of a PrimFunc: instructions that stop at the first thing that is wrong."""
