import tirlite as tl

g = tl.graph.Builder("net")
x = g.relu("x")
