"""The order of operators that takes the least memory."""
