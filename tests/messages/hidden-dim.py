import tirlite as tl

n, h = tl.dims("n h")


@tl.kernel
def kernel(x: tl.f32[h], n: tl.i64, y: tl.out[tl.f32[n]]):
    for i in range(n):
        y[i] = x[i]
