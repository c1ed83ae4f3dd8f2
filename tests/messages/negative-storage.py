import tirlite as tl

x = tl.graph.Var("x", tl.graph.TensorType((-1, 3), tl.f32))
tl.graph.plan_memory(tl.graph.Function("net", (x,), x))
