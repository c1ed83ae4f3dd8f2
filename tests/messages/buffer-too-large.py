import tirlite as tl


@tl.kernel(strategy="none")
def huge(y: tl.out[tl.f64[1]]):
    t = tl.alloc(tl.f64[2**61 + 128])
    t[0] = 1
    y[0] = t[0]


huge()
