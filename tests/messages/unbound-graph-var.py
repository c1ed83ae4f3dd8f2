import tirlite as tl

g, other = tl.graph.Builder("net"), tl.graph.Builder("other")
x = g.relu(other.input("x", tl.f32[4]))
f = g.function(x)
