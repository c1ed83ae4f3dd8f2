import tirlite as tl


@tl.kernel
def twice(x: tl.f32[2, 8], y: tl.out[tl.f32[2, 8]]):
    for v in tl.thread("vthread", 2):
        for i in range(8):
            y[v, i] = x[v, i] * 2


tl.passes.StorageRewrite()(twice.ir)
