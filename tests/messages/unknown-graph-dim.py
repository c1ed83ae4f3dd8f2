import tirlite as tl

n, m = tl.dims("n m")
g = tl.graph.Builder("net")
x = g.input("x", tl.f32[n, 1])
y = g.broadcast_to(x, [n, m])
f = g.function(y)
