"""The storage of a graph's tensors: what lives when, as a problem for the planner, and GraphPlanMemory."""
