import tirlite as tl

g = tl.graph.Builder("net")
x = g.input("x", tl.graph.TensorType((4, -3), tl.f32))
