# mypy: ignore-errors
# Numba compiles these functions by their names and types at the call.
"""The workloads of `bench kernels` in Numba's idiom: loops, the outermost one parallel."""

import numpy as np

try:
    from numba import prange
except ImportError:
    prange = range


def matmul(a, b, y):
    for i in prange(a.shape[0]):
        y[i, :] = 0
        for p in range(a.shape[1]):
            for j in range(b.shape[1]):
                y[i, j] += y.dtype.type(a[i, p]) * y.dtype.type(b[p, j])


def chain(a, b, c, y):
    for i in prange(a.size):
        y[i] = np.exp(a[i] * b[i] + c[i]) * np.tanh(a[i])


def softmax(x, y):
    for i in prange(x.shape[0]):
        top = x[i, 0]
        for j in range(x.shape[1]):
            top = max(top, x[i, j])
        total = np.float32(0)
        for j in range(x.shape[1]):
            y[i, j] = np.exp(x[i, j] - top)
            total += y[i, j]
        for j in range(x.shape[1]):
            y[i, j] /= total


def layer_norm(x, gain, shift, y):
    count = np.float32(x.shape[1])
    for i in prange(x.shape[0]):
        mean = np.float32(0)
        for j in range(x.shape[1]):
            mean += x[i, j]
        mean /= count
        squares = np.float32(0)
        for j in range(x.shape[1]):
            squares += (x[i, j] - mean) * (x[i, j] - mean)
        scale = np.float32(1) / np.sqrt(squares / count + np.float32(1e-5))
        for j in range(x.shape[1]):
            y[i, j] = (x[i, j] - mean) * scale * gain[j] + shift[j]


def depthwise(x, weights, y):
    for c in prange(y.shape[0]):
        for i in range(y.shape[1]):
            for j in range(y.shape[2]):
                total = np.float32(0)
                for p in range(3):
                    for q in range(3):
                        total += weights[c, p, q] * x[c, i + p, j + q]
                y[c, i, j] = total


def blur(image, y):
    for i in prange(y.shape[0]):
        for j in range(y.shape[1]):
            total = np.float32(0)
            for p in range(3):
                total += image[i + p, j] + image[i + p, j + 1] + image[i + p, j + 2]
            y[i, j] = total * np.float32(1 / 9)


def jacobi(start, steps, y):
    before = start.copy()
    y[:] = start
    for _ in range(steps):
        for i in prange(1, len(y) - 1):
            for j in range(1, len(y) - 1):
                y[i, j] = 0.25 * (before[i, j - 1] + before[i, j + 1] + before[i - 1, j] + before[i + 1, j])
        before[:] = y


def sum_all(x, y):
    found = np.float32(0)
    for i in prange(x.size):
        found += x[i]
    y[0] = found


def spmv(values, columns, starts, x, y):
    for i in prange(len(y)):
        found = np.float32(0)
        for p in range(starts[i], starts[i + 1]):
            found += values[p] * x[columns[p]]
        y[i] = found
