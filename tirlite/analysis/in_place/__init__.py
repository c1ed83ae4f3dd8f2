"""Which results may take over the places of operands, and why not."""
