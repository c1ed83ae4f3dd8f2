import tirlite as tl

n = tl.dim("n")


@tl.kernel
def total(x: tl.f32[n], y: tl.out[tl.f32[1]]):
    y[0] = 0
    for i in tl.parallel(n):
        y[0] += x[i]


total.lowered  # noqa: B018
