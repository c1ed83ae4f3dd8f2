import tirlite as tl

n, m = tl.dims("n m")


@tl.inline
def power(x, k):
    return x * power(x, k)


@tl.kernel
def kernel(x: tl.f32[n]):
    x[0] = power(x[0], 3)
