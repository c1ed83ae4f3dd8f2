"""All cases of the library, in the order of the documentation."""

from __future__ import annotations

from tirlite.kernels import (
    argmax,
    attention,
    block_matmul,
    block_sum,
    block_transpose,
    blur,
    chain,
    convolution,
    harris,
    histogram,
    jacobi,
    layer_norm,
    matmul,
    matmul_i8,
    prefix_sum,
    softmax,
    sparse,
)

CASES = (
    *chain.CASES,
    *matmul.CASES,
    *matmul_i8.CASES,
    *softmax.CASES,
    *layer_norm.CASES,
    *attention.CASES,
    *argmax.CASES,
    *prefix_sum.CASES,
    *sparse.CASES,
    *convolution.CASES,
    *blur.CASES,
    *jacobi.CASES,
    *histogram.CASES,
    *harris.CASES,
    *block_matmul.CASES,
    *block_sum.CASES,
    *block_transpose.CASES,
)
