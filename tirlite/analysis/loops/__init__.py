"""What is known of loops: the order that their accesses demand, the reductions in them, and how much they do."""
