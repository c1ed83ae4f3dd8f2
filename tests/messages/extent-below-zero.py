import numpy as np

import tirlite as tl

n = tl.dim("n")


@tl.kernel
def trim(x: tl.f32[n], y: tl.out[tl.f32[n]]):
    t = tl.alloc(tl.f32[n - 10])
    for i in range(n - 10):
        t[i] = x[i]
    for i in range(n):
        y[i] = 0


trim.interpret(np.ones(3, np.float32))
