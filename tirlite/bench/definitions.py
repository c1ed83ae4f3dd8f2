# mypy: ignore-errors
# Annotations like `tl.f32[n]` are not types to mypy.
"""The kernels of `bench kernels`: definitions with reductions and permissions, without schedules."""

from __future__ import annotations

from math import inf

import tirlite as tl

n, m, k = tl.dims("n m k")
height, width, channels, filters = tl.dims("height width channels filters")


def _product(element, total, allow):
    @tl.kernel(allow=allow)
    def matmul(a: element[n, k], b: element[k, m], y: tl.out[total[n, m]]):
        for i in range(n):
            for j in range(m):
                y[i, j] = 0
                for p in tl.reduce(k):
                    y[i, j] += total(a[i, p]) * total(b[p, j])

    return matmul


matmul_f32 = _product(tl.f32, tl.f32, "contract")
matmul_f64 = _product(tl.f64, tl.f64, "contract")
matmul_i8 = _product(tl.i8, tl.i32, ())


@tl.kernel(allow=("contract", "approximate"))
def chain(a: tl.f32[n], b: tl.f32[n], c: tl.f32[n], y: tl.out[tl.f32[n]]):
    for i in range(n):
        y[i] = tl.exp(a[i] * b[i] + c[i]) * tl.tanh(a[i])


@tl.kernel(allow=("contract", "approximate"))
def softmax(x: tl.f32[n, m], y: tl.out[tl.f32[n, m]]):
    for i in range(n):
        top = tl.f32(-inf)
        for j in tl.reduce(m):
            top = max(top, x[i, j])
        total = tl.f32(0)
        for j in tl.reduce(m):
            y[i, j] = tl.exp(x[i, j] - top)
            total += y[i, j]
        for j in range(m):
            y[i, j] = y[i, j] / total


@tl.kernel(allow="contract")
def layer_norm(x: tl.f32[n, m], gain: tl.f32[m], shift: tl.f32[m], y: tl.out[tl.f32[n, m]]):
    for i in range(n):
        total = tl.f32(0)
        for j in tl.reduce(m):
            total += x[i, j]
        mean = total / tl.f32(m)
        squares = tl.f32(0)
        for j in tl.reduce(m):
            squares += (x[i, j] - mean) * (x[i, j] - mean)
        scale = 1 / tl.sqrt(squares / tl.f32(m) + tl.f32(1e-5))
        for j in range(m):
            y[i, j] = (x[i, j] - mean) * scale * gain[j] + shift[j]


@tl.kernel(allow="contract")
def convolution(
    x: tl.f32[channels, height + 2, width + 2],
    weights: tl.f32[filters, channels, 3, 3],
    y: tl.out[tl.f32[filters, height, width]],
):
    for f in range(filters):
        for i in range(height):
            for j in range(width):
                y[f, i, j] = 0
                for c in tl.reduce(channels):
                    for p in tl.reduce(3):
                        for q in tl.reduce(3):
                            y[f, i, j] += weights[f, c, p, q] * x[c, i + p, j + q]


@tl.kernel(allow="contract")
def depthwise(
    x: tl.f32[channels, height + 2, width + 2],
    weights: tl.f32[channels, 3, 3],
    y: tl.out[tl.f32[channels, height, width]],
):
    for c in range(channels):
        for i in range(height):
            for j in range(width):
                y[c, i, j] = 0
                for p in tl.reduce(3):
                    for q in tl.reduce(3):
                        y[c, i, j] += weights[c, p, q] * x[c, i + p, j + q]


@tl.kernel(allow="contract")
def blur(image: tl.f32[n + 2, m + 2], y: tl.out[tl.f32[n, m]]):
    rows = tl.alloc(tl.f32[n + 2, m])
    for i in range(n + 2):
        for j in range(m):
            rows[i, j] = image[i, j] + image[i, j + 1] + image[i, j + 2]
    for i in range(n):
        for j in range(m):
            y[i, j] = (rows[i, j] + rows[i + 1, j] + rows[i + 2, j]) * tl.f32(1 / 9)


