import tirlite as tl

n = tl.dim("n")


@tl.kernel
def kernel(x: tl.f32[n]):
    half = tl.alloc(tl.bf16[n])
    half[0] = x[0]
