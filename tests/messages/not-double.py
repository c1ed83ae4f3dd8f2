import tirlite as tl

n = tl.dim("n")


@tl.kernel
def running(x: tl.f32[n], y: tl.out[tl.f32[n]]):
    last = tl.alloc(tl.f32[1])
    with tl.attr(last, "double_buffer"):
        for i in range(n):
            last[0] = y[max(i - 1, 0)]
            y[i] = last[0] + x[i]


tl.passes.DoubleBuffer()(running.ir)
