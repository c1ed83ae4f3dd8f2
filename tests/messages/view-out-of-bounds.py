import numpy as np

import tirlite as tl

n = tl.dim("n")


@tl.kernel
def tail(x: tl.f32[n], y: tl.out[tl.f32[n]]):
    rest = tl.view(x, tl.f32[n], byte_offset=8)
    for i in range(n):
        y[i] = rest[i]


tail.interpret(np.ones(3, np.float32))
