import tirlite as tl

weights = [1, 2, 1]
n, m = tl.dims("n m")


@tl.kernel
def kernel(x: tl.f32[n, m], y: tl.f32[n]):
    for i in range(n):
        y[i] = x[i, 0] * weights
