import tirlite as tl


@tl.kernel
def twice(a: tl.i32, times: tl.i32, y: tl.out[tl.i32[1]]):
    y[0] = a << times


twice.interpret(1, 32)
