import tirlite as tl

n, m = tl.dims("n m")


@tl.kernel
def kernel(x: tl.f32[n, m], y: tl.f32[n]):
    for i in range(n):
        row = tl.alloc(tl.f32[m])
        row[0] = x[i, 0]
    y[0] = row[0]
