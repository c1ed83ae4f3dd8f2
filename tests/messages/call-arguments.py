import tirlite as tl

n, m = tl.dims("n m")


@tl.inline
def relu(value, low=0):
    return max(value, low)


@tl.kernel
def kernel(x: tl.f32[n], y: tl.f32[n]):
    for i in range(n):
        y[i] = relu(x[i], lo=1)
