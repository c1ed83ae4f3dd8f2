import tirlite as tl

g = tl.graph.Builder("net")
tl.graph.compile(g.function(g.exp(g.input("x", tl.f32[4]))), order="size")
