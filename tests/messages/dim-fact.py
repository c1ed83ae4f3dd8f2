import numpy as np

import tirlite as tl

k = tl.dim("k", max=64, multiple_of=8)


@tl.kernel
def clear(x: tl.f32[k]):
    for i in range(k):
        x[i] = 0


clear(np.ones(12, np.float32))
