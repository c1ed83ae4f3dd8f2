import tirlite as tl


@tl.kernel
def copy(x: tl.f32[64], y: tl.f32[64]):
    t = tl.alloc(tl.f32[64], scope="local.UB")
    for i in range(64):
        t[i] = x[i]
    for i in range(64):
        y[i] = t[i]


copy.plan
