import tirlite as tl

n = tl.dim("n")


@tl.kernel
def copy(x: tl.f32[n], y: tl.f32[n]):
    t = tl.alloc(tl.f32[n], scope="local.UB")
    for i in range(n):
        t[i] = x[i]
    for i in range(n):
        y[i] = t[i]


target = tl.Target.host().with_memory("local.UB", tl.MemoryInfo(8, 256, 1 << 20, None))
tl.passes.StorageRewrite(target=target)(copy.ir)
