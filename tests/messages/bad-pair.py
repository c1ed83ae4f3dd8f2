import tirlite as tl

n = tl.dim("n")


@tl.kernel
def largest(x: tl.f32[n], y: tl.out[tl.i64[1]]):
    top = tl.f32(0)
    at = tl.i64(0)
    for i in tl.reduce(n):
        top, at = tl.argmax(x[i], i)
    y[0] = at
