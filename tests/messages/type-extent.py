import tirlite as tl

row = tl.f32["n", 4]
