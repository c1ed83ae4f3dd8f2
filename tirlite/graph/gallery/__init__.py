"""Networks built by hand, for docs, tests and benchmarks."""
