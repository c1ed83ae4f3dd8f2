import tirlite as tl


@tl.kernel
def root(a: tl.f64, y: tl.out[tl.f64[1]]):
    y[0] = tl.call_extern("f64", "cbrt", a)


root.interpret(8.0)
