import numpy as np

import tirlite as tl


@tl.kernel
def repeat(x: tl.f32[8], y: tl.out[tl.f32[8]]):
    s = tl.alloc(tl.f32[8], scope="shared")
    for t in tl.thread("threadIdx.x", 8):
        s[t] = x[t]
        y[t] = s[t // 2]


repeat.interpret(np.ones(8, np.float32))
