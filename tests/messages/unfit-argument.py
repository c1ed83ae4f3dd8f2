import numpy as np

import tirlite as tl
from tirlite.interp import interpret

n = tl.dim("n")


@tl.kernel
def clear(x: tl.f32[n]):
    for i in range(n):
        x[i] = 0


interpret(clear.ir, {clear.ir.params[0]: np.ones(3), clear.ir.dims[0]: 3})
