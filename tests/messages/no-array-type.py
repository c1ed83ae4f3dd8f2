import tirlite as tl

n = tl.dim("n")


@tl.kernel
def kernel(x: tl.f32[n], total: tl.out[tl.f32]):
    total = x[0]
