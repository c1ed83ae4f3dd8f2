import tirlite as tl


@tl.kernel
def divide(a: tl.i32, b: tl.i32, y: tl.out[tl.i32[1]]):
    y[0] = a // b


divide.interpret(-(2**31), -1)
