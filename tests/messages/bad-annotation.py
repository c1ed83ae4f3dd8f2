import tirlite as tl

n = tl.dim("n")


@tl.kernel
def kernel(x: tl.f32[n], y: list):
    y[0] = x[0]
