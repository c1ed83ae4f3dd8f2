import tirlite as tl

n = tl.dim("n")


@tl.kernel
def total(x: tl.f32[n], y: tl.out[tl.f32[1]]):
    y[0] = 0
    for i in tl.reduce(n):
        y[0] += tl.f64(x[i])


total.lowered  # noqa: B018
