"""All cases of the library, in the order of the documentation."""

from __future__ import annotations

from tirlite.kernels import blur, chain, harris, histogram, jacobi, matmul, softmax

CASES = (
    *chain.CASES,
    *matmul.CASES,
    *softmax.CASES,
    *blur.CASES,
    *jacobi.CASES,
    *histogram.CASES,
    *harris.CASES,
)
