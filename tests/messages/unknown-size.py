import tirlite as tl

n, m = tl.dims("n m")


@tl.kernel
def twice(x: tl.f32[n, m], y: tl.out[tl.f32[n, m]]):
    rows = tl.alloc(tl.f32[n, m])
    for i in range(n):
        for j in range(m):
            rows[i, j] = x[i, j] * 2
    for i in range(n):
        for j in range(m):
            y[i, j] = rows[i, m - 1 - j]


twice.plan_at(n=4, k=8)
