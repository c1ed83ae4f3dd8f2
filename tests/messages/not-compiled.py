import tirlite as tl


@tl.kernel
def absolute(x: tl.f16[8], y: tl.out[tl.f16[8]]):
    for i in range(8):
        y[i] = tl.f16(tl.call_extern("f32", "fabsf", x[i]))


print(absolute.llvm)
