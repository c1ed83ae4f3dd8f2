import tirlite as tl

n = tl.dim("n")


@tl.kernel
def kernel(x: tl.f32[n], factor):
    x[0] = factor
