import numpy as np

import tirlite as tl

n, m = tl.dims("n m")


@tl.kernel
def clear(y: tl.f32[n, m]):
    first = tl.view(y, tl.f32[1])
    first[0] = 0


clear(np.ones((3, 2), np.float32).T)
