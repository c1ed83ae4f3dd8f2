import tirlite as tl

g = tl.graph.Builder("net")
x = g.input("x", tl.f32[4])
pair = g.tuple(x, g.exp(x))
tl.graph.compile(g.function(pair), keep=[pair])
