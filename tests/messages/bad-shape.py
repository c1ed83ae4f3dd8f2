from __future__ import annotations

import tirlite as tl

n = tl.dim("n")


@tl.kernel
def kernel(x: tl.f32[n], y: tl.f32[n, 0.5]):
    y[0, 0] = x[0]
