import tirlite as tl

n = tl.dim("n")


@tl.kernel
def cleared(y: tl.f32[n]):
    for i in range(n + 1):
        y[i] = 0


cleared.lowered  # noqa: B018
