import tirlite as tl

n, m = tl.dims("n m")
g = tl.graph.Builder("net")
c = g.input("c", tl.bool_)
y = g.if_(c, g.input("x", tl.f32[n]), g.input("y", tl.f32[m]))
