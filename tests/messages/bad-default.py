import tirlite as tl

n = tl.dim("n")


@tl.kernel
def scaled(x: tl.f32[n] = 0, gain: tl.f32 = 1.5):
    for i in range(n):
        x[i] = gain * x[i]
