"""What a compiled search takes: nodes in a few milliseconds, and the largest sum of sizes; larger ones could wrap."""

SLICE = 1_000
LARGEST = 1 << 60
