"""The way from the allocations of a function to merged ones: split, posed as a problem, planned, and written again."""
