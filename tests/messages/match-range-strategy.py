import tirlite as tl


@tl.kernel(match_range=16)
def scale(x: tl.f32[4]):
    x[0] = 2
