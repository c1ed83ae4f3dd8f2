import tirlite as tl

n = tl.dim("n")


@tl.kernel
def kernel(x: tl.f32[n], y: tl.f32[n]):
    for i in tl.parallel(n):
        if x[i] < 0:
            break
        y[i] = tl.sqrt(x[i])
