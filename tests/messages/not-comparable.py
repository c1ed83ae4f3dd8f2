import tirlite as tl

n = tl.dim("n")


@tl.kernel
def kernel(x: tl.f32[n]):
    x[0] = 1


tl.structural_equal(kernel, kernel.ir)
