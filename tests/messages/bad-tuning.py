import numpy as np

import tirlite as tl

n = tl.dim("n")


@tl.kernel
def product(x: tl.f32[n], y: tl.out[tl.f32[n]]):
    for i in range(n):
        y[i] = x[i] * x[i]


tl.autotune(product, np.ones(3, np.float32), rounds=0)
