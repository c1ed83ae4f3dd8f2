import tirlite as tl

n = tl.dim("n")
theirs = tl.dim("n", max=64)


@tl.kernel
def kernel(x: tl.f32[n], y: tl.f32[theirs]):
    for i in range(n):
        y[i] = x[i]
