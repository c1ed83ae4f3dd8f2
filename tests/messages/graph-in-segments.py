import tirlite as tl

g = tl.graph.Builder("net")
zero, one = g.constant(0), g.constant(1)
net = tl.graph.compile(g.function(g.exp(g.cast(g.range(zero, one, g.extent(g.input("k", tl.i64))), tl.f32))))
print(net.plan)
