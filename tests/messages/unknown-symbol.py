import tirlite as tl


@tl.kernel
def outside(y: tl.out[tl.f64[1]]):
    y[0] = tl.call_extern("f64", "no_such_function", 1.0)


outside()
