import numpy as np

import tirlite as tl

g = tl.graph.Builder("net")
x, at = g.input("x", tl.f32[4]), g.input("at", tl.i64[2])
f = g.function(g.gather(x, at, 0))
tl.graph.evaluate(f, np.zeros(4, np.float32), np.array([0, 9]))
