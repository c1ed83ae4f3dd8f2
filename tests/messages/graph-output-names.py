import tirlite as tl

x = tl.graph.Var("x", tl.graph.tensor_type(tl.f32[4]))
tl.graph.validate(tl.graph.Function("net", (x,), x, outputs=("a", "b")))
