"""All cases of the operators' kernels."""

from __future__ import annotations

from tirlite.kernels.operators import (
    arrange_cases,
    conv_cases,
    elementwise_cases,
    gather,
    matmul,
    normalize,
    order,
    pool_cases,
    reduce,
    scatter,
    softmax,
)
from tirlite.kernels.operators.case import Case

FAMILIES = (
    *(elementwise_cases, matmul, conv_cases, pool_cases, reduce, softmax, normalize),
    *(arrange_cases, gather, scatter, order),
)
CASES: tuple[Case, ...] = tuple(case for family in FAMILIES for case in family.CASES)
