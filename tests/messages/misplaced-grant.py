import tirlite as tl

n = tl.dim("n")


@tl.allow("contract")
@tl.kernel
def kernel(x: tl.f32[n], y: tl.f32[n]):
    for i in range(n):
        y[i] = x[i] * x[i] + 1
