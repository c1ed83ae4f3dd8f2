"""What was compiled before, kept on disk for later processes."""
