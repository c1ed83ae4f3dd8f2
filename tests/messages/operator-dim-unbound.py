import tirlite as tl

n, m = tl.dim("n", max=32), tl.dim("m")
g = tl.graph.Builder("net")
x, y = g.input("x", tl.f32[64, m]), g.input("y", tl.f32[n])
tl.graph.compile(g.function([g.slice(x, [n], [n + 4]), y]))
