import tirlite as tl

n = tl.dim("n")
g = tl.graph.Builder("net")
x = g.input("x", tl.f32[n, 3])
y = g.add(x, g.input("y", tl.f32[n, 4]))
