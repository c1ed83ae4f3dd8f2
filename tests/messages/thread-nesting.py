import numpy as np

import tirlite as tl


@tl.kernel
def copy(x: tl.f32[4, 8], y: tl.out[tl.f32[4, 8]]):
    for t in tl.thread("threadIdx.x", 8):
        for b in tl.thread("blockIdx.x", 4):
            y[b, t] = x[b, t]


copy.interpret(np.ones((4, 8), np.float32))
