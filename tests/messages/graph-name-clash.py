import tirlite as tl

g = tl.graph.Builder("net")
a = g.input("layer.0", tl.f32[4])
b = g.input("layer_0", tl.f32[4])
tl.graph.compile(g.function(g.add(a, b)))
