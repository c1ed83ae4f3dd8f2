import tirlite as tl


@tl.kernel
def half(x: tl.f32[32], y: tl.out[tl.f32[32]]):
    s = tl.alloc(tl.f32[32], scope="shared")
    for t in tl.thread("threadIdx.x", 32):
        s[t] = x[t]
        other = 31 - t
        if other < 16:
            tl.barrier("shared")
            y[t] = s[other]


print(half.lowered)
