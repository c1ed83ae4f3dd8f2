import tirlite as tl


@tl.kernel
def steps(x: tl.f32[32], y: tl.out[tl.f32[32]]):
    for t in tl.thread("threadIdx.x", 32):
        own = tl.alloc(tl.f32[t + 1], scope="local")
        own[t] = x[t]
        tl.barrier("shared")
        y[t] = own[t]


print(steps.lowered)
