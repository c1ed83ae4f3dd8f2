import tirlite as tl

n = tl.dim("n")


@tl.kernel
def kernel(x: tl.f32[n], *factors: tl.f32):
    x[0] = factors[0]
