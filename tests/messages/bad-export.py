import tirlite as tl

n = tl.dim("n")


@tl.kernel
def doubled(x: tl.f32[n], y: tl.out[tl.f32[n]]):
    for i in range(n):
        y[i] = 2 * x[i]


doubled.export("build", target="arm")
