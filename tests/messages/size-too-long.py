import tirlite as tl

n, m, k = tl.dims("n m k")


@tl.kernel
def copied(x: tl.f32[n, m, k], y: tl.out[tl.f32[n]]):
    rows = tl.alloc(tl.f32[n + m + k])
    for i in range(n):
        rows[i] = x[i, 0, 0]
    for i in range(n):
        y[i] = rows[i]


square = copied.plan.total * copied.plan.total
fourth = square * square
eighth = fourth * fourth
eighth * eighth
