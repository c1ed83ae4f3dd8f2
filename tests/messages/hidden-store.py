import tirlite as tl

n, m = tl.dims("n m")


@tl.inline
def take(x, i):
    value = x[i]
    x[i] = 0
    return value


@tl.kernel
def kernel(x: tl.f32[n], y: tl.f32[n]):
    for i in range(n):
        y[i] = take(x, i) + x[i]
