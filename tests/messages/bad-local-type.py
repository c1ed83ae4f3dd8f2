import tirlite as tl

n, m = tl.dims("n m")


@tl.kernel
def kernel(x: tl.f32[n, m], y: tl.f32[n]):
    total: tl.f32[n] = 0
    y[0] = total
