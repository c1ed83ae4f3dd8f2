"""The kernels of the graph level's operators: a factory takes types and attributes, and gives a function of the IR.

Each factory takes the types of the operator's operands in order (None for an optional one that is absent), then those
of its results, then its attributes by keyword. The parameters of the function are the operands that are there, then the
results. Extents are integers or expressions of dims.
"""
