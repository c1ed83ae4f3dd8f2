import tirlite as tl

n, m, k = tl.dims("n m k")
square = (n + m + k) * (n + m + k)
fourth = square * square
eighth = fourth * fourth


@tl.kernel
def copied(x: tl.f32[n, m, k], y: tl.out[tl.f32[n]]):
    rows = tl.alloc(tl.f32[eighth * eighth])
    for i in range(n):
        rows[i] = x[i, 0, 0]
    for i in range(n):
        y[i] = rows[i]


copied.plan
