import tirlite as tl


@tl.kernel
def spread(k: tl.i64, y: tl.out[tl.f64[1]]):
    t = tl.alloc(tl.f64[k, k])
    t[0, 0] = 1
    y[0] = t[0, 0]


spread(-1)
