"""How loops are written as statements on vectors: which loops, which lanes, what reductions keep in each of them."""
