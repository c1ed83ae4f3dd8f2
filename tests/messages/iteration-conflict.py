import numpy as np

import tirlite as tl

n = tl.dim("n")


@tl.kernel
def histogram(x: tl.u8[n], counts: tl.i64[256]):
    for i in tl.parallel(n):
        counts[x[i]] += 1


histogram.interpret(np.array([3, 1, 2, 1], np.uint8), np.zeros(256, np.int64))
