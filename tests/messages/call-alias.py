import tirlite as tl

n, m = tl.dims("n m")


@tl.kernel
def smooth(x: tl.f32[n], y: tl.f32[n]):
    for i in range(1, n):
        y[i] = x[i] + x[i - 1]


@tl.kernel
def kernel(x: tl.f32[n]):
    smooth(x, x)
