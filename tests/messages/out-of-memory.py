import tirlite as tl


@tl.kernel
def squares(n: tl.i64, y: tl.out[tl.f64[1]]):
    t = tl.alloc(tl.f64[n, n])
    t[0, 0] = 1
    y[0] = t[0, 0]


squares.interpret(1 << 29)
