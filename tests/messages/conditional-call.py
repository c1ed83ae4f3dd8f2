import tirlite as tl

n, m = tl.dims("n m")


@tl.inline
def total(x):
    s = 0
    for i in range(x.shape[0]):
        s += x[i]
    return s


@tl.kernel
def kernel(x: tl.f32[n], y: tl.f32[n]):
    for i in range(n):
        y[i] = total(x) if i > 0 else 0
