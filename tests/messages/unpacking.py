import tirlite as tl

n, m = tl.dims("n m")


@tl.inline
def both(a, b):
    return a + b, a - b


@tl.kernel
def kernel(x: tl.f32[n]):
    a, b, c = both(x[0], x[1])
