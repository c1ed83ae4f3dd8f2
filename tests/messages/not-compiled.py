import tirlite as tl


@tl.kernel
def threads(y: tl.out[tl.f32[8]]):
    for t in tl.thread("threadIdx.x", 8):
        y[t] = t
        tl.barrier("shared")


threads()
