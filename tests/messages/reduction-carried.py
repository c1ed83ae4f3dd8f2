import tirlite as tl

n = tl.dim("n")


@tl.kernel
def last(x: tl.f32[n], y: tl.out[tl.f32[1]]):
    for i in tl.reduce(n):
        y[0] = x[i]


last.lowered  # noqa: B018
