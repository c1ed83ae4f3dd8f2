import tirlite as tl

n, m = tl.dims("n m")


@tl.inline
def total(*values):
    return values[0]


@tl.kernel
def kernel(x: tl.f32[n]):
    x[0] = total(x[1], x[2])
