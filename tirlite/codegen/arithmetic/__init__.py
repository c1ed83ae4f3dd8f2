"""What instructions an operation on values is made of."""
