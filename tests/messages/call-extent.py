import numpy as np

import tirlite as tl

n, m = tl.dims("n m")


@tl.kernel
def add(x: tl.f32[n], y: tl.f32[n], total: tl.f32[n]):
    for i in range(n):
        total[i] = x[i] + y[i]


@tl.kernel
def outer(x: tl.f32[n], y: tl.f32[m], total: tl.f32[n]):
    tl.call(add, x, y, total)


outer(*(np.ones(size, np.float32) for size in (4, 5, 4)))
