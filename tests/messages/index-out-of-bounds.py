import numpy as np

import tirlite as tl

n = tl.dim("n")


@tl.kernel
def shift(x: tl.f32[n], y: tl.out[tl.f32[n]]):
    for i in range(n):
        y[i] = x[i + 1]


shift.interpret(np.ones(3, np.float32))
