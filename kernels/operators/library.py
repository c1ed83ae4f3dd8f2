"""All cases of the operators' kernels."""

from __future__ import annotations

from tirlite.kernels.operators import conv_cases, elementwise_cases, matmul, pool_cases

CASES = (*elementwise_cases.CASES, *matmul.CASES, *conv_cases.CASES, *pool_cases.CASES)
