import tirlite as tl

n = tl.dim("n")


@tl.kernel
def kernel(x: tl.f32[n], y: tl.i32[n]):
    for i in range(n):
        y[i] = x[i] * 2
