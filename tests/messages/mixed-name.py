import tirlite as tl

n, m = tl.dims("n m")


@tl.kernel
def kernel(x: tl.f32[n, m], y: tl.f32[n]):
    total = 0.0
    total += y[0]
    for total in tl.parallel(n):
        y[total] = 0
