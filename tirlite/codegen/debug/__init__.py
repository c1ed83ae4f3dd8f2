"""Code that checks itself: a PrimFunc in, instructions that stop at the first thing that is wrong out."""
