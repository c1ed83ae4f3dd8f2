"""A page on which one looks at a plan: its data, made here, and the scripts that draw them."""
