import tirlite as tl

names = {"tl": tl}
exec("def kernel(x: tl.f32[1]): x[0] = 1", names)
tl.kernel(names["kernel"])
