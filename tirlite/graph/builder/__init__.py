"""The builder of graphs: one class of methods for each family of operators, and the Builder that joins them."""
