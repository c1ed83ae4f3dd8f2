import tirlite as tl

n = tl.dim("n")


@tl.kernel
def positive(x: tl.f32[n], y: tl.out[tl.f32[1]]):
    y[0] = 0
    for i in tl.parallel(n):
        if x[i] > 0:
            y[0] += x[i]


positive.lowered  # noqa: B018
