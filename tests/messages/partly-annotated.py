import tirlite as tl

g = tl.graph.Builder("net")
x = g.input("x", tl.f32[4])
with g.on(2):
    y = g.exp(x)
    z = g.add(y, y)
tl.graph.plan_memory(g.function(z))
