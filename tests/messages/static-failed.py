import tirlite as tl

n, m = tl.dims("n m")


TAPS = (1, 2, 1)


@tl.kernel
def kernel(x: tl.f32[n]):
    x[0] = tl.static(TAPS[3])
