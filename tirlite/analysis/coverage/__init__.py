"""Which stores a read sees: what is written before, throughout, and by whom."""
