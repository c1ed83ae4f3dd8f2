import tirlite as tl

tl.parse("""
n = tl.dim("n")
@tl.kernel
def kernel(x: tl.f32[n])
    x[0] = 1
""")
