import tirlite as tl

n, m = tl.dims("n m")


@tl.kernel
def add(x: tl.f32[n], y: tl.f32[n], total: tl.f32[n]):
    for i in range(n):
        total[i] = x[i] + y[i]


@tl.kernel
def kernel(x: tl.f32[n], y: tl.f32[n + 1], total: tl.f32[n]):
    add(x, y, total)
