import tirlite as tl


@tl.kernel
def halve(x: tl.f32[32], y: tl.out[tl.f32[32]]):
    for t in tl.thread("threadIdx.x", 32):
        y[t] = x[t]
        while y[t] > 1:
            y[t] = y[t] / 2
            tl.barrier("shared")


print(halve.lowered)
