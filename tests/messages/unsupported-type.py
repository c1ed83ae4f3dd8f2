import tirlite as tl

n = tl.dim("n")


@tl.kernel
def kernel(x: tl.f32[n]):
    addresses = tl.alloc(tl.handle[n])
    x[0] = 0
