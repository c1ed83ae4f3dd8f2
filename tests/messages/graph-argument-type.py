import numpy as np

import tirlite as tl

n = tl.dim("n", max=8)
g = tl.graph.Builder("net")
x, y = g.input("x", tl.f32[n, n]), g.input("y", tl.f32[n])
f = g.function(g.add(x, y))
tl.graph.evaluate(f, np.zeros((4, 4)), np.zeros(4))
