"""Softmax and its logarithm along any axis."""

from __future__ import annotations

from math import inf

import tirlite as tl
from tirlite.ir import PrimFunc, TensorType
from tirlite.kernels.operators.elementwise import computed_in
from tirlite.kernels.operators.factory import factory
from tirlite.kernels.operators.shapes import around, is_one

BLOCK = 64  # columns that are gone through together


@factory
def softmax(X: TensorType, Y: TensorType, *, axis: int = -1) -> PrimFunc:
    """y = exp(x) / sum of exp(x) along an axis. The greatest x is taken off first, so that exp does not overflow."""
    return _softmax("softmax", X, Y, axis)


@factory
def log_softmax(X: TensorType, Y: TensorType, *, axis: int = -1) -> PrimFunc:
    """y = x - log of the sum of exp(x) along an axis."""
    return _softmax("log_softmax", X, Y, axis)


@tl.inline
def part(value, largest, total):
    return tl.exp(value - largest, fast=True) / total


@tl.inline
def log_part(value, largest, total):
    return value - largest - total


@tl.inline
def growth(value, largest):
    return tl.exp(value - largest, fast=True)


def _softmax(name: str, X: TensorType, Y: TensorType, axis: int) -> PrimFunc:
    build = _along_rows if is_one(around(X, axis)[2]) else _along_columns
    return build(X, Y, axis, name == "log_softmax").replaced(name=name)


def _along_rows(X: TensorType, Y: TensorType, axis: int, logarithm: bool) -> PrimFunc:
    outer, length, _ = around(X, axis)
    kind = computed_in(X.dtype)
    end = log_part if logarithm else part

    @tl.kernel
    def softmax(x: X, y: tl.out[Y]):
        rows = tl.view(x, x.dtype[outer, length])
        results = tl.view(y, y.dtype[outer, length])
        for i in tl.parallel(outer):
            largest = kind(-inf)
            for j in tl.reduce(length):
                largest = max(largest, kind(rows[i, j]))
            total = kind(0)
            for j in tl.reduce(length):
                total += growth(kind(rows[i, j]), largest)
            if tl.static(logarithm):
                total = tl.log(total, fast=True)
            for j in range(length):
                results[i, j] = y.dtype(end(kind(rows[i, j]), largest, total))

    return softmax.ir


def _along_columns(X: TensorType, Y: TensorType, axis: int, logarithm: bool) -> PrimFunc:
    outer, length, inner = around(X, axis)
    kind = computed_in(X.dtype)
    end = log_part if logarithm else part

    @tl.kernel
    def softmax(x: X, y: tl.out[Y]):
        columns = tl.view(x, x.dtype[outer, length, inner])
        results = tl.view(y, y.dtype[outer, length, inner])
        blocks = (inner + BLOCK - 1) // BLOCK
        for piece in tl.parallel(outer * blocks):
            i = piece // blocks
            first = piece % blocks * BLOCK
            some = min(BLOCK, inner - first)
            largest = tl.alloc(kind[BLOCK], scope="local")
            total = tl.alloc(kind[BLOCK], scope="local")
            for q in range(some):
                largest[q] = -inf
                total[q] = 0
            for j in range(length):
                for q in range(some):
                    largest[q] = max(largest[q], kind(columns[i, j, first + q]))
            for j in range(length):
                for q in range(some):
                    total[q] += tl.exp(kind(columns[i, j, first + q]) - largest[q], fast=True)
            if tl.static(logarithm):
                for q in range(some):
                    total[q] = tl.log(total[q], fast=True)
            for j in range(length):
                for q in range(some):
                    results[i, j, first + q] = y.dtype(end(kind(columns[i, j, first + q]), largest[q], total[q]))

    return softmax.ir
