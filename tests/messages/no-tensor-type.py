import tirlite as tl

g = tl.graph.Builder("net")
pair = tl.graph.TupleType((tl.graph.TensorType((4,), tl.f32), tl.graph.TensorType((4,), tl.f32)))
g.input("p", pair)
