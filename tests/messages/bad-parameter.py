import tirlite as tl

n = tl.dim("n")


@tl.kernel
def kernel(x: tl.f32[n], factor: tl.f32 = 2):
    x[0] = factor
