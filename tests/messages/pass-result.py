import tirlite as tl

func = tl.parse("""
@tl.kernel
def scale(x: tl.f32[4]):
    x[0] = 2
""")


def look(func):
    print(func)


tl.schedule(func).apply(look)
