import tirlite as tl

n, m = tl.dims("n m")


@tl.kernel
def kernel(x: tl.f32[n, m], y: tl.f32[n]):
    row = tl.alloc(tl.f32[m], align=64)
    row[0] = y[0]
