import tirlite as tl

n = tl.dim("n")


@tl.kernel
def bounded(x: tl.f32[n], y: tl.out[tl.f32[1]]):
    y[0] = 0
    for i in tl.reduce(n):
        y[0] += x[i]
        y[0] = min(y[0], 100)


bounded.lowered  # noqa: B018
