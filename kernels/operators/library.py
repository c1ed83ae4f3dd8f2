"""All cases of the operators' kernels."""

from __future__ import annotations

from tirlite.kernels.operators import elementwise_cases, matmul

CASES = (*elementwise_cases.CASES, *matmul.CASES)
