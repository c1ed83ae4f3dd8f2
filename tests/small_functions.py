"""Small functions of one array to another, which tests of calls call."""

import tirlite as tl

n = tl.dim("n")


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
