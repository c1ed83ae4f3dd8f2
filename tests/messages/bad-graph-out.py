import numpy as np

import tirlite as tl

n = tl.dim("n")
g = tl.graph.Builder("net")
x = g.input("x", tl.f32[n])
net = tl.graph.compile(g.function({"up": g.ceil(x), "down": g.floor(x)}))
net(np.zeros(4, np.float32), out=np.zeros(4, np.float32))
