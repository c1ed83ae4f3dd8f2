"""tirlite: a storage-planning compiler for loop-nest kernels."""
