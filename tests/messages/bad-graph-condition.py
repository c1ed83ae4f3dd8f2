import tirlite as tl

g = tl.graph.Builder("net")
x = g.input("x", tl.f32[4])
y = g.if_(g.less(x, 0), x, g.negative(x))
