import numpy as np

import tirlite as tl

n = tl.dim("n")


@tl.kernel
def total(x: tl.f32[n], y: tl.out[tl.f32[1]]):
    for i in range(n):
        y[0] += x[i]


total(np.ones(3, np.float32))
