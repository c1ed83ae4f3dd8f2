import tirlite as tl

n, m = tl.dims("n m")


@tl.kernel
def kernel(x: tl.f32[n]):
    for k in tl.static(3):
        x[0] += k
