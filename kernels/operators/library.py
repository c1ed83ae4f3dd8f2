"""All cases of the operators' kernels."""

from __future__ import annotations

from tirlite.kernels.operators import (
    arrange_cases,
    conv_cases,
    determinant,
    elementwise_cases,
    fill,
    gather,
    matmul,
    nonzero,
    normalize,
    order,
    pool_cases,
    quantize,
    recurrent,
    reduce,
    resize,
    sampling_cases,
    scatter,
    sequence,
    softmax,
    sort,
    suppression,
)
from tirlite.kernels.operators.case import Case

FAMILIES = (
    *(elementwise_cases, matmul, determinant, conv_cases, pool_cases, reduce, softmax, normalize),
    *(arrange_cases, gather, scatter, order, fill, resize, sampling_cases, quantize, recurrent, sequence),
    *(nonzero, sort, suppression),
)
CASES: tuple[Case, ...] = tuple(case for family in FAMILIES for case in family.CASES)
