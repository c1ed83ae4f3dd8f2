import tirlite as tl

n = tl.dim("n")


@tl.kernel
def running(x: tl.f32[n], y: tl.out[tl.f32[n]]):
    total = tl.f32(0)
    for i in tl.reduce(n):
        total += x[i]
        y[i] = total


running.lowered  # noqa: B018
