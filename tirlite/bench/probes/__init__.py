"""Programs that a benchmark runs in processes of their own; each prints what it found as one line of JSON."""
