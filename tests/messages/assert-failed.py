import numpy as np

import tirlite as tl

n = tl.dim("n")


@tl.kernel
def halve(x: tl.f32[n], y: tl.out[tl.f32[n]]):
    assert n % 2 == 0, "n must be even"
    for i in range(n):
        y[i] = x[i] / 2


halve(np.ones(3, np.float32))
