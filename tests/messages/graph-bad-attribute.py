import tirlite as tl

g = tl.graph.Builder("net")
x = g.clip(g.input("x", tl.i32[4]), low=0.5)
