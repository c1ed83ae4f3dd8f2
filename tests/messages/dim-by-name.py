import numpy as np

import tirlite as tl

n, rows = tl.dims("n rows")


@tl.kernel
def repeated(x: tl.f32[n], y: tl.out[tl.f32[rows, n]]):
    for i in range(rows):
        for j in range(n):
            y[i, j] = x[j]


repeated(np.ones(3, np.float32), rows=-1)
