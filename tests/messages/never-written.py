import tirlite as tl

n = tl.dim("n")


@tl.kernel
def copied(x: tl.f32[n], y: tl.f32[n]):
    t = tl.alloc(tl.f32[n])
    for i in range(n):
        y[i] = t[i]


copied.lowered  # noqa: B018
