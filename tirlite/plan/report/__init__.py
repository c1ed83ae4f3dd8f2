"""What a plan tells: in words, as a chart, and why none fits."""
