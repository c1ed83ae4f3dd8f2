"""Small functions of one array to another, which tests call."""

import tirlite as tl

n, m = tl.dims("n m")


@tl.kernel
def relu(x: tl.f32[n], y: tl.f32[n]):
    for i in range(n):
        y[i] = max(x[i], 0)


@tl.kernel
def reverse(x: tl.f32[n], y: tl.f32[n]):
    for i in range(n):
        y[i] = x[n - 1 - i]


@tl.kernel
def sums(x: tl.f32[n], y: tl.f32[n]):
    total = tl.alloc(tl.f32[n + 1])
    total[0] = 0
    for i in range(n):
        total[i + 1] = total[i] + x[i]
    for i in range(n):
        y[i] = total[i + 1]


@tl.kernel
def scale(x: tl.f32[n, m], factor: tl.f32, y: tl.out[tl.f32[n, m]]):
    for i in range(n):
        for j in range(m):
            y[i, j] = x[i, j] * factor


@tl.kernel
def product(x: tl.f32[n], y: tl.out[tl.f32[n]]):
    for i in range(n):
        y[i] = x[i] * x[i]


@tl.kernel
def twice(x: tl.f32[n, m], y: tl.out[tl.f32[n, m]]):
    rows = tl.alloc(tl.f32[n, m])
    for i in range(n):
        for j in range(m):
            rows[i, j] = x[i, j] * 2
    for i in range(n):
        for j in range(m):
            y[i, j] = rows[i, m - 1 - j]
