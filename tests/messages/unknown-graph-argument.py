import numpy as np

import tirlite as tl

n = tl.dim("n")
g = tl.graph.Builder("net")
x, y = g.input("x", tl.f32[n]), g.input("y", tl.f32[n])
net = tl.graph.compile(g.function(g.add(x, y)))
net(np.zeros(4, np.float32), z=np.zeros(4, np.float32))
