import platform

import numpy as np

import tirlite as tl

elsewhere = "x86-64" if platform.machine() in ("aarch64", "arm64") else "aarch64"


@tl.kernel(target=tl.Target(elsewhere))
def doubled(x: tl.f32[4], y: tl.f32[4]):
    for i in range(4):
        y[i] = x[i] * 2


doubled(np.ones(4, "f"), np.ones(4, "f"))
