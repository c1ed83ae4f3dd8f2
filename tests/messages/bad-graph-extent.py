import tirlite as tl

g = tl.graph.Builder("net")
x = g.reshape(g.input("x", tl.f32[6]), (2.5, 3))
