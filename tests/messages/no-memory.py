import numpy as np

import tirlite as tl


@tl.kernel(strategy="none")
def inside(x: tl.i64[1]):
    size = x[0]
    t = tl.alloc(tl.f64[size, size])
    t[0, 0] = 1


inside(np.array([2**28]))
