import numpy as np

import tirlite as tl

n, m = tl.dims("n m")


@tl.kernel
def scale(x: tl.f32[n, m], factor: tl.f32, y: tl.out[tl.f32[n, m]]):
    for i in range(n):
        for j in range(m):
            y[i, j] = x[i, j] * factor


scale(np.ones(3, np.float32), 2)
