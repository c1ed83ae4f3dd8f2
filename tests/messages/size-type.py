import tirlite as tl

kernel = tl.compile(
    tl.parse("""
n = tl.dim("n")

@tl.kernel
def scale(x: tl.f32[n]):
    x[0] = 2
""")
)
kernel.plan_at(n="4")
