import numpy as np

import tirlite as tl


@tl.kernel
def halve(x: tl.f32[8], y: tl.out[tl.f32[8]]):
    for t in tl.thread("threadIdx.x", 8):
        if x[t] > 0:
            tl.barrier("shared")
        y[t] = x[t] / 2


halve.interpret(np.arange(8, dtype=np.float32))
