"""Plans made anew for each binding of the dims: what stays the same is worked out once."""
