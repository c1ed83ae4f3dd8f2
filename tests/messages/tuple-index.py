import tirlite as tl

n, m = tl.dims("n m")


TAPS = (1, 2, 1)


@tl.kernel
def kernel(x: tl.f32[n]):
    for k in range(3):
        x[k] *= TAPS[k]
