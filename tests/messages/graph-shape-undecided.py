import tirlite as tl

n, m = tl.dims("n m")
g = tl.graph.Builder("net")
x = g.input("x", tl.f32[n, 3])
y = g.add(x, g.input("y", tl.f32[m, 3]))
