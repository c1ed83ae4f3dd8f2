import tirlite as tl

n = tl.dim("n")


@tl.kernel
def doubled(x: tl.f32[n], y: tl.out[tl.f32[n]]):
    for i in tl.parallel(n):
        print("element", i, x[i])
        y[i] = 2 * x[i]
