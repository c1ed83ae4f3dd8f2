import tirlite as tl

g = tl.graph.Builder("net")
x = g.input("x", tl.f32[4])
tl.graph.compile(g)
