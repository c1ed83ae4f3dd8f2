"""The meanings of products of matrices."""

from __future__ import annotations

import numpy as np

from tirlite.graph.ops.linear import Gemm
from tirlite.graph.reference.meaning import Array, Meaning, plain


def _gemm(attrs: Gemm, a: Array, b: Array, c: Array | None = None) -> Array:
    product = np.matmul(a.T if attrs.trans_a else a, b.T if attrs.trans_b else b)
    result = product if attrs.alpha == 1 else product * a.dtype.type(attrs.alpha)
    if c is None:
        return np.asarray(result)
    return np.asarray(result + (c if attrs.beta == 1 else c * a.dtype.type(attrs.beta)))


LINEAR: dict[str, Meaning] = {"matmul": plain(np.matmul), "gemm": _gemm, "det": plain(np.linalg.det)}