@tl.kernel
def blur_u8(image: tl.u8[n + 2, m + 2], y: tl.out[tl.u8[n, m]]):
    rows = tl.alloc(tl.u16[n + 2, m])
    for i in range(n + 2):
        for j in range(m):
            rows[i, j] = tl.u16(image[i, j]) + tl.u16(image[i, j + 1]) + tl.u16(image[i, j + 2])
    for i in range(n):
        for j in range(m):
            y[i, j] = tl.u8((rows[i, j] + rows[i + 1, j] + rows[i + 2, j]) // 9)


@tl.kernel
def jacobi(start: tl.f64[n, n], steps: tl.i64, y: tl.out[tl.f64[n, n]]):
    before = tl.alloc(tl.f64[n, n])
    for i in range(n):
        for j in range(n):
            y[i, j] = start[i, j]
    for _ in range(steps):
        for i in range(n):
            for j in range(n):
                before[i, j] = y[i, j]
        for i in range(1, n - 1):
            for j in range(1, n - 1):
                y[i, j] = 0.25 * (before[i, j - 1] + before[i, j + 1] + before[i - 1, j] + before[i + 1, j])


@tl.kernel(allow=("contract", "approximate", "rescale"))
def attention(q: tl.f32[channels, n, k], keys: tl.f32[channels, n, k], v: tl.f32[channels, n, k],
              y: tl.out[tl.f32[channels, n, k]]):  # fmt: skip
    for head in range(channels):
        for i in range(n):
            scores = tl.alloc(tl.f32[n])
            top = tl.f32(-inf)
            for j in range(n):
                scores[j] = 0
                for p in tl.reduce(k):
                    scores[j] += q[head, i, p] * keys[head, j, p]
            for j in tl.reduce(n):
                top = max(top, scores[j])
            total = tl.f32(0)
            for j in tl.reduce(n):
                scores[j] = tl.exp((scores[j] - top) / tl.sqrt(tl.f32(k)))
                total += scores[j]
            for p in range(k):
                y[head, i, p] = 0
                for j in tl.reduce(n):
                    y[head, i, p] += scores[j] * v[head, j, p]
                y[head, i, p] = y[head, i, p] / total


@tl.kernel
def total(x: tl.f32[n], y: tl.out[tl.f32[1]]):
    y[0] = 0
    for i in tl.reduce(n):
        y[0] += x[i]


@tl.kernel
def argmax(x: tl.f32[n], y: tl.out[tl.i64[1]]):
    top = tl.f32(-inf)
    at = tl.i64(0)
    for i in tl.reduce(n):
        top, at = tl.argmax((top, at), (x[i], i))
    y[0] = at


@tl.kernel
def histogram(x: tl.u8[n], y: tl.out[tl.i64[256]]):
    for i in range(256):
        y[i] = 0
    for i in tl.reduce(n):
        y[x[i]] += 1


@tl.kernel(allow="contract")
def harris(image: tl.f32[n + 4, m + 4], y: tl.out[tl.f32[n, m]]):
    dx = tl.alloc(tl.f32[n + 2, m + 2])
    dy = tl.alloc(tl.f32[n + 2, m + 2])
    for i in range(n + 2):
        for j in range(m + 2):
            right = image[i, j + 2] + 2 * image[i + 1, j + 2] + image[i + 2, j + 2]
            below = image[i + 2, j] + 2 * image[i + 2, j + 1] + image[i + 2, j + 2]
            dx[i, j] = right - (image[i, j] + 2 * image[i + 1, j] + image[i + 2, j])
            dy[i, j] = below - (image[i, j] + 2 * image[i, j + 1] + image[i, j + 2])
    for i in range(n):
        for j in range(m):
            xx = tl.f32(0)
            xy = tl.f32(0)
            yy = tl.f32(0)
            for p in tl.reduce(3):
                for q in tl.reduce(3):
                    xx += dx[i + p, j + q] * dx[i + p, j + q]
                    xy += dx[i + p, j + q] * dy[i + p, j + q]
                    yy += dy[i + p, j + q] * dy[i + p, j + q]
            y[i, j] = xx * yy - xy * xy - tl.f32(0.04) * (xx + yy) * (xx + yy)


@tl.kernel(allow="contract")
def spmv(values: tl.f32[k], columns: tl.i32[k], starts: tl.i32[n + 1], x: tl.f32[n], y: tl.out[tl.f32[n]]):
    for i in range(n):
        t = tl.f32(0)
        for p in tl.reduce(starts[i], starts[i + 1]):
            t += values[p] * x[columns[p]]
        y[i] = t


@tl.kernel
def forks(nothing: tl.i64[1], times: tl.i64, y: tl.i64[16]):
    """Runs `times` parallel loops one after the other, so that the cost of starting them is measured.

    That their inner loops are empty is known only at run time.
    """
    for _ in range(times):
        for i in tl.parallel(16):
            for a in range(nothing[0]):
                for b in range(nothing[0]):
                    for c in range(nothing[0]):
                        for d in range(nothing[0]):
                            y[i] += a + b + c + d
